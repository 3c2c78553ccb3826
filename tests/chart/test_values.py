"""What the chart makes of values: what belongs together, what is refused, and what it says in the end."""

import json
import runpy

import click
import pytest
import yaml
from tests.chart.helm import CHART, ROOT, Json, deployment, helm, of, render, template
from tests.tables import row, table

import karpool
from karpool.cli.main import cli

EVERYTHING: Json = {
    "image": {"repository": "registry.example.com/karpool", "digest": f"sha256:{'0' * 64}"},
    "imagePullSecrets": [{"name": "registry"}],
    "controller": {
        "act": True,
        "provider": "kwok",
        "replicas": 3,
        "options": {"effort": 3, "all-pools": True, "legacy-node-repair": False, "discount": ["m7*=31%", "c7*=5%"]},
        "nodeSelector": {"role": "infra"},
        "tolerations": [{"key": "infra", "operator": "Exists"}],
        "podLabels": {"team": "platform"},
        "podAnnotations": {"a": "b"},
        "serviceAccountAnnotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/karpool"},
        "journalVolume": {"persistentVolumeClaim": {"claimName": "journal"}},
    },
    "compactor": {
        "enabled": True,
        "act": True,
        "config": {"nodePools": {"general": {"enabled": True, "scaleDownCPURequestRatioLimit": 0.75}}},
        "options": {"max-nodes-per-hour": 4},
    },
    "notify": {"secretName": "webhook"},
    "crds": {"install": True},
    "networkPolicy": {"apiServer": {"ports": [8443], "cidrs": ["10.0.0.1/32"]}},
    "metrics": {"readers": [{"name": "prometheus", "namespace": "monitoring"}], "serviceMonitor": {"enabled": True}},
    "priorityClass": {"create": True},
}


@pytest.mark.slow
@table(row("defaults", values={}), row("everything", values=EVERYTHING))
def test_helm_finds_nothing_to_complain_of(values: Json) -> None:
    done = helm("lint", CHART, "--strict", values={"global": {}} | values)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stdout


@pytest.mark.slow
@table(row(release="karpool", namespace="karpool"), row(release="savings", namespace="elsewhere"))
def test_whatever_an_object_names_is_there(release: str, namespace: str) -> None:
    documents = render(EVERYTHING, release=release, namespace=namespace)
    there = {(made["kind"], made["metadata"]["name"]) for made in documents}
    for binding in of(documents, "RoleBinding", "ClusterRoleBinding"):
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in there
        for account in binding["subjects"]:
            assert account["namespace"] == "monitoring" or ("ServiceAccount", account["name"]) in there
            assert account["namespace"] in {namespace, "monitoring"}
    for binding in of(documents, "ValidatingAdmissionPolicyBinding"):
        assert ("ValidatingAdmissionPolicy", binding["spec"]["policyName"]) in there
    for made in of(documents, "Deployment"):
        assert ("ServiceAccount", made["spec"]["template"]["spec"]["serviceAccountName"]) in there
    accounts = {f"system:serviceaccount:{namespace}:{name}" for kind, name in there if kind == "ServiceAccount"}
    for policy in of(documents, "ValidatingAdmissionPolicy"):
        (condition,) = policy["spec"]["matchConditions"]
        assert condition["expression"].split("'")[1] in accounts
    assert {made["metadata"].get("namespace", namespace) for made in documents} == {namespace, "kube-system"}


