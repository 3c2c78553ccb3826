"""The decision journal: what its lines say, and what it does when files are full or the disk is."""

import json
import resource
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from karpool.disruption.brakes.failures import FailedCommand
from karpool.disruption.command import Cause, Command, Method, Move, Replacement
from karpool.execution.tickets import Ticket
from karpool.model.labels import INSTANCE_TYPE, NODEPOOL
from karpool.model.nodepool import NodeClaim, NodeClaimSpec, PoolRequirement
from karpool.model.reasons import Reason
from karpool.model.requirements import Requirements
from karpool.operator.journal import Journal, JournalSettings
from karpool.report.journals.journal_records import NodeRecord, RolledBackRecord
from karpool.wire.objects import Metadata

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
BUSY = Reason("PodDoNotDisrupt", "must not be disturbed until 14:30 UTC", "Pod shop/cart-0")
DEAR = Reason("NotCheaper", "no cheaper node would hold its pods", "Node c")
REPLACE = Command(
    method=Method.SINGLE_NODE,
    cause=Cause.UNDERUTILIZED,
    nodes=("a",),
    replacements=(Replacement("general", Requirements(()), ("m6i.large", "m5.large"), "spot", ("us-1a",), 0.1),),
    moves=(Move("shop/web-0", "a", 0), Move("shop/web-1", "a", "b"), Move("shop/job-0", None, "b", leaving=True)),
    price=0.4,
    disruption_cost=2.5,
)
DELETE = Command(method=Method.EMPTINESS, cause=Cause.EMPTY, nodes=("d", "e"), price=0.2, unpriced=1)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def rolled_back(message: str = "", at: datetime = NOW) -> RolledBackRecord:
    return RolledBackRecord(
        time=at, id="x", method="Drift", reason="Drifted", nodes=("a",), cause="TimedOut", message=message, in_a_row=1
    )


