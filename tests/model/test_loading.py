import io
import json
from pathlib import Path
from typing import Any

import pytest

from karpool.cluster.volumes import VolumeIndex
from karpool.model.reading.loading import Loaded, load, read
from karpool.wire.problems import InputError
from karpool.wire.quantity import parse_quantity

PODS: dict[str, Any] = {
    "kind": "PodList",
    "apiVersion": "v1",
    "items": [{"metadata": {"name": "a", "namespace": "x"}}, {"metadata": {"name": "a"}}],
}

RIGHT = "write a number with an optional suffix, such as 500m, 1.5 or 2Gi"
REQUESTS = "Pod default/web: spec.containers[0].resources.requests"


def read_text(text: str | bytes) -> Loaded:
    return read(["-"], stdin=io.BytesIO(text.encode() if isinstance(text, str) else text))


def message(text: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        load(["-"], stdin=io.BytesIO(text.encode() if isinstance(text, str) else text))
    return str(caught.value).removeprefix("standard input: ")


def pod(**spec: Any) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})


def test_items_of_a_typed_list_take_their_kind_from_it() -> None:
    assert [entry.key for entry in read_text(json.dumps(PODS)).objects.pods] == ["x/a", "default/a"]


def test_lists_may_hold_lists() -> None:
    assert (
        len(
            read_text(
                json.dumps({"kind": "List", "items": [PODS, {"kind": "Node", "metadata": {"name": "n"}}]})
            ).objects.pods
        )
        == 2
    )


def test_a_kind_whose_name_ends_in_list_is_skipped_like_any_other() -> None:
    assert read_text("kind: AccessList\nmetadata: {name: a}\n").skipped == {"AccessList": 1}


def test_objects_of_the_cluster_have_no_namespace() -> None:
    assert read_text("kind: Node\nmetadata: {name: a, namespace: default}\n").objects.nodes[0].key == "a"


def test_an_empty_list_is_no_mistake() -> None:
    loaded = load(["-"], stdin=io.BytesIO(b'{"kind": "List", "items": []}'))
    assert loaded.kinds == {}
    assert not loaded.warnings


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "Node", "metadata": {"name": "a"}}{"kind": "Node", "metadata": {"name": "b"}}',
        '{"kind": "Node", "metadata": {"name": "a"}}\n---\n{"kind": "Node", "metadata": {"name": "b"}}\n',
        '[{"kind": "Node", "metadata": {"name": "a"}}, {"kind": "Node", "metadata": {"name": "b"}}]',
        "---\nkind: Node\nmetadata: {name: a}\n---\n---\n# nothing\n---\nkind: Node\nmetadata: {name: b}\n",
        "# a list\nkind: List\nitems:\n- kind: Node\n  metadata: {name: a}\n- kind: Node\n  metadata: {name: b}\n",
    ],
)
def test_several_objects_come_in_many_forms(text: str) -> None:
    assert [entry.name for entry in read_text(text).objects.nodes] == ["a", "b"]


def test_kinds_that_are_not_needed_are_counted_and_skipped() -> None:
    listed = [
        {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "a"}},
        {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "b"}},
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "c"}},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "d"}},
    ]
    loaded = read_text(json.dumps({"kind": "List", "items": listed}))
    assert loaded.kinds == {"Job": 1}
    assert loaded.skipped == {"Endpoints": 2, "Job.batch.volcano.sh": 1}


def test_of_all_config_maps_only_the_one_that_pauses_everything_is_read() -> None:
    listed = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "karpool-pause"}, "data": {"reason": "x"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}, "data": "not looked at"},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": 5},
    ]
    loaded = read_text(json.dumps({"kind": "List", "items": listed}))
    assert loaded.problems == ()
    assert loaded.skipped == {"ConfigMap": 2}
    assert [(pause.key, pause.data) for pause in loaded.objects.pauses] == [("default/karpool-pause", {"reason": "x"})]


def test_null_means_absent() -> None:
    text = '{"kind": "Pod", "metadata": {"name": "a", "labels": null}, "spec": {"containers": [{"resources": null}]}}'
    loaded = load(["-"], stdin=io.BytesIO(text.encode()))
    assert loaded.objects.pods[0].metadata.labels == {}


def test_every_object_has_its_place() -> None:
    loaded = read_text(json.dumps(PODS))
    assert str(loaded.origins["Pod", "default/a"]) == "document 1, item 2"
    assert loaded.file_of("Pod", "x/a") == "standard input"


