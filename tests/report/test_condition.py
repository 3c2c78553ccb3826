"""Conditions of pipelines: what they mean, and what is wrong with those that mean nothing."""

import pytest
from tests.tables import row, table

from karpool.report.plans.condition import ConditionError, Metric, parse_condition, told

METRICS = {"savings": Metric(("%", "$/h", "$/month"), "m"), "nodes": Metric(("",), "m"), "lost": Metric(("",), "m")}
VALUES = {"savings": {"%": 25.0, "$/h": 2.0, "$/month": 1460.0}, "nodes": {"": 10.0}, "lost": {"": None}}


@table(
    row("savings>20%", holds=True),
    row("savings > 25 %", holds=False),
    row("savings>=25%", holds=True),
    row("savings>1.5$/h", holds=True),
    row("savings>1500$/month", holds=False),
    row("nodes=10", holds=True),
    row("nodes!=10", holds=False),
    row("nodes>-1", holds=True),
    row("nodes>20 or savings>20%", holds=True),
    row("nodes>20 and savings>20%", holds=False),
    row("nodes>5 or nodes>20 and savings>90%", holds=True),
    row("(nodes>5 or nodes>20) and savings>90%", holds=False),
    row("nodes<20 AND savings<90%", holds=True),
    row("lost>0", holds=None),
    row("lost>0 and nodes>5", holds=None),
    row("lost>0 and nodes>20", holds=False),
    row("lost>0 or nodes>5", holds=True),
    row("lost>0 or nodes>20", holds=None),
)
def test_a_condition_holds_or_not_or_nobody_knows(request: pytest.FixtureRequest, *, holds: bool | None) -> None:
    text = request.node.callspec.id
    assert parse_condition(text, METRICS).holds(VALUES) is holds


@table(
    row("nothing", text="", said="ends where a name is expected"),
    row("no comparison", text="savings", said="ends where a comparison is expected"),
    row("no number", text="savings>", said="ends where a number is expected"),
    row("a name for a number", text="savings>nodes", said="write a number"),
    row("a unit too few", text="savings>20", said="write 20% or 20$/h or 20$/month"),
    row("a unit too many", text="nodes>20%", said="compares nodes with 20%; write 20"),
    row("an unknown name", text="saving>20%", said="did you mean savings?"),
    row("two in a row", text="nodes>1 nodes<3", said="does not end at 'nodes'; join comparisons with and, or"),
    row("a loose end", text="nodes>1 and", said="ends where a name is expected"),
    row("an open parenthesis", text="(nodes>1", said="ends where a closing parenthesis is expected"),
    row("a parenthesis too many", text="nodes>1)", said="does not end at ')'"),
    row("a call", text="__import__('os').system('x')", said="cannot be read at"),
    row("an attribute", text="nodes.real>1", said="cannot be read at"),
    row("too deep", text="(" * 60 + "nodes>1" + ")" * 60, said="more than 50 parentheses"),
    row("too long", text="nodes>1 or " * 200, said="longer than 1000 characters"),
    row("a number first", text="20%<savings", said="has '20' where a name is expected"),
)
def test_what_means_nothing_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(ConditionError) as caught:
        parse_condition(text, METRICS)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@table(
    row("saved, but for a hair", text="nodes>=0.096", value=0.1 + 0.092 - 0.096 - 1e-17, holds=True),
    row("a hair above nothing", text="nodes>0", value=2.2e-14, holds=False),
    row("a hair below nothing", text="nodes<0", value=-2.2e-14, holds=False),
    row("three tenths", text="nodes=0.3", value=0.1 + 0.2, holds=True),
    row("a small amount", text="nodes>0", value=0.000002, holds=True),
)
def test_values_are_compared_as_they_are_told(text: str, value: float, *, holds: bool) -> None:
    values = {"nodes": {"": value}}
    condition = parse_condition(text, METRICS)
    assert condition.holds(values) is holds
    assert told(condition, values) == f"nodes is {value:.6f}".rstrip("0").rstrip(".").replace("-0", "0")


def test_values_are_told_once_and_unknown_ones_too() -> None:
    condition = parse_condition("savings>20% or (lost>1 and savings>10%)", METRICS)
    assert told(condition, VALUES) == "savings is 25 %, lost is ?"
