import dataclasses
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.execution.runs import SETTINGS
from tests.execution.world import START, World
from tests.factories import amounts, claim_for, node, node_claim, node_pool, taint
from tests.factories.devices import DRIVER, devices, slice_of

from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.disruption.candidates.windows import source_closed
from karpool.execution.actions import (
    Action,
    AddFinalizer,
    AddTaint,
    Annotate,
    ClearClaimCondition,
    DeleteClaim,
    Edit,
    RemoveTaint,
    SetClaimCondition,
    SetClaimNode,
    SetLabel,
    SetNodeOwner,
)
from karpool.execution.advance import advance
from karpool.execution.conditions import TERMINATED
from karpool.execution.lifecycle import lifecycle
from karpool.execution.state import ExecutionState
from karpool.live.patches import merge_patch, target
from karpool.model.devices import ResourceSlice
from karpool.model.labels import (
    INITIALIZED,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
    REGISTERED,
    REQUESTED_DRIVERS,
    TERMINATION_FINALIZER,
    UNREGISTERED_TAINT,
)
from karpool.model.node import Node
from karpool.model.nodepool import ClaimResources, NodeClaim
from karpool.model.objects import Objects
from karpool.wire.objects import Condition, OwnerReference

MINUTE = timedelta(minutes=1)


def reconcile(
    claim: NodeClaim, *nodes: Node, at: datetime = START, **pool: str
) -> tuple[list[Action], datetime | None]:
    objects = Objects(nodes=nodes, node_claims=(claim,), node_pools=(node_pool(**pool),))
    result = lifecycle(objects, at, SETTINGS)
    return list(result.actions), result.requeue_at


def note(actions: list[Action], kind: str) -> tuple[str, str] | None:
    return next(((a.status, a.reason) for a in actions if isinstance(a, SetClaimCondition) and a.type == kind), None)


# -- from launch to use ------------------------------------------------------------------------------------------------


def stranger() -> Node:
    """A node that has just joined: unregistered, without a finalizer."""
    made = node("n1", registered=False, initialized=False, taints=[f"{UNREGISTERED_TAINT}:NoExecute"])
    return replace(made, metadata=replace(made.metadata, finalizers=(), labels={}))


def test_a_claim_without_a_node_waits_for_it() -> None:
    actions, requeue_at = reconcile(node_claim("n1", created=START))
    assert note(actions, "Registered") == ("Unknown", "NodeNotFound")
    assert requeue_at == START + 15 * MINUTE


def test_a_machine_with_two_nodes_is_not_registered() -> None:
    other = node("n2", registered=False)
    twin = replace(other, spec=replace(other.spec, provider_id="fake://n1"))
    actions, _ = reconcile(node_claim("n1", created=START), stranger(), twin)
    assert note(actions, "Registered") == ("False", "MultipleNodesFound")


def test_a_node_gets_everything_of_its_claim_before_pods_may_come() -> None:
    claim = node_claim("n1", created=START, taints=["team=a"], startup_taints=["cni"], labels={"tier": "web"})
    actions, _ = reconcile(claim, stranger())
    assert AddFinalizer("Node", "n1", TERMINATION_FINALIZER) in actions
    assert SetLabel("Node", "n1", "tier", "web") in actions
    assert [a.taint.key for a in actions if isinstance(a, AddTaint)] == ["team", "cni"]
    opened = RemoveTaint("n1", taint(f"{UNREGISTERED_TAINT}:NoExecute"))
    assert actions[-2:] == [SetLabel("Node", "n1", REGISTERED, "true"), opened]
    assert {target(action) for action in actions if isinstance(action, Edit)} == {("Node", "n1", "")}  # one patch
    assert note(actions, "Registered") is None


def test_a_claim_whose_node_has_everything_is_registered_and_says_what_it_waits_for() -> None:
    made = node("n1", initialized=False, ready=False)
    owner = OwnerReference(kind="NodeClaim", name="n1", uid=claim_for(made).metadata.uid)
    made = replace(made, metadata=replace(made.metadata, owner_references=(owner,)))
    actions, _ = reconcile(node_claim("n1", created=START), made)
    assert SetClaimNode("n1", "n1") in actions
    assert note(actions, "Registered") == ("True", "Registered")
    assert note(actions, "Initialized") == ("Unknown", "NodeNotReady")


