"""What `karpool explain` says of a pod: why it is where it is or waits, and where else it could be."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.factories.clouds import Manifest, autoscaler_status, eks_node, pod, status_yaml

from karpool.cli.main import cli

AT = ("--at", "2026-11-16T12:00:00Z")
STATUS = autoscaler_status(status_yaml({"web": (1, 5)}))
CLUSTER: list[Manifest] = [
    STATUS,
    *(eks_node(name, "web") for name in ("a", "b", "c")),
    pod("small-1", "a", cpu="500m"),
    pod("full-1", "b", cpu="1700m"),
    pod("kept-1", "c", cpu="500m", annotations={"karpenter.sh/do-not-disrupt": "true"}),
    pod("daemon-1", "c", cpu="10m", owner="DaemonSet"),
    pod("same-1", "a", namespace="one", cpu="10m"),
    pod("same-1", "b", namespace="two", cpu="10m"),
    pod("waiting-1", "", cpu="1800m"),
    pod("huge-1", "", cpu="100"),
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("pods") / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": CLUSTER}))
    return str(path)


def explain(file: str, name: str, *options: str) -> Result:
    return CliRunner().invoke(cli, ["explain", name, "-f", file, *AT, *options])


def document(file: str, name: str) -> dict[str, Any]:
    result = explain(file, name, "-o", "json")
    assert result.exit_code == 0, result.stderr
    told: dict[str, Any] = json.loads(result.stdout)
    assert told["kind"] == "PodExplanation"
    return told


def test_a_pod_that_runs_is_told_where_else_it_could_be_and_why_not_elsewhere(file: str) -> None:
    told = document(file, "shop/small-1")
    assert (told["node"], told["held"], told["blocked"]) == ("a", None, None)
    assert told["would"] in {"a", "c"}
    assert told["nodes"] == ["a", "c"]
    (refusal,) = told["refusals"]
    assert (refusal["count"], refusal["what"]) == (1, "nodes")
    assert "not enough cpu" in refusal["detail"]


def test_all_nodes_are_counted_once(file: str) -> None:
    for name in ("small-1", "full-1", "waiting-1"):
        told = document(file, name)
        assert told["fits"] + sum(entry["count"] for entry in told["refusals"] if entry["what"] == "nodes") == 3


def test_a_pod_that_waits_is_told_who_could_launch_a_node_or_why_nobody_could(file: str) -> None:
    told = document(file, "waiting-1")
    assert (told["node"], told["would"], told["newNodeOf"]) == ("", None, "web")
    huge = document(file, "huge-1")
    assert (huge["would"], huge["newNodeOf"]) == (None, None)
    assert "group web" in [entry["what"] for entry in huge["refusals"]]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "small-1",
            ["; runs on node a.", "Nothing forbids to move it.", "Why not on the others"],
        ),
        ("kept-1", ["It may not be moved: "]),
        ("daemon-1", ["It is of a DaemonSet: it comes and goes with its node."]),
        ("waiting-1", ["waits for a node.", "no node that exists would take it; web could launch one", "Why it waits"]),
        ("huge-1", ["no node that exists would take it and no pool could launch one.", "group web"]),
    ],
)
def test_the_terminal_says_it_in_sentences(name: str, lines: list[str], file: str) -> None:
    printed = explain(file, name).stdout
    for line in lines:
        assert line in printed


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "smal-1",
            "no node and no pod 'smal-1' among the 3 nodes and 8 pods that were read; did you mean pod shop/small-1?",
        ),
        ("shop/smal-1", "did you mean pod shop/small-1?"),
        ("same-1", "pods 'same-1' are in several namespaces, one, two; write NAMESPACE/POD"),
    ],
)
def test_a_name_that_is_none_or_of_several_pods_is_one_line(name: str, said: str, file: str) -> None:
    result = explain(file, name)
    assert result.exit_code == 2
    assert said in result.stderr.splitlines()[-1]


def test_files_in_place_of_names_are_still_told(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["explain", f"{tmp_path}/cluster.json"])
    assert (result.exit_code, "Did you mean -f" in result.stderr) == (2, True)
