"""`karpool compact`, run as a user runs it."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from tests.compaction.clusters import NOW, ROOMY, ago, draining, pool_node
from tests.factories import node, pod

from karpool.cli.main import cli
from karpool.compaction.config import KEY
from karpool.live.snapshot_file import encode_snapshot
from karpool.model.objects import Objects
from karpool.wire.objects import encode_value

CONFIG: dict[str, Any] = {
    "nodePools": {
        "main": {
            "enabled": True,
            "scaleDownCPURequestRatioLimit": 0.75,
            "scaleDownRequiredUnderutilizedNodeCount": 2,
        }
    }
}
AT = NOW.isoformat()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a cluster and a configuration."""
    done = pod("done-1", node="b", owner="Job", phase="Succeeded")
    nodes = (
        pool_node("a", pods=["1", "500m"]),
        pool_node("b", pods=["2", done]),
        pool_node("c", pods=["3500m"]),
        pool_node("d", pods=["100m"], mark=None),
        draining("x"),
        ROOMY,
    )
    written(tmp_path, *nodes)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def plain(entry: Any) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.to_builtins(entry, enc_hook=encode_value)
    return made


def run(place: Path, *more: str, env: dict[str, str] | None = None, stdin: str | None = None) -> Result:
    files = ("-f", str(place / "cluster.json"), "--config", str(place / "config.json"))
    return CliRunner().invoke(cli, ("compact", "--plan", *files, "--at", AT, *more), env=env, input=stdin)


def planned(place: Path, *more: str, env: dict[str, str] | None = None) -> Any:
    result = run(place, "--output", "json", *more, env=env)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_the_document_has_the_fields_of_its_contract(place: Path) -> None:
    made = planned(place)
    assert (made["kind"], made["time"]) == ("Compaction", "2026-06-15T12:00:00Z")
    assert made["pools"]["main"] == {"nodes": 5, "underutilized": 3, "marked": 3, "inProgress": 1, "enabled": True}
    assert made["pools"]["other"] == {"nodes": 1, "underutilized": 0, "marked": 0, "inProgress": 0, "enabled": False}
    (chosen,) = made["chosen"]
    assert (chosen["node"], chosen["pool"], chosen["warnings"]) == ("a", "main", [])
    assert chosen["placements"] == [
        {"pod": "default/a-0", "from": "a", "to": "b"},
        {"pod": "default/a-1", "from": "a", "to": "b"},
    ]
    nodes = {node["name"]: node for node in made["nodes"]}
    assert list(nodes) == ["a", "b", "c", "d", "x", "z-roomy"]
    assert (nodes["a"]["cpuRatio"], nodes["a"]["marked"], nodes["a"]["reasons"]) == (0.375, True, [])
    assert nodes["a"]["memoryRatio"] == pytest.approx(128 / 16384)
    codes = {name: [reason["code"] for reason in node["reasons"]] for name, node in nodes.items()}
    assert codes == {
        "a": [],
        "b": ["AnotherNodeFirst"],
        "c": ["CPUOverLimit"],
        "d": ["MarkedTooShort"],
        "x": ["ScaleDownInProgress"],
        "z-roomy": ["PoolNotEnabled"],
    }
    changes = {name: node["change"] for name, node in nodes.items()}
    assert changes == {"a": "drain", "b": None, "c": "unmark", "d": "mark", "x": None, "z-roomy": None}


def test_the_table_says_the_same_for_people(place: Path) -> None:
    shown = run(place).stdout
    assert "1 node would be cordoned and drained" in shown
    assert "default/a-0 -> b" in shown
    assert "Why 5 nodes stay now" in shown
    assert shown.splitlines()[1].split(" | ") == [
        *("pool ", "enabled", "nodes", "under-used", "marked", "to mark", "in progress"),
    ]
    assert [cell.strip() for cell in shown.splitlines()[3].split("|")] == ["main", "yes", "5", "3", "3", "1", "1"]
    assert "c: 87.5% of its CPU is requested, which is not under the limit of 0.75" in shown
    every = run(place, "--all").stdout
    assert "All 6 nodes" in every
    assert "z-roomy" in every