def test_a_new_node_ends_up_initialized() -> None:
    claim = node_claim("n1", created=START, taints=["team=a"], startup_taints=["cni"])
    world = World(Objects(nodes=(stranger(),), node_claims=(claim,), node_pools=(node_pool(),)))
    for _ in range(2):
        world.execute(lifecycle(world.objects(), START, SETTINGS).actions)
    assert world.claims["n1"].is_true("Registered")
    assert not world.claims["n1"].is_true("Initialized")
    assert {t.key for t in world.nodes["n1"].spec.taints} == {"team", "cni"}
    world.apply(RemoveTaint("n1", taint("cni")))
    for _ in range(3):
        world.execute(lifecycle(world.objects(), START, SETTINGS).actions)
    assert world.claims["n1"].is_true("Initialized")
    assert world.claims["n1"].is_true("Ready")
    assert world.nodes["n1"].metadata.labels[INITIALIZED] == "true"
    assert {t.key for t in world.nodes["n1"].spec.taints} == {"team"}
    assert lifecycle(world.objects(), START, SETTINGS).actions == ()


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (node("n1", initialized=False, ready=False), "NodeNotReady"),
        (node("n1", initialized=False, taints=["cni"]), "StartupTaintsExist"),
        (node("n1", initialized=False, taints=["node.kubernetes.io/not-ready"]), "KnownEphemeralTaintsExist"),
        (node("n1", initialized=False, taints=["readiness.k8s.io/cni"]), "KnownEphemeralTaintsExist"),
        (node("n1", initialized=False, cpu=None), "ResourceNotRegistered"),
    ],
)
def test_what_a_node_lacks_is_said(made: Node, reason: str) -> None:
    claim = claim_for(made, created=START, startup_taints=["cni"], taints=())
    spec = replace(claim.spec, resources=ClaimResources(requests=amounts({"cpu": "1"})))
    actions, _ = reconcile(replace(claim, spec=spec), made)
    assert note(actions, "Initialized") == ("Unknown", reason)


@pytest.mark.parametrize(
    ("slices", "initialized"),
    [
        ((), False),
        ((slice_of(devices(1), node="n1", count=2),), False),
        ((slice_of(devices(1), node="other"),), False),
        ((slice_of(devices(1), node="n1", driver="nic.example.com"),), False),
        ((slice_of(devices(1), node="n1"),), True),
        ((slice_of(devices(1), all_nodes=True, owner="n1"),), True),
        ((slice_of(devices(1), node="n1"), slice_of(devices(1), node="n1", name="new", generation=2, count=2)), False),
    ],
)
def test_a_node_waits_for_the_devices_that_its_pods_count_on(
    slices: tuple[ResourceSlice, ...], *, initialized: bool
) -> None:
    made = node("n1", initialized=False)
    claim = claim_for(made, created=START, annotations={REQUESTED_DRIVERS: DRIVER})
    objects = Objects(nodes=(made,), node_claims=(claim,), node_pools=(node_pool(),), resource_slices=slices)
    actions = lifecycle(objects, START, dataclasses.replace(SETTINGS, awaits_devices=True)).actions
    if initialized:
        assert SetLabel("Node", "n1", INITIALIZED, "true") in actions
    else:
        assert note(list(actions), "Initialized") == ("Unknown", "DRADriverPoolsNotPublished")
    # Who does not look at claims waits for no devices.
    assert SetLabel("Node", "n1", INITIALIZED, "true") in lifecycle(objects, START, SETTINGS).actions


# -- the end of a life -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "minutes", "ends"),
    [
        (node_claim("n1", launched=False, created=START), 4, False),
        (node_claim("n1", launched=False, created=START), 5, True),
        (node_claim("n1", created=START), 14, False),
        (node_claim("n1", created=START), 15, True),
        (claim_for(node("n1"), created=START, expire_after="1h"), 59, False),
        (claim_for(node("n1"), created=START, expire_after="1h"), 60, True),
        (claim_for(node("n1"), created=START), 10**6, False),
    ],
)
def test_a_claim_is_given_up_in_time(claim: NodeClaim, minutes: int, *, ends: bool) -> None:
    made = (node("n1"),) if claim.status.node_name else ()
    actions, requeue_at = reconcile(claim, *made, at=START + minutes * MINUTE)
    assert (actions == [DeleteClaim("n1", "claim-n1")]) is ends
    assert ends or requeue_at is None or requeue_at > START + minutes * MINUTE


