"""A simulation that begins with a cluster of node groups: their autoscaler is there by itself."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from tests.factories.clouds import (
    UUID,
    Manifest,
    autoscaler_status,
    eks_node,
    gke_node,
    node,
    one_pod_each,
    status_yaml,
)

from karpool.cli.main import cli
from karpool.model.objects import Objects
from karpool.model.reading.loading import load
from karpool.virtual.initial_cluster import with_cluster
from karpool.virtual.scenario import Scenario, read_scenario

SCENARIO = "cluster: [cluster.json]\nlength: 2h\npolicies:\n  alone: {nodeGroups: false}\n  autoscaler: {}\n"
NODES = [eks_node(f"n{at}", "web") for at in range(4)]
STATUS = autoscaler_status(status_yaml({f"eks-web-{UUID}": (2, 9)}))


def written(path: Path, manifests: Sequence[Manifest]) -> Path:
    file = path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}))
    (path / "scenario.yaml").write_text(SCENARIO)
    return file


def read(path: Path, manifests: Sequence[Manifest]) -> tuple[Scenario, Objects]:
    with written(path, manifests).open("rb") as stdin:
        objects = load([str(path / "cluster.json")], stdin=stdin).objects
    return with_cluster(read_scenario(SCENARIO), objects), objects


def simulated(path: Path, manifests: Sequence[Manifest]) -> dict[str, Any]:
    written(path, manifests)
    result = CliRunner().invoke(cli, ["simulate", str(path / "scenario.yaml"), "--effort", "0", "-o", "json"])
    assert result.exit_code == 0, result.stderr
    policies: dict[str, Any] = json.loads(result.stdout)["policies"]
    return policies


def test_groups_shrink_to_their_minimum_and_only_where_their_autoscaler_is(tmp_path: Path) -> None:
    control = node("server", {"node-role.kubernetes.io/control-plane": ""}, type="m5.large", zone="us-east-1a")
    runs = simulated(tmp_path, [*one_pod_each(NODES), control, STATUS])
    assert runs["alone"]["nodesAtEnd"] == 5
    assert runs["autoscaler"]["nodesAtEnd"] == 3


def test_a_group_is_what_its_nodes_and_the_status_say(tmp_path: Path) -> None:
    scenario, _ = read(tmp_path, [*one_pod_each(NODES), STATUS])
    (group,) = scenario.node_groups
    assert (group.name, group.instance_type, group.size, group.least, group.most) == ("web", "m5.large", 4, 2, 9)
    assert (group.zones, group.capacity_type, group.labels["eks.amazonaws.com/nodegroup"]) == (
        ("us-east-1a",),
        "on-demand",
        "web",
    )


def test_a_group_of_unknown_maximum_or_mixed_machines_does_not_grow(tmp_path: Path) -> None:
    mixed = [eks_node("a", "mixed"), eks_node("b", "mixed", type="m5.xlarge"), eks_node("c", "mixed")]
    status = autoscaler_status(status_yaml({f"eks-mixed-{UUID}": (0, 9)}))
    scenario, _ = read(tmp_path, [*one_pod_each([*mixed, gke_node("gke-1", "pool")]), status])
    told = {group.name: (group.instance_type, group.least, group.most) for group in scenario.node_groups}
    assert told == {"mixed": ("m5.large", 0, 3), "pool": ("e2-standard-2", 1, 1)}
    assert [group.local_storage_stays for group in scenario.node_groups] == [True, False]


def test_a_group_in_the_scenario_replaces_its_namesake(tmp_path: Path) -> None:
    _, objects = read(tmp_path, [*one_pod_each(NODES), STATUS])
    own = "nodeGroups: [{name: web, instanceType: m5.large, size: 4, least: 1, most: 30}]"
    assert [(group.least, group.most) for group in with_cluster(read_scenario(own), objects).node_groups] == [(1, 30)]


def test_a_group_of_machines_that_the_catalogue_does_not_offer_in_its_zones_does_not_grow(tmp_path: Path) -> None:
    unknown = [eks_node(f"n{at}", "web", spot=True, zone="us-east-1z") for at in range(3)]
    status = autoscaler_status(status_yaml({f"eks-web-{UUID}": (1, 9)}))
    runs = simulated(tmp_path, [*one_pod_each(unknown), status])
    assert runs["alone"]["nodesAtEnd"] == 3
    assert runs["autoscaler"]["nodesAtEnd"] == 1
