"""`karpool plan` and `karpool explain`, run as a user runs them, on the example cluster and on small ones."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from tests.factories import claim_for, node, node_pool, pod
from tests.tables import row, table

from karpool.cli.main import cli
from karpool.model.nodepool import Budget, NodePool
from karpool.wire.duration import parse_duration
from karpool.wire.objects import encode_value

ROOT = Path(__file__).parents[2]
EXAMPLES = str(ROOT / "examples")
NOON = "2026-11-15T12:00:00Z"


QUICK = {command: {"effort": 0} for command in ("plan", "explain")}
"""Another default of `--effort`, for tests that would not know the difference."""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, default_map=QUICK)


@cache
def printed(*arguments: str) -> str:
    """The plan of the example cluster; each is made once."""
    result = run("plan", "-f", EXAMPLES, "--at", NOON, "--output", "json", *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def planned(*arguments: str) -> Any:
    return json.loads(printed(*arguments))


def test_the_readme_shows_what_is_printed() -> None:
    readme = (ROOT / "README.md").read_text()
    result = CliRunner().invoke(cli, ["plan", "-f", EXAMPLES, "--catalog", "sample", "--at", NOON])
    lines = result.stdout.splitlines()
    shown = "\n".join(line.rstrip() for line in lines).strip()
    assert shown in readme


@table(
    row(page="README.md", begins="Node general-7", words=["explain", "general-7"]),
    row(page="docs/who-pays.md", begins="Who pays, by namespace", words=["plan", "--by", "namespace"]),
)
def test_a_block_of_a_page_is_what_is_printed(page: str, begins: str, words: list[str]) -> None:
    """But for what `[...]` stands for."""
    result = CliRunner().invoke(cli, [*words, "-f", EXAMPLES, "--catalog", "sample", "--at", NOON])
    output = "\n".join(line.rstrip() for line in result.stdout.splitlines())
    blocks = (ROOT / page).read_text().split("\n```\n")[1::2]
    (block,) = (block for block in blocks if block.startswith(begins))
    for part in block.split("[...]\n"):
        assert part.strip() in output


def test_the_document_has_the_fields_of_its_contract() -> None:
    plan = planned()
    assert list(plan)[:9] == [
        "apiVersion",
        "kind",
        "time",
        "before",
        "after",
        "savings",
        "commands",
        "nodes",
        "unschedulable",
    ]
    assert plan["kind"] == "Plan"
    assert {"nodes", "pods", "pricePerHour"} <= plan["before"].keys()
    command = next(command for command in plan["commands"] if command["replacements"])
    assert {"step", "method", "reason", "decision", "nodes", "replacements", "placements"} <= command.keys()
    assert {"name", "nodePool", "capacityType", "zones", "instanceTypes"} <= command["replacements"][0].keys()
    assert {"pod", "from", "to"} == command["placements"][0].keys()
    assert {"name", "nodePool", "instanceType", "pricePerHour", "pods", "verdict", "step", "reasons"} <= plan["nodes"][
        0
    ].keys()


def test_every_node_has_a_verdict_and_every_one_that_stays_a_reason() -> None:
    for steps in ((), ("--steps", "0"), ("--steps", "1"), ("--steps", "2")):
        plan = planned(*steps)
        assert len(plan["nodes"]) == plan["before"]["nodes"]
        for entry in plan["nodes"]:
            assert (entry["verdict"] == "keep") == (entry["step"] is None)
            assert entry["reasons"]
            assert all(reason["code"] and reason["message"] for reason in entry["reasons"])


def test_the_totals_and_the_steps_add_up() -> None:
    plan = planned()
    saved = sum(command["savingsPerHour"] for command in plan["commands"])
    assert plan["savings"]["pricePerHour"] == pytest.approx(saved)
    assert plan["before"]["pricePerHour"] - plan["after"]["pricePerHour"] == pytest.approx(saved)
    removed = sum(len(command["nodes"]) for command in plan["commands"])
    added = sum(len(command["replacements"]) for command in plan["commands"])
    assert plan["after"]["nodes"] == plan["before"]["nodes"] - removed + added


@pytest.mark.slow
def test_the_bound_can_be_left_out() -> None:
    assert planned("--no-bound")["lowerBound"] is None
    assert planned()["lowerBound"]["blockers"] == []
    assert planned("--search", "prefix", "--effort", "1")["lowerBound"]["blockers"] != []


@pytest.mark.slow
def test_a_global_search_ends_no_dearer_and_names_every_new_node() -> None:
    plan = planned("--search", "global", "--effort", "1", "--eviction-price", "0")
    prefix = planned("--search", "prefix", "--effort", "1")
    assert plan["after"]["pricePerHour"] <= prefix["after"]["pricePerHour"] + 1e-9
    assert plan["lowerBound"]["pricePerHour"] <= plan["after"]["pricePerHour"] + 1e-9
    known = {node["name"] for node in plan["nodes"]}
    for command in plan["commands"]:
        known |= {new["name"] for new in command["replacements"]}
        assert {move["to"] for move in command["placements"]} <= known
    assert plan["curve"][-1]["pricePerHour"] == pytest.approx(plan["after"]["pricePerHour"])


def test_steps_stops_a_plan() -> None:
    assert [command["step"] for command in planned("--steps", "2")["commands"]] == [1, 2]
    assert planned("--steps", "0")["commands"] == []


def test_the_same_input_gives_the_same_plan() -> None:
    first = printed()
    printed.cache_clear()
    assert printed() == first


@pytest.mark.slow
def test_budgets_can_be_ignored() -> None:
    tight = planned("--search", "prefix", "--effort", "1")
    loose = planned("--search", "prefix", "--ignore-budgets")
    assert len(loose["commands"]) <= len(tight["commands"])
    assert loose["after"]["pricePerHour"] <= tight["after"]["pricePerHour"] + 1e-9


@pytest.mark.slow
def test_budgets_can_be_taken_from_the_annotation(tmp_path: Path) -> None:
    pools = (ROOT / "examples" / "nodepools.yaml").read_text()
    annotation = """  annotations: {karpool.sh/budgets: '[{"nodes": "0"}]'}"""
    annotated = pools.replace("\nmetadata:\n", f"\nmetadata:\n{annotation}\n")
    assert annotated != pools
    (tmp_path / "nodepools.yaml").write_text(annotated)
    others = [part for name in ("nodes.json", "pods.json", "workloads.yaml") for part in ("-f", f"{EXAMPLES}/{name}")]
    asked = ("plan", "-f", str(tmp_path / "nodepools.yaml"), *others, "--at", NOON, "--output", "json")
    assert json.loads(run(*asked).stdout)["commands"]
    annotated = json.loads(run(*asked, "--annotated-budgets").stdout)
    assert annotated["commands"] == []
    assert any(reason["code"] == "BudgetExhausted" for node in annotated["nodes"] for reason in node["reasons"])


@pytest.mark.slow
def test_the_page_stands_alone() -> None:
    result = run("plan", "-f", EXAMPLES, "--at", NOON, "--output", "html")
    assert result.exit_code == 0
    assert result.stdout.startswith("<!")
    assert "general-7" in result.stdout
    assert not re.search(r"(src|href)=.(?!#)", result.stdout)


def test_without_nodes_there_is_nothing_to_plan_and_a_pending_pod_is_counted(tmp_path: Path) -> None:
    file = written(tmp_path, node_pool(), pod("web-1", pending=True))
    told = run("plan", "-f", file, "--at", NOON).stdout
    assert "There are no nodes, so there is nothing to plan; pending pods wait" in told
    assert "pending |        1 | -> |        1 |" in told
    assert "least possible" not in told
    assert "why each node stays" not in told


def test_what_brakes_hold_stands_at_the_top_of_a_plan(tmp_path: Path) -> None:
    pool = node_pool(annotations={"karpool.sh/paused": "upgrade"})
    file = written(tmp_path, node("n1"), pool, pod("web-1", node="n1"))
    document = json.loads(run("plan", "-f", file, "--at", NOON, "--output", "json").stdout)
    message = "is paused by its annotation karpool.sh/paused: upgrade"
    assert document["stops"] == [
        {"code": "Paused", "message": message, "object": "NodePool default", "nodePool": "default", "until": None}
    ]
    lines = run("plan", "-f", file, "--at", NOON).stdout.splitlines()
    assert lines[1].startswith("Nothing of NodePool default is disrupted at this time. Paused: NodePool default: is")


def test_explain_says_what_would_let_a_node_go() -> None:
    result = run("explain", "general-7", "-f", EXAMPLES, "--at", NOON, "--output", "json")
    explanation = json.loads(result.stdout)
    assert explanation["verdict"] == "keep"
    (failed,) = [rule for rule in explanation["rules"] if not rule["passed"]]
    assert failed["reason"]["code"] == "PodDoNotDisrupt"
    assert explanation["unblock"][0]["if"] == "Pod data/export-x7k2p were not marked do-not-disrupt"
    assert explanation["unblock"][0]["savingsPerHour"] == pytest.approx(0.192)


@pytest.mark.slow
def test_explain_and_plan_agree_on_every_node_of_the_next_step() -> None:
    goes = {name for command in planned("--steps", "1")["commands"] for name in command["nodes"]}
    for entry in planned()["nodes"]:
        result = run("explain", entry["name"], "-f", EXAMPLES, "--at", NOON, "--output", "json", "--no-plan")
        assert result.exit_code == 0
        if entry["name"] in goes:
            assert json.loads(result.stdout)["verdict"] != "keep"


def test_explain_says_what_the_plan_does_and_what_the_node_could_do_alone() -> None:
    fates = {entry["name"]: entry for entry in planned()["nodes"]}
    asked = ("explain", "general-7", "-f", EXAMPLES, "--at", NOON, "--output", "json")
    document = json.loads(run(*asked).stdout)
    fate = fates["general-7"]
    assert document["inPlan"] == {
        **{field: fate[field] for field in ("verdict", "step", "reasons")},
        "steps": len(planned()["commands"]),
    }
    assert document["alone"]["verdict"] == "keep"
    assert [reason["code"] for reason in document["alone"]["reasons"]] == ["PodDoNotDisrupt"]
    assert json.loads(run(*asked, "--no-plan").stdout)["inPlan"] is None


def test_explain_of_an_unknown_node_names_the_nearest() -> None:
    result = run("explain", "general-77", "-f", EXAMPLES)
    assert result.exit_code == 2
    assert "did you mean general-7?" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--at", "tonight"), "write RFC 3339"),
        (("--at", "2026-11-15T22:00:00"), "no time zone"),
        (("--feature-gates", "Spot=true"), "there is no gate 'Spot'"),
        (("--feature-gates", "ReservedCapacity=perhaps"), "ReservedCapacity=true or"),
        (("--steps", "-1"), "--steps"),
        (("--catalog", "no-such-file.json"), "no-such-file.json"),
        (("--price", "m6i.nano=1"), "m6i.nano"),
        (("--partition", "zone"), "--partition"),
        (("--partition", "pol"), "did you mean pool?"),
        (("--search", "prefxi"), "did you mean prefix?"),
        (("--search", ""), "'--search': '' is not one of"),
        (("--effort", "4"), "--effort"),
        (("--effort", "-1"), "--effort"),
        (("--effort", "much"), "--effort"),
        (("--eviction-price", "-0.01"), "from 0 to 1,000,000"),
        (("--eviction-price", "nan"), "from 0 to 1,000,000"),
        (("--eviction-price", "inf"), "from 0 to 1,000,000"),
        (("--eviction-price", "1e7"), "from 0 to 1,000,000"),
        (("--eviction-price", "cheap"), "such as 0.004"),
        (("--weights", "strickt"), "did you mean strict?"),
        (("--seed", "1.5"), "not a whole number"),
        (("--seed", "9" * 30), "at most 18 digits"),
    ],
)
def test_bad_options_get_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = run("plan", "-f", EXAMPLES, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_cluster_nobody_manages_is_read_and_explained(tmp_path: Path) -> None:
    bare = node("n1")
    items = [{"kind": "Node", **_plain(bare)}, {"kind": "Pod", **_plain(pod("web-1", node="n1"))}]
    file = tmp_path / "cluster.json"
    file.write_bytes(msgspec.json.encode({"kind": "List", "items": items}))
    plan = json.loads(run("plan", "-f", str(file), "--output", "json").stdout)
    assert plan["commands"] == []
    assert [reason["code"] for reason in plan["nodes"][0]["reasons"]] == ["NotManaged"]


def test_unknown_types_stay_and_their_price_is_unknown(tmp_path: Path) -> None:
    strange = node("n1", type="u9z.huge")
    objects = [
        ("Node", strange),
        ("NodeClaim", claim_for(strange)),
        ("NodePool", node_pool()),
        ("Pod", pod("a", node="n1")),
    ]
    file = tmp_path / "cluster.json"
    file.write_bytes(msgspec.json.encode({"kind": "List", "items": [{"kind": k, **_plain(o)} for k, o in objects]}))
    plan = json.loads(run("plan", "-f", str(file), "--output", "json").stdout)
    assert plan["nodes"][0]["pricePerHour"] is None
    assert plan["nodes"][0]["reasons"][0]["code"] == "UnknownInstanceType"
    assert plan["before"]["pricePerHour"] is None


def written(folder: Path, *entries: Any) -> str:
    """A file with objects as kubectl prints them."""
    items = [{"kind": type(entry).__name__, **_plain(entry)} for entry in entries]
    file = folder / "cluster.json"
    file.write_bytes(msgspec.json.encode({"kind": "List", "items": items}))
    return str(file)


@pytest.mark.parametrize(
    "pool",
    [
        node_pool(consolidate_after="Never"),
        node_pool(policy="WhenEmpty"),
        node_pool(budgets=[Budget(nodes="0", reasons=("Underutilized",))]),
    ],
    ids=["never", "when-empty", "no-budget-for-consolidation"],
)
def test_explain_and_plan_agree_on_a_drifted_node(tmp_path: Path, pool: NodePool) -> None:
    old = node("n1")
    file = written(tmp_path, old, claim_for(old, drifted=True), pool, pod("web-1", node="n1"))
    plan = json.loads(run("plan", "-f", file, "--steps", "1", "--output", "json").stdout)
    assert plan["commands"][0]["method"] == "Drift"
    assert [reason["code"] for reason in plan["nodes"][0]["reasons"]] == ["Drifted", "Drifted"]
    explanation = json.loads(run("explain", "n1", "-f", file, "--output", "json").stdout)
    assert explanation["verdict"] == plan["nodes"][0]["verdict"]


def test_pods_that_a_termination_grace_period_ends_are_named(tmp_path: Path) -> None:
    old = node("n1")
    kept = pod("web-1", node="n1", annotations={"karpenter.sh/do-not-disrupt": "true"})
    claim = claim_for(old, drifted=True, termination_grace_period="1h")
    file = written(tmp_path, old, claim, node_pool(), kept)
    plan = json.loads(run("plan", "-f", file, "--output", "json").stdout)
    assert plan["commands"][0]["ended"] == ["default/web-1"]
    assert "ended by the termination grace period" in run("plan", "-f", file).stdout


def test_explain_shows_when_budgets_open(tmp_path: Path) -> None:
    busy = node("n1")
    nights = [Budget(nodes="0", schedule="0 8 * * mon-fri", duration=parse_duration("10h")), Budget(nodes="50%")]
    file = written(tmp_path, busy, claim_for(busy), node_pool(budgets=nights), pod("web-1", node="n1"))
    asked = ("explain", "n1", "-f", file, "--at", NOON)
    calendar = json.loads(run(*asked, "--output", "json").stdout)["calendar"]
    assert [entry["allowed"] for entry in calendar] == [1, 0] * 5 + [1]
    assert calendar[1]["from"] == "2026-11-16T08:00:00Z"
    assert calendar[1]["to"] == "2026-11-16T18:00:00Z"
    assert "Mon 16 Nov 08:00" in run(*asked).stdout


def test_what_an_unknown_price_saves_is_unknown(tmp_path: Path) -> None:
    strange = node("n1", type="u9z.huge")
    file = written(tmp_path, strange, claim_for(strange, drifted=True), node_pool(), pod("web-1", node="n1"))
    plan = json.loads(run("plan", "-f", file, "--output", "json").stdout)
    assert plan["commands"][0]["savingsPerHour"] is None
    assert plan["savings"] == {"pricePerHour": None, "percent": None, "knownPerHour": 0.0}


def test_what_is_missing_in_the_input_is_said(tmp_path: Path) -> None:
    node_1 = node("n1")
    file = written(tmp_path, node_1, claim_for(node_1), node_pool(), pod("web-1", node="ghost"))
    result = run("plan", "-f", file)
    assert result.exit_code == 0
    assert "1 pods, such as default/web-1, are on nodes that are not in the input" in result.stderr
    empty = tmp_path / "empty.json"
    empty.write_text('{"kind": "List", "items": []}')
    assert "there are no Nodes in the input" in run("plan", "-f", str(empty)).stderr


def test_an_empty_catalogue_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "types.json"
    file.write_text("[]")
    result = run("plan", "-f", EXAMPLES, "--catalog", str(file))
    assert result.exit_code == 2
    assert "lists no instance types" in result.stderr


def _plain(entry: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(entry, enc_hook=encode_value)
    return plain


def test_it_says_who_pays() -> None:
    result = run("plan", "-f", EXAMPLES, "--catalog", "sample", "--at", NOON, "--by", "namespace", "--by", "label=app")
    assert "Who pays, by namespace" in result.stdout
    costs = planned("--catalog", "sample", "--by", "namespace")["costs"][0]
    listed = [*costs["groups"], costs["headroom"], costs["system"], costs["idle"]]
    for moment in ("before", "after"):
        paid = sum(entry[moment]["pricePerHour"] for entry in listed)
        assert paid == pytest.approx(costs["total"][moment]["pricePerHour"])
    page = run("plan", "-f", EXAMPLES, "--at", NOON, "--by", "namespace", "--output", "html").stdout
    assert '<th scope="row">shop</th>' in page


def test_a_grouping_that_does_not_exist_is_refused() -> None:
    result = run("plan", "-f", EXAMPLES, "--by", "team")
    assert result.exit_code == 2
    assert "label=team" in result.stderr
