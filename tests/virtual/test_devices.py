"""Devices in a cluster that lives: nodes come for claims, and what is left goes where there are devices."""

from collections import Counter
from dataclasses import replace

from msgspec.structs import replace as changed
from tests.factories.devices import devices, of_type
from tests.virtual.invariants import Invariants
from tests.virtual.worlds import CATALOG, HOUR, scenario

from karpool.disruption.settings import PREFIX
from karpool.model.labels import INSTANCE_TYPE
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.scenario import Decisions, Policy

# Only one type has devices: two on each of its nodes.
EQUIPPED = "m-4x-amd64-linux"
WITH_GPUS = replace(
    CATALOG,
    types=tuple(
        replace(entry, devices=of_type(devices(2, attributes={"model": "a100"}))) if entry.name == EQUIPPED else entry
        for entry in CATALOG.types
    ),
)
DEVICES = """
deviceClasses:
- metadata: {name: gpu}
  spec: {selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "a100"'}}]}
claimTemplates:
- metadata: {name: one-gpu}
  spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}}
"""


def cluster(replicas: str, *, ignore: bool = False) -> VirtualCluster:
    """Small pods with a claim on a device each, and others without."""
    spec = "spec: {resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]}"
    workloads = f"""workloads:
- {{name: learner, cpu: 200m, memory: 1Gi, replicas: {replicas}, {spec}}}
- {{name: web, cpu: 900m, memory: 1Gi, replicas: 3}}
"""
    policy = Policy(decisions=Decisions(search=PREFIX, ignore_dra_requests=ignore))
    made = VirtualCluster(scenario(workloads + DEVICES), WITH_GPUS, policy=policy)
    Invariants(made)
    return made


def holders(made: VirtualCluster) -> Counter[str]:
    """How many claims have a device of each pool; no device is given twice."""
    given = [
        claim.status.allocation.devices.results[0] for claim in made.store.resource_claims if claim.status.allocation
    ]
    assert len({(entry.driver, entry.pool, entry.device) for entry in given}) == len(given)
    return Counter(entry.pool.partition("/")[0] for entry in given)


def learners(made: VirtualCluster) -> Counter[str]:
    return Counter(pod.spec.node_name for pod in made.store.pods if pod.spec.resource_claims and pod.bound)


def test_nodes_with_devices_come_for_claims_and_go_when_fewer_are_left() -> None:
    made = cluster("{steps: [{after: 0s, value: 6}, {after: 1h, value: 3}]}")
    made.run(0.9 * HOUR)
    assert sum(learners(made).values()) == 6
    assert learners(made) == holders(made)
    assert len(learners(made)) == 3
    made.run(3 * HOUR)
    assert learners(made) == holders(made)
    assert sorted(learners(made).values()) == [1, 2]
    equipped = [node for node in made.store.nodes if node.metadata.labels[INSTANCE_TYPE] == EQUIPPED]
    assert len(equipped) == 2
    # What went took its slices along, and gone pods their claims.
    assert {entry.spec.node_name for entry in made.store.resource_slices} == {node.name for node in equipped}
    assert len(made.store.resource_claims) == 3


def test_pods_with_claims_wait_for_ever_where_claims_are_not_looked_at() -> None:
    made = cluster("2", ignore=True)
    made.run(HOUR)
    assert not learners(made)
    assert sum(pod.bound for pod in made.store.pods) == 3


def test_the_same_seed_gives_the_same_devices() -> None:
    first, second = cluster("5"), cluster("5")
    first.run(HOUR)
    second.run(HOUR)
    assert first.store.resource_claims.listed() == second.store.resource_claims.listed()
    assert changed(first.store.objects(), pods=()) == changed(second.store.objects(), pods=())
