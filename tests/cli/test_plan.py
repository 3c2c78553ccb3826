"""`karpool plan` and `karpool explain`, run as a user runs them, on the example cluster and on small ones."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from tests.factories import claim_for, node, node_pool, pod

from karpool.cli.main import cli
from karpool.model.wire import encode_value

ROOT = Path(__file__).parents[2]
EXAMPLES = str(ROOT / "examples")
NOON = "2026-11-15T12:00:00Z"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def planned(*arguments: str) -> Any:
    result = run("plan", "-f", EXAMPLES, "--at", NOON, "--output", "json", *arguments)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_the_readme_shows_what_is_printed() -> None:
    readme = (ROOT / "README.md").read_text()
    lines = run("plan", "-f", EXAMPLES, "--at", NOON).stdout.splitlines()
    shown = "\n".join(line.rstrip() for line in lines).strip()
    assert shown in readme


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


def test_steps_stops_a_plan() -> None:
    assert [command["step"] for command in planned("--steps", "2")["commands"]] == [1, 2]
    assert planned("--steps", "0")["commands"] == []


def test_the_same_input_gives_the_same_plan() -> None:
    assert planned() == planned()


def test_budgets_can_be_ignored() -> None:
    tight = planned()
    loose = planned("--ignore-budgets")
    assert len(loose["commands"]) <= len(tight["commands"])
    assert loose["after"]["pricePerHour"] <= tight["after"]["pricePerHour"] + 1e-9


def test_the_page_stands_alone() -> None:
    result = run("plan", "-f", EXAMPLES, "--at", NOON, "--output", "html")
    assert result.exit_code == 0
    assert result.stdout.startswith("<!")
    assert "general-7" in result.stdout
    assert not re.search(r"(src|href)=.(?!#)", result.stdout)


def test_explain_says_what_would_let_a_node_go() -> None:
    result = run("explain", "general-7", "-f", EXAMPLES, "--at", NOON, "--output", "json")
    story = json.loads(result.stdout)
    assert story["verdict"] == "keep"
    (failed,) = [rule for rule in story["rules"] if not rule["passed"]]
    assert failed["reason"]["code"] == "PodDoNotDisrupt"
    assert story["unblock"][0]["if"] == "Pod data/export-x7k2p were not marked do-not-disrupt"
    assert story["unblock"][0]["savingsPerHour"] == pytest.approx(0.107)


def test_explain_and_plan_agree_on_every_node_of_the_next_step() -> None:
    goes = {name for command in planned("--steps", "1")["commands"] for name in command["nodes"]}
    for entry in planned()["nodes"]:
        result = run("explain", entry["name"], "-f", EXAMPLES, "--at", NOON, "--output", "json")
        assert result.exit_code == 0
        if entry["name"] in goes:
            assert json.loads(result.stdout)["verdict"] != "keep"


def test_explain_of_an_unknown_node_names_the_nearest() -> None:
    result = run("explain", "general-77", "-f", EXAMPLES)
    assert result.exit_code == 2
    assert "did you mean general-7?" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--at", "tonight"), "write RFC 3339"),
        (("--at", "2026-11-15T22:00:00"), "no time zone"),
        (("--feature-gates", "Spot=true"), "there is no gate 'Spot'"),
        (("--feature-gates", "ReservedCapacity=perhaps"), "ReservedCapacity=true or"),
        (("--steps", "-1"), "--steps"),
        (("--catalog", "no-such-file.json"), "no-such-file.json"),
        (("--price", "m6i.nano=1"), "m6i.nano"),
        (("--partition", "zone"), "--partition"),
    ],
)
def test_bad_options_get_one_line(arguments: tuple[str, ...], said: str) -> None:
    result = run("plan", "-f", EXAMPLES, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
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


def _plain(entry: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(entry, enc_hook=encode_value)
    return plain
