"""What-ifs: where plans end with knobs turned, and what is exported of them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from tests.disruption.scenarios import CATALOG, NOW, NodeWithPods, cluster, node, pool_of
from tests.examples import examples
from tests.factories import pdb
from tests.strategies import Cluster, clusters
from tests.tables import row, table

from karpool.disruption.settings import GLOBAL, PREFIX, DisruptionSettings, Order
from karpool.disruption.what_if.answer import WhatIf, walk
from karpool.disruption.what_if.exports import export, merge_patch
from karpool.disruption.what_if.knob import Knob
from karpool.disruption.what_if.knobs import read_knobs
from karpool.disruption.what_if.pod_knobs import DoNotDisruptOff, PdbOff
from karpool.disruption.what_if.pool_knobs import BudgetsOff, GracePeriod
from karpool.disruption.what_if.question import Question
from karpool.disruption.what_if.quick import quick
from karpool.disruption.what_if.setting_knobs import EvictionPriceKnob, NodeFee, SpotToSpot
from karpool.disruption.what_if.type_knobs import AnyMachine
from karpool.model.labels import BUDGETS, DO_NOT_DISRUPT, GRACE_PERIOD, INSTANCE_TYPE
from karpool.model.nodepool import Budget
from karpool.packing.options import Options
from karpool.report.what_if.what_if_document import WhatIfDocument, what_if_document
from karpool.report.what_if.what_if_yaml import patch_files, scenario_file
from karpool.virtual.scenario import Policy, patched, read_scenario
from karpool.virtual.scenario_checks import flaws
from karpool.wire.duration import NEVER
from karpool.wire.merge_patch import merged
from karpool.wire.yaml_documents import yaml_documents

KEPT = {DO_NOT_DISRUPT: "true"}
CLOSED = (Budget(nodes="0"),)


def two_half_empty(**pod: Any) -> list[NodeWithPods]:
    """Nodes whose pods fit on one of them, if both may move."""
    return [node(name, pods=[{"cpu": 1, "name": f"{name}-7f-1", **pod}]) for name in "ab"]


def question(*nodes: NodeWithPods, search: str = PREFIX, **pool: Any) -> Question:
    objects = cluster(
        nodes or two_half_empty(), pools=[pool_of(**pool)], pod_disruption_budgets=(pdb("never", {"app": "nobody"}),)
    )
    return Question(objects, CATALOG, DisruptionSettings(search=search), Options(), NOW)


def test_a_knob_shows_its_end_beside_that_of_today() -> None:
    asked = WhatIf(question(budgets=CLOSED))
    answer = asked.ask([BudgetsOff()])
    assert (answer.today.savings, answer.today.after.nodes) == (0, 2)
    assert answer.then.savings == pytest.approx(0.2)
    assert (answer.then.before.nodes, answer.then.after.nodes) == (2, 1)
    document = what_if_document(answer)
    assert document.search == "prefix"
    assert document.words == ("lift the budgets of all NodePools",)
    assert msgspec.json.decode(msgspec.json.encode(document), type=WhatIfDocument) == document


def test_knobs_work_together() -> None:
    made = question(*two_half_empty(annotations=KEPT), budgets=CLOSED)
    alone = [WhatIf(made).ask([knob]).then.savings for knob in (BudgetsOff(), DoNotDisruptOff())]
    assert alone == [0, 0]
    assert WhatIf(made).ask([BudgetsOff(), DoNotDisruptOff()]).then.savings == pytest.approx(0.2)


def test_a_fee_is_counted_on_both_sides() -> None:
    """Also by how much the fleet of today is dearer with it: what is compared has the same prices."""
    asked = WhatIf(question())
    answer = asked.ask([NodeFee(value=1.0)])
    assert (answer.today.before.price, answer.today.after.price) == pytest.approx(
        (asked.today.end.before.price + 2, asked.today.end.after.price + 1)
    )
    assert answer.then.before.price == pytest.approx(answer.today.before.price)
    assert answer.saved == pytest.approx(0)
    assert what_if_document(answer).node_fee == 1.0
    assert what_if_document(asked.ask([EvictionPriceKnob(value=0)])).node_fee is None


def test_a_fee_of_today_is_not_counted_twice() -> None:
    made = question()
    made = replace(made, catalog=replace(made.catalog, node_fee=0.5))
    answer = WhatIf(made).ask([NodeFee(value=0.5)])
    assert answer.today == WhatIf(made).today.end
    assert WhatIf(made).ask([NodeFee(value=0.0)]).today.before.price == pytest.approx(answer.today.before.price - 1)


@table(
    row(nodes=150, search=GLOBAL, found=(GLOBAL, 0)),
    row(nodes=151, search=GLOBAL, found=(PREFIX, 2)),
    row(nodes=10, search=PREFIX, found=(PREFIX, 2)),
)
def test_a_quick_search_depends_on_the_size(nodes: int, search: str, found: tuple[str, int]) -> None:
    settings = DisruptionSettings(search=search)
    chosen = quick(settings, nodes)
    assert (chosen.search, chosen.effort) == found
    assert chosen.effective_eviction_price == settings.effective_eviction_price


def test_the_search_of_the_settings_is_used_if_somebody_waits() -> None:
    assert WhatIf(question(search=GLOBAL), global_up_to=None).question.settings.effort == 2


def test_in_haste_a_prohibition_that_falls_is_judged_from_the_end_of_today() -> None:
    made = question(*two_half_empty(annotations=KEPT), search=GLOBAL)
    hasty = WhatIf(made, global_up_to=1)
    answer = hasty.ask([DoNotDisruptOff()])
    assert (hasty.hasty, answer.onwards) == (True, True)
    assert answer.today.after.price - answer.then.after.price == pytest.approx(0.2)
    assert not hasty.ask([NodeFee(value=1.0)]).onwards
    assert not WhatIf(made).hasty


def test_a_better_plan_of_today_counts_where_prohibitions_fall() -> None:
    made = question(search=GLOBAL)
    best = walk(made)
    asked = WhatIf(made, global_up_to=1, planned=best)
    document = what_if_document(asked.ask([DoNotDisruptOff()]))
    assert (document.today_search, document.search) == ("global, effort 2", "prefix")
    assert document.today.price_after == pytest.approx(best.end.after.price)
    assert what_if_document(asked.ask([NodeFee(value=1.0)])).today_search == "prefix"


def test_who_waits_has_one_plan_of_today_for_all_knobs() -> None:
    """What is not only allowed is looked for as long as the plan of today was."""
    made = question(search=GLOBAL)
    best = walk(made)
    asked = WhatIf(made, thorough=True, planned=best)
    for knob, search in ((DoNotDisruptOff(), "global, effort 0"), (GracePeriod(value=NEVER), "global, effort 0")):
        document = what_if_document(asked.ask([knob]))
        assert (document.search, document.today_search, document.first) == (search, "global, effort 2", False)
    document = what_if_document(asked.ask([NodeFee(value=1.0)]))
    assert (document.search, document.today_search, document.first) == ("global, effort 2", "global, effort 2", False)
    assert document.today.nodes_after == best.end.after.nodes


@table(
    row("in haste", asked=lambda made: WhatIf(made, global_up_to=1), first=True),
    row("without the plan of today", asked=WhatIf, first=True),
    row("as the settings say", asked=lambda made: WhatIf(made, global_up_to=None), first=False),
)
def test_a_first_answer_says_that_it_is_one(asked: Callable[[Question], WhatIf], *, first: bool) -> None:
    assert asked(question(search=GLOBAL)).ask([DoNotDisruptOff()]).first is first


RELAXING: tuple[Knob, ...] = (
    BudgetsOff(),
    DoNotDisruptOff(),
    AnyMachine(),
    SpotToSpot(value=True),
    EvictionPriceKnob(value=0),
)


@given(clusters())
@examples(10)
def test_what_a_better_plan_of_today_lets_come_after_it_counts_too(made: Cluster) -> None:
    whole = Question(made.objects, made.catalog, DisruptionSettings(search=GLOBAL, effort=0), Options(), NOW)
    planned = walk(whole)
    asked = WhatIf(whole, planned=planned)
    for knob in RELAXING:
        later = planned.end.then(asked.onwards([knob], planned).end)
        assert asked.ask([knob]).then.after.price <= later.after.price + 1e-9


@given(clusters())
@examples(15)
def test_nothing_ends_dearer_because_a_prohibition_falls(made: Cluster) -> None:
    asked = WhatIf(Question(made.objects, made.catalog, DisruptionSettings(search=PREFIX), Options(), NOW))
    for knob in RELAXING:
        answer = asked.ask([knob])
        assert answer.then.after.price <= answer.today.after.price + 1e-9


@given(clusters())
@examples(15)
def test_the_cluster_at_the_end_of_a_plan_is_a_question(made: Cluster) -> None:
    settings = DisruptionSettings(search=PREFIX)
    walked = walk(Question(made.objects, made.catalog, settings, Options(), NOW))
    there = walk(walked.there).end.before
    assert (there.nodes, there.price) == (walked.end.after.nodes, pytest.approx(walked.end.after.price))


# -- exports -----------------------------------------------------------------------------------------------------

KNOBS = (
    b'[{"knob":"budgetsOff"},{"knob":"gracePeriod","value":"30m"},{"knob":"weight","value":9},'
    b'{"knob":"forbidTypes","instanceTypes":["huge"]},{"knob":"order","value":"cost"},{"knob":"nodeFee","value":0.5},'
    b'{"knob":"spotToSpot","value":true},{"knob":"doNotDisruptOff"}]'
)


def kept(**pool: Any) -> Question:
    return question(*two_half_empty(annotations=KEPT), **pool)


def test_patches_make_pools_what_the_knobs_say() -> None:
    made, knobs = kept(annotations={BUDGETS: '[{"nodes": "0"}]'}), read_knobs(KNOBS)
    then = made
    for knob in knobs:
        then = knob.turn(then)
    files = patch_files(made, knobs)
    assert list(files) == ["default"]
    (patch,) = yaml_documents(files["default"].encode())
    assert patched(made.objects.node_pools, Policy(pools={"default": patch})) == then.objects.node_pools
    assert "# kubectl patch nodepool default --type merge" in files["default"]
    assert "--order=cost --feature-gates=SpotToSpotConsolidation=true --node-fee=0.5" in files["default"]
    assert f"# By hand: remove {DO_NOT_DISRUPT} from the pods of the cluster" in files["default"]


def test_a_patch_removes_only_what_was_read() -> None:
    """Others may have annotations on the pool that are not in a snapshot."""
    made = question(annotations={GRACE_PERIOD: "1h"})
    patch = export(made, [GracePeriod(value=NEVER)]).patches["default"]
    assert patch == {"metadata": {"annotations": {GRACE_PERIOD: None}}}


@table(
    row(old={"a": 1}, new={"a": 1}, patch={}),
    row(old={"a": 1}, new={}, patch={"a": None}),
    row(old={}, new={"a": {"b": 1}}, patch={"a": {"b": 1}}),
    row(old={"a": {"b": 1, "c": 2}}, new={"a": {"b": 3, "c": 2}}, patch={"a": {"b": 3}}),
    row(old={"a": [1, 2]}, new={"a": [2]}, patch={"a": [2]}),
)
def test_a_merge_patch_says_what_differs(
    old: dict[str, object], new: dict[str, object], patch: dict[str, object]
) -> None:
    assert merge_patch(old, new) == patch
    assert merged(old, patch) == new


def test_pools_that_stay_as_they_are_have_no_patch() -> None:
    made = question()
    assert not patch_files(made, [EvictionPriceKnob(value=0.5)])
    assert export(made, [EvictionPriceKnob(value=0.5)]).options == ("--eviction-price=0.5",)
    assert export(made, [PdbOff(name="default/never")]).by_hand == (
        "have PodDisruptionBudget default/never let pods go",
    )


def test_a_scenario_can_be_simulated() -> None:
    made = kept()
    text = scenario_file(made, read_knobs(KNOBS))
    assert not list(flaws(text.encode()))
    scenario = read_scenario(text)
    assert scenario.policies["today"].decisions.order == "ratio"
    then = scenario.policies["what-if"]
    assert (then.decisions.order, then.decisions.spot_to_spot, then.decisions.search) == (Order.COST, True, PREFIX)
    assert scenario.node_fee == 0.5
    assert "Left out: remove" in scenario.description
    (pool,) = patched(made.objects.node_pools, then)
    assert pool.spec.disruption.budgets[0].nodes == "100%"
    assert INSTANCE_TYPE in [rule.key for rule in pool.spec.template.spec.requirements]
