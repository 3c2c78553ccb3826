"""Markdown: a plan and a difference of plans as comments, and names that try to be more than text."""

import re
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace
from tests.tables import row, table

from karpool.model.reasons import Reason
from karpool.report.markdown import escaped
from karpool.report.plans.diff_words import diff_markdown, diff_words
from karpool.report.plans.document import NodeVerdict, PlanDocument, Savings, TotalsPart, Unschedulable
from karpool.report.plans.plan_diff import plan_diff
from karpool.report.plans.plan_markdown import plan_markdown

HOSTILE = "a|b`c`<img src=x onerror=alert(1)>@team #12 [x](http://evil) www.evil.example **b** $x^2$\n# h\x1b[31m\u202e"


def node(name: str, verdict: Any = "keep", reason: str = "NotCheaper") -> NodeVerdict:
    return NodeVerdict(
        name=name,
        node_pool="web",
        instance_type="m6i.large",
        price_per_hour=0.1,
        pods=1,
        verdict=verdict,
        step=None if verdict == "keep" else 1,
        reasons=(Reason(reason, f"about {name}", f"Node {name}"),),
    )


def plan(*nodes: NodeVerdict, price: float | None = 1.0, unpriced: int = 0) -> PlanDocument:
    before = TotalsPart(nodes=len(nodes), pods=3, price_per_hour=2.0)
    staying = sum(entry.verdict == "keep" for entry in nodes)
    return PlanDocument(
        time=datetime(2026, 11, 15, 12, tzinfo=UTC),
        before=before,
        after=replace(before, nodes=staying, price_per_hour=price, unpriced_nodes=unpriced),
        savings=Savings(price_per_hour=1.0, percent=50.0),
        commands=(),
        nodes=nodes,
        unschedulable=(),
    )


def expect_only_text(markdown: str) -> None:
    """Nothing of a hostile name has a meaning: no markup, no mention, no address, no line of its own."""
    for meaning in ("<img", "@team", " #12 ", "](", "http://", "www.", "**b", "$x", "`", "\x1b", "\u202e", "\n# h"):
        assert meaning not in markdown, meaning


@table(
    row("a pipe", text="a|b", written="a&#124;b"),
    row("a price", text="0.1 $/h (5 %)", written="0.1 $/h (5 %)"),
    row("a node", text="ip-10-0-0-7.ec2.internal", written="ip-10-0-0-7.ec2.internal"),
    row("a list", text="- x", written="&#45; x"),
    row("a numbered list", text="1. x", written="&#49;. x"),
    row("two lines", text="a\nb", written="a&#92;nb"),
)
def test_text_stays_readable_and_means_nothing(text: str, written: str) -> None:
    assert escaped(text) == written


def test_a_plan_has_its_totals_and_folds_the_rest() -> None:
    text = plan_markdown(plan(node("a"), node("b", "delete", "Empty")))
    assert "### Karpool plan as of 2026-11-15 12:00:00 UTC" in text
    assert "| nodes | 2 | 1 | 1 |" in text
    assert "**1.00 $/h** (50.0 %), 730 $/month" in text
    assert "<details><summary>Why 1 node stays</summary>" in text
    assert "| NotCheaper | 1 | a: about a |" in text


def test_it_says_where_a_node_is_counted_twice() -> None:
    twice = replace(node("a"), reasons=(*node("a").reasons, *node("a", reason="NoGroup").reasons))
    note = "A node with several reasons is counted under each."
    assert note not in plan_markdown(plan(node("a"), node("b")))
    assert note in plan_markdown(plan(twice, node("b")))


def test_hostile_names_are_text_in_a_plan() -> None:
    pending = Unschedulable(pod=HOSTILE, reasons=(Reason("X", HOSTILE, HOSTILE),))
    made = replace(plan(node(HOSTILE)), unschedulable=(pending,), warnings=(HOSTILE,))
    text = plan_markdown(made)
    expect_only_text(text)
    rows = [line for line in text.splitlines() if line.startswith("| NotCheaper")]
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in rows] == [4]


def test_hostile_names_are_text_in_a_difference() -> None:
    found = plan_diff(plan(node(HOSTILE)), plan(node(HOSTILE, "delete")), (HOSTILE, HOSTILE), "NodePools")
    expect_only_text(diff_markdown(found))


@table(
    row("the same", second=plan(node("a"), node("b")), said="makes no difference to price, nodes and evictions."),
    row(
        "cheaper, with a node less",
        second=plan(node("a"), node("b", "delete"), price=0.5),
        said="would cost 365 $/month less (0.50 $/h) and end with 1 fewer node.",
    ),
    row("dearer", second=plan(node("a"), node("b"), price=2.0), said="would cost 730 $/month more (1.00 $/h)."),
    row(
        "unknown",
        second=plan(node("a"), node("b"), unpriced=1),
        said="would cost an unknown amount more or less.",
    ),
)
def test_a_difference_is_one_sentence(second: PlanDocument, said: str) -> None:
    found = plan_diff(plan(node("a"), node("b")), second, ("1", "2"))
    assert diff_words(found) == f"The second plan {said}"


def test_pools_that_are_deleted_are_named_and_not_counted() -> None:
    first, second = plan(node("a"), node("b")), plan(node("a"), node("b"), price=0.5)
    found = plan_diff(first, second, ("1", "2"), "NodePools", {"web", "empty"})
    said = "What this NodePool change would cost and evict cannot be told: NodePool web is deleted with 2 nodes."
    assert diff_words(found) == said
    assert "| nodes that go | 0 | ? | ? |" in diff_markdown(found)
    hostile = plan(replace(node("a"), node_pool=HOSTILE))
    expect_only_text(diff_markdown(plan_diff(hostile, hostile, ("1", "2"), "NodePools", {HOSTILE})))


def test_plans_of_different_nodes_are_said_to_be() -> None:
    found = plan_diff(plan(node("a")), plan(node("b")), ("1", "2"))
    assert not found.same_cluster
    assert "of different nodes" in diff_markdown(found)
    assert [(entry.name, entry.verdicts) for entry in found.changed_nodes] == [("a", ("keep", "")), ("b", ("", "keep"))]