@pytest.mark.parametrize(("ready", "ends"), [(False, True), (True, False)])
def test_a_claim_whose_machine_is_gone_goes_unless_its_node_is_well(*, ready: bool, ends: bool) -> None:
    made = node("n1", ready=ready)
    claim = claim_for(made)
    gone = Condition(type="InstanceTerminating", status="True", reason=TERMINATED)
    claim = replace(claim, status=replace(claim.status, conditions=(*claim.status.conditions, gone)))
    assert (DeleteClaim("n1", "claim-n1") in reconcile(claim, made)[0]) is ends


def test_deleted_claims_are_left_to_termination() -> None:
    claim = claim_for(node("n1"), created=START, deleted=START, expire_after="1s")
    assert reconcile(claim, node("n1"), at=START + MINUTE) == ([], None)


# -- marks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "quiet", "expected"),
    [
        ("0s", 0, ("True", "Consolidatable")),
        ("5m", 4, None),
        ("5m", 5, ("True", "Consolidatable")),
        ("Never", 99, None),
    ],
)
def test_a_quiet_node_becomes_consolidatable(after: str, quiet: int, expected: tuple[str, str] | None) -> None:
    made = node("n1")
    claim = claim_for(made, last_pod_event=START - quiet * MINUTE)
    actions, requeue_at = reconcile(claim, made, consolidate_after=after)
    assert note(actions, "Consolidatable") == expected
    assert requeue_at == (START + MINUTE if (after, quiet) == ("5m", 4) else None)


@pytest.mark.parametrize("after", ["0s", "5m", "Never"])
@pytest.mark.parametrize("quiet", [None, 0, 4, 5, 9])
@pytest.mark.parametrize("up", [None, 2, 5, 9])
def test_the_mark_says_what_decisions_find(after: str, quiet: int | None, up: int | None) -> None:
    """`up`: for how many minutes the node has been initialized; `quiet`: how long ago its last pod event was."""
    made = node("n1")
    moments = {
        "initialized_at": None if up is None else START - up * MINUTE,
        "last_pod_event": None if quiet is None else START - quiet * MINUTE,
    }
    claim = claim_for(made, **moments)
    closed = source_closed(claim, node_pool(consolidate_after=after), START)
    actions, _ = reconcile(claim, made, consolidate_after=after)
    assert (note(actions, "Consolidatable") is not None) == (closed is None and up is not None)


def test_a_node_with_a_new_pod_is_no_longer_consolidatable() -> None:
    made = node("n1")
    claim = claim_for(made, last_pod_event=START, consolidatable=True)
    assert ClearClaimCondition("n1", "Consolidatable") in reconcile(claim, made, consolidate_after="5m")[0]


@pytest.mark.parametrize(
    ("hashes", "reason", "expected"),
    [
        (("1", "2"), None, ("True", "NodePoolDrifted")),
        (("1", "1"), None, None),
        (("1", "1"), "NodePoolDrifted", "cleared"),
        (("1", "1"), "ProviderSaysSo", None),
        (("1", "2"), "NodePoolDrifted", None),
    ],
)
def test_drift_is_marked_and_taken_back(hashes: tuple[str, str], reason: str | None, expected: object) -> None:
    stamps = [{"karpenter.sh/nodepool-hash": h, "karpenter.sh/nodepool-hash-version": "v3"} for h in hashes]
    made = node("n1")
    claim = claim_for(made, annotations=stamps[0])
    if reason is not None:
        drifted = Condition(type="Drifted", status="True", reason=reason, last_transition_time=START)
        claim = replace(claim, status=replace(claim.status, conditions=(*claim.status.conditions, drifted)))
    objects = Objects(nodes=(made,), node_claims=(claim,), node_pools=(node_pool(annotations=stamps[1]),))
    actions = list(lifecycle(objects, START, SETTINGS).actions)
    cleared = ClearClaimCondition("n1", "Drifted") in actions
    assert cleared is (expected == "cleared")
    assert note(actions, "Drifted") == (None if expected == "cleared" else expected)


def test_a_claim_without_a_machine_has_not_drifted() -> None:
    """Its labels come with the machine, so its pool's requirements say nothing about it yet."""
    claim = node_claim("c1", launched=False, created=START)
    objects = Objects(
        node_claims=(replace(claim, status=replace(claim.status, conditions=())),),
        node_pools=(node_pool(requirements=[("node.kubernetes.io/instance-type", "In", "m5.large")]),),
    )
    assert note(list(lifecycle(objects, START, SETTINGS).actions), "Drifted") is None


