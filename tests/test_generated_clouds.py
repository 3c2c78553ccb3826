"""Small clusters as clouds make them: what is planned for them is legal, and no command stumbles over them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from karpool.cli.main import cli
from karpool.cli.options.catalog_options import CatalogOpener
from karpool.cluster.node_groups import with_group_shapes, with_groups
from karpool.disruption.context import DecisionContext
from karpool.disruption.plan import Plan, Planner, context_of
from karpool.disruption.settings import DisruptionSettings
from karpool.disruption.suggestions import suggestions
from karpool.live.snapshot_file import encode_snapshot
from karpool.model.node_group import NodeGroup
from karpool.model.objects import Objects
from karpool.packing.options import Options
from tests.checker import Placement, state_of, violations
from tests.disruption.following import Follower, check_that_the_price_falls
from tests.examples import examples
from tests.strategies import Cluster

BENCHMARKS: Final = Path(__file__).parent.parent / "benchmarks"
SEEDS: Final = {
    "eks-groups": 2,
    "eks-karpenter": 0,
    "eks-auto": 0,
    "gke-standard": 1,
    "gke-autopilot": 0,
    "aks": 1,
    "aks-nap": 0,
    "openshift": 1,
    "k3s": 0,
    "kind": 0,
    "capi": 2,
}
"""Clusters of 14 nodes for which there is something to plan, if there ever is."""
LEFT_ALONE: Final = ("gke-autopilot", "k3s", "kind")
"""Clusters in which nothing is known that could be removed."""
AT: Final = ("--at", "2026-03-01T12:00:00Z")
QUICK: Final = {command: {"effort": 0} for command in ("plan", "explain")}


@pytest.fixture(autouse=True)
def _scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)


def made(cloud: str, nodes: int = 14, seed: int = 0) -> Objects:
    from cloud_clusters import generate

    return generate(cloud, nodes, seed)


def prepared(objects: Objects) -> Cluster:
    """A cluster and its catalogue, as `karpool plan` reads them."""
    catalog = CatalogOpener().for_cluster(objects.nodes, objects.node_claims, objects.node_pools)
    grouped = with_groups(objects)
    return Cluster(grouped, with_group_shapes(catalog, grouped))


def planned(cluster: Cluster) -> tuple[Plan, DecisionContext]:
    from cluster_nodes import NOW

    def context() -> DecisionContext:
        chosen = DisruptionSettings(effort=0)
        return context_of(cluster.objects, cluster.catalog, now=NOW, settings=chosen, options=Options())

    return Planner(context(), afresh=context).plan(), context()


@pytest.mark.slow
@pytest.mark.parametrize("cloud", SEEDS)
def test_every_pod_of_a_generated_cloud_runs_where_it_may(cloud: str) -> None:
    cluster = made(cloud)
    empty = state_of(replace(cluster, pods=()))
    placements = [Placement(pod, empty.machines[pod.spec.node_name]) for pod in cluster.pods]
    assert violations(empty, placements) == []
    assert made(cloud) == cluster
    assert made(cloud, seed=1) != cluster


@pytest.mark.slow
@pytest.mark.parametrize("cloud", SEEDS)
def test_a_plan_of_a_generated_cloud_breaks_no_rule_and_no_size_of_a_group(cloud: str) -> None:
    cluster = prepared(made(cloud, seed=SEEDS[cloud]))
    plan, context = planned(cluster)
    follower = Follower(cluster, context)
    assert [wrong for step in plan.steps for wrong in follower.follow(step)] == []
    check_that_the_price_falls(plan)
    assert bool(plan.steps) is (cloud not in LEFT_ALONE)
    assert list(_out_of_size(cluster, plan)) == []


def _out_of_size(cluster: Cluster, plan: Plan) -> Iterator[str]:
    """Every step after which a group is smaller or larger than its autoscaler allows."""
    sizes = {pool.name: pool for pool in cluster.objects.node_pools if isinstance(pool, NodeGroup)}
    of_node = {outcome.candidate.name: outcome.candidate.pool_name for outcome in plan.fates}
    count = {name: group.size for name, group in sizes.items()}
    for step in plan.steps:
        for name in step.command.nodes:
            pool = of_node.get(name, "")
            count[pool] = count.get(pool, 0) - 1
        for new, name in zip(step.command.replacements, step.replacement_names, strict=True):
            of_node[name] = new.pool
            count[new.pool] = count.get(new.pool, 0) + 1
        for name, group in sizes.items():
            if count[name] < group.least or count[name] > max(group.maximum or 0, group.size):
                yield f"step {step.number}: {name} has {count[name]} nodes, {group.minimum}-{group.maximum} are allowed"


# -- what to have instead of groups ------------------------------------------------------------------------------------

GROUPED: Final = ("eks-groups", "gke-standard", "aks", "openshift", "capi")


@pytest.mark.slow
@settings(examples(6), deadline=None)
@given(st.sampled_from(GROUPED), st.integers(8, 20), st.integers(0, 5))
def test_suggestions_for_a_cloud_cost_less_than_today_and_mix_no_capacity_types(
    cloud: str, nodes: int, seed: int
) -> None:
    from cluster_nodes import NOW

    cluster = prepared(made(cloud, nodes, seed))

    def context(objects: Objects) -> DecisionContext:
        return context_of(objects, cluster.catalog, now=NOW, settings=DisruptionSettings(), options=Options())

    today = context(cluster.objects)
    prices = {node.name: node.price for node in today.candidates(today.rows())}
    kinds = {pool.name: pool.capacity_types for pool in cluster.objects.node_pools if isinstance(pool, NodeGroup)}
    found = suggestions(cluster.objects, cluster.catalog, prices, context)
    for pool in found.pools:
        assert len({kinds[name] for name in pool.groups}) == 1
        assert {kind for kind, _ in pool.fleet.capacity_types} <= set(kinds[pool.groups[0]])
        assert (pool.fleet.price is None) or pool.fleet.unplaced == 0
        assert bool(pool.fleet.refusal) is (pool.fleet.unplaced > 0)
    for group in found.groups:
        assert group.price is not None
        assert group.fleet.price is not None
        assert group.fleet.price < group.price
        assert len(group.fleet.types) == 1
        assert {kind for kind, _ in group.fleet.capacity_types} <= set(kinds[group.group])


# -- commands, and files without some kinds --------------------------------------------------------------------------

LISTED: Final = (
    "NodePool",
    "NodeClaim",
    "PodDisruptionBudget",
    "DaemonSet",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "CSINode",
    "Namespace",
    "ConfigMap",
)


def written(objects: Objects, file: Path, without: frozenset[str] = frozenset()) -> str:
    """A file with the objects, but for some kinds, of which it says nothing at all."""
    whole = json.loads(encode_snapshot(objects))
    kept = [entry for entry in whole["items"] if entry["kind"].removesuffix("List") not in without]
    file.write_text(json.dumps({**whole, "items": kept}))
    return str(file)


def run(*arguments: str) -> Result:
    """Run a command: it ends as commands end, whatever it was given."""
    result = CliRunner().invoke(cli, arguments, default_map=QUICK)
    assert result.exception is None or isinstance(result.exception, SystemExit), (arguments, result.exception)
    assert result.exit_code == 0 or (result.exit_code == 2 and result.stderr.startswith("karpool: ")), result.stderr
    return result


def decided(result: Result) -> dict[str, Any]:
    document = json.loads(result.stdout)
    return {name: document[name] for name in ("commands", "after", "savings")}


def expect_what_changed_it_to_be_named(part: Result, whole: str, without: frozenset[str]) -> None:
    """A plan that is another one than that of the whole cluster says which kind is missing."""
    if decided(part) != decided(run("plan", "-f", whole, *AT, "--no-bound", "-o", "json")):
        warnings = " ".join(json.loads(part.stdout)["warnings"]).lower()
        assert any(kind.lower() in warnings for kind in without), warnings


WITHOUT: Final = st.frozensets(st.sampled_from(LISTED))


@pytest.mark.slow
@settings(examples(10), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(list(SEEDS)), st.integers(6, 10), st.integers(0, 3), WITHOUT)
def test_no_command_stumbles_over_a_cloud_of_which_files_lack_kinds(
    tmp_path: Path, cloud: str, nodes: int, seed: int, without: frozenset[str]
) -> None:
    cluster = made(cloud, nodes, seed)
    file = written(cluster, tmp_path / "part.json", without)
    plan = run("plan", "-f", file, *AT, "--no-bound", "-o", "json")
    assert plan.exit_code == 0
    expect_what_changed_it_to_be_named(plan, written(cluster, tmp_path / "whole.json"), without)
    for name in {cluster.nodes[0].name, cluster.nodes[-1].name}:
        told = json.loads(run("explain", name, "-f", file, *AT, "-o", "json").stdout)
        verdict = next(entry for entry in json.loads(plan.stdout)["nodes"] if entry["name"] == name)
        assert told["inPlan"]["verdict"] == verdict["verdict"]
    assert run("compact", "--plan", "-f", file, *AT, "-o", "json").exit_code == 0
    run("validate", "-f", file)
    copy = str(tmp_path / "copy.json.zst")
    assert run("snapshot", "-f", file, "-o", copy).exit_code == 0
    again = run("plan", "-f", copy, *AT, "--no-bound", "-o", "json")
    assert (again.stdout, again.stderr) == (plan.stdout, plan.stderr)
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(f"name: x\ncluster: [{file}]\nlength: 5m\npolicies: {{p: {{}}}}\n")
    assert run("simulate", str(scenario), "-o", "json").exit_code == 0