@pytest.mark.slow
def test_selectors_find_the_pods_of_one_of_the_two_and_ports_are_theirs() -> None:
    documents = render(EVERYTHING)
    for component in ("controller", "compactor"):
        template = deployment(documents, component)["spec"]["template"]
        labels, (container,) = template["metadata"]["labels"], template["spec"]["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        (service,) = (made for made in of(documents, "Service") if made["spec"]["selector"].items() <= labels.items())
        assert service["spec"]["ports"][0]["targetPort"] in ports
        selecting = [
            made for made in of(documents, "NetworkPolicy")
            if made["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
        ]  # fmt: skip
        (policy,) = selecting
        assert [port["port"] for port in policy["spec"]["ingress"][0]["ports"]] == [ports["metrics"]]
        (monitor,) = (
            made for made in of(documents, "ServiceMonitor")
            if made["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        )  # fmt: skip
        assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {
            volume["name"] for volume in template["spec"]["volumes"]
        }
    (budget,) = of(documents, "PodDisruptionBudget")
    controller = deployment(documents, "controller")["spec"]["template"]
    assert budget["spec"]["selector"]["matchLabels"].items() <= controller["metadata"]["labels"].items()
    (priority,) = of(documents, "PriorityClass")
    assert controller["spec"]["priorityClassName"] == priority["metadata"]["name"]
    (container,) = controller["spec"]["containers"]
    assert container["image"] == f"registry.example.com/karpool@sha256:{'0' * 64}"


@pytest.mark.slow
@table(row("defaults", values={"compactor": {"enabled": True}}), row("everything", values=EVERYTHING))
def test_the_command_line_takes_arguments_and_variables(values: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = render(values)
    for component, name in (("controller", "run"), ("compactor", "compact")):
        (container,) = deployment(documents, component)["spec"]["template"]["spec"]["containers"]
        for variable in container["env"]:
            monkeypatch.setenv(variable["name"], variable.get("value", "karpool"))
        command_name, *arguments = container["args"]
        assert command_name == name
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        given = command.make_context(name, arguments).params
        acts = values.get(component, {}).get("act", False)
        assert (given["act"] if name == "run" else not given["dry_run"]) == acts
    if values is EVERYTHING:
        assert (given["max_nodes_per_hour"], str(given["notify_file"])) == (4, "/etc/karpool/notify/url")


@pytest.mark.slow
@table(
    row("a dry run takes no lease, so it is one", values={}, replicas=1, budgets=0),
    row("a dry run of none", values={"replicas": 0}, replicas=0, budgets=0),
    row("one that acts has a standby", values={"act": True}, replicas=2, budgets=1),
    row("as many as are asked for", values={"act": True, "replicas": 3}, replicas=3, budgets=1),
)
def test_only_a_controller_that_acts_has_replicas_that_stand_by(values: Json, replicas: int, budgets: int) -> None:
    documents = render({"controller": values})
    assert deployment(documents, "controller")["spec"]["replicas"] == replicas
    assert len(of(documents, "PodDisruptionBudget")) == budgets


@table(
    row("a misspelt option", values={"controller": {"options": {"poll-intervall": "30s"}}}, says="poll-intervall"),
    row("an option of another kind", values={"controller": {"options": {"effort": "much"}}}, says="integer"),
    row("what the chart sets", values={"controller": {"options": {"act": True}}}, says="act"),
    row("a misspelt value", values={"controler": {"act": True}}, says="controler"),
    row("no digest", values={"image": {"digest": "latest"}}, says="digest"),
    row("Karpenter's definitions", values={"crds": {"install": True}}, says="the definitions are Karpenter's"),
)
@pytest.mark.slow
def test_what_would_be_ignored_or_do_harm_is_refused(values: Json, says: str) -> None:
    done = template(values, release="karpool", namespace="karpool")
    assert done.returncode != 0
    assert says in done.stderr


@pytest.mark.slow
def test_without_policies_it_says_so_before_it_renders_nothing_for_an_old_cluster() -> None:
    done = template({}, release="karpool", namespace="karpool", version="1.29.0")
    assert "need Kubernetes 1.30 or newer; set policies.enabled=false" in done.stderr
    assert template({"policies": {"enabled": False}}, release="a", namespace="b", version="1.29.0").returncode == 0


def test_the_schema_knows_the_options_of_today() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "chart-schema"))["schema"]()
    assert json.loads((CHART / "values.schema.json").read_text()) == json.loads(made), "run scripts/chart-schema"


def test_every_value_is_in_the_schema_and_has_a_default() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert paths(values) == schema_paths(schema)


def test_chart_and_package_have_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == karpool.__version__


def paths(values: Json, prefix: str = "") -> set[str]:
    """Values that are there, one by one; maps that users fill count as one."""
    found = set()
    for name, value in values.items():
        path = f"{prefix}{name}"
        found |= paths(value, f"{path}.") if isinstance(value, dict) and value and not free(path) else {path}
    return found


def schema_paths(schema: Json, prefix: str = "") -> set[str]:
    found = set()
    for name, part in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        found |= schema_paths(part, f"{path}.") if "properties" in part and not free(path) else {path}
    return found - {"global"}  # helm's own


def free(path: str) -> bool:
    return path.endswith((".resources", ".affinity", ".journalVolume", ".config"))