@pytest.mark.parametrize(("wanted", "expected"), [("spot", ("True", "RequirementsDrifted")), ("on-demand", None)])
def test_a_label_that_only_the_node_has_counts_as_it_does_for_decisions(wanted: str, expected: object) -> None:
    made = node("n1")
    claim = claim_for(made)
    labels = {key: value for key, value in claim.metadata.labels.items() if key != "karpenter.sh/capacity-type"}
    bare = replace(claim, metadata=replace(claim.metadata, labels=labels))
    pool = node_pool(requirements=[("karpenter.sh/capacity-type", "In", wanted)])
    objects = Objects(nodes=(made,), node_claims=(bare,), node_pools=(pool,))
    assert note(list(lifecycle(objects, START, SETTINGS).actions), "Drifted") == expected


def _hashed(text: str, version: str = "v3") -> dict[str, str]:
    return {NODEPOOL_HASH: text, NODEPOOL_HASH_VERSION: version}


@pytest.mark.parametrize(
    ("ours", "theirs", "drifted", "expected"),
    [
        (_hashed("1", "v2"), _hashed("2"), False, _hashed("2")),
        (_hashed("1", "v2"), _hashed("2"), True, {NODEPOOL_HASH_VERSION: "v3"}),
        (_hashed("karpool-1"), _hashed("2"), False, {NODEPOOL_HASH: "2"}),
        (_hashed("karpool-1"), _hashed("2"), True, {NODEPOOL_HASH: "1"}),
        (_hashed("1", "v2"), _hashed("2", "v2"), False, {}),
        (_hashed("1"), _hashed("1"), False, {}),
        ({}, _hashed("2"), False, {}),
    ],
)
def test_a_hash_of_another_version_is_renewed_and_means_no_drift(
    ours: dict[str, str], theirs: dict[str, str], *, drifted: bool, expected: dict[str, str]
) -> None:
    claim = claim_for(node("n1"), annotations=ours)
    if drifted:
        condition = Condition("Drifted", "True", "NodePoolDrifted", last_transition_time=START)
        claim = replace(claim, status=replace(claim.status, conditions=(*claim.status.conditions, condition)))
    objects = Objects(nodes=(node("n1"),), node_claims=(claim,), node_pools=(node_pool(annotations=theirs),))
    actions = lifecycle(objects, START, SETTINGS).actions
    assert {a.key: a.value for a in actions if isinstance(a, Annotate)} == expected
    if expected:
        assert not any(isinstance(a, ClearClaimCondition) for a in actions)
        assert note(list(actions), "Drifted") is None


def test_a_claim_that_somebody_else_created_gets_its_finalizer() -> None:
    claim = claim_for(node("n1"))
    bare = replace(claim, metadata=replace(claim.metadata, finalizers=(), labels={}))
    actions = lifecycle(Objects(nodes=(node("n1"),), node_claims=(bare,)), START, SETTINGS).actions
    assert AddFinalizer("NodeClaim", bare.name, TERMINATION_FINALIZER) in actions


def test_a_claim_of_another_kind_of_node_class_is_left_to_others() -> None:
    claim = node_claim("n1", created=START - 30 * MINUTE)
    bare = replace(claim, metadata=replace(claim.metadata, finalizers=()))
    settings = dataclasses.replace(SETTINGS, node_classes=frozenset({"EC2NodeClass"}))
    assert lifecycle(Objects(node_claims=(bare,)), START, settings).actions == ()
    deleted = replace(claim, metadata=replace(claim.metadata, deletion_timestamp=START))
    objects = Objects(node_claims=(deleted,))
    for kinds, expected in (({"EC2NodeClass"}, []), ({claim.spec.node_class_ref.kind}, ["TerminateInstance"])):
        settings = dataclasses.replace(SETTINGS, node_classes=frozenset(kinds))
        _, actions = advance(
            objects, ExecutionState(), START, settings=settings, pods_on=lambda _: (), pdbs=PdbLimits(())
        )
        assert [type(action).__name__ for action in actions] == expected


def test_a_node_belongs_to_its_claim_once() -> None:
    claim = node_claim("n1", node_name="n1", created=START)
    actions, _ = reconcile(claim, stranger())
    owner = SetNodeOwner("n1", claim.name, claim.metadata.uid)
    assert owner in actions
    patch = merge_patch({"metadata": {}}, [owner, owner], START)
    (written,) = patch["metadata"]["ownerReferences"]
    assert (written["kind"], written["uid"], written["blockOwnerDeletion"]) == ("NodeClaim", claim.metadata.uid, True)
    assert merge_patch({"metadata": {"ownerReferences": [written]}}, [owner], START) == {}
