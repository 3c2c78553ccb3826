"""Reasons in a terminal: a table of reasons with their nodes."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol, TypeVar

from karpool.model.reasons import Reason
from karpool.report.formatting import amounts, count, sentence
from karpool.report.terminal import Cell, Screen, right, wrapped

_EXAMPLES: Final = 2


class NodeWithReasons(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def reasons(self) -> tuple[Reason, ...]: ...


N = TypeVar("N", bound=NodeWithReasons)


def reason_lines(node: NodeWithReasons, screen: Screen) -> Cell:
    return screen.lines(f"{reason.code}: {sentence(reason, node.name)}" for reason in node.reasons)


def group_by_code(nodes: Iterable[N]) -> list[tuple[str, list[N]]]:
    """Nodes under each of their reason codes, the code with most nodes first."""
    groups: dict[str, list[N]] = {}
    for node in nodes:
        for code in dict.fromkeys(reason.code for reason in node.reasons):
            groups.setdefault(code, []).append(node)
    return sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))


COUNTED_TWICE: Final = "A node with several reasons is counted under each."


def counted_twice(nodes: Iterable[N]) -> bool:
    """Whether a node is under several reason codes, so that their numbers are more than the nodes."""
    return any(len({reason.code for reason in node.reasons}) > 1 for node in nodes)


def print_reasons(
    staying: Sequence[N], screen: Screen, price: Callable[[list[N]], float | None] | None = None, *, after: str = ""
) -> None:
    """Why nodes stay: each reason with its number of nodes, their price if `price` adds it up, and examples.

    `after`: which cluster the reasons are about, if not that of today.
    """
    screen.heading(f"Why {count(len(staying), 'node')} stay{'s' if len(staying) == 1 else ''}{after}")
    if counted_twice(staying):
        screen.line(COUNTED_TWICE)
    groups = group_by_code(staying)
    prices = [] if price is None else [right("$/h", spare=1)]
    written = [""] * len(groups) if price is None else amounts(price(nodes) for _, nodes in groups)
    screen.table(
        ("reason", right("nodes"), *prices, wrapped("for example")),
        (
            (
                code,
                f"{len(nodes):,}",
                *([] if price is None else [text]),
                _examples(code, nodes, screen),
            )
            for (code, nodes), text in zip(groups, written, strict=True)
        ),
    )


def _examples(code: str, nodes: list[N], screen: Screen) -> Cell:
    shown = ((node, next(reason for reason in node.reasons if reason.code == code)) for node in nodes[:_EXAMPLES])
    return screen.lines(f"{node.name}: {sentence(reason, node.name)}" for node, reason in shown)
