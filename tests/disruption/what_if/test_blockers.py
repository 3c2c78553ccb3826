"""Blockers: what holds money where it is, and what lifting it alone is worth."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any

import msgspec
import pytest
from tests.disruption.scenarios import CATALOG, NOW, NodeWithPods, cluster, node, pool_of
from tests.factories import claim_for, namespace, pdb
from tests.tables import row, table

from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.settings import GLOBAL, PREFIX, DisruptionSettings
from karpool.disruption.what_if.answer import WhatIf
from karpool.disruption.what_if.blockers import Blockers, Lift, blockers_of
from karpool.disruption.what_if.question import Question
from karpool.model.labels import DO_NOT_DISRUPT, MINIMUM_SAVINGS, PAUSED
from karpool.model.nodepool import Budget
from karpool.packing.options import Options
from karpool.report.costs.costs import Grouping
from karpool.report.terminal import Screen
from karpool.report.what_if.blockers_table import blockers_csv, print_blockers
from karpool.report.what_if.what_if_document import BlockersDocument, blockers_document, owner_of
from karpool.wire.duration import parse_duration

KEPT = {DO_NOT_DISRUPT: "true"}
# Evictions cost nothing, and spot may replace spot, so that these options are no blockers.
SETTINGS = DisruptionSettings(search=PREFIX, spot_to_spot=True)


def question(nodes: Sequence[NodeWithPods], **objects: Any) -> Question:
    pools = objects.pop("pools", [pool_of()])
    return Question(cluster(nodes, pools=pools, **objects), CATALOG, SETTINGS, Options(), NOW)


def found(made: Question, most: int = 20, **rest: Any) -> Blockers:
    return blockers_of(WhatIf(made), most, **rest)


def worth(lift: Lift) -> float | None:
    return None if lift.worth is None else round(lift.worth.savings, 9)


def told(blockers: Blockers) -> list[tuple[str, str, float | None]]:
    return [(lift.blockers[0].rule.code, lift.blockers[0].rule.object, worth(lift)) for lift in blockers.lifts]


def half_empty(name: str, **spec: Any) -> NodeWithPods:
    """A node of 0.2 $/h with a pod that fits on any other."""
    return node(name, pods=[{"cpu": 1, "memory": "1Gi", "name": f"{name}-7f-1", **spec}])


FULL = node("full", "large", pods=[{"cpu": 5, "memory": "1Gi", "annotations": KEPT, "name": "full-7f-1"}])
"""A node that stays, with room for two pods more."""


def other_pool(**rest: Any) -> list[NodeWithPods]:
    made = node("a", pods=[{"cpu": 1, "memory": "1Gi"}], pool="held", claim=rest or None)
    return [made, node("b", pods=[{"cpu": 1, "memory": "1Gi"}])]


@table(
    row(
        "a pod that must not be disrupted",
        nodes=[half_empty("a", annotations=KEPT), FULL],
        objects={},
        code="PodDoNotDisrupt",
        about="Deployment default/a",
        savings=0.2,
    ),
    row(
        "a PodDisruptionBudget",
        nodes=[half_empty("a", labels={"app": "a"}), FULL],
        objects={"pod_disruption_budgets": (pdb("a", labels={"app": "a"}, allowed=0),)},
        code="PodDisruptionBudget",
        about="PodDisruptionBudget default/a",
        savings=0.2,
    ),
    row(
        "a node that must not be disrupted",
        nodes=[node("a", pods=1, annotations=KEPT), FULL],
        objects={},
        code="NodeDoNotDisrupt",
        about="Node a",
        savings=0.2,
    ),
    row(
        "a closed budget",
        nodes=[other_pool()[0], FULL],
        objects={"pools": [pool_of("held", budgets=(Budget(nodes="0"),)), pool_of()]},
        code="BudgetExhausted",
        about="NodePool held",
        savings=0.2,
    ),
)
def test_a_blocker_is_worth_what_goes_without_it(
    nodes: list[NodeWithPods], objects: dict[str, Any], code: str, about: str, savings: float
) -> None:
    blockers = {(kind, name): price for kind, name, price in told(found(question(nodes, **objects)))}
    assert blockers[code, about] == pytest.approx(savings)


@table(
    row(pool={"consolidate_after": "Never"}, code="ConsolidateAfterNever"),
    row(pool={"policy": "WhenEmpty"}, code="PolicyWhenEmpty"),
    row(pool={"annotations": {PAUSED: "until Monday"}}, code="Paused"),
    row(pool={"annotations": {MINIMUM_SAVINGS: "9"}}, code="SavingsBelowMinimum"),
    row(pool={"replicas": 1}, code="StaticPool"),
)
def test_what_a_pool_says_is_a_blocker(pool: dict[str, Any], code: str) -> None:
    made = question(other_pool(), pools=[pool_of("held", **pool), pool_of(weight=10)])
    (lift,) = [lift for lift in found(made).lifts if lift.blockers[0].rule.code == code]
    assert lift.blockers[0].rule.object == "NodePool held"
    assert lift.worth is not None


def test_a_window_is_a_blocker_that_names_its_hours() -> None:
    hours = Budget(nodes="0", schedule="0 9 * * mon-fri", duration=parse_duration("8h"))
    blockers = found(question(other_pool(), pools=[pool_of("held", budgets=(hours,)), pool_of()]))
    lift = next(lift for lift in blockers.lifts if lift.blockers[0].rule.code == "BudgetExhausted")
    assert "0 9 * * mon-fri for 8h" in lift.blockers[0].message


def test_what_another_rule_holds_as_well_is_worth_nothing_alone() -> None:
    nodes = [half_empty("a", annotations=KEPT, labels={"app": "a"}), FULL]
    made = question(nodes, pod_disruption_budgets=(pdb("a", labels={"app": "a"}, allowed=0),))
    lifts = {lift.blockers[0].rule.object: lift for lift in found(made).lifts}
    assert lifts["Deployment default/a"].bound == 0
    assert lifts["Deployment default/a"].alone == ()
    assert len(lifts["Deployment default/a"].blockers[0].nodes) == 1


def test_all_blockers_of_an_owner_are_lifted_together() -> None:
    nodes = [half_empty("a", annotations=KEPT, labels={"app": "a"}), FULL]
    made = question(nodes, pod_disruption_budgets=(pdb("a", labels={"app": "a"}, allowed=0),))
    lifts = {lift.name: lift for lift in found(made, owner=lambda _: "everybody").lifts}
    assert worth(lifts["everybody"]) == pytest.approx(0.2)
    assert len(lifts["everybody"].blockers) == 3


def test_the_owner_is_whose_most_pods_are() -> None:
    spaces = {"shop": namespace("shop", team="sea")}
    nodes = [half_empty(name, annotations=KEPT, namespace=space) for name, space in (("a", "shop"), ("b", "data"))]
    by_label, by_namespace = Grouping("label", "team"), Grouping("namespace")
    lifts = found(question(nodes)).lifts
    owners = {lift.blockers[0].rule.object: owner_of(lift.blockers[0], by_label, spaces) for lift in lifts}
    assert owners == {"Deployment shop/a": "sea", "Deployment data/b": ""}
    assert {owner_of(lift.blockers[0], by_namespace, spaces) for lift in lifts} == {"shop", "data"}


def test_only_as_many_as_asked_are_computed_and_the_rest_is_bounded() -> None:
    nodes = [half_empty(name, annotations=KEPT) for name in "abc"]
    blockers = found(question([*nodes, node("big", "huge", pods=1, annotations=KEPT)]), most=1)
    assert [lift.worth is not None for lift in blockers.lifts] == [True, False, False, False]
    assert {lift.bound for lift in blockers.lifts[1:]} == {0.2}


def test_what_is_worth_less_than_enough_others_is_not_asked() -> None:
    big = node("big", "large", pods=[{"cpu": 1, "memory": "1Gi", "annotations": KEPT, "name": "big-7f-1"}])
    host = node("host", "large", pods=[{"cpu": 5, "memory": "1Gi", "annotations": KEPT, "name": "host-7f-1"}])
    tiny = node("tiny", "tiny", pods=[{"cpu": "100m", "memory": "1Gi", "annotations": KEPT, "name": "tiny-7f-1"}])
    blockers = {lift.blockers[0].rule.object: lift for lift in found(question([big, host, tiny]), most=2).lifts}
    assert worth(blockers["Deployment default/big"]) == pytest.approx(0.4)
    assert blockers["Deployment default/tiny"].worth is None


def test_a_node_of_unknown_price_makes_a_worth_unknown_not_nothing() -> None:
    odd = node("a", pods=[{"annotations": KEPT, "name": "a-7f-1"}])
    assert odd.node is not None
    strange = msgspec.structs.replace(
        odd.node,
        metadata=msgspec.structs.replace(
            odd.node.metadata, labels={**odd.node.metadata.labels, "node.kubernetes.io/instance-type": "x9"}
        ),
    )
    made = question([NodeWithPods(strange, claim_for(strange), odd.pods)])
    lift = next(lift for lift in found(made).lifts if lift.blockers[0].rule.code == "UnknownInstanceType")
    assert (lift.knobs, lift.worth) == ((), None)


def test_what_a_rule_about_moves_is_worth_is_unknown_where_the_price_of_a_node_that_may_go_is() -> None:
    known = half_empty("a")
    assert known.node is not None
    labels = {**known.node.metadata.labels, "topology.kubernetes.io/zone": "elsewhere"}
    strange = msgspec.structs.replace(known.node, metadata=msgspec.structs.replace(known.node.metadata, labels=labels))
    for each, unknown in ((known, False), (NodeWithPods(strange, claim_for(strange), known.pods), True)):
        made = question([each]).with_settings(eviction_price=100.0)
        wide = [lift for lift in found(made, most=0).lifts if lift.wide]
        assert wide
        assert all((lift.bound is None) is unknown for lift in wide), (wide, unknown)


def test_the_same_question_has_the_same_answer() -> None:
    nodes = [half_empty(name, annotations=KEPT) for name in "cab"]
    assert told(found(question(nodes))) == told(found(question(nodes)))


def document(made: Question, most: int = 20) -> BlockersDocument:
    what_if = WhatIf(made)
    return blockers_document(what_if, blockers_of(what_if, most))


def printed(document: BlockersDocument, width: int = 80) -> str:
    text = StringIO()
    print_blockers(document, Screen(text, width=width), everything=True)
    return text.getvalue()


def test_the_table_says_what_is_only_bounded() -> None:
    shown = document(question([half_empty(name, annotations=KEPT) for name in "abc"]), most=1)
    text = printed(shown)
    assert "<= 0.20" in text
    assert "not computed" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_document_holds_knobs_that_can_be_turned() -> None:
    shown = document(question([half_empty("a", annotations=KEPT), FULL]))
    first = shown.blockers[0]
    assert first.computed
    assert first.savings_per_month == pytest.approx(0.2 * 730)
    assert first.knobs == ({"knob": "doNotDisruptOff", "workload": "Deployment default/a", "namespace": None},)
    assert msgspec.json.decode(msgspec.json.encode(shown), type=BlockersDocument) == shown


def test_lines_for_a_spreadsheet_hold_no_formulas() -> None:
    shown = document(question([half_empty("a", annotations=KEPT)]))
    evil = msgspec.structs.replace(shown.blockers[0], name='=HYPERLINK("x")')
    lines = blockers_csv(msgspec.structs.replace(shown, blockers=(evil,))).splitlines()
    assert lines[0].startswith("owner,codes,objects")
    assert lines[1].startswith("\"'=HYPERLINK")


def test_a_waiting_window_is_lifted_by_its_pool() -> None:
    recent = {"last_pod_event": NOW - timedelta(minutes=1)}
    nodes = other_pool(**recent)
    made = question(nodes, pools=[pool_of("held", consolidate_after="1h"), pool_of(weight=10)])
    lift = next(lift for lift in found(made).lifts if lift.blockers[0].rule.code == "ConsolidateAfterWindow")
    assert [knob.words for knob in lift.knobs] == ["set consolidateAfter of NodePool held to 0s"]


def test_what_only_being_there_holds_has_no_knob() -> None:
    """A node that is being deleted, or a claim without a node, is not a rule that somebody could lift."""
    leaving = node("a", pods=1, claim={"deleted": NOW})
    lifts = [lift for lift in found(question([leaving, FULL])).lifts if lift.blockers[0].rule.code == "NodeDeleting"]
    assert [(lift.knobs, lift.worth) for lift in lifts] == [((), None)]


def test_a_used_up_rate_has_no_knob() -> None:
    settings = replace(SETTINGS, brakes=BrakeSettings(most_nodes_per_hour=0))
    made = replace(question([half_empty("a"), half_empty("b")]), settings=settings)
    lifts = [lift for lift in found(made).lifts if lift.blockers[0].rule.code == "RateReached"]
    assert lifts
    assert all(lift.worth is None and not lift.knobs for lift in lifts)


def in_haste(made: Question, most: int = 20, refined: int = 0) -> Blockers:
    made = replace(made, settings=replace(SETTINGS, search=GLOBAL, effort=0))
    longer = WhatIf(made, global_up_to=None)
    return blockers_of(WhatIf(made, global_up_to=1), most, longer=longer, refined=refined)


BIG = node("big", "huge", pods=[{"cpu": 9, "memory": "1Gi"}], annotations=KEPT)
"""A node that something cheaper could replace, so that it is worth less than its price."""


def test_in_haste_a_blocker_is_worth_at_least_what_was_found() -> None:
    made = question([half_empty("a", annotations=KEPT), BIG])
    lift = next(lift for lift in in_haste(made).lifts if lift.blockers[0].rule.object == "Node big")
    assert lift.worth is not None
    assert lift.bound is not None
    assert lift.least < lift.bound
    assert not lift.settled
    whole = next(lift for lift in in_haste(made, refined=20).lifts if lift.blockers[0].rule.object == "Node big")
    assert whole.settled
    assert whole.worth is not None
    assert whole.least >= lift.least
    assert (lift.worth.search, whole.worth.search) == ("prefix", "global, effort 0")


def test_all_that_the_bound_allows_needs_no_longer_look() -> None:
    lift = in_haste(question([half_empty("a", annotations=KEPT), FULL])).lifts[0]
    assert (lift.least, lift.settled) == (pytest.approx(0.2), True)


def test_only_so_many_are_looked_for_longer() -> None:
    nodes = [node(name, "huge", pods=1, annotations=KEPT) for name in "abcd"]
    lifts = in_haste(question(nodes), refined=2).lifts
    searches = [lift.worth.search for lift in lifts if lift.worth is not None and not lift.wide]
    assert sorted(searches) == ["global, effort 0"] * 2 + ["prefix"] * 2


def test_what_is_known_comes_first_then_what_may_be_worth_most_and_nothing_last() -> None:
    nodes = [
        half_empty("a", annotations=KEPT),
        FULL,
        node("big", "huge", pods=1, annotations=KEPT),
        node("big2", "huge", pods=1, annotations=KEPT),
    ]
    lifts = in_haste(question(nodes), most=3, refined=1).lifts
    least = [lift.least for lift in lifts]
    assert least == sorted(least, reverse=True)
    open_ = [lift.bound or 0 for lift in lifts if lift.least == 0 and not lift.settled]
    assert open_ == sorted(open_, reverse=True)
    settled = [lift.settled for lift in lifts if lift.least == 0]
    assert settled == sorted(settled)


def test_a_table_says_between_what_an_amount_is_that_was_looked_for_in_haste() -> None:
    made = question([half_empty("a", annotations=KEPT), BIG])
    found = in_haste(made)
    shown = blockers_document(WhatIf(made), found)
    text = printed(shown)
    part = next(part for part in shown.blockers if part.blockers[0].object == "Node big")
    assert (part.computed, part.savings_per_hour, part.savings_per_month) == (False, None, None)
    assert part.at_least is not None
    assert part.at_most is not None
    assert f"{part.at_least:.2f} to {part.at_most:.2f}" in " ".join(text.split())
    assert "worth at least 0.1, at most 2; not looked for longer yet: --refine N" in text
    head, *lines = blockers_csv(shown).splitlines()
    first = dict(zip(head.split(","), next(line for line in lines if "Node big" in line).split(","), strict=False))
    assert (first["savingsPerHour"], first["computed"], first["search"]) == ("", "false", "prefix")


@table(row("with the search of the settings", search=PREFIX), row("in haste", search=GLOBAL))
def test_bounds_are_known_before_what_blockers_are_worth(search: str) -> None:
    made = question([half_empty("a", annotations=KEPT), FULL])
    made = replace(made, settings=replace(SETTINGS, search=search))
    heard: list[Blockers] = []
    last = blockers_of(WhatIf(made, global_up_to=1), 20, so_far=heard.append)
    assert {lift.worth for lift in heard[0].lifts} == {None}
    assert heard[-1] == last
    assert last.lifts[0].worth is not None
    assert last.lifts[0].worth.savings == pytest.approx(0.2)


def test_without_nodes_no_sum_of_nothing_is_told() -> None:
    text = printed(document(question([])))
    assert "There are no nodes, so there is nothing that could be held." in text
    assert "$/h" not in text
