"""`karpool plan --fleet`: many clusters side by side, as a user runs it."""

import json
import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from msgspec.structs import replace
from tests.factories.clouds import node as cloud_node
from tests.factories.clouds import one_pod_each
from tests.tables import row, table

from karpool.cli.fleet import FleetWork, Member, members_of, plan_member
from karpool.cli.main import cli
from karpool.cli.options.catalog_options import CatalogOpener
from karpool.cli.options.decision_options import Choices
from karpool.cli.options.input_options import KubeContext
from karpool.cli.options.worker_options import Where
from karpool.cluster.node_groups import GroupOptions
from karpool.disruption.settings import DisruptionSettings
from karpool.packing.options import Options
from karpool.report.fleet_document import ClusterBlockerPart, FleetRow, failed_row, fleet_document
from karpool.report.fleet_table import print_fleet, warning_lines
from karpool.report.terminal import Screen
from karpool.wire.problems import InputError

EXAMPLES = Path(__file__).parents[2] / "examples"
NOW = "2026-11-15T22:00:00Z"
HERE = Where()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def fleet_of(folder: Path) -> Path:
    """A file, a folder with a catalogue of its own, one that is empty, and something that is no cluster."""
    assert run("snapshot", "-f", str(EXAMPLES), "-o", str(folder / "asia.json.zst")).exit_code == 0
    (folder / "eu").mkdir()
    shutil.copy(folder / "asia.json.zst", folder / "eu" / "cluster.json.zst")
    (folder / "empty").mkdir()
    (folder / "broken.json").write_text("nonsense")
    return folder


def kubeconfig(folder: Path) -> Path:
    file = folder / "kubeconfig"
    file.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "gone", "cluster": {"server": "http://127.0.0.1:9"}}],
                "users": [{"name": "me", "user": {}}],
                "contexts": [{"name": name, "context": {"cluster": "gone", "user": "me"}} for name in ("one", "two")],
            }
        )
    )
    return file


@pytest.mark.slow
def test_each_row_is_the_plan_of_its_cluster_and_sums_leave_out_what_failed(tmp_path: Path) -> None:
    fleet = fleet_of(tmp_path)
    printed = run("plan", "--fleet", str(fleet), "--at", NOW, "-o", "json")
    assert printed.exit_code == 0, printed.stderr
    document: dict[str, Any] = json.loads(printed.stdout)
    alone = json.loads(run("plan", "-f", str(fleet / "asia.json.zst"), "--at", NOW, "-o", "json").stdout)
    rows = {entry["name"]: entry for entry in document["clusters"]}
    assert list(rows) == ["asia", "eu", "broken", "empty"]
    for name in ("asia", "eu"):
        assert rows[name]["error"] == ""
        assert rows[name]["savingsPerHour"] == alone["savings"]["pricePerHour"] > 0
        assert (rows[name]["nodesBefore"], rows[name]["nodesAfter"]) == (
            alone["before"]["nodes"],
            alone["after"]["nodes"],
        )
        assert rows[name]["blockers"] == alone["lowerBound"]["blockers"]
    assert "expected an object" in rows["broken"]["error"]
    assert "no file with a cluster" in rows["empty"]["error"]
    assert (document["planned"], document["failed"], document["complete"]) == (2, 2, True)
    assert document["savingsPerHour"] == pytest.approx(2 * alone["savings"]["pricePerHour"])
    table_text = run("plan", "--fleet", str(fleet), "--at", NOW, "--steps", "0", "--workers", "1").stdout
    assert "2 clusters could not be planned" in table_text


