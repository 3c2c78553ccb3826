"""What metrics count of claims and nodes, whoever made it happen."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs
from tests.factories import node, node_claim, node_pool, pod
from tests.factories.values import LONG_AGO

from karpool.controller.store import ClusterStore
from karpool.disruption.repair.policies import RepairPolicies, RepairPolicy
from karpool.execution.tickets import COMMAND, Ticket
from karpool.model.labels import (
    CAPACITY_TYPE,
    DISRUPTION_COST,
    POD_DELETION_COST,
    REBOOT_ISSUED,
    TERMINATION_TIMESTAMP,
)
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod, PodResourceClaim, PodStatus
from karpool.observability.metrics import Metrics
from karpool.operator.lifecycle_reporter import LifecycleReporter
from karpool.wire.duration import parse_duration
from karpool.wire.objects import Condition

LATER = LONG_AGO + timedelta(hours=2)
ASKS_FOR_DEVICES = {"dynamic_resources": "true"}
REPAIR = RepairPolicies.checked(
    (RepairPolicy(condition_type="Ready", condition_status="False", toleration_duration=parse_duration("10m")),)
)


class Scene:
    """A store whose changes are counted, at a time that stands still."""

    def __init__(self, now: datetime = LATER) -> None:
        self.store = ClusterStore()
        self.metrics = Metrics()
        LifecycleReporter(self.store, self.metrics, lambda: now, REPAIR)

    def value(self, name: str, **labels: str) -> float:
        """All samples of the pool `default` with these labels, together."""
        wanted = {"nodepool": "default", **labels}
        families = text_string_to_metric_families(self.metrics.page().decode())
        samples = [sample for family in families for sample in family.samples if sample.name == f"karpool_{name}"]
        return sum(sample.value for sample in samples if wanted.items() <= sample.labels.items())

    def disrupted(self, reason: str, **labels: str) -> float:
        """How many spot NodeClaims had to go for a reason."""
        return self.value("nodeclaims_disrupted_total", reason=reason, capacity_type="spot", **labels)


def spot_claim(**rest: Any) -> NodeClaim:
    return node_claim("c", labels={CAPACITY_TYPE: "spot"}, **rest)


def with_condition(claim: NodeClaim, kind: str, status: str, reason: str) -> NodeClaim:
    added = Condition(type=kind, status=status, reason=reason)
    return replace(claim, status=replace(claim.status, conditions=(*claim.status.conditions, added)))


@pytest.mark.parametrize(
    ("going", "reason"),
    [
        (with_condition(spot_claim(deleted=LATER), "DisruptionReason", "True", "Underutilized"), "underutilized"),
        (with_condition(spot_claim(deleted=LATER), "DisruptionReason", "False", "Underutilized"), "deleted"),
        (spot_claim(deleted=LATER, expire_after="1h"), "expired"),
        (spot_claim(deleted=LATER, expire_after="3h"), "deleted"),
        (spot_claim(deleted=LATER), "deleted"),
    ],
    ids=["a command", "a command taken back", "too old", "young", "of any age"],
)
def test_a_claim_that_has_to_go_is_counted_once_with_the_reason(going: NodeClaim, reason: str) -> None:
    scene = Scene()
    scene.store.claims.put(spot_claim())
    assert scene.disrupted(reason) == 0
    scene.store.claims.put(going)
    scene.store.claims.put(with_condition(going, "Drained", "False", "Draining"))
    scene.store.claims.remove("c")
    assert scene.disrupted(reason) == 1
    assert scene.value("nodeclaims_terminated_total") == 1


def test_a_claim_that_is_gone_before_it_was_seen_to_go_is_counted_too() -> None:
    scene = Scene()
    scene.store.claims.put(spot_claim())
    scene.store.claims.remove("c")
    assert (scene.disrupted("deleted"), scene.value("nodeclaims_terminated_total")) == (1, 1)


def test_how_long_a_claim_took_to_go_is_measured_from_its_deletion() -> None:
    scene = Scene(LATER + timedelta(seconds=40))
    scene.store.claims.put(spot_claim(deleted=LATER))
    scene.store.claims.remove("c")
    assert scene.value("nodeclaims_termination_duration_seconds_sum") == 40


def test_a_drained_node_is_counted_when_its_claim_first_says_so() -> None:
    scene = Scene()
    going = spot_claim(deleted=LATER)
    scene.store.claims.put(with_condition(going, "Drained", "Unknown", "Draining"))
    assert scene.value("nodes_drained_total") == 0
    drained = with_condition(going, "Drained", "True", "Drained")
    scene.store.claims.put(drained)
    scene.store.claims.put(with_condition(drained, "VolumesDetached", "True", "VolumesDetached"))
    scene.store.claims.remove("c")
    assert scene.value("nodes_drained_total") == 1


def test_nodes_are_counted_when_they_register_and_when_they_are_gone() -> None:
    scene = Scene()
    scene.store.nodes.put(node("n", registered=False))
    scene.store.nodes.put(node("n"))
    scene.store.nodes.put(node("n", cordoned=True))
    scene.store.nodes.remove("n")
    assert (scene.value("nodes_created_total"), scene.value("nodes_terminated_total")) == (1, 1)
    assert (
        scene.value("nodes_created_total", zone="us-east-1a")
        == scene.value("nodes_terminated_total", zone="us-east-1a")
        == 1
    )
    assert scene.value("nodes_lifetime_duration_seconds_sum") == 7200


def test_a_pod_that_gets_its_node_is_measured_from_its_creation() -> None:
    scene = Scene()
    scene.store.pods.put(pod("p", created=LATER - timedelta(seconds=5)))
    scene.store.pods.put(pod("p", created=LATER - timedelta(seconds=5), node="n"))
    measured = {"dynamic_resources": "false"}
    assert scene.metrics.registry.get_sample_value("karpool_pods_bound_duration_seconds_sum", measured) == 5
    asking = pod("q")
    asking = replace(asking, spec=replace(asking.spec, resource_claims=(PodResourceClaim("gpu"),)))
    scene.store.pods.put(asking)
    scene.store.pods.put(replace(asking, spec=replace(asking.spec, node_name="n")))
    name = "karpool_pods_bound_duration_seconds_count"
    assert scene.metrics.registry.get_sample_value(name, ASKS_FOR_DEVICES) == 1


@pytest.mark.parametrize(
    ("reason", "result", "recovered"),
    [("RebootSucceeded", "succeeded", 1.0), ("RebootFailed", "recovery_timeout", 0.0)],
)
def test_a_reboot_that_ended_is_counted_once_with_its_result(reason: str, result: str, recovered: float) -> None:
    scene = Scene()
    requested = with_condition(
        spot_claim(annotations={REBOOT_ISSUED: LONG_AGO.isoformat()}), "Rebooting", "True", "RebootIssued"
    )
    ended = with_condition(spot_claim(), "Rebooting", "False", reason)
    *others, last = ended.status.conditions
    told = replace(last, message=f"{result}: some words")
    ended = replace(ended, status=replace(ended.status, conditions=(*others, told)))
    for claim in (spot_claim(), requested, requested, ended, ended):
        scene.store.claims.put(claim)

    def sample(name: str, **labels: str) -> float:
        return scene.metrics.registry.get_sample_value(f"karpool_{name}", labels) or 0.0

    assert sample("nodes_reboots_total", result=result) == 1.0
    assert sample("nodes_reboot_duration_seconds_count", result=result) == 1.0
    assert sample("nodes_reboot_recovery_duration_seconds_count") == recovered


@pytest.mark.parametrize(
    ("period", "ticket", "deadline", "mode"),
    [
        (None, None, None, "graceful"),
        ("1h", None, None, "eventual"),
        ("0s", None, None, "forceful"),
        ("1h", 0.0, None, "forceful"),
        (None, 45.0, None, "eventual"),
        (None, None, LATER, "forceful"),
    ],
    ids=["no period", "a period", "none at all", "a command at once", "a command in time", "a deadline of now"],
)
def test_how_long_pods_have_to_leave_is_told(
    period: str | None, ticket: float | None, deadline: datetime | None, mode: str
) -> None:
    annotations = {} if deadline is None else {TERMINATION_TIMESTAMP: deadline.isoformat()}
    if ticket is not None:
        written = Ticket("c1", LATER, "Repair", "Unhealthy", ("n",), drain_seconds=ticket)
        annotations[COMMAND] = msgspec.json.encode(written).decode()
    scene = Scene()
    scene.store.claims.put(spot_claim(deleted=LATER, termination_grace_period=period, annotations=annotations))
    assert scene.disrupted("deleted", termination_mode=mode) == 1


@pytest.mark.parametrize(
    ("cause", "policy"),
    [("Underutilized", "when_empty_or_underutilized"), ("Empty", "when_empty_or_underutilized"), ("Drifted", "")],
)
def test_pods_that_have_to_leave_are_counted_with_the_policy_of_their_pool(cause: str, policy: str) -> None:
    scene = Scene()
    scene.store.pools.put(node_pool())
    scene.store.pods.put(pod("a"))
    for moved in (pod("a", node="n"), pod("b", node="n"), pod("c", node="n", owner="DaemonSet"), pod("d", node="m")):
        scene.store.pods.put(moved)
    scene.store.pods.remove(pod("b").key)
    going = with_condition(spot_claim(deleted=LATER, node_name="n"), "DisruptionReason", "True", cause)
    scene.store.claims.put(going)
    labels = {"reason": cause.lower(), "consolidation_policy": policy, "termination_mode": "graceful"}
    assert scene.value("pods_disruption_initiated_total", capacity_type="spot", **labels) == 1
    assert scene.disrupted(cause.lower(), consolidation_policy=policy) == 1


def test_pods_that_are_there_from_the_start_are_counted_too() -> None:
    store, metrics = ClusterStore(), Metrics()
    store.pods.put(pod("a", node="n"))
    LifecycleReporter(store, metrics, lambda: LATER)
    store.claims.put(spot_claim(deleted=LATER, node_name="n"))
    assert b'pods_disruption_initiated_total{capacity_type="spot"' in metrics.page()


def test_what_was_wrong_with_a_repaired_node_is_counted() -> None:
    scene = Scene()
    broken = node("n", ready=False)
    scene.store.nodes.put(broken)
    repaired = with_condition(spot_claim(deleted=LATER, node_name="n"), "DisruptionReason", "True", "Unhealthy")
    scene.store.claims.put(replace(repaired, status=replace(repaired.status, image_id="ami-1")))
    labels = {"condition": "ready", "capacity_type": "spot", "image_id": "ami-1", "termination_mode": "graceful"}
    assert scene.value("nodeclaims_unhealthy_disrupted_total", **labels) == 1


def test_a_cost_that_is_no_number_is_told_once_and_again_when_it_changes() -> None:
    def costing(name: str, **annotations: str) -> Pod:
        return pod(name, node="n1", annotations=annotations)

    def told(logs: list[Any]) -> list[tuple[str, str]]:
        return [(line["pod"], line["value"]) for line in logs if line["event"].startswith("the cost of a pod")]

    store = ClusterStore()
    store.pods.put(costing("there", **{POD_DELETION_COST: "1.5"}))
    with capture_logs() as logs:
        LifecycleReporter(store, Metrics(), lambda: LATER, REPAIR)
        store.pods.put(costing("new", **{DISRUPTION_COST: "abc", POD_DELETION_COST: "5"}))
        store.pods.put(replace(costing("new", **{DISRUPTION_COST: "abc", POD_DELETION_COST: "5"}), status=PodStatus()))
        store.pods.put(costing("fine", **{DISRUPTION_COST: "-7", POD_DELETION_COST: "abc"}))
        store.pods.put(costing("new", **{DISRUPTION_COST: "abd"}))
    assert told(logs) == [("default/there", "1.5"), ("default/new", "abc"), ("default/new", "abd")]
