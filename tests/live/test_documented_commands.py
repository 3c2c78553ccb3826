"""What README and docs tell people to type to a cluster works: kubectl, helm and Karpool on a real API server.

Page by page and line by line, on the example cluster. Commands that serve something are stopped once it is served.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from tests.catalog.fake_service import serving, turns
from tests.chart.helm import program as helm
from tests.cli.test_catalog_update import PRICES
from tests.documentation.commands import ROOT, Command
from tests.documentation.desk import NODE, example_objects, furnish
from tests.documentation.executed import ON_A_CLUSTER, serves
from tests.documentation.shell import Done, ensured, environment, has_its_programs, in_a_shell, served
from tests.live import manifests
from tests.live.control_plane import ControlPlane
from tests.live.example_cluster import DEFINITIONS, put
from tests.live.https import Client, eventually
from tests.live.test_manifests import FILES, VARIABLES

from karpool.cli.main import cli

PAGES = sorted({command.page for command in ON_A_CLUSTER})
GKE_NODE = "gke-main-1f2e"
NAMESPACES = ("karpool", "monitoring", "estafette")
POOL = "/apis/karpenter.sh/v1/nodepools/web"
PAUSE = "/api/v1/namespaces/karpool/configmaps/karpool-pause"
CONFIGURATION = "/api/v1/namespaces/estafette/configmaps/estafette-k8s-node-compactor-config"
RULES = {"group": "monitoring.coreos.com", "kind": "PrometheusRule", "plural": "prometheusrules"}
"""The definition of the Prometheus operator, which takes any rules here; promtool reads them in tests/monitoring."""


@dataclass(frozen=True)
class Place:
    """A cluster, and a desk with the files that the pages name."""

    admin: Client
    desk: Path
    variables: dict[str, str]
    web: dict[str, Any]

    def begin(self) -> None:
        """Namespaces are there; nothing is installed or paused, and the pool of the pages is as it was."""
        for name in NAMESPACES:
            eventually(partial(self._make, "/api/v1/namespaces", {"metadata": {"name": name}}))
        self._uninstall()
        eventually(partial(self._make, CONFIGURATION.rpartition("/")[0], compactor_pools()))
        self.admin.delete(PAUSE)
        self.admin.delete(POOL)
        eventually(partial(self._make, POOL.rpartition("/")[0], self.web))

    def install(self) -> None:
        """The manifests of the controller are applied, as `running.md` has it."""
        for name in ("rbac.yaml", "kubernetes.yaml"):
            for document in manifests.read(manifests.DEPLOY / "controller" / name, VARIABLES):
                self._make(manifests.path_of(document).rpartition("/")[0], document)

    def _uninstall(self) -> None:
        """Neither a release of the chart nor manifests are left, which would quarrel with one another."""
        self.execute("helm uninstall karpool --namespace karpool --ignore-not-found")
        for name, variables in FILES:
            for document in manifests.read(manifests.DEPLOY / name, variables):
                if document["kind"] != "Namespace":
                    assert self.admin.delete(manifests.path_of(document)).status in {200, 404}

    def execute(self, text: str) -> Done:
        done = in_a_shell(self._fitted(text), self.desk, self.variables)
        assert done.status == 0, f"{text}\n{done.output}"
        return done

    def serve(self, command: Command) -> None:
        with served(command._replace(text=self._fitted(command.text)), self.desk, self.variables):
            pass

    def _fitted(self, text: str) -> str:
        """With names of this place where the pages have placeholders, and without the world outside."""
        for shown, meant in {
            "nodepool NAME": "nodepool web",
            "node NAME": f"node {NODE}",
            "https://hooks.slack.com/services/...": "http://127.0.0.1:9/slack",
            "/etc/karpool/webhook": str(self.desk / "webhook"),
        }.items():
            text = text.replace(shown, meant)
        return text

    def _make(self, path: str, body: dict[str, Any]) -> bool:
        """Whether it is there now; a namespace that is on its way out may be made again later."""
        answer = self.admin.post(path, body)
        assert answer.status in {201, 403, 404, 409}, answer.body
        there = self.admin.get(f"{path}/{body['metadata']['name']}")
        return there.status == 200 and "deletionTimestamp" not in there.body["metadata"]


def objects() -> Iterator[dict[str, Any]]:
    """The example, a pool `web`, nodes of GKE, and the namespaces of all pods."""
    found = example_objects()
    text = (ROOT / "quick-starts" / "gke.yaml").read_text().replace("gke-shop-web-1f2e-1", GKE_NODE)
    found += yaml.safe_load(text)["items"]
    yield from found
    there = {thing["metadata"]["name"] for thing in found if thing["kind"] == "Namespace"}
    used = {thing["metadata"].get("namespace") for thing in found} - {None}
    for name in sorted(used - there):
        yield {"kind": "Namespace", "metadata": {"name": name}}


def pool_web() -> dict[str, Any]:
    found = next(thing for thing in example_objects() if thing["kind"] == "NodePool")
    metadata = {"name": "web", "annotations": {}}
    return {**found, "metadata": metadata}


def compactor_pools() -> dict[str, Any]:
    name = CONFIGURATION.rpartition("/")[2]
    text = (ROOT / "quick-starts" / "compactor.json").read_text()
    return {"metadata": {"name": name}, "data": {f"{name}.yaml": text}}


def rules_of_the_prometheus_operator() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": RULES["kind"], "plural": RULES["plural"]}
    return {
        "metadata": {"name": f"{RULES['plural']}.{RULES['group']}"},
        "spec": {"group": RULES["group"], "names": names, "scope": "Namespaced", "versions": [version]},
    }


def fetch_prices(file: Path) -> None:
    """What `karpool catalog update` writes of a cloud that is played."""
    with serving(turns(PRICES)) as service:
        asked = ["catalog", "update", "--cloud", "azure", "--endpoint", service.address, "-o", str(file)]
        assert CliRunner().invoke(cli, asked).exit_code == 0


def with_contexts(kubeconfig: Path, *names: str) -> str:
    """A kubeconfig that calls the cluster by more names."""
    config = json.loads(kubeconfig.read_text())
    config["contexts"] += [{**config["contexts"][0], "name": name} for name in names]
    return json.dumps(config)


@pytest.fixture(scope="module")
def place(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    programs = (ensured("kubectl", "--no-build"), helm().parent)
    desk = tmp_path_factory.mktemp("desk")
    furnish(desk)
    (desk / "webhook").write_text("http://127.0.0.1:9/slack")
    fetch_prices(desk / "prices.json.zst")
    with ControlPlane(kubernetes_programs, tmp_path_factory.mktemp("documented")) as plane:
        plane.start_controller_manager(controllers=("namespace",))
        kubeconfig = desk / "kubeconfig"
        kubeconfig.write_text(with_contexts(plane.kubeconfig(), "staging"))
        admin = Client(plane.kubeconfig())
        assert admin.post(DEFINITIONS, rules_of_the_prometheus_operator()).status == 201
        put(admin, objects())
        yield Place(admin, desk, environment(desk, *programs, KUBECONFIG=str(kubeconfig)), pool_web())


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work_on_a_cluster(page: str, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", place.variables["KUBECONFIG"])
    monkeypatch.chdir(place.desk)
    place.begin()
    if page == "docs/runbook.md":
        place.install()
    for command in (command for command in ON_A_CLUSTER if command.page == page):
        has_its_programs(command)
        if command.words[:2] == ["helm", "install"]:
            place.begin()
        if serves(command):
            place.serve(command)
        elif command.plain:
            result = CliRunner().invoke(cli, command.words[1:])
            assert result.exit_code == 0, f"{command.text}\n{result.output}"
            assert result.output, command.text
        else:
            place.execute(command.text)
