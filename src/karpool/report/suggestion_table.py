"""What to have instead of node groups in a terminal, with manifests to start from."""

import yaml

from karpool.report.document import GroupSuggestionPart, PoolSuggestionPart, SuggestionsPart
from karpool.report.formatting import amounts, count, names_of, per_month
from karpool.report.table_layout import TableColumn
from karpool.report.terminal import Screen, right, wrapped


def print_suggestions(part: SuggestionsPart, screen: Screen, *, groups: bool) -> None:
    """What would hold the same pods, and manifests to start from; `groups`: whether there are node groups at all."""
    screen.heading("What would hold the same pods instead, if all of them moved")
    if not part.pools:
        unknown = "No machines are known that could take the place of those of the node groups."
        screen.line(unknown if groups else "There are no node groups.")
        return
    listed: tuple[PoolSuggestionPart | GroupSuggestionPart, ...] = (*part.pools, *part.groups)
    prices = iter(amounts(price for entry in listed for price in (entry.price_per_hour, entry.fleet.price_per_hour)))
    rows = [_row(entry, screen, f"{next(prices)} {screen.arrow} {next(prices)}") for entry in listed]
    instead = TableColumn("in the place of", spare=1)
    columns = ("what", instead, right("nodes"), right("$/h"), right("saved"), wrapped("machines"))
    screen.table(columns, rows)
    for entry in part.pools:
        if (why := _why_unknown(entry)) is not None:
            screen.line(f"NodePool {entry.name}: {why}.")
    screen.line("A NodePool needs Karpenter, or `karpool run`, and its node class. To start from:")
    for entry in part.pools:
        screen.line("---")
        for line in yaml.safe_dump(entry.manifest, sort_keys=False).splitlines():
            screen.line(line)


def _row(entry: PoolSuggestionPart | GroupSuggestionPart, screen: Screen, price: str) -> tuple[str, ...]:
    fleet, arrow = entry.fleet, screen.arrow
    what, instead = f"group {entry.name}", "another machine type"
    if isinstance(entry, PoolSuggestionPart):
        what, instead = f"NodePool {entry.name}", names_of(entry.groups)
    saved = None
    if entry.price_per_hour is not None and fleet.price_per_hour is not None and not fleet.unplaced_pods:
        saved = entry.price_per_hour - fleet.price_per_hour
    certain = fleet.price_per_hour is not None
    machines = ", ".join(f"{number} x {kind}" for kind, number in fleet.instance_types.items()) or "none"
    return (
        what,
        instead,
        f"{entry.nodes:,} {arrow} {fleet.nodes:,}" if certain else f"{entry.nodes:,} {arrow} ?",
        price,
        per_month(saved),
        machines if certain else "?",
    )


def _why_unknown(entry: PoolSuggestionPart) -> str | None:
    """Why nobody can say what a NodePool would come to; None: it is known."""
    if entry.fleet.unplaced_pods:
        return f"{count(entry.fleet.unplaced_pods, 'pod')} would find no place"
    if entry.fleet.price_per_hour is None:
        return "the prices of machines are not known, so nobody can say which would be the cheapest"
    return None
