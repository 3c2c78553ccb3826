"""Knobs: what each changes of a question, and what it refuses."""

import pickle
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest
from tests.disruption.scenarios import CATALOG, NOW, POOL, cluster, node, pool_of
from tests.factories import daemon_set, pdb
from tests.tables import row, table

from karpool.disruption.settings import DisruptionSettings
from karpool.disruption.what_if.knob import turned
from karpool.disruption.what_if.knobs import read_knobs
from karpool.disruption.what_if.question import KnobError, Question
from karpool.model.annotations import annotated_budgets, grace_period
from karpool.model.labels import BUDGETS, DO_NOT_DISRUPT, GRACE_PERIOD, INSTANCE_TYPE, MINIMUM_SAVINGS
from karpool.model.node_group import NodeGroup
from karpool.model.nodepool import NodePool
from karpool.model.requests import effective_requests
from karpool.packing.options import Options
from karpool.wire.objects import encode_value

PODS = [
    {"name": "web-7f-1", "annotations": {DO_NOT_DISRUPT: "true"}},
    {"name": "api-7f-1", "namespace": "shop", "annotations": {DO_NOT_DISRUPT: "true"}},
]
AGENT = daemon_set("agent", cpu=1)


def question(*pools: NodePool) -> Question:
    objects = cluster(
        [node("a", pods=PODS)],
        pools=pools or [POOL, pool_of("other")],
        pod_disruption_budgets=(pdb("web", labels={"app": "web"}),),
        daemon_sets=(AGENT,),
    )
    return Question(objects, CATALOG, DisruptionSettings(), Options(), NOW)


def asked(*knobs: Mapping[str, Any], of: Question | None = None) -> Question:
    return turned(of or question(), read_knobs(msgspec.json.encode(knobs)))


def pool(made: Question, name: str = "default") -> NodePool:
    return next(pool for pool in made.objects.node_pools if pool.name == name)


@table(
    row(
        knob={"knob": "consolidateAfter", "value": "5m"},
        says=lambda p: str(p.spec.disruption.consolidate_after),
        now="5m",
    ),
    row(knob={"knob": "budgetsOff"}, says=lambda p: p.spec.disruption.budgets[0].nodes, now="100%"),
    row(knob={"knob": "gracePeriod", "value": "30m"}, says=lambda p: str(grace_period(p)), now="30m"),
    row(knob={"knob": "weight", "value": 7}, says=lambda p: p.weight, now=7),
    row(
        knob={"knob": "minimumSavings", "value": "5%"},
        says=lambda p: p.metadata.annotations[MINIMUM_SAVINGS],
        now="5%",
    ),
    row(
        knob={"knob": "consolidationPolicy", "value": "WhenEmpty"},
        says=lambda p: p.spec.disruption.consolidation_policy,
        now="WhenEmpty",
    ),
)
def test_a_knob_of_a_pool_changes_that_pool_or_all(
    knob: dict[str, Any], says: Callable[[NodePool], object], now: object
) -> None:
    everywhere, one = asked(knob), asked({**knob, "nodePool": "other"})
    assert [says(entry) for entry in everywhere.objects.node_pools] == [now, now]
    assert says(pool(one, "other")) == now
    assert pool(one) == POOL


@table(
    row(knob={"knob": "evictionPrice", "value": 0.01}, says=lambda q: q.settings.eviction_price, now=0.01),
    row(
        knob={"knob": "spotToSpot", "value": True},
        says=lambda q: (q.settings.spot_to_spot, q.settings.spot_floor),
        now=(True, 15),
    ),
    row(knob={"knob": "spotToSpot", "value": True, "floor": 1}, says=lambda q: q.settings.spot_floor, now=1),
    row(knob={"knob": "partition", "value": "none"}, says=lambda q: q.settings.partition, now="none"),
    row(knob={"knob": "order", "value": "cost"}, says=lambda q: q.settings.order, now="cost"),
    row(knob={"knob": "weights", "value": "strict"}, says=lambda q: q.settings.weights, now="strict"),
    row(knob={"knob": "nodeFee", "value": 0.02}, says=lambda q: q.catalog.node_fee, now=0.02),
)
def test_a_knob_of_an_option_changes_that_option(
    knob: dict[str, Any], says: Callable[[Question], object], now: object
) -> None:
    assert says(asked(knob)) == now


