"""Weights that cost money: a preferred pool whose cheapest node costs many times as much as that of the next."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.catalog.pricing import cheapest_launch_price
from karpool.model.labels import ARCH
from karpool.model.nodepool import NodePool
from karpool.wire.problems import Flaw

# Spot costs about a third of on-demand, and preferring on-demand is no mistake.
SEVERAL_TIMES: Final = 4.0
_ORDINARY: Final = ("cpu", "memory", "pods", "ephemeral-storage")


class _Offer(NamedTuple):
    """The cheapest node that a pool can buy for an architecture."""

    price: float
    name: str
    ordinary: bool


def expensive_favourites(pools: Sequence[NodePool], catalog: Catalog) -> Iterator[tuple[NodePool, Flaw]]:
    """Pools that are preferred to a pool that would run the same ordinary pods for a fraction of the price."""
    offers = {pool.name: _offers(pool, catalog) for pool in pools if _open_to_all(pool)}
    for heavy in pools:
        if heavy.name not in offers or heavy.spec.limits:
            continue
        lighter = [pool for pool in pools if pool.name in offers and pool.weight < heavy.weight]
        warnings = (_compared(heavy, light, offers[heavy.name], offers[light.name]) for light in lighter)
        worst = max(filter(None, warnings), default=None)
        if worst is not None:
            yield heavy, Flaw("spec.weight", "DearFavourite", worst[1])


def _open_to_all(pool: NodePool) -> bool:
    """Whether a pod that asks for nothing special gets nodes of the pool."""
    return not pool.static and all(taint.effect == "PreferNoSchedule" for taint in pool.spec.template.spec.taints)


def _offers(pool: NodePool, catalog: Catalog) -> dict[str, _Offer]:
    wanted = pool.requirements
    cheapest: dict[str, _Offer] = {}
    for entry in catalog.types:
        price = cheapest_launch_price(entry, wanted, catalog=catalog) if entry.meets(wanted) else None
        if price is None:
            continue
        offer = _Offer(price, entry.name, _is_ordinary(entry))
        for arch in entry.requirements[ARCH].values if ARCH in entry.requirements else ("",):
            cheapest[arch] = min(offer, cheapest.get(arch, offer))
    return cheapest


def _is_ordinary(entry: InstanceType) -> bool:
    return all(name in _ORDINARY or not amount.nano for name, amount in entry.capacity.items())


def _compared(
    heavy: NodePool, light: NodePool, expensive: dict[str, _Offer], cheap: dict[str, _Offer]
) -> tuple[float, str] | None:
    """How many times as much the preferred pool costs, and a warning, where that is many times."""
    for arch in sorted(expensive.keys() & cheap.keys()):
        preferred, other = expensive[arch], cheap[arch]
        if not other.ordinary or preferred.price < SEVERAL_TIMES * other.price:
            continue
        times = preferred.price / other.price if other.price else float("inf")
        warning = (
            f"{heavy.weight} puts it before NodePool {light.name} ({light.weight}), yet its cheapest node, "
            f"{preferred.name}, costs {preferred.price:.4g} $/h and that of {light.name}, {other.name}, "
            f"{other.price:.4g}: every small pod that needs a new node gets the expensive one"
        )
        return times, warning
    return None
