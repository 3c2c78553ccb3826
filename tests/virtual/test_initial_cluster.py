"""A scenario that begins with a real cluster."""

import io
from pathlib import Path

import pytest
from tests.factories import node, pod
from tests.virtual.invariants import Invariants

from karpool.catalog.observed import with_observed
from karpool.catalog.sources import open_catalog
from karpool.model.objects import Objects
from karpool.model.reading.loading import load
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.compare import run
from karpool.virtual.initial_cluster import on_machines, with_cluster
from karpool.virtual.scenario import Policy, Scenario, ScenarioError, read_scenario

pytestmark = pytest.mark.slow

EXAMPLES = str(Path(__file__).parents[2] / "examples")
TEXT = "length: 2h\npolicies: {nothing: {disruption: false}, karpool: {}}"


@pytest.fixture(scope="module")
def objects() -> Objects:
    return load([EXAMPLES], stdin=io.BytesIO()).objects


@pytest.fixture(scope="module")
def scenario(objects: Objects) -> Scenario:
    return with_cluster(read_scenario(TEXT), objects)


def test_nodes_and_pods_begin_where_they_are(objects: Objects, scenario: Scenario) -> None:
    catalog = with_observed(open_catalog("sample"), objects.nodes, objects.node_claims)
    cluster = VirtualCluster(scenario, catalog, policy=Policy(disruption=False), initial=objects)
    cluster.run(120.0)
    for there in objects.nodes:
        before = [entry for entry in objects.pods if entry.spec.node_name == there.name and not entry.terminal]
        after = [entry for entry in cluster.store.pods if entry.spec.node_name == there.name]
        assert len(after) == len(before), there.name
    assert cluster.now > max(filter(None, (entry.metadata.creation_timestamp for entry in objects.pods)))


def test_karpool_packs_a_real_cluster_without_breaking_a_rule(objects: Objects, scenario: Scenario) -> None:
    catalog = with_observed(open_catalog("sample"), objects.nodes, objects.node_claims)
    idle, packed = (
        run(scenario, catalog, name, 0, initial=objects, observe=Invariants).summary for name in ("nothing", "karpool")
    )
    assert idle.nodes_launched == idle.evictions == 0
    assert idle.nodes_at_end == len(objects.nodes)
    assert packed.nodes_at_end < idle.nodes_at_end
    assert packed.cost < idle.cost
    assert packed.pods_at_end == idle.pods_at_end


def test_what_the_scenario_says_itself_counts(objects: Objects) -> None:
    first = objects.node_pools[0].name
    text = f"pools: [{{metadata: {{name: {first}}}, spec: {{weight: 7}}}}]\nstart: 2030-01-01T00:00:00Z"
    made = with_cluster(read_scenario(text), objects)
    assert [pool.spec.weight for pool in made.pools if pool.name == first] == [7]
    assert made.start.year == 2030


def test_a_node_of_no_known_type_is_named() -> None:
    strange = Objects(
        nodes=(node("strange", labels={"node.kubernetes.io/instance-type": "x9.huge"}),), pods=(pod("web"),)
    )
    with pytest.raises(ScenarioError, match="node strange cannot be simulated"):
        VirtualCluster(with_cluster(Scenario(), strange), open_catalog("sample"), initial=strange)


def test_nodes_without_a_machine_are_left_out_with_their_pods_and_named() -> None:
    fargate = node("fargate-1", labels={"eks.amazonaws.com/compute-type": "fargate"})
    machine = node("general-1")
    objects = Objects(nodes=(fargate, machine), pods=(pod("web", node="general-1"), pod("batch", node="fargate-1")))
    kept, why = on_machines(objects)
    assert [entry.name for entry in kept.nodes] == ["general-1"]
    assert [entry.name for entry in kept.pods] == ["web"]
    assert "1 such as fargate-1" in why
    assert on_machines(kept) == (kept, "")


def test_nodes_without_a_machine_type_are_simulated_as_they_are_and_their_costs_count_as_unknown() -> None:
    plain = node("bare", pool=None, labels={"node.kubernetes.io/instance-type": None})
    objects = Objects(nodes=(plain,), pods=(pod("web-1", node="bare"),))
    cluster = VirtualCluster(with_cluster(Scenario(), objects), open_catalog("sample"), initial=objects)
    assert [there.name for there in cluster.store.nodes] == ["bare"]
    assert cluster.cloud.instances["bare"].price is None
