"""`karpool budgets` through the real entry: the calendar as table, document and page."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from tests.factories import claim_for, node, node_pool
from tests.tables import row, table

from karpool.cli.main import cli
from karpool.disruption.budgets import allowed
from karpool.model.nodepool import Budget, NodePool
from karpool.report.calendars.budget_document import AllowedPart, BudgetCalendar, PoolCalendarPart, ReasonCalendarPart
from karpool.report.calendars.budget_page import budget_page
from karpool.wire.duration import parse_duration
from karpool.wire.objects import encode_value

FRIDAY = "2026-11-20T12:00:00Z"
HOSTILE = "</title><script>alert(1)</script>"


def budget(nodes: str, schedule: str | None = None, duration: str | None = None, *reasons: str) -> Budget:
    length = None if duration is None else parse_duration(duration)
    return Budget(nodes=nodes, schedule=schedule, duration=length, reasons=reasons or None)


OFFICE = budget("0", "0 9 * * mon-fri", "8h")
WEB = node_pool("web", budgets=["20%", OFFICE])


def cluster(tmp_path: Path, *pools: NodePool, busy: int = 0) -> str:
    """Ten nodes in each pool, some of them not ready."""
    nodes = [node(f"{pool.name}-{n}", pool=pool.name, ready=n >= busy) for pool in pools for n in range(10)]
    listed = [*pools, *nodes, *map(claim_for, nodes)]
    kinds = {"NodePool": "karpenter.sh/v1", "NodeClaim": "karpenter.sh/v1", "Node": "v1"}
    items: list[Any] = [{"apiVersion": "v1", "kind": "PodList", "items": []}]
    for entry in listed:
        kind = type(entry).__name__
        plain = json.loads(msgspec.json.encode(entry, enc_hook=encode_value))
        items.append({**plain, "apiVersion": kinds[kind], "kind": kind})
    file = tmp_path / "cluster.json"
    file.write_text("\n".join(json.dumps(item) for item in items))
    return str(file)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["budgets", *arguments])


def lines(result: Result) -> list[list[str]]:
    """The rows of the tables, as cells."""
    return [[cell.strip() for cell in line.split("|")] for line in result.stdout.splitlines() if " | " in line]


def test_the_table_is_the_one_of_the_documentation(tmp_path: Path) -> None:
    result = run("-f", cluster(tmp_path, WEB), "--at", FRIDAY, "--next", "3d")
    assert result.exit_code == 0, result.stderr
    assert lines(result) == [
        ["from", "to", "all reasons"],
        ["now", "", "0"],
        ["Fri 20 Nov 12:00", "Fri 20 Nov 17:00", "0"],
        ["Fri 20 Nov 17:00", "Mon 23 Nov 09:00", "2"],
        ["Mon 23 Nov 09:00", "Mon 23 Nov 12:00", "0"],
    ]
    assert "times in UTC" in result.stdout
    assert "budget 2 (nodes 0, 0 9 * * mon-fri for 8h) allows 0 of 10 nodes at once" in result.stdout


def test_without_nodes_in_the_input_some_are_supposed_and_it_says_so(tmp_path: Path) -> None:
    manifest = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: web}\nspec: {}\n"
    file = tmp_path / "pools.yaml"
    file.write_text(manifest)
    result = run("-f", str(file), "--at", FRIDAY)
    assert "there are no nodes in the input, so 10 are supposed in each pool; --nodes N" in result.stderr
    assert "NodePool web: 10 nodes supposed" in result.stdout
    assert {cells[2] for cells in lines(result)[1:]} == {"1"}
    assert "Percentages are of the nodes that are supposed" in result.stdout
    (pool,) = json.loads(run("-f", str(file), "--at", FRIDAY, "--nodes", "40", "-o", "json").stdout)["pools"]
    assert (pool["nodes"], pool["supposed"]) == (40, True)
    assert run("-f", str(file), "--nodes", "40").stderr == ""
    file.write_text(f"{manifest}---\n{{apiVersion: v1, kind: NodeList, items: []}}\n")
    assert "NodePool web: 0 nodes\n" in run("-f", str(file), "--at", FRIDAY).stdout


def test_busy_nodes_count_now_and_not_later(tmp_path: Path) -> None:
    """An unhealthy node is what repair is for: it does not stand in its own way."""
    document = json.loads(run("-f", cluster(tmp_path, node_pool(budgets=["20%"]), busy=1), "-o", "json").stdout)
    (pool,) = document["pools"]
    assert (pool["nodes"], pool["busy"]) == (10, 1)
    assert {part["reason"]: part["remainingNow"] for part in pool["reasons"]} == {
        "Empty": 1,
        "Drifted": 1,
        "Underutilized": 1,
        "Unhealthy": 2,
    }
    assert {entry["allowed"] for part in pool["reasons"] for entry in part["calendar"]} == {2}


def test_the_document_agrees_with_asking_at_each_hour(tmp_path: Path) -> None:
    pool = node_pool(
        "p", budgets=["30%", OFFICE, budget("1", "@daily", "2h", "Drifted"), budget("0", "0 0 * * 0", "24h", "Empty")]
    )
    document = json.loads(run("-f", cluster(tmp_path, pool), "--at", FRIDAY, "--next", "100h", "-o", "json").stdout)
    start = datetime.fromisoformat(FRIDAY)
    for part in document["pools"][0]["reasons"]:
        for hours in range(100):
            moment = start + timedelta(hours=hours)
            (entry,) = (
                each
                for each in part["calendar"]
                if datetime.fromisoformat(each["from"]) <= moment < datetime.fromisoformat(each["to"])
            )
            assert entry["allowed"] == allowed(pool, part["reason"], 10, 0, moment).allowed


def test_reasons_that_differ_have_columns_of_their_own(tmp_path: Path) -> None:
    pool = node_pool("p", budgets=[budget("0", None, None, "Drifted")])
    rows = lines(run("-f", cluster(tmp_path, pool)))
    assert rows[0][2:] == ["Empty, Underutilized, Unhealthy", "Drifted"]
    assert rows[1][2:] == ["any", "0"]


def test_times_are_those_of_the_zone_also_when_its_clocks_change(tmp_path: Path) -> None:
    nightly = node_pool("p", budgets=[budget("0", "0 6 * * *", "12h")])
    result = run(
        "-f", cluster(tmp_path, nightly), "--at", "2026-10-24T05:00:00Z", "--next", "2d", "--time-zone", "Europe/Berlin"
    )
    assert "times in Europe/Berlin" in result.stdout
    assert [cells[0] for cells in lines(result)[2:]] == [
        "Sat 24 Oct 07:00",
        "Sat 24 Oct 08:00",
        "Sat 24 Oct 20:00",
        "Sun 25 Oct 07:00",
        "Sun 25 Oct 19:00",
    ]


def test_budgets_of_annotations_are_shown_when_asked_for(tmp_path: Path) -> None:
    pool = node_pool("p", budgets=["0"], annotations={"karpool.sh/budgets": '[{"nodes": "3"}]'})
    file = cluster(tmp_path, pool)
    spec, annotated = run("-f", file), run("-f", file, "--annotated-budgets")
    assert spec.stderr == "karpool: NodePools with budgets in their annotation: p; --annotated-budgets shows those\n"
    assert lines(spec)[1][2] == "0"
    assert annotated.stderr == ""
    assert lines(annotated)[1][2] == "3"


def test_manifests_of_pools_are_enough_with_a_supposed_size(tmp_path: Path) -> None:
    file = tmp_path / "pools.yaml"
    file.write_text(
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: web}\nspec:\n"
        "  template: {spec: {nodeClassRef: {group: g, kind: k, name: n}, requirements: []}}\n"
        "  disruption: {budgets: [{nodes: 10%}]}\n"
    )
    result = run("-f", str(file), "--nodes", "40")
    assert "NodePool web: 40 nodes" in result.stdout
    assert lines(result)[1][2] == "4"


def test_the_page_has_a_strip_for_each_day_and_a_number_for_each_stretch(tmp_path: Path) -> None:
    result = run("-f", cluster(tmp_path, WEB), "--at", FRIDAY, "-o", "html")
    assert result.exit_code == 0
    assert result.stdout.count('class="day"') == 8  # from noon to noon
    assert "<title>Fri 20 Nov 17:00 to Mon 23 Nov 09:00: 2</title>" in result.stdout


def test_names_and_budgets_cannot_bring_markup_into_the_page() -> None:
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    part = AllowedPart(start=now, end=now + timedelta(days=1), allowed=0, why=HOSTILE)
    reason = ReasonCalendarPart(reason="Empty", allowed_now=0, remaining_now=0, calendar=(part,))
    hostile = PoolCalendarPart(name=HOSTILE, nodes=1, busy=0, source="spec", reasons=(reason,))
    page = budget_page(BudgetCalendar(time=now, until=now + timedelta(days=1), time_zone="UTC", pools=(hostile,)), UTC)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


@table(
    row(
        "an unknown pool",
        arguments=["weeb"],
        said="there is no NodePool 'weeb' among the 1 that were read; did you mean web?",
    ),
    row("an unknown zone", arguments=["--time-zone", "Europe/Berlim"], said="did you mean Europe/Berlin?"),
    row("a zone that is a path", arguments=["--time-zone", "../etc/passwd"], said="there is no time zone"),
    row("no length", arguments=["--next", "0d"], said="write something like 7d or 36h"),
    row("a length without a unit", arguments=["--next", "7"], said="write something like 7d or 36h"),
    row("ten years", arguments=["--next", "3650d"], said="up to 366d"),
    row("no time", arguments=["--at", "tomorrow"], said="'tomorrow' is not a time"),
)
def test_bad_input_is_one_line_and_status_2(arguments: list[str], said: str, tmp_path: Path) -> None:
    result = run("-f", cluster(tmp_path, WEB), *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_pause_that_holds_everything_is_named(tmp_path: Path) -> None:
    pool = node_pool("p", annotations={"karpool.sh/paused": "sale"})
    result = run("-f", cluster(tmp_path, pool))
    assert "What holds them now, whatever budgets allow" in result.stdout
    assert "Paused: " in result.stdout


@pytest.mark.parametrize("length", ["1d", "24h"])
def test_days_are_24_hours(length: str, tmp_path: Path) -> None:
    document = json.loads(run("-f", cluster(tmp_path, WEB), "--at", FRIDAY, "--next", length, "-o", "json").stdout)
    assert document["until"] == "2026-11-21T12:00:00Z"