def test_nothing_to_do_is_said(place: Path) -> None:
    (place / "config.json").write_text("{}")
    result = run(place)
    assert result.exit_code == 0
    assert "No node would be drained now." in result.stdout


@pytest.mark.parametrize(
    ("more", "env", "chosen"),
    [
        ((), {}, "a"),
        (("--needed-marked-time-for-removal-seconds", "0"), {}, "d"),
        (("--needed-marked-time-for-seconds", "0"), {}, "d"),
        ((), {"NEEDED_MARKED_TIME_FOR_REMOVAL_SECONDS": "0"}, "d"),
        ((), {"NEEDED_MARKED_TIME_FOR_REMOVAL_SECONDS": "601"}, None),
        (("--needed-marked-time-for-removal-seconds", "600"), {"NEEDED_MARKED_TIME_FOR_REMOVAL_SECONDS": "9999"}, "a"),
        (("--minimum-node-age-seconds", "900000000"), {}, None),
        ((), {"MINIMUM_NODE_AGE_SECONDS": "900000000"}, None),
        ((), {"SLEEP_DURATION_BETWEEN_ITERATIONS_SECONDS": "60"}, "a"),
        (("--pool-label", "team"), {}, None),
        (("--at", "2026-06-15T11:54:59Z"), {}, None),
    ],
)
def test_times_and_the_label_come_from_flags_or_variables(
    place: Path, more: tuple[str, ...], env: dict[str, str], chosen: str | None
) -> None:
    made = planned(place, *more, env=env)
    assert [entry["node"] for entry in made["chosen"]] == ([chosen] if chosen else [])


def test_the_configuration_may_be_a_config_map_from_standard_input(place: Path) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "data": {KEY: json.dumps(CONFIG)}}
    result = run(place, "--config", "-", "--output", "json", stdin=json.dumps(manifest))
    assert [entry["node"] for entry in json.loads(result.stdout)["chosen"]] == ["a"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compact", "-f", "x.json"), "-f: goes with --plan only"),
        (("compact", "--at", "2026-06-15T11:54:59Z"), "--at: goes with --plan only"),
        (("compact", "--output", "json"), "--output: goes with --plan only"),
        (("compact", "--node", "a"), "--node: goes with --plan only"),
        (("compact", "--plan", "--dry-run"), "--dry-run: does not go with --plan"),
        (("compact", "--config", "-"), "--config: standard input cannot be read again"),
        (("compact", "--metrics-address", "9101"), "'9101' is not an address"),
        (("compact", "--price", "m5.large=1"), "--price: goes with --plan only"),
        (("compact", "--plan", "-f", "x.json", "--groups", "-"), "--groups: cannot be standard input"),
        (("compact", "--plan", "-f", "-", "--config", "-"), "standard input can be read only once"),
        (("compact", "--plan", "-f", "x.json", "--config", "no-such.json"), "no-such.json: does not exist"),
        (("compact", "--plan", "--minimum-node-age-seconds", "old"), "--minimum-node-age-seconds"),
        (("compact", "--plan", "--at", "tonight"), "write RFC 3339"),
    ],
)
def test_bad_usage_gets_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_bad_configuration_gets_one_line(place: Path) -> None:
    (place / "config.json").write_text('{"nodePools": {"main": {"enabled": "yes"}}}')
    result = run(place)
    assert result.exit_code == 2
    assert "config.json: nodePools.main.enabled: expected true or false" in result.stderr
    assert result.stderr.count("\n") == 1


def test_help_reads_like_a_manual_page() -> None:
    shown = CliRunner().invoke(cli, ["compact", "--help"]).stdout
    for word in (
        "THE CONFIGURATION",
        "WHAT IT DOES",
        "WITH --plan",
        "EXAMPLES",
        "EXIT STATUS",
        "MINIMUM_NODE_AGE_SECONDS",
    ):
        assert word in shown
    assert "compact" in CliRunner().invoke(cli, ["--help"]).stdout


# -- one node ---------------------------------------------------------------------------------------------------------


def explained(place: Path, name: str, *more: str) -> Any:
    made = planned(place, "--node", name, *more)
    assert (made["kind"], made["time"]) == ("CompactionNode", "2026-06-15T12:00:00Z")
    return made["node"]


