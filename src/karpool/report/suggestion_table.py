"""What to have instead of node groups in a terminal, with manifests to start from."""

import yaml

from karpool.report.document import GroupSuggestionPart, PoolSuggestionPart, SuggestionsPart
from karpool.report.formatting import count, names_of, per_hour, per_month
from karpool.report.table_layout import TableColumn
from karpool.report.terminal import Screen, right, wrapped


def print_suggestions(part: SuggestionsPart, screen: Screen) -> None:
    """What would hold the same pods for less, and manifests to start from."""
    screen.heading("What would hold the same pods for less, if all of them moved")
    if not part.pools:
        screen.line("There are no node groups.")
        return
    rows = [_row(f"NodePool {entry.name}", names_of(entry.groups), entry, screen) for entry in part.pools]
    rows += [_row(f"group {entry.name}", "another machine type", entry, screen) for entry in part.groups]
    instead = TableColumn("in the place of", spare=1)
    columns = ("what", instead, right("nodes"), right("$/h"), right("saved"), wrapped("machines"))
    screen.table(columns, rows)
    screen.line("A NodePool needs Karpenter, or `karpool run`, and its node class. To start from:")
    for entry in part.pools:
        screen.line("---")
        for line in yaml.safe_dump(entry.manifest, sort_keys=False).splitlines():
            screen.line(line)


def _row(what: str, instead: str, entry: PoolSuggestionPart | GroupSuggestionPart, screen: Screen) -> tuple[str, ...]:
    fleet, arrow = entry.fleet, screen.arrow
    saved = None
    if entry.price_per_hour is not None and fleet.price_per_hour is not None:
        saved = entry.price_per_hour - fleet.price_per_hour
    machines = ", ".join(f"{number} x {kind}" for kind, number in fleet.instance_types.items()) or "none"
    lost = f"; {count(fleet.unplaced_pods, 'pod')} would find no place" if fleet.unplaced_pods else ""
    return (
        what,
        instead,
        f"{entry.nodes:,} {arrow} {fleet.nodes:,}",
        f"{per_hour(entry.price_per_hour)} {arrow} {per_hour(fleet.price_per_hour)}",
        per_month(saved),
        machines + lost,
    )