def test_members_are_files_and_folders_with_their_catalogues(tmp_path: Path) -> None:
    for name in ("a.json", "b.json.zst", "catalog.json", "notes.txt", ".hidden.json"):
        (tmp_path / name).touch()
    for name in ("c/cluster.json", "c/catalog.yaml", "c/pods.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = {member.name: member for member in members_of(str(tmp_path), KubeContext(), HERE)}
    assert list(found) == ["a", "b", "c"]
    assert found["a"].catalog == found["b"].catalog == str(tmp_path / "catalog.json")
    assert found["c"].catalog == str(tmp_path / "c" / "catalog.yaml")
    assert found["c"].files == (str(tmp_path / "c" / "cluster.json"), str(tmp_path / "c" / "pods.yaml"))


def test_a_list_names_paths_beside_it_and_contexts(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "clusters.txt").write_text("# ours\nc\n\ngone.json\ncontext staging\n")
    found = members_of(str(tmp_path / "clusters.txt"), KubeContext(), HERE)
    assert [member.name for member in found] == ["c", "gone.json", "staging"]
    assert found[1].files == (str(tmp_path / "gone.json"),)
    assert found[2].kube == KubeContext("staging", None)


def test_a_snapshot_is_a_fleet_of_one_and_json_is_no_list(tmp_path: Path) -> None:
    (tmp_path / "eu.json").write_text("[]")
    (tmp_path / "catalog.json").touch()
    (member,) = members_of(str(tmp_path / "eu.json"), KubeContext(), HERE)
    assert member == Member("eu", (str(tmp_path / "eu.json"),), str(tmp_path / "catalog.json"))
    (tmp_path / "eu").write_text('{"kind": "List",\n"items": []}\n')
    with pytest.raises(
        InputError, match=r"eu: is no list: .*; a snapshot has a name that ends in \.json or \.json\.gz$"
    ):
        members_of(str(tmp_path / "eu"), KubeContext(), HERE)


@pytest.mark.slow
def test_clusters_without_nodes_are_rows_and_a_fleet_of_failures_fails(tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text("[]")
    (tmp_path / "broken.json").write_text("nonsense")
    result = run("plan", "--fleet", str(tmp_path), "-o", "json")
    assert result.exit_code == 1
    assert result.stderr == "karpool: none of 2 clusters could be planned; the rows say why\n"
    document = json.loads(result.stdout)
    assert (document["planned"], document["savingsPerHour"], document["priceBefore"]) == (0, None, None)
    rows = {entry["name"]: entry["error"] for entry in document["clusters"]}
    assert rows["none"] == "none: there is no node in it, so that nothing is to be planned"


def test_all_contexts_are_members_and_other_machines_do_not_read_them(tmp_path: Path) -> None:
    kube = KubeContext(None, kubeconfig(tmp_path))
    assert [member.name for member in members_of("contexts", kube, HERE)] == ["one", "two"]
    with pytest.raises(InputError, match="contexts are read from this machine"):
        members_of("contexts", kube, Where("ray"))


def test_machines_without_the_files_get_them_with_the_job(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[]")
    (member,) = members_of(str(tmp_path), KubeContext(), Where("ray"))
    assert member.carried == (("a.json", b"[]"),)


def test_what_is_wrong_with_a_file_that_came_with_a_job_names_it_as_at_home(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("nonsense")
    choices = Choices(settings=DisruptionSettings(), options=Options(), now=datetime.fromisoformat(NOW))
    work = FleetWork(CatalogOpener(), GroupOptions(), choices, None, bound=False)
    errors = [
        plan_member(work, member, None).error
        for where in (HERE, Where("ray"))
        for member in members_of(str(tmp_path), KubeContext(), where)
    ]
    assert errors[0] == errors[1]
    assert errors[0].startswith(f"{tmp_path}/a.json: document 1: expected an object")


@pytest.mark.slow
def test_a_cluster_that_cannot_be_reached_is_a_row_with_a_reason(tmp_path: Path) -> None:
    arguments = ("plan", "--fleet", "contexts", "--kubeconfig", str(kubeconfig(tmp_path)), "-o", "json")
    document = json.loads(run(*arguments).stdout)
    assert document["planned"] == 0
    assert all("127.0.0.1:9" in entry["error"] for entry in document["clusters"])


@pytest.mark.slow
def test_without_a_bound_blockers_are_the_nodes_that_they_keep(tmp_path: Path) -> None:
    fleet = fleet_of(tmp_path)
    asked = ("plan", "--fleet", str(fleet), "--at", NOW, "--no-bound")
    document = json.loads(run(*asked, "-o", "json").stdout)
    alone = json.loads(run("plan", "-f", str(fleet / "asia.json.zst"), "--at", NOW, "--no-bound", "-o", "json").stdout)
    assert document["measure"] == "nodes"
    (row_of_asia,) = [entry for entry in document["clusters"] if entry["name"] == "asia"]
    assert row_of_asia["blockers"]
    for blocker in row_of_asia["blockers"]:
        kept = [
            node for node in alone["nodes"] if node["step"] is None and node["reasons"][0]["code"] == blocker["code"]
        ]
        assert blocker["nodes"] == len(kept)
        assert blocker["pricePerHour"] == pytest.approx(sum(node["pricePerHour"] or 0 for node in kept))
    assert "$/h that nodes that stay for it cost" in run(*asked).stdout


@dataclass(frozen=True)
class BrokenCatalog(CatalogOpener):
    """Fails as nobody has foreseen."""

    error: Exception = field(default_factory=Exception)

    def for_cluster(self, *_: object, **__: object) -> Any:
        raise self.error


@table(
    row("a fault", error=KeyError("pods"), said="KeyError: 'pods'"),
    row("of several lines", error=RecursionError("too deep\nby far"), said="RecursionError: too deep\\nby far"),
    row("no memory", error=MemoryError(), said="there is not enough memory to plan it"),
)
def test_whatever_goes_wrong_with_a_cluster_is_told_in_its_row(error: Exception, said: str) -> None:
    choices = Choices(settings=DisruptionSettings(), options=Options(), now=datetime.fromisoformat(NOW))
    work = FleetWork(BrokenCatalog(error=error), GroupOptions(), choices, None, bound=False)
    assert plan_member(work, Member("deep", (str(EXAMPLES),)), None) == failed_row("deep", said)


def test_blockers_are_added_up_over_clusters() -> None:
    def cluster(name: str, price: float) -> FleetRow:
        return FleetRow(
            name=name,
            price_before=2.0,
            price_after=1.0,
            savings_per_hour=1.0,
            blockers=(
                ClusterBlockerPart(code="PodDoNotDisrupt", price_per_hour=price, nodes=2),
                ClusterBlockerPart(code=name, price_per_hour=0.1, nodes=1),
            ),
        )

    rows = [cluster("a", 0.5), failed_row("b", "gone"), cluster("c", 0.25)]
    document = fleet_document(rows, datetime(2026, 1, 1, tzinfo=UTC), complete=True)
    assert [(part.code, part.price_per_hour, part.nodes, part.clusters) for part in document.blockers] == [
        ("PodDoNotDisrupt", 0.75, 4, 2),
        ("a", 0.1, 1, 1),
        ("c", 0.1, 1, 1),
    ]
    assert (document.savings_per_hour, document.failed) == (2.0, 1)


def test_what_is_held_at_no_known_price_is_worth_what_nobody_knows() -> None:
    held = ClusterBlockerPart(code="NotManaged", price_per_hour=None, nodes=2)
    part_known = ClusterBlockerPart(code="PodDoNotDisrupt", price_per_hour=0.5, nodes=1)
    rows = [FleetRow(name="a", blockers=(held,)), FleetRow(name="b", blockers=(part_known, held))]
    document = fleet_document(rows, datetime(2026, 1, 1, tzinfo=UTC), complete=True)
    assert [(part.code, part.price_per_hour, part.nodes) for part in document.blockers] == [
        ("PodDoNotDisrupt", 0.5, 1),
        ("NotManaged", None, 4),
    ]


def test_sums_of_prices_that_nobody_knows_are_unknown() -> None:
    rows = [FleetRow(name="k3s", nodes_before=3, nodes_after=3), failed_row("gone", "why " * 200)]
    document = fleet_document(rows, datetime(2026, 1, 1, tzinfo=UTC), complete=True)
    assert (document.price_before, document.savings_per_hour) == (None, None)
    printed = StringIO()
    print_fleet(document, Screen(printed))
    assert "It could save ? $/h (? $/month) of ? $/h, with 3 nodes instead of 3" in printed.getvalue()
    assert 70 < printed.getvalue().count("why") < 80
    assert "..." in printed.getvalue()
    printed = StringIO()
    print_fleet(fleet_document(rows[1:], datetime(2026, 1, 1, tzinfo=UTC), complete=True), Screen(printed))
    assert "could save" not in printed.getvalue()


def test_warnings_are_told_once_with_the_clusters_that_they_are_about() -> None:
    shared, own = "the input holds no NodePool", "a price is not known"
    rows = [FleetRow(name=f"c{number}", nodes_before=1, nodes_after=1, warnings=(shared,)) for number in range(5)]
    rows[1] = replace(rows[1], warnings=(own, own))
    rows[2] = replace(rows[2], warnings=(shared, *map(str, range(20))))
    lines = list(warning_lines(rows))
    assert lines[:2] == [f"4 clusters, such as c0: {shared}", f"c1: {own}"]
    assert lines[-1] == "and 12 more warnings; --output json has all"
    printed = StringIO()
    print_fleet(fleet_document(rows, datetime(2026, 1, 1, tzinfo=UTC), complete=True), Screen(printed))
    assert "They could save" in printed.getvalue()
    assert f"4 clusters, such as c0: {shared}" in printed.getvalue()


@pytest.mark.slow
def test_a_cluster_that_saves_nothing_and_has_no_blockers_says_what_keeps_most_nodes(tmp_path: Path) -> None:
    labels = {"eks.amazonaws.com/compute-type": "auto", "karpenter.sh/nodepool": "general-purpose"}
    nodes = [cloud_node(name, labels, type="c6g.large", zone="us-east-1a") for name in ("i-0", "i-1")]
    (tmp_path / "auto.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": one_pod_each(nodes)}))
    fleet = ("plan", "--fleet", str(tmp_path), "--at", NOW, "--workers", "1", "--effort", "0")
    (told,) = json.loads(run(*fleet, "-o", "json").stdout)["clusters"]
    assert (told["blockers"], told["stays"], told["staysNodes"]) == ([], "AutoModeNode", 2)
    printed = run(*fleet).stdout
    assert "AutoModeNode: 2 nodes" in printed
    assert "auto: the input holds no" in printed


def test_a_context_that_no_kubeconfig_has_is_named_and_no_option_that_nobody_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "clusters.txt").write_text("context nope\n")
    (told,) = json.loads(run("plan", "--fleet", str(tmp_path / "clusters.txt"), "-o", "json").stdout)["clusters"]
    assert told["error"].startswith("context nope: no cluster is known here; set KUBECONFIG")


def test_a_kubeconfig_without_contexts_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("apiVersion: v1\nkind: Config\n")
    with pytest.raises(InputError, match="there is no context in the kubeconfig; KUBECONFIG or --kubeconfig"):
        members_of("contexts", KubeContext(None, tmp_path / "kubeconfig"), HERE)


@table(
    row("of one cluster", arguments=["-f", "x.json"], message="-f: is of one cluster"),
    row("a page", arguments=["-o", "html"], message="--output: html is of one cluster"),
    row("nowhere", arguments=[], message="--fleet: there is no 'nowhere'"),
)
def test_what_does_not_go_with_a_fleet_is_one_line(arguments: list[str], message: str) -> None:
    result = run("plan", "--fleet", "nowhere", *arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert message in result.stderr
