"""The custom resource definitions on a real API server: it refuses what our own rules refuse, and nothing else."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.live.control_plane import ControlPlane
from tests.live.https import Answer, Client, eventually
from tests.samples_nodepools import ALLOWED, CLASS, CONTROLLER, REFUSED, pool_manifest, wanting

from karpool.live.crds import MANAGED_BY, NAMES, OWNER, definition, definitions, is_ours
from karpool.model.reading.loading import read
from karpool.model.validation import validate
from karpool.wire.problems import Problem

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POOLS = "/apis/karpenter.sh/v1/nodepools"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
OVERLAYS = "/apis/karpenter.sh/v1alpha1/nodeoverlays"
CLASSES = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
DRY = "?dryRun=All&fieldValidation=Strict"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CRONS_THAT_ONLY_WE_REFUSE = ("0 0 31 2 *", "61 * * * *")


@pytest.fixture(scope="module")
def server(control_plane: ControlPlane) -> Client:
    """A server that knows our kinds."""
    client = Client(control_plane.kubeconfig())
    for name in NAMES:
        written = client.post(DEFINITIONS, yaml.safe_load(definition(name)))
        assert written.status in (201, 409), written.body["message"]
    for path in (POOLS, CLAIMS, OVERLAYS, CLASSES):
        eventually(lambda path=path: client.get(path).status == 200)
    return client


def beyond_the_server(parts: dict[str, Any]) -> bool:
    """Rules that no server can apply: it shows them no annotations, and they cannot read a calendar."""
    budgets = parts.get("disruption", {}).get("budgets", [])
    return "annotations" in parts or any(b.get("schedule") in CRONS_THAT_ONLY_WE_REFUSE for b in budgets)


FOUND_BY_US = [(parts, field) for parts, field, _ in (*REFUSED, *CONTROLLER)]
BOTH_REFUSE = [(parts, field) for parts, field in FOUND_BY_US if not beyond_the_server(parts)]
ONLY_WE_REFUSE = [(parts, field) for parts, field in FOUND_BY_US if beyond_the_server(parts)]


def problems(manifest: dict[str, Any]) -> tuple[Problem, ...]:
    return validate(read(["-"], stdin=io.BytesIO(json.dumps(manifest).encode())))


def refused_fields(answer: Answer) -> list[str]:
    return [cause.get("field", "") for cause in answer.body.get("details", {}).get("causes", [])]


def same_place(ours: str, theirs: str) -> bool:
    """Whether both name one field: the server cannot name keys of a map, nor fields that are missing in a list."""
    ours, theirs = ours.partition("[")[0], theirs.partition("[")[0]
    return theirs.count(".") > 0 and (ours.startswith(theirs) or theirs.startswith(ours))


@pytest.mark.parametrize("parts", ALLOWED)
def test_what_our_rules_allow_is_accepted(server: Client, parts: dict[str, Any]) -> None:
    manifest = pool_manifest(**parts)
    assert problems(manifest) == ()
    answer = server.post(POOLS + DRY, manifest)
    assert answer.status == 201, answer.body["message"]


@pytest.mark.parametrize(("parts", "field"), BOTH_REFUSE)
def test_what_our_rules_refuse_is_refused_and_the_field_is_named(
    server: Client, parts: dict[str, Any], field: str
) -> None:
    manifest = pool_manifest(**parts)
    assert problems(manifest)
    answer = server.post(POOLS + DRY, manifest)
    assert answer.status == 422, answer.body
    assert any(same_place(field, theirs) for theirs in refused_fields(answer)), answer.body["message"]


@pytest.mark.parametrize(("parts", "field"), ONLY_WE_REFUSE)
def test_what_no_server_can_find_is_left_to_our_rules(server: Client, parts: dict[str, Any], field: str) -> None:
    manifest = pool_manifest(**parts)
    assert field in {problem.field for problem in problems(manifest)}
    assert server.post(POOLS + DRY, manifest).status == 201


def test_only_annotations_and_the_calendar_are_left_to_our_rules() -> None:
    """If this grows, docs/crds.md must say why."""
    assert {field.partition("[")[0] for _, field in ONLY_WE_REFUSE} == {
        "metadata.annotations",
        "spec.disruption.budgets",
    }


CLAIM_SPEC: dict[str, Any] = {"requirements": [], "nodeClassRef": CLASS}


def claim_manifest(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "c"},
        "spec": {**CLAIM_SPEC, **spec},
    }


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (wanting("Near", "a")["claim"], "spec.requirements[0].operator"),
        (wanting("In")["claim"], "spec.requirements[0].values"),
        (wanting("Gt", "-1")["claim"], "spec.requirements[0].values"),
        (wanting("In", "a", minValues=2)["claim"], "spec.requirements[0].minValues"),
        (wanting("Exists", key="")["claim"], "spec.requirements[0].key"),
        ({"expireAfter": "5d"}, "spec.expireAfter"),
        ({"terminationGracePeriod": "Never"}, "spec.terminationGracePeriod"),
        ({"nodeClassRef": None}, "spec.nodeClassRef"),
        ({"nodeClassRef": {**CLASS, "kind": ""}}, "spec.nodeClassRef.kind"),
        ({"requirements": None}, "spec.requirements"),
        ({"resources": {"requests": {"cpu": "-1"}}}, "spec.resources.requests.cpu"),
    ],
)
def test_a_claim_keeps_the_same_rules(server: Client, spec: dict[str, Any], field: str) -> None:
    manifest = claim_manifest(**spec)
    assert problems(manifest)
    answer = server.post(CLAIMS + DRY, manifest)
    assert answer.status == 422, answer.body
    assert field in refused_fields(answer), answer.body["message"]


def test_a_claim_may_name_its_pool_and_ask_for_what_its_pods_need(server: Client) -> None:
    named = wanting("In", "p", key="karpenter.sh/nodepool")["claim"]["requirements"]
    manifest = claim_manifest(requirements=named, resources={"requests": {"cpu": "1500m", "pods": 3}})
    assert problems(manifest) == ()
    assert server.post(CLAIMS + DRY, manifest).status == 201


def overlay_manifest(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "o"},
        "spec": {"requirements": [], **spec},
    }


@pytest.mark.parametrize(
    "spec",
    [
        {"price": "0.096"},
        {"priceAdjustment": "-15%", "weight": 10},
        {"priceAdjustment": "+0.2"},
        {"capacity": {"example.com/licences": 4}},
        {"requirements": [{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["p"]}]},
    ],
)
def test_an_overlay_that_our_rules_allow_is_accepted(server: Client, spec: dict[str, Any]) -> None:
    assert problems(overlay_manifest(**spec)) == ()
    answer = server.post(OVERLAYS + DRY, overlay_manifest(**spec))
    assert answer.status == 201, answer.body["message"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"price": "1", "priceAdjustment": "+1"}, "spec.priceAdjustment"),
        ({"price": "cheap"}, "spec.price"),
        ({"priceAdjustment": "10%"}, "spec.priceAdjustment"),
        ({"capacity": {"cpu": 2}}, "spec.capacity"),
        ({"weight": 10_001}, "spec.weight"),
    ],
)
def test_an_overlay_that_our_rules_refuse_is_refused(server: Client, spec: dict[str, Any], field: str) -> None:
    assert problems(overlay_manifest(**spec))
    answer = server.post(OVERLAYS + DRY, overlay_manifest(**spec))
    assert answer.status == 422, answer.body
    assert field in refused_fields(answer), answer.body["message"]


def test_a_pool_of_another_installation_applies_unchanged(server: Client) -> None:
    for manifest in yaml.safe_load_all((EXAMPLES / "nodepools.yaml").read_text()):
        answer = server.post(POOLS + DRY, manifest)
        assert answer.status == 201, answer.body["message"]


def test_the_claims_of_another_installation_apply_unchanged(server: Client) -> None:
    items = json.loads((EXAMPLES / "nodes.json").read_text())["items"]
    claims = [item for item in items if item["kind"] == "NodeClaim"]
    assert claims
    for manifest in claims:
        answer = server.post(CLAIMS + DRY, manifest)
        assert answer.status == 201, answer.body["message"]


def test_what_is_left_out_gets_the_defaults_of_the_api(server: Client) -> None:
    manifest = pool_manifest()
    del manifest["spec"]["disruption"]
    spec = server.post(POOLS + DRY, manifest).body["spec"]
    assert spec["disruption"] == {
        "consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "budgets": [{"nodes": "10%"}],
    }
    assert spec["template"]["spec"]["expireAfter"] == "720h"
    assert server.post(CLAIMS + DRY, claim_manifest()).body["spec"]["expireAfter"] == "720h"


@pytest.fixture
def kept(server: Client) -> Any:
    """Writes objects, and takes them away afterwards."""
    written: list[str] = []

    def keep(path: str, manifest: dict[str, Any], name: str) -> dict[str, Any]:
        manifest["metadata"]["name"] = name
        answer = server.post(path, manifest)
        assert answer.status == 201, answer.body["message"]
        written.append(f"{path}/{name}")
        return dict(answer.body)

    yield keep
    for place in written:
        assert server.delete(place).status == 200


def test_the_spec_of_a_claim_cannot_be_changed(server: Client, kept: Any) -> None:
    claim = kept(CLAIMS, claim_manifest(), "crds-fixed")
    claim["spec"]["terminationGracePeriod"] = "5m"
    answer = server.request("PUT", f"{CLAIMS}/crds-fixed", claim)
    assert (answer.status, refused_fields(answer)) == (422, ["spec"])


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        ({}, {"replicas": 2}, "spec.replicas"),
        ({"replicas": 2}, {}, "spec.replicas"),
        ({}, {"claim": {"nodeClassRef": {**CLASS, "group": "other"}}}, "spec.template.spec.nodeClassRef.group"),
        ({}, {"claim": {"nodeClassRef": {**CLASS, "kind": "Other"}}}, "spec.template.spec.nodeClassRef.kind"),
    ],
)
def test_some_of_a_pool_cannot_be_changed(
    server: Client, kept: Any, before: dict[str, Any], after: dict[str, Any], field: str
) -> None:
    pool = kept(POOLS, pool_manifest(**before), "crds-fixed")
    pool["spec"] = pool_manifest(**after)["spec"]
    answer = server.request("PUT", f"{POOLS}/crds-fixed", pool)
    assert (answer.status, refused_fields(answer)) == (422, [field])


def test_a_claim_keeps_what_controllers_write_into_its_status(server: Client, kept: Any) -> None:
    claim = kept(CLAIMS, claim_manifest(), "crds-status")
    launched = {
        "type": "Launched",
        "status": "True",
        "reason": "Launched",
        "lastTransitionTime": "2026-01-31T12:00:00Z",
    }
    claim["status"] = {
        "nodeName": "n",
        "providerID": "kwok://n",
        "imageID": "image",
        "capacity": {"cpu": "4"},
        "allocatable": {"cpu": "3900m"},
        "lastPodEventTime": "2026-01-31T12:00:00Z",
        "conditions": [launched],
    }
    answer = server.request("PUT", f"{CLAIMS}/crds-status/status", claim)
    assert (answer.status, answer.body["status"]) == (200, claim["status"])


def test_a_static_pool_can_be_scaled_and_shows_its_counters(server: Client, kept: Any) -> None:
    pool = kept(POOLS, pool_manifest(replicas=2), "crds-static")
    pool["status"] = {"nodes": 2, "resources": {"cpu": "8"}, "nodeClassObservedGeneration": 1, "conditions": []}
    assert server.request("PUT", f"{POOLS}/crds-static/status", pool).body["status"] == pool["status"]
    scale = server.get(f"{POOLS}/crds-static/scale").body
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (2, 2)


@pytest.mark.parametrize(("delay", "status"), [("90s", 201), ("500ms", 201), ("Never", 422), ("soon", 422)])
def test_a_node_class_may_delay_registration(server: Client, delay: str, status: int) -> None:
    manifest = {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": "default"},
        "spec": {"nodeRegistrationDelay": delay},
    }
    assert server.post(CLASSES + DRY, manifest).status == status


def test_every_definition_says_who_installed_it() -> None:
    documents = list(yaml.safe_load_all(definitions()))
    assert tuple(document["metadata"]["name"] for document in documents) == NAMES
    assert all(is_ours(document["metadata"]["labels"]) for document in documents)
    assert not is_ours({})
    assert not is_ours({MANAGED_BY: f"not-{OWNER}"})