def test_the_document_of_a_node_has_the_fields_of_its_contract(place: Path) -> None:
    node = explained(place, "d")
    assert {key: node[key] for key in ("name", "pool", "change", "marked", "markedAt", "underutilized")} == {
        "name": "d",
        "pool": "main",
        "change": "mark",
        "marked": True,
        "markedAt": "2026-06-15T12:00:00Z",
        "underutilized": True,
    }
    assert node["cpu"] == {"requested": "100m", "allocatable": "4", "ratio": 0.025, "limit": 0.75}
    assert node["memory"] == {"requested": "64Mi", "allocatable": "16Gi", "ratio": 64 / 16384, "limit": None}
    assert node["waitsFor"] == {
        "oldEnoughAt": None,
        "markedLongEnoughAt": "2026-06-15T12:05:00Z",
        "leftAloneUntil": None,
        "windowOpensAt": None,
        "nextBeginAt": "2026-06-15T12:03:00Z",
        "underutilized": 3,
        "underutilizedNeeded": 3,
        "podsLeaveBy": None,
        "removedBy": None,
    }
    assert [reason["code"] for reason in node["reasons"]] == ["MarkedTooShort"]
    assert node["pods"] == [
        {"pod": "default/d-0", "leaves": True, "why": "", "keeps": None, "to": "a", "nowhere": None},
    ]


@pytest.mark.parametrize("name", ["a", "b", "c", "d", "x", "z-roomy"])
def test_what_is_said_of_a_node_agrees_with_the_plan(place: Path, name: str) -> None:
    (node,) = (node for node in planned(place)["nodes"] if node["name"] == name)
    explanation = explained(place, name)
    assert {key: explanation[key] for key in node if key != "reasons"} == {
        key: node[key] for key in node if key != "reasons"
    }
    assert all(reason in explanation["reasons"] for reason in node["reasons"])


def test_the_table_of_a_node_says_what_keeps_it_and_where_its_pods_go(place: Path) -> None:
    stays = pod("agent-1", node="e", owner="DaemonSet")
    large = pod("large-1", cpu="7", node="e")
    written(place, pool_node("e", pods=[large, stays], cpu="32", mark=None), ROOMY)
    shown = run(place, "--node", "e").stdout
    for message in (
        "Node e stays",
        "pool main",
        "would be marked now",
        "23.4% | under 75.0%",
        "until it has been marked for long enough, at 12:05 UTC",
        "for more under-used nodes in its pool: 2 are needed, 1 there",
        "TooFewUnderutilizedNodes",
        "default/agent-1 | stays ",
        "belongs to a DaemonSet",
        "default/large-1 | leaves | nowhere",
        "not enough cpu (7 wanted",
    ):
        assert message in shown


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a", "would be drained"),
        ("b", "marked since 11:50 UTC"),
        ("c", "loses its mark now"),
        ("x", "in progress since 11:58 UTC"),
        ("z-roomy", "not marked"),
    ],
)
def test_the_state_of_a_node_is_said(place: Path, name: str, message: str) -> None:
    assert message in run(place, "--node", name).stdout


def test_an_unknown_node_gets_one_line_with_a_near_name(place: Path) -> None:
    result = run(place, "--node", "z-romy")
    assert result.exit_code == 2
    message = "--node: there is no node 'z-romy' among the 6 that were read; did you mean z-roomy?"
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_all_nodes_and_one_node_are_not_asked_for_at_once(place: Path) -> None:
    result = run(place, "--node", "a", "--all")
    assert (result.exit_code, "--all: does not go with --node" in result.stderr) == (2, True)


def written(place: Path, *nodes: Any) -> None:
    """Make these the nodes and pods of the cluster."""
    items = [{"kind": "Node", **plain(made)} for made, _ in nodes]
    items += [{"kind": "Pod", **plain(each)} for _, pods in nodes for each in pods]
    items += [{"kind": f"{kind}List", "items": []} for kind in ("Pod", "PodDisruptionBudget", "DaemonSet")]
    (place / "cluster.json").write_bytes(msgspec.json.encode({"kind": "List", "items": items}))


