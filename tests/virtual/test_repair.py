"""A node that breaks in a running cluster is replaced, rebooted or left alone, as policies and brakes say."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
from tests.disruption.brakes.test_pause_of_everything import config_map
from tests.virtual.invariants import Invariants
from tests.virtual.worlds import CATALOG, POOL, scenario

from karpool.disruption.settings import PREFIX
from karpool.execution import actions as a
from karpool.execution.conditions import REBOOT_FAILED, REBOOT_STOPPED, REBOOT_SUCCEEDED
from karpool.execution.reboot import FENCE
from karpool.model.labels import (
    DO_NOT_DISRUPT,
    DO_NOT_REPAIR,
    INITIALIZED,
    REBOOTING_TAINT,
    REBOOTS,
    TERMINATION_TIMESTAMP,
)
from karpool.model.nodepool import REBOOTING, NodeClaim
from karpool.virtual.changes import with_annotation, with_condition
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.scenario import Decisions, Policy
from karpool.wire.objects import condition, decode_value

POLICIES = [
    {"conditionType": "Ready", "conditionStatus": "False", "tolerationDuration": "10m"},
    {
        "conditionType": "Broken",
        "conditionStatus": "True",
        "reasonRegex": ".*",
        "tolerationDuration": "30s",
        "terminationGracePeriod": "45s",
    },
    {
        "conditionType": "Hanging",
        "conditionStatus": "True",
        "reasonRegex": ".*",
        "tolerationDuration": "30s",
        "terminationGracePeriod": "1m",
        "action": "RebootNode",
    },
]
APPS = """
workloads:
- {name: web, replicas: 5, cpu: 1500m, memory: 1Gi, spec: {nodeSelector: {size: small}}}
faults:
- {kind: breakdown, start: 10m, condition: BROKEN, status: "True"EXTRA}
"""
SMALL = POOL.replace("template:\n", "template:\n      metadata: {labels: {size: small}}\n").replace(
    "operator: In, values: [on-demand]}",
    "operator: In, values: [on-demand]}, {key: node.kubernetes.io/instance-type, operator: In, "
    "values: [c-2x-amd64-linux]}",
)
MINUTE = 60.0


def cluster_with(fault: str, *, extra: str = "", pools: str = SMALL, policies: Any = POLICIES) -> VirtualCluster:
    """Five nodes with one pod each, of which one breaks after ten minutes."""
    repair = msgspec.convert(policies, Policy.__annotations__["repair_policies"], dec_hook=decode_value)
    policy = Policy(decisions=Decisions(search=PREFIX), repair_policies=repair)
    text = APPS.replace("BROKEN", fault).replace("EXTRA", extra)
    cluster = VirtualCluster(scenario(text, pools=pools), CATALOG, policy=policy)
    cluster.invariants = Invariants(cluster)  # type: ignore[attr-defined]
    return cluster


def broken(cluster: VirtualCluster) -> str:
    cluster.run(10 * MINUTE + 1)
    (name,) = cluster.breakdowns.broken
    return name


def recorded(cluster: VirtualCluster, kind: type[Any]) -> list[Any]:
    seen: list[Any] = []
    cluster.actuator.observers.append(lambda action: seen.append(action) if isinstance(action, kind) else None)
    return seen


def change(cluster: VirtualCluster, name: str, how: Callable[[Any], Any]) -> None:
    node = cluster.store.nodes.get(name)
    assert node is not None
    cluster.store.nodes.put(how(node))


def claim_of(cluster: VirtualCluster, name: str) -> NodeClaim:
    claim = cluster.store.claims.get(name)
    assert claim is not None
    return claim


def test_a_broken_node_is_replaced_before_it_goes() -> None:
    cluster = cluster_with("Broken")
    name = broken(cluster)
    claims = recorded(cluster, a.CreateClaim)
    cluster.run(10 * MINUTE + 29)
    assert not claims  # tolerated for half a minute
    cluster.run(11 * MINUTE)
    assert len(claims) == 1
    assert len(cluster.store.claims) == 6
    assert not claim_of(cluster, name).terminating
    cluster.run(20 * MINUTE)
    assert name not in cluster.store.nodes
    assert len(cluster.store.nodes) == 5
    assert all(pod.status.phase == "Running" for pod in cluster.store.pods)


def test_pods_that_must_not_be_disturbed_have_the_time_of_the_policy() -> None:
    cluster = cluster_with("Broken")
    name = broken(cluster)
    for pod in [pod for pod in cluster.store.pods if pod.spec.node_name == name]:
        cluster.store.pods.put(with_annotation(pod, DO_NOT_DISRUPT, "true"))
    notes = recorded(cluster, a.Annotate)
    cluster.run(20 * MINUTE)
    assert name not in cluster.store.nodes
    assert [note.name for note in notes if note.key == TERMINATION_TIMESTAMP] == [name]


def test_do_not_repair_keeps_a_node_and_do_not_disrupt_does_not() -> None:
    cluster = cluster_with("Broken")
    name = broken(cluster)
    change(cluster, name, lambda node: with_annotation(node, DO_NOT_REPAIR, "true"))
    change(cluster, name, lambda node: with_annotation(node, DO_NOT_DISRUPT, "true"))
    cluster.run(20 * MINUTE)
    assert name in cluster.store.nodes
    change(cluster, name, lambda node: with_annotation(node, DO_NOT_REPAIR, None))
    cluster.run(30 * MINUTE)
    assert name not in cluster.store.nodes


def test_a_node_that_is_well_again_stays() -> None:
    cluster = cluster_with("Broken", extra=", length: 20s")
    cluster.run(9 * MINUTE)
    names = {node.name for node in cluster.store.nodes}
    cluster.run(30 * MINUTE)
    assert {node.name for node in cluster.store.nodes} == names


def test_two_of_five_are_too_many_until_one_is_well() -> None:
    cluster = cluster_with("Broken", extra=", nodes: 2, length: 20m")
    cluster.run(9 * MINUTE)
    names = {node.name for node in cluster.store.nodes}
    cluster.run(25 * MINUTE)
    assert {node.name for node in cluster.store.nodes} == names
    well = min(cluster.breakdowns.broken)
    cluster.breakdowns._heal(well)
    cluster.run(29 * MINUTE)
    assert names - {node.name for node in cluster.store.nodes} == set(cluster.breakdowns.broken)


def test_a_pool_without_a_budget_for_it_is_not_repaired() -> None:
    pools = SMALL.replace('budgets: [{nodes: "2"}]', 'budgets: [{nodes: "0", reasons: [Unhealthy]}]')
    cluster = cluster_with("Broken", pools=pools)
    name = broken(cluster)
    cluster.run(25 * MINUTE)
    assert name in cluster.store.nodes


def test_a_hanging_node_is_rebooted_and_keeps_its_name() -> None:
    cluster = cluster_with("Hanging")
    name = broken(cluster)
    asked, created = recorded(cluster, a.RebootInstance), recorded(cluster, a.CreateClaim)
    fenced: list[str] = []
    cluster.store.nodes.watch(
        lambda _old, new: fenced.append(new.name) if new is not None and FENCE in new.spec.taints else None
    )
    cluster.run(30 * MINUTE)
    node = cluster.store.nodes.get(name)
    assert node is not None
    assert node.status.node_info.boot_id == f"virtual-{asked[0].operation}"
    assert set(fenced) == {name}
    assert not any(taint.key == REBOOTING_TAINT for taint in node.spec.taints)
    assert node.metadata.labels[INITIALIZED] == "true"
    claim = claim_of(cluster, name)
    ended = condition(claim.status.conditions, REBOOTING)
    assert ended is not None
    assert (ended.status, ended.reason) == ("False", REBOOT_SUCCEEDED)
    assert claim.is_true("Initialized")
    assert not [key for key in claim.metadata.annotations if "reboot-" in key]
    assert not created
    assert len({action.operation for action in asked}) == 1


def test_a_fault_that_comes_back_is_rebooted_twice_and_then_replaced() -> None:
    cluster = cluster_with("Hanging", extra=", survivesReboots: true")
    name = broken(cluster)
    asked = recorded(cluster, a.RebootInstance)
    cluster.run(60 * MINUTE)
    assert len({action.operation for action in asked}) == 2
    assert name not in cluster.store.nodes
    assert len(cluster.store.nodes) == 5


def test_a_pod_that_must_not_be_disturbed_rides_a_reboot_through() -> None:
    cluster = cluster_with("Hanging")
    name = broken(cluster)
    (pod,) = [pod for pod in cluster.store.pods if pod.spec.node_name == name]
    cluster.store.pods.put(with_annotation(pod, DO_NOT_DISRUPT, "true"))
    cluster.run(30 * MINUTE)
    same = cluster.store.pods.get(pod.key)
    assert same is not None
    assert same.metadata.uid == pod.metadata.uid
    assert claim_of(cluster, name).is_true("Initialized")


def test_a_controller_that_is_gone_during_a_reboot_goes_on_where_it_was() -> None:
    cluster = cluster_with("Hanging")
    name = broken(cluster)
    asked = recorded(cluster, a.RebootInstance)
    while not asked:
        cluster.run(cluster.queue.time + 1)
    cluster.controller.stop()
    cluster.run(cluster.queue.time + 5 * MINUTE)
    cluster.controller.start()
    cluster.run(cluster.queue.time + 5 * MINUTE)
    assert len({action.operation for action in asked}) == 1
    ended = condition(claim_of(cluster, name).status.conditions, REBOOTING)
    assert ended is not None
    assert ended.reason == REBOOT_SUCCEEDED


def test_a_pause_takes_a_reboot_back_and_it_is_asked_for_again_afterwards() -> None:
    cluster = cluster_with("Hanging")
    name = broken(cluster)
    for pod in [pod for pod in cluster.store.pods if pod.spec.node_name == name]:
        cluster.store.pods.put(with_annotation(pod, DO_NOT_DISRUPT, "true"))
    asked = recorded(cluster, a.RebootInstance)
    while not any(taint == FENCE for node in cluster.store.nodes for taint in node.spec.taints):
        cluster.run(cluster.queue.time + 1)
    cluster.store.pauses.put(config_map())
    cluster.run(cluster.queue.time + 10 * MINUTE)
    assert not asked
    assert not any(taint == FENCE for node in cluster.store.nodes for taint in node.spec.taints)
    stopped = condition(claim_of(cluster, name).status.conditions, REBOOTING)
    assert stopped is not None
    assert (stopped.status, stopped.reason) == ("False", REBOOT_STOPPED)
    cluster.store.pauses.remove(config_map().key)
    cluster.run(cluster.queue.time + 10 * MINUTE)
    assert len({action.operation for action in asked}) == 1
    assert len(claim_of(cluster, name).metadata.annotations[REBOOTS].split(",")) == 1


def test_pods_on_other_nodes_that_were_not_well_before_a_reboot_are_noted() -> None:
    cluster = cluster_with("Hanging")
    name = broken(cluster)
    other = next(pod for pod in cluster.store.pods if pod.spec.node_name != name)
    cluster.store.pods.put(with_condition(other, "Ready", "False", cluster.queue.moment))
    notes = recorded(cluster, a.NoteDisruption)
    cluster.run(11 * MINUTE)
    assert [list(note.entry.owners.values()) for note in notes] == [[(1, 1, 5)]]


def test_a_reboot_without_an_instance_gives_the_node_up() -> None:
    cluster = cluster_with("Hanging")
    name = broken(cluster)
    del cluster.cloud.instances[name]
    conditions = recorded(cluster, a.SetClaimCondition)
    cluster.run(30 * MINUTE)
    failed = [entry for entry in conditions if entry.reason == REBOOT_FAILED]
    assert failed[0].message == "provider_error: there is no instance to reboot"
    assert name not in cluster.store.nodes
    assert len(cluster.store.nodes) == 5


def test_legacy_repair_deletes_a_broken_node_at_once_and_without_a_budget() -> None:
    pools = SMALL.replace('budgets: [{nodes: "2"}]', 'budgets: [{nodes: "0"}]')
    cluster = cluster_with("Broken", pools=pools)
    cluster.controller.settings = replace(cluster.controller.settings, legacy_repair=True)
    name = broken(cluster)
    notes = recorded(cluster, a.Annotate)
    cluster.run(11 * MINUTE)
    assert claim_of(cluster, name).terminating
    cluster.run(20 * MINUTE)
    assert name not in cluster.store.nodes
    assert len(cluster.store.nodes) == 5
    assert [note.name for note in notes if note.key == TERMINATION_TIMESTAMP] == [name]
