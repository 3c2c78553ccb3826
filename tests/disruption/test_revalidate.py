"""The second look: a command is carried out only if it would be decided again."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace as changed
from tests.disruption.scenes import NOW, Scene, ago, box, pool_of
from tests.factories import pdb, pod

from karpool.disruption.command import Command
from karpool.disruption.context import DecisionContext
from karpool.disruption.plan import context_of
from karpool.disruption.revalidate import revalidate
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.nodepool import Budget
from karpool.model.reasons import Reason

KEEP = {DO_NOT_DISRUPT: "true"}
LATER = NOW + timedelta(seconds=15)


def context(scene: Scene, now: datetime = LATER) -> DecisionContext:
    return context_of(scene.objects, scene.catalog, now=now, settings=scene.settings, options=scene.options)


def decided(scene: Scene) -> Command:
    return scene.plan().steps[0].command


TWO_EMPTY = Scene("two empty nodes", [box("a"), box("b")])
REPLACED = Scene("replaced", [box("a", "huge", [{"cpu": 1}])])
DELETED = Scene("deleted", [box("a", pods=[{"cpu": 1}]), box("b", "large", [{"cpu": 3}], annotations=KEEP)])
TOGETHER = Scene("together", [box(name, "huge", [{"cpu": 1}]) for name in "abc"])
DRIFTED = Scene("drifted", [box("a", pods=[{"cpu": 3}], claim={"drifted": ago(hours=1)})])


@pytest.mark.parametrize("scene", [TWO_EMPTY, REPLACED, DELETED, TOGETHER, DRIFTED], ids=lambda scene: scene.name)
def test_a_command_holds_while_nothing_changes(scene: Scene) -> None:
    assert revalidate(decided(scene), context(scene)) == decided(scene)


def test_a_pod_on_one_of_two_empty_nodes_leaves_the_other() -> None:
    busier = replace(TWO_EMPTY, pods=[pod("x-0", node="a")])
    found = revalidate(decided(TWO_EMPTY), context(busier))
    assert isinstance(found, Command)
    assert found.nodes == ("b",)
    assert found.price == pytest.approx(0.2)


def test_pods_on_both_empty_nodes_leave_nothing() -> None:
    busier = replace(TWO_EMPTY, pods=[pod("x-0", node="a"), pod("x-1", node="b")])
    found = revalidate(decided(TWO_EMPTY), context(busier))
    assert isinstance(found, Reason)
    assert found.code == "CandidateChanged"


def test_a_budget_that_has_shrunk_shrinks_an_emptiness_command() -> None:
    tighter = replace(TWO_EMPTY, pools=[pool_of(budgets=["1"])])
    found = revalidate(decided(TWO_EMPTY), context(tighter))
    assert isinstance(found, Command)
    assert len(found.nodes) == 1
    closed = replace(TWO_EMPTY, pools=[pool_of(budgets=["0"])])
    refused = revalidate(decided(TWO_EMPTY), context(closed))
    assert isinstance(refused, Reason)
    assert refused.code == "BudgetExhausted"


def test_drift_is_not_looked_at_again() -> None:
    gone = replace(DRIFTED, boxes=[])
    assert revalidate(decided(DRIFTED), context(gone)) == decided(DRIFTED)


def test_a_pod_that_fits_the_planned_types_joins_the_command() -> None:
    more = replace(REPLACED, pods=[pod("x-0", node="a", cpu="100m")])
    found = revalidate(decided(REPLACED), context(more))
    assert isinstance(found, Command)
    assert [move.pod for move in found.moves] == ["default/a-0", "default/x-0"]
    assert found.replacements == decided(REPLACED).replacements


CHANGES: list[tuple[str, Scene, Callable[[Scene], Scene], str]] = [
    ("a pod that needs another type", REPLACED,
     lambda s: replace(s, pods=[pod("x-0", node="a", cpu=3)]), "ReplacementChanged"),
    ("a pod that needs a second node", REPLACED,
     lambda s: replace(s, pods=[pod("x-0", node="a", cpu="63")]), "ReplacementChanged"),
    ("a pod with do-not-disrupt", REPLACED,
     lambda s: replace(s, pods=[pod("x-0", node="a", annotations=KEEP)]), "CandidateChanged"),
    ("a PDB that blocks", REPLACED, lambda s: replace(s, pdbs=[pdb("keep", {"app": "a"}, allowed=0)]),
    "CandidateChanged"),
    ("a pod that fits nowhere", REPLACED,
     lambda s: replace(s, pods=[pod("x-0", node="a", selector={"disk": "ssd"})]), "PodsWouldNotFit"),
    ("a pending pod that counts on the node", REPLACED,
     lambda s: replace(s, pods=[pod("x-0", cpu=60, pending=True)]), "ReplacementChanged"),
    ("the room on the other node is taken", DELETED,
     lambda s: replace(s, pods=[pod("x-0", node="b", cpu=4)]), "ReplacementChanged"),
    ("room appears: no new node is needed", REPLACED,
     lambda s: replace(s, boxes=[*s.boxes, box("z", "large")]), "ReplacementChanged"),
    ("the node is gone", REPLACED, lambda s: replace(s, boxes=[]), "CandidateChanged"),
    ("the node is empty now", REPLACED, lambda s: replace(s, boxes=[box("a", "huge")]), "CandidateChanged"),
    ("the node is on its way out", REPLACED,
     lambda s: replace(s, boxes=[box("a", "huge", [{"cpu": 1}], claim={"deleted": NOW})]), "CandidateChanged"),
    ("the pool says WhenEmpty now", REPLACED, lambda s: replace(s, pools=[pool_of(policy="WhenEmpty")]),
    "CandidateChanged"),
    ("a pod event, and a window", REPLACED,
     lambda s: replace(s, boxes=[box("a", "huge", [{"cpu": 1}], claim={"last_pod_event": NOW})],
                       pools=[pool_of(consolidate_after="1m")]), "CandidateChanged"),
    ("budget gone", REPLACED, lambda s: replace(s, pools=[pool_of(budgets=["0"])]), "BudgetExhausted"),
    ("budget for fewer than the command takes", TOGETHER, lambda s: replace(s, pools=[pool_of(budgets=["2"])]),
    "BudgetExhausted"),
    ("one of three is protected", TOGETHER,
     lambda s: replace(s, boxes=[*s.boxes[:2], box("c", "huge", [{"cpu": 1, "annotations": KEEP}])]),
     "CandidateChanged"),
    ("types are sold out", REPLACED, lambda s: replace(s, pools=[pool_of(limits={"cpu": 0})]), "PodsWouldNotFit"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "scene", "change", "code"), CHANGES, ids=[entry[0] for entry in CHANGES])
def test_a_consolidation_is_given_up_when_its_ground_has_changed(
    name: str, scene: Scene, change: Callable[[Scene], Scene], code: str
) -> None:
    found = revalidate(decided(scene), context(change(scene)))
    assert isinstance(found, Reason), name
    assert found.code == code, found


def test_a_dearer_price_is_not_looked_at_again() -> None:
    """What is planned may cost more by now; the launch still keeps to the planned types and capacity type."""
    from tests.factories import Z1, instance_type

    from karpool.catalog.instance_types import Catalog

    dearer = Catalog(
        tuple(instance_type(t.name, t.capacity["cpu"].units, f"{4 * t.capacity['cpu'].units}Gi", price=9.0, zones=[Z1])
              for t in REPLACED.catalog.types)
    )  # fmt: skip
    assert isinstance(revalidate(decided(REPLACED), context(replace(REPLACED, catalog=dearer))), Command)


def test_a_nominated_node_is_not_disrupted() -> None:
    busy = context(TWO_EMPTY)
    expected = DecisionContext(busy.snapshot, busy.catalog, busy.engine, now=LATER, nominated=["a"])
    found = revalidate(decided(TWO_EMPTY), expected)
    assert isinstance(found, Command)
    assert found.nodes == ("b",)


def test_a_budget_window_that_opens_in_between_counts() -> None:
    from karpool.wire.duration import parse_duration

    hour = Budget(nodes="0", schedule="1 12 * * *", duration=parse_duration("1h"))
    scene = replace(REPLACED, pools=[pool_of(budgets=[hour])])
    command = decided(scene)
    assert isinstance(revalidate(command, context(scene, NOW + timedelta(seconds=59))), Command)
    refused = revalidate(command, context(scene, NOW + timedelta(seconds=60)))
    assert isinstance(refused, Reason)
    assert refused.code == "BudgetExhausted"


def test_a_claim_that_is_marked_after_the_decision_is_left_alone() -> None:
    marked = [replace(one, node=changed(one.node, metadata=changed(one.node.metadata, annotations=KEEP)))
              for one in REPLACED.boxes if one.node is not None]  # fmt: skip
    found = revalidate(decided(REPLACED), context(replace(REPLACED, boxes=marked)))
    assert isinstance(found, Reason)
    assert DO_NOT_DISRUPT in found.message
