"""Node groups in a terminal: what each should become, and what that is worth."""

from collections.abc import Sequence

from karpool.report.document import NodeGroupPart
from karpool.report.formatting import UNKNOWN, amount, count, names_of
from karpool.report.terminal import Screen, right, wrapped


def print_groups(groups: Sequence[NodeGroupPart], screen: Screen) -> None:
    """A line for each group: its nodes before and after, its price, how small and large it may be."""
    if not groups:
        return
    screen.heading(f"{count(len(groups), 'node group')}")
    columns = ("group", right("nodes"), right("$/h"), right("min-max"), wrapped("what it is"))
    screen.table(
        columns,
        (
            (
                group.name,
                _change(f"{group.before:,}", f"{group.after:,}", screen),
                _change(amount(group.price_before), amount(group.price_after), screen),
                _sizes(group),
                what_it_is(group),
            )
            for group in groups
        ),
    )
    if any(group.sizes_from == "" for group in groups):
        screen.line("A minimum or maximum of ? is not known: such a group keeps a node and gets no new one.")


def _change(before: str, after: str, screen: Screen) -> str:
    return before if before == after else f"{before} {screen.arrow} {after}"


def _sizes(group: NodeGroupPart) -> str:
    least, most = (UNKNOWN if size is None else str(size) for size in (group.minimum, group.maximum))
    return f"{least}-{most}"


def what_it_is(group: NodeGroupPart) -> str:
    """A group in words: who makes it, of what machines."""
    machines = names_of(group.instance_types) or "unknown machine types"
    kinds, zones = ", ".join(group.capacity_types), names_of(group.zones)
    return ", ".join(text for text in (group.title, machines, kinds, zones) if text)
