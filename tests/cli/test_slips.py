"""Slips on the command line and in files: each gets a word about what was probably meant."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from karpool.cli.main import cli
from karpool.model.reading.misspelt import probably_meant


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def manifest(folder: Path, *objects: dict[str, Any]) -> str:
    file = folder / "objects.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return str(file)


def written(kind: str, api: str = "v1", annotations: dict[str, str] | None = None, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "a", "annotations": annotations or {}}, **rest}


POOL_SPEC = {
    "template": {"spec": {"requirements": [], "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "K", "name": "n"}}}
}


@pytest.mark.parametrize(
    "command", [("plan",), ("explain", "a"), ("compact", "--plan"), ("validate",), ("snapshot", "-o", "-")]
)
def test_a_file_without_its_option_is_noticed(tmp_path: Path, command: tuple[str, ...]) -> None:
    file = manifest(tmp_path)
    result = run(*command, file)
    assert result.exit_code == 2
    assert f"Did you mean -f {file}?" in result.stderr


def test_a_wrong_value_of_an_option_gets_no_such_hint(tmp_path: Path) -> None:
    file = manifest(tmp_path)
    result = run("diff", file, file, "-f", file, "-o", "html")
    assert result.exit_code == 2
    assert result.stderr.endswith("'html' is not one of json, markdown, table (see cli diff --help)\n")
    assert "argument (nonsense/x.json). Did you mean -f nonsense/x.json?" in run("plan", "nonsense/x.json").stderr


@pytest.mark.parametrize(("command", "kind"), [("explain", "node"), ("budgets", "NodePool")])
def test_a_path_in_place_of_a_name_is_noticed_before_a_cluster_is_looked_for(command: str, kind: str) -> None:
    result = run(command, "examples/")
    assert result.exit_code == 2
    assert f"'examples/' is a file, not the name of a {kind}. Did you mean -f examples/?" in result.stderr


@pytest.mark.parametrize(
    ("value", "said"),
    [("x", "'x' is not a whole number; write 0 or more"), ("-1", "-1 is out of range; write 0 or more")],
)
def test_a_number_that_is_none_is_told_what_to_write(value: str, said: str) -> None:
    result = run("lint", "--costs", value)
    assert (result.exit_code, said in result.stderr) == (2, True)


def test_an_argument_that_is_no_file_gets_no_such_hint() -> None:
    result = run("plan", "nonsense")
    assert "Did you mean" not in result.stderr


@pytest.mark.parametrize(
    ("kind", "api", "meant"),
    [
        ("Nod", "v1", "did you mean Node?"),
        ("node", "v1", "did you mean Node?"),
        ("Pods", "v1", "did you mean Pod?"),
        ("NodePol", "karpenter.sh/v1", "did you mean NodePool?"),
        ("NodeClain", "karpenter.sh/v1", "did you mean NodeClaim?"),
        ("Daemonset", "apps/v1", "did you mean DaemonSet?"),
        ("NodePool", "v1", "NodePool is of apiVersion karpenter.sh/v1"),
        ("Pod", "apps/v1", "Pod is of apiVersion v1"),
        ("ServiceAccount", "v1", ""),
        ("Secret", "v1", ""),
        ("CSIDriver", "storage.k8s.io/v1", ""),
        ("NodePool", "hypershift.openshift.io/v1beta1", ""),
        ("Service", "serving.knative.dev/v1", ""),
        ("NodeClas", "karpenter.k8s.aws/v1", ""),
        ("Provisioner", "karpenter.sh/v1alpha5", ""),
    ],
)
def test_kinds_that_were_probably_meant(kind: str, api: str, meant: str) -> None:
    assert probably_meant(kind, api).removeprefix("; ") == meant


def test_a_misspelt_kind_is_a_warning_of_plan_and_validate(tmp_path: Path) -> None:
    file = manifest(tmp_path, written("Nod"), written("Secret"), {"apiVersion": "v1", "kind": "PodList", "items": []})
    checked, planned = run("validate", "-f", file), run("plan", "-f", file, "-o", "json")
    assert checked.exit_code == 0
    assert "Nod a: kind: 'Nod' of v1 is not known, and is left out; did you mean Node?" in " ".join(
        checked.stdout.split()
    )
    assert any("did you mean Node?" in warning for warning in json.loads(planned.stdout)["warnings"])


@pytest.mark.parametrize(
    ("kind", "api", "key", "words"),
    [
        ("NodePool", "karpenter.sh/v1", "karpool.sh/budget", "did you mean karpool.sh/budgets?"),
        ("NodePool", "karpenter.sh/v1", "karpool.sh/max-evictions-per-hour", "it is read of a Namespace"),
        ("Node", "v1", "karpool.sh/paused", "means nothing on a Node; it is read of a NodePool"),
        ("Pod", "v1", "karpool.sh/do-not-move", "is not known and means nothing"),
        ("Namespace", "v1", "karpool.sh/max-eviction-per-hour", "did you mean karpool.sh/max-evictions-per-hour?"),
    ],
)
def test_annotations_that_mean_nothing_are_warnings(tmp_path: Path, kind: str, api: str, key: str, words: str) -> None:
    spec = {"spec": POOL_SPEC} if kind == "NodePool" else {}
    result = run("validate", "-f", manifest(tmp_path, written(kind, api, {key: "x"}, **spec)))
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert f"metadata.annotations[{key}]" in said
    assert words in said


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("NodePool", "karpool.sh/budgets"),
        ("NodePool", "karpool.sh/disruptions"),
        ("NodeClaim", "karpool.sh/command"),
        ("NodePool", "example.com/karpool.sh"),
    ],
)
def test_annotations_that_mean_something_are_none(tmp_path: Path, kind: str, key: str) -> None:
    spec = POOL_SPEC if kind == "NodePool" else POOL_SPEC["template"]["spec"]
    result = run("validate", "-f", manifest(tmp_path, written(kind, "karpenter.sh/v1", {key: "[]"}, spec=spec)))
    assert "UnknownAnnotation" not in result.stdout
    assert "means nothing" not in result.stdout


def test_a_plan_warns_of_settings_of_pools_that_mean_nothing(tmp_path: Path) -> None:
    pool = written("NodePool", "karpenter.sh/v1", {"karpool.sh/pause": "x"}, spec=POOL_SPEC)
    result = run("plan", "-f", manifest(tmp_path, pool, written("Node"), {"kind": "PodList", "items": []}))
    assert "karpool: NodePool a: metadata.annotations[karpool.sh/pause]: is not known" in result.stderr


def test_settings_that_mean_nothing_are_told_once_by_key_by_every_command(tmp_path: Path) -> None:
    nodes = [
        {**written("Node", annotations={"karpool.sh/pausd": "x"}), "metadata": {"name": name, **kept}}
        for name, kept in (
            ("a", {"annotations": {"karpool.sh/pausd": "x"}}),
            ("b", {"annotations": {"karpool.sh/pausd": "x"}}),
            ("c", {"labels": {"karpool.sh/paused": "x"}}),
        )
    ]
    file = manifest(tmp_path, *nodes, {"kind": "PodList", "items": []})
    meant = "did you mean karpool.sh/paused?"
    said = (
        f"Node a: metadata.annotations[karpool.sh/pausd]: is not known and means nothing; {meant} (so on 1 other)",
        f"Node c: metadata.labels[karpool.sh/paused]: is a label and means nothing; settings are annotations; {meant}",
    )
    for command in (("validate",), ("plan",), ("explain", "a")):
        told = " ".join(run(*command, "-f", file).output.split())
        assert [told.count(line) for line in said] == [1, 1], command


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("NodePool", "harm"),
        ("NodePool", "disruptions"),
        ("NodeClaim", "failed-command"),
        ("NodeClaim", "failed-launch"),
    ],
)
def test_notes_that_cannot_be_read_any_more_are_problems(tmp_path: Path, kind: str, key: str) -> None:
    spec = POOL_SPEC if kind == "NodePool" else POOL_SPEC["template"]["spec"]
    found = run(
        "validate", "-f", manifest(tmp_path, written(kind, "karpenter.sh/v1", {f"karpool.sh/{key}": "x"}, spec=spec))
    )
    assert found.exit_code == 2
    assert f"{kind} a: metadata.annotations[karpool.sh/{key}]" in found.stderr


def test_every_value_that_cannot_be_read_is_named_at_once(tmp_path: Path) -> None:
    pod = written("Pod")
    pod["metadata"]["ownerReferences"] = [{"kind": "X"}]
    pod["spec"] = {
        "nodeName": 7,
        "tolerations": 5,
        "containers": [
            {"resources": {"requests": {"cpu": "x", "memory": "1Gi"}}},
            {"resources": {"requests": {"memory": "1Gb"}}},
        ],
    }
    result = run("validate", "-f", manifest(tmp_path, pod), "-o", "json")
    assert [problem["field"] for problem in json.loads(result.stdout)["problems"]] == [
        "metadata.ownerReferences[0].name",
        "spec.nodeName",
        "spec.tolerations",
        "spec.containers[0].resources.requests.cpu",
        "spec.containers[1].resources.requests.memory",
    ]


def test_a_file_that_cannot_be_read_is_not_called_needless(tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    file.write_text('{"kind": "Po')
    result = run("validate", "-f", str(file))
    assert "Nothing of what was read" not in result.stdout
    assert "Problems: 1" in result.stdout
