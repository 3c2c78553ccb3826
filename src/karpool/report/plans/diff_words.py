"""What differs between two plans, in sentences, a table and Markdown."""

from collections.abc import Iterator, Sequence
from typing import Final

from karpool.report.formatting import UNKNOWN, amounts, count, joined, per_hour, per_month
from karpool.report.markdown import escaped, folded, table
from karpool.report.plans.plan_diff import NodeDiffPart, PlanDiff, PlanSummaryPart
from karpool.report.table_layout import TableColumn
from karpool.report.terminal import Screen, right, wrapped

_NODES_SHOWN: Final = 20
_NOTHING: Final = 0.00005
"""$/h that show as 0."""
_TOTALS: Final = ("", "first", "second", "difference")
_POOLS: Final = ("pool", "nodes", "then", "$/h", "then ")


def diff_words(diff: PlanDiff) -> str:
    """The whole difference in one sentence: money, evictions, nodes, pods without a place."""
    about = "This NodePool change" if diff.compared == "NodePools" else "The second plan"
    if diff.deleted_pools:
        lost = [f"NodePool {pool.name} is deleted with {count(pool.nodes, 'node')}" for pool in diff.deleted_pools]
        return f"What {about[0].lower()}{about[1:]} would cost and evict cannot be told: {joined(lost)}."
    parts = [
        _money(diff),
        _more("evict", diff.evictions, "pod"),
        _more("end with", diff.nodes, "node"),
        _more("leave", diff.pending, "pod", " without a place"),
    ]
    said = joined([part for part in parts if part])
    return f"{about} would {said}." if said else f"{about} makes no difference to price, nodes and evictions."


def _money(diff: PlanDiff) -> str:
    if diff.price_per_hour is None:
        return "cost an unknown amount more or less"
    if abs(diff.price_per_hour) < _NOTHING:
        return ""
    word, difference = "more" if diff.price_per_hour > 0 else "less", abs(diff.price_per_hour)
    return f"cost {per_month(difference)} {word} ({per_hour(difference)})"


def _more(verb: str, number: int | None, noun: str, ending: str = "") -> str:
    if not number:
        return ""
    return f"{verb} {abs(number):,} {'more' if number > 0 else 'fewer'} {noun}{'s' * (abs(number) != 1)}{ending}"


def _numbers(part: PlanSummaryPart) -> tuple[int | None, ...]:
    return (part.nodes_before, part.nodes, part.removed, part.evictions, part.steps, part.pending)


def _rows(diff: PlanDiff) -> list[tuple[str, str, str, str]]:
    names = ("nodes today", "nodes after", "nodes that go", "evictions", "steps", "pods without a place")
    one, two = diff.first, diff.second
    counted = [
        (name, _number(a), _number(b), UNKNOWN if a is None or b is None else f"{b - a:+,}" if b != a else "")
        for name, a, b in zip(names, _numbers(one), _numbers(two), strict=True)
    ]
    money = (per_hour(one.price_per_hour), per_hour(two.price_per_hour), _signed(diff.price_per_hour))
    return [*counted, ("price after", *money)]


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def _signed(price: float | None) -> str:
    return f"{'+' if price is not None and price > 0 else ''}{per_hour(price)}"


def _pool_rows(diff: PlanDiff) -> list[tuple[str, ...]]:
    shown = [
        part
        for part in diff.pools
        if part.nodes[0] != part.nodes[1] or part.price_per_hour[0] != part.price_per_hour[1]
    ]
    prices = iter(amounts(price for part in shown for price in part.price_per_hour))
    return [(part.name or "?", *map(_number, part.nodes), next(prices), next(prices)) for part in shown]


def _node_rows(nodes: Sequence[NodeDiffPart]) -> list[tuple[str, ...]]:
    return [
        (
            node.name,
            node.node_pool or "?",
            *(_fate(v, codes) for v, codes in zip(node.verdicts, node.reasons, strict=True)),
        )
        for node in nodes
    ]


def _fate(verdict: str, codes: tuple[str, ...]) -> str:
    return f"{verdict}: {', '.join(dict.fromkeys(codes))}" if verdict else "not there"


def _notes(diff: PlanDiff) -> Iterator[str]:
    if not diff.same_cluster:
        yield "The plans are of different nodes: the differences are also those of the clusters."
    yield from diff.warnings


def print_diff(diff: PlanDiff, screen: Screen, *, everything: bool = False) -> None:
    screen.line(f"first: {diff.first.name}")
    screen.line(f"second: {diff.second.name}")
    screen.heading(diff_words(diff))
    for note in _notes(diff):
        screen.line(note)
    screen.table([_TOTALS[0], *map(right, _TOTALS[1:])], _rows(diff))
    pools = _pool_rows(diff)
    if pools:
        screen.heading("Pools after the plans")
        money = (right("$/h", spare=1), right("then", spare=1, name="$/h then"))
        screen.table(["pool", right("nodes"), right("then", name="nodes then"), *money], pools)
    if diff.changed_nodes:
        shown = diff.changed_nodes if everything else diff.changed_nodes[:_NODES_SHOWN]
        screen.heading(f"{count(len(diff.changed_nodes), 'node')} of today that the plans do not treat alike")
        columns = (TableColumn("node"), TableColumn("pool", spare=1), wrapped("first"), wrapped("second"))
        screen.table(columns, _node_rows(shown))
        if len(shown) < len(diff.changed_nodes):
            screen.line(f"and {len(diff.changed_nodes) - len(shown):,} more; --all lists them")


def diff_markdown(diff: PlanDiff) -> str:
    parts = [f"### Karpool: {escaped(diff_words(diff))}"]
    parts.append(f"First: {escaped(diff.first.name)}. Second: {escaped(diff.second.name)}.")
    notes = [f"- {escaped(note)}" for note in _notes(diff)]
    parts += ["\n".join(notes)] if notes else []
    parts.append(table(_TOTALS, _rows(diff), right=(1, 2, 3)))
    pools = [(escaped(row[0]), *row[1:]) for row in _pool_rows(diff)]
    if pools:
        parts.append(folded("Pools after the plans", table(_POOLS, pools, right=(1, 2, 3, 4))))
    if diff.changed_nodes:
        title = f"{count(len(diff.changed_nodes), 'node')} of today that the plans do not treat alike"
        rows = [tuple(map(escaped, row)) for row in _node_rows(diff.changed_nodes[:_NODES_SHOWN])]
        parts.append(folded(title, table(("node", "pool", "first", "second"), rows)))
    return "\n\n".join(parts)