def protected(made: Question) -> set[str]:
    return {entry.key for entry in made.objects.pods if DO_NOT_DISRUPT in entry.metadata.annotations}


@table(
    row(knob={}, left=set()),
    row(knob={"namespace": "shop"}, left={"default/web-7f-1"}),
    row(knob={"workload": "Deployment default/web"}, left={"shop/api-7f-1"}),
)
def test_do_not_disrupt_is_lifted_for_whom_it_is_said(knob: dict[str, Any], left: set[str]) -> None:
    assert protected(asked({"knob": "doNotDisruptOff", **knob})) == left


def test_a_workload_requests_less() -> None:
    of_web = {"knob": "requests", "workload": "Deployment default/web", "cpu": 0.5, "memory": 2}
    amounts = {entry.name: effective_requests(entry) for entry in asked(of_web).objects.pods}
    assert {name: (str(asked_["cpu"]), str(asked_["memory"])) for name, asked_ in amounts.items()} == {
        "web-7f-1": ("250m", "2Gi"),
        "api-7f-1": ("500m", "1Gi"),
    }


def test_a_pod_disruption_budget_is_gone() -> None:
    assert not asked({"knob": "pdbOff", "name": "default/web"}).objects.pod_disruption_budgets


def requirements(made: Question) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(rule.key, rule.operator, rule.values) for rule in pool(made).spec.template.spec.requirements]


def test_types_are_forbidden_added_and_let_in() -> None:
    assert (INSTANCE_TYPE, "NotIn", ("huge", "tiny")) in requirements(
        asked({"knob": "forbidTypes", "instanceTypes": ["t*", "huge"]})
    )
    narrow = question(pool_of(requirements=[(INSTANCE_TYPE, "In", "small"), (INSTANCE_TYPE, "NotIn", "huge", "tiny")]))
    wider = requirements(asked({"knob": "addTypes", "instanceTypes": ["huge"]}, of=narrow))
    assert (INSTANCE_TYPE, "In", ("small", "huge")) in wider
    assert (INSTANCE_TYPE, "NotIn", ("tiny",)) in wider
    assert INSTANCE_TYPE not in [key for key, _, _ in requirements(asked({"knob": "anyMachine"}, of=narrow))]


def test_budgets_in_an_annotation_are_lifted_there_too() -> None:
    closed = question(pool_of(annotations={BUDGETS: '[{"nodes": "0"}]'}))
    budgets = annotated_budgets(pool(asked({"knob": "budgetsOff"}, of=closed)))
    assert [budget.nodes for budget in budgets or ()] == ["100%"]


def test_a_grace_period_is_changed_where_it_is_written() -> None:
    annotated = question(pool_of(annotations={GRACE_PERIOD: "1h"}))
    made = pool(asked({"knob": "gracePeriod", "value": "Never"}, of=annotated))
    assert GRACE_PERIOD not in made.metadata.annotations
    assert grace_period(made).never


def test_node_groups_have_no_knobs_of_pools() -> None:
    group = NodeGroup(metadata=POOL.metadata)
    with pytest.raises(KnobError, match="there is no NodePool 'default'"):
        asked({"knob": "budgetsOff", "nodePool": "default"}, of=question(group))
    assert asked({"knob": "groupMinimumOff", "group": "default"}, of=question(group)).objects.node_pools[0].minimum == 0  # type: ignore[attr-defined]


