"""Node groups in a terminal: what each should become, and what that is worth."""

from collections.abc import Sequence

from karpool.report.formatting import UNKNOWN, amounts, count
from karpool.report.groups.group_words import drain_words, what_it_is
from karpool.report.plans.document import NodeGroupPart
from karpool.report.terminal import Screen, right, wrapped


def print_groups(groups: Sequence[NodeGroupPart], drains: Sequence[str], screen: Screen) -> None:
    """A line for each group: its nodes before and after, its price, how small and large it may be.

    `drains`: what the compactor would drain, in order.
    """
    if not groups:
        return
    screen.heading(f"{count(len(groups), 'node group')}")
    prices = iter(amounts(price for group in groups for price in (group.price_before, group.price_after)))
    columns = ("group", right("nodes"), right("$/h"), right("min-max", spare=1), wrapped("what it is"))
    screen.table(
        columns,
        (
            (
                group.name,
                _change(f"{group.before:,}", f"{group.after:,}", screen),
                _change(next(prices), next(prices), screen),
                _sizes(group),
                what_it_is(group),
            )
            for group in groups
        ),
    )
    screen.line(drain_words(drains))
    if any(group.sizes_from == "" for group in groups):
        screen.line("A minimum or maximum of ? is not known: such a group keeps a node and gets no new one.")


def _change(before: str, after: str, screen: Screen) -> str:
    return before if before == after else f"{before} {screen.arrow} {after}"


def _sizes(group: NodeGroupPart) -> str:
    least, most = (UNKNOWN if size is None else f"{size:,}" for size in (group.minimum, group.maximum))
    return f"{least}-{most}"
