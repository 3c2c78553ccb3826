"""Nothing that cannot be taken back is done on the strength of an object that cannot be read."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.execution.runs import SETTINGS, advanced, delete_command, replace_command, small_world, start
from tests.execution.world import START
from tests.factories import claim_for, node, node_pool, pdb, pod
from tests.factories.unreadable import unreadable
from tests.tables import row, table

from karpool.execution.actions import (
    Action,
    AddTaint,
    DeleteClaim,
    DeleteNode,
    DeletePod,
    EvictPod,
    RecordEvent,
    RemoveFinalizer,
    RemoveTaint,
    TerminateInstance,
)
from karpool.execution.fresh_facts import FreshNode, changed_since
from karpool.execution.lifecycle import lifecycle
from karpool.execution.start import NotStartedError
from karpool.execution.state import ExecutionState
from karpool.execution.tickets import COMMAND
from karpool.execution.volumes import attached_volumes
from karpool.model.objects import Objects
from karpool.model.storage import VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec
from karpool.wire.objects import Condition, Metadata

FINAL = (DeleteClaim, DeleteNode, DeletePod, EvictPod, RemoveFinalizer, TerminateInstance)
LATER = START + timedelta(minutes=10)
Spoil = Callable[[Objects], Objects]


def leaving(*, node_deleted: bool = True) -> Objects:
    """A node and its claim that are being deleted; the drain began, and nothing is left to evict but one pod."""
    made = node("a", deleted=START if node_deleted else None, taints=[SETTINGS.taint])
    claim = claim_for(made, deleted=START, taints=())
    draining = Condition(type="Drained", status="Unknown", reason="Draining", last_transition_time=START)
    claim = replace(claim, status=replace(claim.status, conditions=(*claim.status.conditions, draining)))
    return Objects(nodes=(made,), node_claims=(claim,), pods=(pod("web-1", node="a"),))


def final(actions: tuple[Action, ...]) -> list[Action]:
    return [action for action in actions if isinstance(action, FINAL)]


def told(actions: tuple[Action, ...]) -> list[str]:
    return [action.message for action in actions if isinstance(action, RecordEvent) and action.reason == "Unreadable"]


def lost_node(objects: Objects) -> Objects:
    return replace(objects, nodes=(unreadable(objects.nodes[0]),))


def lost_node_and_machine(objects: Objects) -> Objects:
    """Not even the provider id, by which a node is paired with its claim."""
    stranger = unreadable(objects.nodes[0], spec=7, metadata__name="another")
    return replace(objects, nodes=(stranger,))


def lost_claim(objects: Objects) -> Objects:
    return replace(objects, node_claims=(unreadable(objects.node_claims[0]),))


def lost_claim_and_machine(objects: Objects) -> Objects:
    return replace(objects, node_claims=(unreadable(objects.node_claims[0], status=7),))


def lost_pod(objects: Objects) -> Objects:
    return replace(objects, pods=(unreadable(objects.pods[0]),))


def pod_of_unknown_node(objects: Objects) -> Objects:
    return replace(objects, pods=(unreadable(objects.pods[0], spec__nodeName=7),))


LOST = (
    row("its Node", lose=lost_node),
    row("a Node that may be its own", lose=lost_node_and_machine),
    row("its NodeClaim", lose=lost_claim),
    row("a NodeClaim that may be its own", lose=lost_claim_and_machine),
    row("a pod on it", lose=lost_pod),
    row("a pod that may be on it", lose=pod_of_unknown_node),
)


@table(*LOST)
@pytest.mark.parametrize("node_deleted", [True, False])
def test_nothing_is_taken_away_while_this_cannot_be_read(lose: Spoil, *, node_deleted: bool) -> None:
    objects = leaving(node_deleted=node_deleted)
    assert final(advanced(objects, ExecutionState(), LATER)[1])
    _, actions = advanced(lose(objects), ExecutionState(), LATER)
    assert final(actions) == []
    assert all("cannot be read" in message for message in told(actions))
    assert told(actions)


@table(*LOST)
def test_a_drained_node_keeps_its_finalizer_and_its_machine_while_this_cannot_be_read(lose: Spoil) -> None:
    objects = leaving()
    finished = replace(objects.pods[0], status=replace(objects.pods[0].status, phase="Succeeded"))
    drained = replace(objects, pods=(finished,))
    assert TerminateInstance("a", "claim-a") in advanced(drained, ExecutionState(), LATER)[1]
    if lose in (lost_pod, pod_of_unknown_node):
        drained = objects
    assert final(advanced(lose(drained), ExecutionState(), LATER)[1]) == []


def test_no_more_pods_come_to_a_node_that_waits_for_a_pod_that_cannot_be_read() -> None:
    objects = leaving()
    bare = replace(objects.nodes[0], spec=replace(objects.nodes[0].spec, taints=()))
    _, actions = advanced(lost_pod(replace(objects, nodes=(bare,))), ExecutionState(), LATER)
    assert AddTaint("a", SETTINGS.taint) in actions


def test_pods_of_a_budget_that_cannot_be_read_are_not_evicted() -> None:
    objects = leaving()
    lost = unreadable(pdb("web", {"app": "web"}, allowed=5))
    _, actions = advanced(replace(objects, pod_disruption_budgets=(lost,)), ExecutionState(), LATER)
    assert final(actions) == []
    assert told(actions)[0].startswith("pod default/web-1 is not evicted, because PodDisruptionBudget default/web")


@pytest.mark.parametrize("node_name", ["a", 7])
def test_an_attachment_that_cannot_be_read_is_still_to_be_detached(node_name: object) -> None:
    source = VolumeAttachmentSource(persistent_volume_name="disk")
    attachment = VolumeAttachment(metadata=Metadata(name="x"), spec=VolumeAttachmentSpec(node_name="a", source=source))
    lost = unreadable(attachment, spec__nodeName=node_name, spec__source="none")
    elsewhere = unreadable(attachment, spec__nodeName="b", spec__source="none")
    objects = replace(leaving(), volume_attachments=(lost, elsewhere))
    assert attached_volumes(objects, objects.nodes[0], (), LATER) == 1


# -- NodeClaims that nobody deleted ------------------------------------------------------------------------------------


@table(
    row("the claim", lose=lost_claim),
    row("its Node", lose=lost_node),
    row("a Node that may be its own", lose=lost_node_and_machine),
    row("its pool", lose=lambda objects: replace(objects, node_pools=(unreadable(objects.node_pools[0]),))),
)
def test_a_claim_does_not_expire_while_this_cannot_be_read(lose: Spoil) -> None:
    made = node("a")
    claim = claim_for(made, created=START - timedelta(days=31), expire_after="720h")
    objects = Objects(nodes=(made,), node_claims=(claim,), node_pools=(node_pool(),))
    assert [type(action) for action in lifecycle(objects, START, SETTINGS).actions] == [DeleteClaim]
    assert lifecycle(lose(objects), START, SETTINGS).actions == ()


# -- commands ----------------------------------------------------------------------------------------------------------


@table(
    row("a Node", lose=lambda objects: replace(objects, nodes=tuple(map(unreadable, objects.nodes)))),
    row("a NodeClaim", lose=lambda objects: replace(objects, node_claims=tuple(map(unreadable, objects.node_claims)))),
    row("a pod", lose=lambda objects: replace(objects, pods=tuple(map(unreadable, objects.pods)))),
)
def test_a_command_is_rolled_back_when_this_cannot_be_read_any_more(lose: Spoil) -> None:
    world = small_world()
    for action in start(world, delete_command(world)):
        world.apply(action)
    assert final(advanced(world.objects(), ExecutionState(), world.now)[1]) == []
    _, actions = advanced(lose(world.objects()), ExecutionState(), world.now)
    assert final(actions) == []
    assert {action.node for action in actions if isinstance(action, RemoveTaint)} == {"a", "b"}
    events = [action.message for action in actions if isinstance(action, RecordEvent)]
    assert any("is rolled back" in message and "cannot be read" in message for message in events)


def test_a_committed_command_deletes_only_what_can_be_read() -> None:
    world = small_world()
    for action in start(world, delete_command(world)):
        world.apply(action)
    objects = world.objects()
    committed = tuple(
        replace(claim, metadata=replace(claim.metadata, annotations=_committed(claim.metadata.annotations)))
        for claim in objects.node_claims
    )
    objects = replace(objects, node_claims=committed)
    both = final(advanced(objects, ExecutionState(), world.now)[1])
    assert [action.name for action in both if isinstance(action, DeleteClaim)] == ["a", "b"]
    lost = tuple(unreadable(entry) if entry.name == "a" else entry for entry in objects.nodes)
    one = final(advanced(replace(objects, nodes=lost), ExecutionState(), world.now)[1])
    assert [action.name for action in one if isinstance(action, DeleteClaim)] == ["b"]


def _committed(annotations: dict[str, str]) -> dict[str, str]:
    ticket = annotations.get(COMMAND)
    return annotations if ticket is None else {**annotations, COMMAND: ticket[:-1] + ',"committed":true}'}


def test_a_replacement_that_cannot_be_read_is_neither_relied_on_nor_deleted() -> None:
    world = small_world()
    actions = start(world, replace_command(world))
    for action in actions:
        world.apply(action)
    objects = world.objects()
    (new,) = [claim for claim in objects.node_claims if claim.name not in "abc"]
    lost = tuple(unreadable(claim) if claim is new else claim for claim in objects.node_claims)
    much_later = world.now + timedelta(hours=2)
    assert DeleteClaim(new.name, new.metadata.uid) in advanced(objects, ExecutionState(), much_later)[1]
    assert final(advanced(replace(objects, node_claims=lost), ExecutionState(), much_later)[1]) == []


@pytest.mark.parametrize("kind", ["nodes", "node_claims", "pods"])
def test_a_command_about_something_that_cannot_be_read_does_not_start(kind: str) -> None:
    world = small_world()
    command = delete_command(world)
    collection = {"nodes": world.nodes, "node_claims": world.claims, "pods": world.pods}[kind]
    key = next(key for key, entry in collection.items() if "a" in key)  # type: ignore[attr-defined]
    collection[key] = unreadable(collection[key])  # type: ignore[index]
    with pytest.raises(NotStartedError, match="cannot be read"):
        start(world, command)


@pytest.mark.parametrize("owner", ["ReplicaSet", "DaemonSet"])
@pytest.mark.parametrize("drains_anyway", [True, False])
def test_a_pod_that_cannot_be_read_again_keeps_its_node_whatever_its_grace_period(
    owner: str, *, drains_anyway: bool
) -> None:
    known = pod("web-1", node="a", owner=owner)
    assert changed_since("a", (known,), FreshNode(node("a"), (known,)), START, drains_anyway=drains_anyway) is None
    facts = FreshNode(node("a"), (unreadable(known),))
    reason = changed_since("a", (known,), facts, START, drains_anyway=drains_anyway)
    assert reason is not None
    assert (reason.code, reason.object) == ("Unreadable", "Pod default/web-1")