@pytest.mark.parametrize(
    ("made", "judged"),
    [
        (pool_node("e", pods=["1"]), "yes"),
        (pool_node("e", pods=["3500m"]), "no"),
        (pool_node("e", pods=["3500m"], created=ago(minutes=5)), "no"),
        (
            pool_node("e", pods=["1"], created=ago(minutes=5)),
            "not judged yet, because it is younger than the minimum age",
        ),
        (pool_node("e", pods=["1"], cordoned=True), "not judged"),
        (draining("e", pods=["1"]), "not judged"),
    ],
    ids=["under", "over", "over and young", "young", "cordoned", "on its way out"],
)
def test_a_node_under_the_limit_is_not_called_well_used(place: Path, made: Any, judged: str) -> None:
    written(place, made, ROOMY)
    assert f"Under-used: {judged} (requests, not usage)" in run(place, "--node", "e").stdout


def test_one_is_needed_and_two_are(place: Path) -> None:
    written(place, pool_node("e", pods=["1"], created=ago(minutes=5)), ROOMY)
    for needed, message in ((1, "1 is needed, 0 there"), (2, "2 are needed, 0 there")):
        main = CONFIG["nodePools"]["main"] | {"scaleDownRequiredUnderutilizedNodeCount": needed}
        (place / "config.json").write_text(json.dumps({"nodePools": {"main": main}}))
        assert message in run(place, "--node", "e").stdout


# -- what is wrong with the configuration -----------------------------------------------------------------------------


@pytest.mark.parametrize("more", [(), ("--node", "a"), ("--output", "json")])
def test_a_pool_that_no_node_belongs_to_is_named_on_standard_error(place: Path, more: tuple[str, ...]) -> None:
    pools = {"mian": CONFIG["nodePools"]["main"], "later": {"enabled": False}}
    (place / "config.json").write_text(json.dumps({"nodePools": pools}))
    result = run(place, *more)
    assert (result.exit_code, result.stderr) == (
        0,
        "karpool: no node belongs to pool mian; there are: main, other; did you mean main?\n",
    )


def test_a_label_that_no_node_has_leaves_every_pool_without_nodes(place: Path) -> None:
    assert run(place, "--pool-label", "team").stderr.splitlines() == [
        "karpool: --pool-label team: no node has it",
        "karpool: no node belongs to pool main; there are: none",
    ]


def test_nothing_is_said_of_pools_that_have_nodes(place: Path) -> None:
    assert run(place).stderr == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "config.json: does not exist"), ('{"nodePools": {"main": {"enabled": "yes"}}}', "enabled: expected true")],
    ids=["missing", "broken"],
)
def test_a_run_does_not_start_with_a_file_that_is_no_configuration(
    tmp_path: Path, text: str | None, message: str
) -> None:
    file = tmp_path / "config.json"
    if text is not None:
        file.write_text(text)
    result = CliRunner().invoke(cli, ("compact", "--config", str(file)))
    assert (result.exit_code, message in result.stderr, result.stderr.count("\n")) == (2, True, 1)


def test_a_plan_says_what_is_saved_and_where_prices_come_from(tmp_path: Path) -> None:
    labels = {
        "eks.amazonaws.com/nodegroup": "web",
        "node.kubernetes.io/instance-type": "m6i.large",
        "topology.kubernetes.io/region": "eu-west-1",
        "topology.kubernetes.io/zone": "eu-west-1a",
    }
    nodes = [node(name, pool=None, zone=None, labels=labels) for name in "ab"]
    nodes.append(node("stays", pool=None, zone=None, type="nobody-knows"))
    file = tmp_path / "cluster.json"
    file.write_bytes(encode_snapshot(Objects(nodes=tuple(nodes), pods=(pod("w-1", node="a"),))))
    arguments = ["compact", "--plan", "-f", str(file)]
    table = CliRunner().invoke(cli, arguments)
    document = json.loads(CliRunner().invoke(cli, [*arguments, "-o", "json"]).stdout)
    assert "Prices: aws eu-west-1, public price list of 2026-08-22." in table.stdout
    # What goes has a price, so that it is known what is saved, whatever the others cost.
    assert "Left alone, it would drain 1 node, which saves 0.107 $/h" in table.stdout
    assert [(part["cloud"], part["region"]) for part in document["end"]["prices"]] == [("aws", "eu-west-1")]