def test_each_of_several_replacements_has_a_name_that_moves_point_to(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    large = replace(REPLACE.replacements[0], instance_types=("m6i.xlarge",), price=0.2)
    several = replace(
        REPLACE,
        replacements=(*REPLACE.replacements, large),
        moves=(Move("shop/web-0", "a", 1), Move("shop/web-1", "a", 0)),
    )
    Journal(JournalSettings(path=path)).decided(NOW, [several], [])
    (line,) = lines(path)
    assert [(new["name"], new["instanceTypes"][0]) for new in line["replacements"]] == [
        ("new-1", "m6i.large"),
        ("new-2", "m6i.xlarge"),
    ]
    assert [(move["pod"], move["to"]) for move in line["placements"]] == [
        ("shop/web-0", "new-2"),
        ("shop/web-1", "new-1"),
    ]
    assert line["savingsPerHour"] == pytest.approx(0.1)


def test_a_command_is_a_line_with_the_names_of_the_plan_document(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(JournalSettings(path=path)).decided(NOW, [REPLACE], [("b", [BUSY]), ("c", [DEAR, BUSY])])
    (line,) = lines(path)
    assert line == {
        "kind": "Decision",
        "apiVersion": "karpool.sh/v1",
        "time": "2026-03-02T12:00:00Z",
        "method": "SingleNodeConsolidation",
        "reason": "Underutilized",
        "decision": "replace",
        "nodes": ["a"],
        "replacements": [
            {
                "name": "new-1",
                "nodePool": "general",
                "capacityType": "spot",
                "zones": ["us-1a"],
                "instanceTypes": ["m6i.large", "m5.large"],
                "pricePerHour": 0.1,
            }
        ],
        "placements": [
            {"pod": "shop/web-0", "from": "a", "to": "new-1"},
            {"pod": "shop/web-1", "from": "a", "to": "b"},
        ],
        "savingsPerHour": pytest.approx(0.3),
        "disruptionCost": 2.5,
        "ended": [],
        "rejected": [
            {"name": "b", "reasons": [{"code": BUSY.code, "message": BUSY.message, "object": BUSY.object}]},
            {
                "name": "c",
                "reasons": [
                    {"code": DEAR.code, "message": DEAR.message, "object": DEAR.object},
                    {"code": BUSY.code, "message": BUSY.message, "object": BUSY.object},
                ],
            },
        ],
        "dryRun": False,
    }


def test_of_several_commands_the_first_tells_why_the_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(JournalSettings(path=path)).decided(NOW, [REPLACE, DELETE], [("b", [BUSY])], dry_run=True)
    first, second = lines(path)
    assert (first["nodes"], len(first["rejected"])) == (["a"], 1)
    assert (second["nodes"], second["rejected"], second["dryRun"]) == (["d", "e"], [], True)


def test_savings_that_nobody_knows_are_null(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(JournalSettings(path=path)).decided(NOW, [DELETE], [])
    assert lines(path)[0]["savingsPerHour"] is None


def test_nothing_to_do_is_told_again_only_for_other_reasons(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(JournalSettings(path=path))
    later = Reason(BUSY.code, "must not be disturbed until 14:31 UTC", BUSY.object)
    for number, rejected in enumerate(([("b", [BUSY])], [("b", [later])], [("b", [DEAR])], [("b", [BUSY])])):
        journal.decided(NOW + timedelta(seconds=number), [], rejected)
    assert [line["time"][-3:] for line in lines(path)] == ["00Z", "02Z", "03Z"]
    assert {line["kind"] for line in lines(path)} == {"NoDecision"}


def test_what_becomes_of_a_command_is_told(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(JournalSettings(path=path))
    ticket = Ticket("x", NOW, "Drift", "Drifted", ("a",))
    journal.started(NOW, REPLACE, "c1")
    journal.dropped(NOW, DELETE, DEAR, 2)
    failed = FailedCommand(command="x", cause="ReplacementGone", at=NOW, message="never registered", tries=2)
    journal.rolled_back(NOW, ticket, failed)
    started, dropped, back = lines(path)
    assert (started["kind"], started["id"], started["nodes"]) == ("Begun", "c1", ["a"])
    assert (dropped["kind"], dropped["nodes"], dropped["reasons"][0]["code"]) == ("Dropped", ["d", "e"], "NotCheaper")
    assert dropped["inARow"] == 2
    assert (back["kind"], back["id"], back["message"]) == ("RolledBack", "x", "never registered")


def test_new_nodes_for_waiting_pods_are_told_with_what_they_may_be(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    requirement = PoolRequirement(INSTANCE_TYPE, "In", ("m6i.large", "m5.large"))
    claim = NodeClaim(Metadata("general-1", labels={NODEPOOL: "general"}), NodeClaimSpec(requirements=(requirement,)))
    Journal(JournalSettings(path=path)).provisioned(NOW, [claim], [("shop/web-0", DEAR)])
    (line,) = lines(path)
    assert line["newNodes"] == [
        {
            "name": "general-1",
            "nodePool": "general",
            "capacityTypes": [],
            "zones": [],
            "instanceTypes": ["m6i.large", "m5.large"],
        }
    ]
    assert [(entry["pod"], entry["reasons"][0]["code"]) for entry in line["unschedulable"]] == [
        ("shop/web-0", "NotCheaper")
    ]


def test_pods_that_fit_nowhere_are_told_of_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(JournalSettings(path=path))
    for waiting in ([], [("shop/web-0", DEAR)], [("shop/web-0", DEAR)], []):
        journal.provisioned(NOW, [], waiting)
    assert [len(line["unschedulable"]) for line in lines(path)] == [1, 0]


def test_a_full_file_makes_room_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(JournalSettings(path=path, largest=400, old_files=2))
    for number in range(12):
        journal.write(rolled_back(f"{number:0100d}"))
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["journal.jsonl", "journal.jsonl.1", "journal.jsonl.2"]
    numbers = [int(line["message"]) for name in reversed(names) for line in lines(tmp_path / name)]
    assert numbers == list(range(12))[-len(numbers) :]
    assert all(file.stat().st_size <= 400 for file in tmp_path.iterdir())


def test_without_old_files_a_full_file_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(JournalSettings(path=path, largest=300, old_files=0))
    for number in range(5):
        journal.write(rolled_back(f"{number:0100d}"))
    assert [file.name for file in tmp_path.iterdir()] == ["journal.jsonl"]
    assert int(lines(path)[-1]["message"]) == 4


def test_a_line_larger_than_a_file_has_one_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(JournalSettings(path=path, largest=10, old_files=1))
    journal.write(rolled_back("first"))
    journal.write(rolled_back("second"))
    assert [line["message"] for line in lines(path)] == ["second"]
    assert [line["message"] for line in lines(tmp_path / "journal.jsonl.1")] == ["first"]


def test_another_process_goes_on_after_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"kind":"Beg')
    Journal(JournalSettings(path=path)).write(rolled_back("whole"))
    half, whole = path.read_text().splitlines()
    assert half == '{"kind":"Beg'
    assert json.loads(whole)["message"] == "whole"


def test_a_disk_that_takes_nothing_stops_nobody_and_is_told_once_a_minute(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    lost: list[int] = []
    journal = Journal(JournalSettings(path=blocked / "journal.jsonl"), on_failure=lambda: lost.append(1))
    with capture_logs() as logged:
        for seconds in (0, 1, 59, 60, 61):
            journal.write(rolled_back(at=NOW + timedelta(seconds=seconds)))
    assert len(lost) == 5
    assert [entry["log_level"] for entry in logged] == ["error", "error"]


def test_half_a_line_is_taken_back_when_the_disk_is_full(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(JournalSettings(path=path))
    journal.write(rolled_back("first"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, limits[1]))
    try:
        with capture_logs() as logged:
            journal.write(rolled_back("lost"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    journal.write(rolled_back("second"))
    assert [line["message"] for line in lines(path)] == ["first", "second"]
    assert len(logged) == 1


def test_without_a_path_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Journal(JournalSettings(path=None)).decided(NOW, [REPLACE], [])
    assert list(tmp_path.iterdir()) == []


def test_a_closed_journal_opens_again(tmp_path: Path) -> None:
    path = tmp_path / "deeper" / "journal.jsonl"
    journal = Journal(JournalSettings(path=path))
    journal.write(rolled_back("one"))
    journal.close()
    journal.write(rolled_back("two"))
    assert [line["message"] for line in lines(path)] == ["one", "two"]


def test_what_nodes_are_is_told_once_and_again_in_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(JournalSettings(path=path, largest=1_500))
    small, large = (
        NodeRecord(name=name, node_pool="web", instance_type=name, capacity_type="spot", zone="a", price_per_hour=0.1)
        for name in ("small", "large")
    )

    def told() -> list[list[str]]:
        return [[node["name"] for node in line["nodes"]] for line in lines(path) if line["kind"] == "Nodes"]

    journal.nodes_known(NOW, [small])
    journal.nodes_known(NOW, [small, large])
    journal.nodes_known(NOW, [large])
    journal.nodes_known(NOW, [msgspec.structs.replace(large, price_per_hour=0.2)])
    assert told() == [["small"], ["large"], ["large"]]
    while path.stat().st_size > 500:
        journal.write(rolled_back("full"))
    journal.nodes_known(NOW, [msgspec.structs.replace(large, price_per_hour=0.2), small])
    assert told() == [["large", "small"]]
