"""What a catalogue does not know, in sentences: before anybody wonders why nothing is launched or priced."""

from collections.abc import Iterable, Iterator

from karpool.catalog.instance_types import Catalog, PriceOrigin, unknown_labels
from karpool.model.nodepool import NodePool


def unmet_labels(pools: Iterable[NodePool], catalog: Catalog) -> Iterator[str]:
    """Pools that require a label that no type is known to have, so that no node can be launched for them."""
    launched = [entry for entry in catalog.types if not entry.observed]
    for pool in pools:
        wanted = pool.requirements
        missing = [set(unknown_labels(wanted, entry)) for entry in launched]
        everywhere = set.intersection(*missing) if missing else set()
        for key in sorted(everywhere):
            why = "the catalogue does not know this label, and no node of the pool shows it"
            yield f"NodePool {pool.name}: no known type meets {key} {wanted[key]}: {why}"


def idle_discounts(discounts: Iterable[str], origins: Iterable[PriceOrigin]) -> Iterator[str]:
    """Discounts for clouds or regions whose prices are not used here."""
    in_force = {text for origin in origins for text in origin.discounts}
    for text in map(str.strip, discounts):
        if text not in in_force:
            yield f"--discount {text} changes nothing: none of the prices are of {text.partition('/')[0]}"


def unpriced_regions(catalog: Catalog) -> Iterator[str]:
    """Regions whose machines are known and whose prices are not."""
    for origin in catalog.origins:
        if not origin.known:
            where = f"{origin.cloud} {origin.region}"
            update = f"karpool catalog update --cloud {origin.cloud} --region {origin.region} -o prices.json"
            yield (
                f"no price list covers {where}: what nodes cost there is not known;"
                f" --price can say it, a price of --groups, or --catalog with what `{update}` writes"
            )


def unlisted_zones(catalog: Catalog) -> Iterator[str]:
    """Zones that nodes name by ids which the price list of their region does not have."""
    for origin in catalog.origins:
        if origin.unlisted_zones:
            listed = ", ".join(origin.unlisted_zones)
            yield (
                f"no price list of {origin.cloud} {origin.region} has the zone {listed}, which nodes show:"
                " spot prices there are the median of the region"
            )
