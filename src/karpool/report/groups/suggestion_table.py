"""What to have instead of node groups in a terminal, with manifests to start from."""

from collections.abc import Iterable, Iterator

import yaml

from karpool.disruption.policies import HAIR
from karpool.report.formatting import amounts, count, names_of, per_month
from karpool.report.plans.document import FleetPart, GroupSuggestionPart, PoolSuggestionPart, SuggestionsPart
from karpool.report.table_layout import TableColumn
from karpool.report.terminal import Screen, right, wrapped

Part = PoolSuggestionPart | GroupSuggestionPart


def print_suggestions(part: SuggestionsPart, screen: Screen, *, groups: bool) -> None:
    """What would hold the same pods, and manifests to start from; `groups`: whether there are node groups at all."""
    screen.heading("What would hold the same pods instead, if all of them moved")
    if not part.pools:
        unknown = "No machines are known that could take the place of those of the node groups."
        screen.line(unknown if groups else "There are no node groups.")
        return
    listed = list(_alternatives(part))
    prices = iter(amounts(price for entry in listed for price in (entry.price_per_hour, entry.fleet.price_per_hour)))
    rows = [_row(entry, screen, next(prices), next(prices)) for entry in listed]
    instead = TableColumn("in the place of", spare=1)
    columns = (
        "what",
        instead,
        right("nodes"),
        right("$/h"),
        right("saved"),
        right("beyond plan"),
        wrapped("machines"),
    )
    screen.table(columns, rows)
    screen.line("Saved is against today; beyond plan is against what the steps above reach with the machines of today.")
    if part.groups:
        screen.line("A row that begins with `or` is an alternative to the NodePool before it, for one of its groups.")
    screen.line(_total(part.pools))
    for entry in part.pools:
        if (why := _why_unknown(entry)) is not None:
            screen.line(f"NodePool {entry.name}: {why}.")
    started = [entry for entry in part.pools if not _no_cheaper(entry)]
    if started:
        screen.line("A NodePool needs Karpenter, or `karpool run`, and its node class. To start from:")
    for entry in started:
        screen.line("---")
        for line in yaml.safe_dump(entry.manifest, sort_keys=False).splitlines():
            screen.line(line)


def _alternatives(part: SuggestionsPart) -> Iterator[Part]:
    """Each NodePool, and after it what could be had for each of its groups instead."""
    for pool in part.pools:
        yield pool
        yield from (group for group in part.groups if group.name in pool.groups)


def _row(entry: Part, screen: Screen, price: str, new_price: str) -> tuple[str, ...]:
    fleet, arrow = entry.fleet, screen.arrow
    what, instead = f"or group {entry.name}", "another machine type"
    if isinstance(entry, PoolSuggestionPart):
        what, instead = f"NodePool {entry.name}", names_of(entry.groups)
        if _no_cheaper(entry):
            return what, instead, f"{entry.nodes:,}", price, "", "", "nothing cheaper found"
    certain = fleet.price_per_hour is not None
    return (
        what,
        instead,
        f"{entry.nodes:,} {arrow} {fleet.nodes:,}" if certain else f"{entry.nodes:,} {arrow} ?",
        f"{price} {arrow} {new_price}",
        per_month(_less(entry.price_per_hour, fleet)),
        per_month(_less(entry.planned_price_per_hour, fleet)),
        _machines(fleet) if certain else "?",
    )


def _machines(fleet: FleetPart) -> str:
    """How many machines of which types, and what they are launched as."""
    if not fleet.instance_types:
        return "none"
    listed = ", ".join(f"{number} x {kind}" for kind, number in fleet.instance_types.items())
    kinds = fleet.capacity_types
    if len(kinds) <= 1:
        return f"{listed}, {next(iter(kinds), '?')}"
    return f"{listed}, of these {', '.join(f'{number} {kind}' for kind, number in kinds.items())}"


def _no_cheaper(entry: PoolSuggestionPart) -> bool:
    """Whether the groups cost no more today than what was found."""
    found, today = entry.fleet.price_per_hour, entry.price_per_hour
    return found is not None and today is not None and found >= today - HAIR


def _less(price: float | None, fleet: FleetPart) -> float | None:
    """What is saved against a price; None: nobody knows, or pods find no place."""
    if price is None or fleet.price_per_hour is None or fleet.unplaced_pods:
        return None
    return price - fleet.price_per_hour


def _total(pools: Iterable[PoolSuggestionPart]) -> str:
    """What moving to the NodePools that cost less would save, against today and against the plan."""
    every = list(pools)
    listed = [entry for entry in every if not _no_cheaper(entry)]
    if not listed:
        return "Nothing cheaper found: no NodePool would hold the pods for less than their groups today."
    today = _sum(_less(entry.price_per_hour, entry.fleet) for entry in listed)
    planned = _sum(_less(entry.planned_price_per_hour, entry.fleet) for entry in listed)
    which = f"the {count(len(listed), 'NodePool')} together" if len(listed) > 1 else "the NodePool"
    saved = f"{per_month(today)} against today, {per_month(planned)} against the steps above"
    what = "All to NodePools" if len(listed) == len(every) else "To NodePools where they cost less"
    worth = planned is None or planned > HAIR
    end = "" if worth else " Nothing cheaper was found than what the steps above reach."
    return f"{what}: {which} would save {saved}.{end}"


def _sum(amounts_saved: Iterable[float | None]) -> float | None:
    listed = list(amounts_saved)
    known = [amount for amount in listed if amount is not None]
    return sum(known) if len(known) == len(listed) else None


def _why_unknown(entry: PoolSuggestionPart) -> str | None:
    """Why nobody can say what a NodePool would come to; None: it is known."""
    if entry.fleet.unplaced_pods:
        why = f": for example {entry.fleet.refusal}" if entry.fleet.refusal else ""
        return f"{count(entry.fleet.unplaced_pods, 'pod')} would find no place{why}"
    if entry.fleet.price_per_hour is None:
        return "the prices of machines are not known, so nobody can say which would be the cheapest"
    return None