def test_quantities_are_exact() -> None:
    text = pod(containers=[{"resources": {"requests": {"cpu": 0.1, "memory": "1.5Gi"}}}])
    requests = read_text(text).objects.pods[0].spec.containers[0].resources.requests
    assert requests == {"cpu": parse_quantity("100m"), "memory": parse_quantity("1536Mi")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty; expected at least one manifest in JSON or YAML"),
        ("# nothing here\n", "is empty; expected at least one manifest in JSON or YAML"),
        ('{"kind": "Pod", "meta', "document 1: the JSON is cut short; copy or create the file again"),
        ('{"kind": "Pod" "a": 1}', "document 1: line 1, column 16: the JSON is malformed: expected ',' or '}'"),
        ("[" * 100_000 + "]" * 100_000, "document 1: is nested too deeply; no manifest is"),
        ('{"kind": "Pod", "kind": "Node"}', "document 1: the key 'kind' appears twice in one object; keep one"),
        ("just text", "document 1: expected an object with apiVersion, kind and metadata"),
        ("[1]", "document 1, item 1: expected an object with apiVersion, kind and metadata"),
        ("a: 1", "document 1: kind: is missing; a manifest needs apiVersion, kind and metadata.name"),
        ("kind: 5", "document 1: kind: expected text"),
        ("kind: List\nitems: 5", "document 1: items: expected a list of objects"),
        ("kind: Pod", "Pod in document 1: metadata.name: is missing; every object needs a name"),
        ("kind: Pod\nmetadata: {name: ''}", "Pod in document 1: metadata.name: is missing; every object needs a name"),
        (
            "kind: Pod\nmetadata: {name: 5}",
            "Pod in document 1: metadata.name: expected text, got a whole number; put the value in quotes",
        ),
        (
            "kind: Node\nmetadata: {name: " + "a" * 300 + "}",
            "Node in document 1: metadata.name: has 300 characters; names have at most 253",
        ),
        (
            "kind: Node\nmetadata: {name: a}\n---\nkind: Node\nmetadata: {name: a}",
            "Node a: metadata.name: is the name of an object in document 1 of the same file already; keep one of them",
        ),
        (
            pod(containers=[{"resources": {"requests": {"memory": "1Gi", "cpu": "1.5.2"}}}]),
            f"{REQUESTS}.cpu: '1.5.2' is not a quantity; {RIGHT}",
        ),
        (
            pod(containers=[{"resources": {"requests": {"nvidia.com/gpu": -1}}}]),
            f"{REQUESTS}[nvidia.com/gpu]: '-1' is negative; write zero or more",
        ),
        (
            pod(containers=[{"resources": {"limits": {"cpu": [1]}}}]),
            "Pod default/web: spec.containers[0].resources.limits.cpu: expected a quantity such as 500m, 1.5 or 2Gi",
        ),
        (
            pod(nodeName=True),
            "Pod default/web: spec.nodeName: expected text, got true or false; put the value in quotes",
        ),
        (pod(containers={}), "Pod default/web: spec.containers: expected a list, got a mapping"),
        (pod(priority="high"), "Pod default/web: spec.priority: expected a whole number, got text"),
        (
            pod(tolerations=[{"operator": "Maybe"}]),
            "Pod default/web: spec.tolerations[0].operator: 'Maybe' is not allowed; use one of Exists, Equal, Lt, Gt",
        ),
        (
            pod(topologySpreadConstraints=[{"maxSkew": 1}]),
            "Pod default/web: spec.topologySpreadConstraints[0].topologyKey: is missing; it is required here",
        ),
        (
            "kind: Node\nmetadata: {name: a, creationTimestamp: 2024-01-01T00:00:00}",
            "Node a: metadata.creationTimestamp: expected a time with its zone, such as 2026-01-31T12:00:00Z",
        ),
        (
            "kind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpu: -4}}",
            "Node a: status.capacity.cpu: '-4' is negative; write zero or more",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(text: str, expected: str) -> None:
    assert message(text) == expected


NODE_TERM = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]"
)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (
            {"operator": "Near"},
            ".operator: 'Near' is not an operator; use one of In, NotIn, Exists, DoesNotExist, Gt, Lt",
        ),
        ({"operator": "In"}, ".values: In needs at least one value"),
        ({"operator": "Gt", "values": ["1", "2"]}, ".values: Gt needs exactly one value, a whole number; 2 are given"),
    ],
)
def test_node_affinity_that_an_api_server_refuses_is_refused(expression: dict[str, Any], expected: str) -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", **expression}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert message(pod(affinity=affinity)) == f"Pod default/web: {NODE_TERM}{expected}"