@table(
    row(knob={"knob": "weight", "value": 3, "nodePool": "othr"}, words="did you mean other?"),
    row(knob={"knob": "forbidTypes", "instanceTypes": ["smal"]}, words="did you mean small?"),
    row(knob={"knob": "pdbOff", "name": "default/wep"}, words="did you mean default/web?"),
    row(knob={"knob": "requests", "workload": "Deployment default/x", "cpu": 2}, words="there is no workload"),
    row(knob={"knob": "nodeProtectionOff", "node": "zz"}, words="there is no node 'zz'"),
    row(knob={"knob": "minimumSavings", "value": "much"}, words="is not allowed"),
    row(knob={"knob": "nodeFee", "value": -1}, words="nodeFee: -1 is not allowed"),
    row(knob={"knob": "requests", "workload": "x", "cpu": 0}, words="write a number from 0.01 to 100"),
    row(knob={"knob": "order", "value": "luck"}, words="luck"),
    row(knob={"knob": "budgetsOff", "pool": "default"}, words="has no field .pool."),
    row(knob={"knob": "doom"}, words="doom"),
    row(knob={"knob": "doNotDisruptOff", "workload": "x", "namespace": "y"}, words="leave one of them out"),
)
def test_a_knob_that_does_not_fit_says_why(knob: dict[str, Any], words: str) -> None:
    with pytest.raises(KnobError, match=words.replace("?", r"\?")):
        asked(knob)


@table(
    row(knob={"knob": "weight", "value": 150}, says="weight: 150 is not allowed; write a whole number from 0 to 100"),
    row(
        knob={"knob": "requests", "workload": "Deployment default/web", "cpu": 0},
        says="requests.cpu: 0 is not allowed; write a number from 0.01 to 100",
    ),
    row(knob={"knob": "spotToSpot", "value": "on"}, says="spotToSpot: 'on' is not allowed; write true or false"),
    row(knob={"knob": "order", "value": "x"}, says="order: 'x' is not allowed; use one of cost, ratio"),
    row(knob={"knob": "gracePeriod", "value": "1 day"}, says="gracePeriod: '1 day' is not a duration; write numbers"),
    row(knob={"knob": "weight"}, says="weight: it is missing; write a whole number from 0 to 100"),
    row(knob={"knob": "weihgt", "value": 3}, says="knob: there is no knob 'weihgt'; did you mean weight?"),
    row(knob={"knob": "budgetsOff", "pool": "x"}, says="budgetsOff: it has no field 'pool'; its fields are nodePool"),
    row(knob={"knob": "forbidTypes", "instanceTypes": 3}, says="forbidTypes.instanceTypes: 3 is not allowed; name at"),
    row(knob=None, says="knobs: each must be an object whose field `knob` says what it is"),
)
def test_a_knob_that_cannot_be_read_says_what_to_write(knob: object, says: str) -> None:
    with pytest.raises(KnobError) as refused:
        read_knobs(msgspec.json.encode([{"knob": "budgetsOff"}, knob]))
    assert str(refused.value).startswith(says)
    assert "$" not in str(refused.value)


def test_knobs_are_a_list_and_not_too_many() -> None:
    for text in (
        b"{}",
        b"[",
        b'"x"',
        b"\xff",
        b'[{"knob":"evictionPrice","value":1e999}]',
        b"[" * 100_000,
        b"[" + b'{"knob":"budgetsOff"},' * 100 + b'{"knob":"budgetsOff"}]',
    ):
        with pytest.raises(KnobError, match="knobs"):
            read_knobs(text)


def test_questions_and_knobs_go_to_other_processes() -> None:
    made, knobs = question(), read_knobs('[{"knob":"consolidateAfter","value":"5m"}]')
    there, sent = pickle.loads(pickle.dumps((made, knobs)))  # noqa: S301 - our own bytes
    assert sent == knobs
    assert there.objects == made.objects
    assert (
        msgspec.json.encode(knobs, enc_hook=encode_value)
        == b'[{"knob":"consolidateAfter","nodePool":null,"value":"5m"}]'
    )
    error = pickle.loads(pickle.dumps(KnobError("value", "is wrong")))  # noqa: S301
    assert str(error) == "value: is wrong"