def test_a_bound_that_is_no_number_matches_no_node() -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["many"]}]}]}
    text = pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})
    affinity = load(["-"], stdin=io.BytesIO(text.encode())).objects.pods[0].spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    assert affinity.node_affinity.required is not None
    assert not affinity.node_affinity.required.node_selector_terms[0].requirements.satisfiable


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"minAvailable": 1, "maxUnavailable": 1},
            "spec.maxUnavailable: is not allowed together with minAvailable; remove one of the two",
        ),
        (
            {"minAvailable": "half"},
            "spec.minAvailable: 'half' is not a number of pods; write 0 or more, or a percentage such as 50%",
        ),
        (
            {"maxUnavailable": -1},
            "spec.maxUnavailable: '-1' is not a number of pods; write 0 or more, or a percentage such as 50%",
        ),
    ],
)
def test_a_pod_disruption_budget_that_an_api_server_refuses_is_refused(spec: dict[str, Any], expected: str) -> None:
    text = json.dumps(
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "a"}, "spec": spec}
    )
    assert message(text) == f"PodDisruptionBudget default/a: {expected}"


def test_reading_goes_on_after_a_problem_and_collects_all() -> None:
    text = "kind: Pod\n---\nkind: Node\nmetadata: {name: a}\n---\nkind: Node\nmetadata: {name: 5}\n---\nb: [\n"
    loaded = read_text(text)
    assert [node.name for node in loaded.objects.nodes] == ["a"]
    assert [problem.object for problem in loaded.problems] == ["Pod in document 1", "Node in document 3", "document 4"]


def test_an_empty_file_in_a_directory_is_only_a_warning(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("# all commented out\n")
    (tmp_path / "b.yaml").write_text("kind: Node\nmetadata: {name: a}\n")
    loaded = load([str(tmp_path)], stdin=io.BytesIO())
    assert loaded.kinds == {"Node": 1}
    assert [warning.rule for warning in loaded.warnings] == ["Empty"]


def test_the_same_name_in_two_files_is_refused_with_the_first_file(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("kind: Node\nmetadata: {name: n}\n")
    with pytest.raises(
        InputError, match=rf"b.yaml: Node n: metadata.name: .* in {tmp_path}/a.yaml, document 1 already"
    ):
        load([str(tmp_path)], stdin=io.BytesIO())


def test_names_with_line_breaks_stay_on_the_line() -> None:
    assert "\n" not in message('{"kind": "Pod", "metadata": {"name": "a\\nb"}, "spec": {"nodeName": 5}}')


KYAML = """---
# as kubectl get -o kyaml writes it
{
  apiVersion: "v1",
  kind: "PodList",
  items: [{
    metadata: {
      name: "a",
      labels: {app: "web", "no": "yes",},
    },
  }, {metadata: {name: "b",},},],
}
---
{apiVersion: "v1", kind: "Node", metadata: {name: "n",},}
"""


def test_kyaml_is_read() -> None:
    objects = load(["-"], stdin=io.BytesIO(KYAML.encode())).objects
    assert [pod.name for pod in objects.pods] == ["a", "b"]
    assert objects.pods[0].metadata.labels == {"app": "web", "no": "yes"}
    assert [node.name for node in objects.nodes] == ["n"]


@pytest.mark.parametrize(
    ("source", "driver"),
    [
        ({"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-1", "fsType": "ext4"}}, "ebs.csi.aws.com"),
        ({"gcePersistentDisk": {"pdName": "disk-1", "fsType": "ext4"}}, "pd.csi.storage.gke.io"),
        ({"azureDisk": {"diskName": "d", "diskURI": "/subscriptions/x", "kind": "Managed"}}, "disk.csi.azure.com"),
        ({"nfs": {"server": "files", "path": "/"}}, None),
    ],
)
def test_disks_of_old_drivers_are_attached_by_their_successors(source: dict[str, Any], driver: str | None) -> None:
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": source}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c"},
        "spec": {"volumeName": "v"},
    }
    disk = {"name": "d", "persistentVolumeClaim": {"claimName": "c"}}
    user = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"volumes": [disk]}}
    text = json.dumps([volume, claim, user]).encode()
    objects = load(["-"], stdin=io.BytesIO(text)).objects
    attached = VolumeIndex(objects).needs(objects.pods[0]).attached
    assert attached == (((driver, "default/c"),) if driver else ())
