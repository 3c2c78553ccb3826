"""A decision journal as a timeline: commands, pauses, and the fleet at a past moment."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from karpool.catalog.sources import open_catalog
from karpool.report.journals.simulation_journal import SimulationJournal
from karpool.report.journals.timeline import Timeline
from karpool.report.journals.timeline_document import TimelineCommand, TimelineDocument
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.compare import run
from karpool.virtual.scenario import read_scenario

START = datetime(2026, 3, 2, 12, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def line(kind: str, minutes: float, **fields: Any) -> bytes:
    """A line of a journal, as far as a test looks at it."""
    common: dict[str, Any] = {"method": "Emptiness", "reason": "Empty", "nodes": ["a"], "savingsPerHour": 0.2}
    whole: dict[str, dict[str, Any]] = {
        "Decision": {
            **common,
            "decision": "delete",
            "replacements": [],
            "placements": [],
            "disruptionCost": 1.0,
            "ended": [],
            "rejected": [],
            "dryRun": False,
        },
        "NoDecision": {"rejected": []},
        "Begun": {**common, "id": "x"},
        "Completed": {**common, "id": "x"},
        "Dropped": {**common, "reasons": [stays("a")["reasons"][0]], "inARow": 1},
        "RolledBack": {**common, "id": "x", "cause": "TimedOut", "message": "no node came", "inARow": 1},
        "WaitOver": {"id": "x", "node": "a", "object": "Pod shop/web", "message": "is not ready"},
        "Brake": {"brake": "Paused", "nodePool": "web", "object": "NodePool web", "message": "is paused"},
        "Provisioned": {"newNodes": [], "unschedulable": []},
        "Nodes": {"nodes": []},
    }
    record = {"kind": kind, "apiVersion": "karpool.sh/v1", "time": at(minutes).isoformat(), **whole[kind], **fields}
    return json.dumps(record).encode() + b"\n"


def stays(name: str) -> dict[str, Any]:
    reason = {"code": "NotCheaper", "message": "no cheaper node would hold its pods", "object": f"Node {name}"}
    return {"name": name, "reasons": [reason]}


def only(*lines: bytes) -> TimelineCommand:
    (command,) = Timeline(lines).document().commands
    return command


def test_a_command_is_followed_from_decision_to_end() -> None:
    moves = [{"pod": "shop/web", "from": "a", "to": "c"}, {"pod": "shop/api", "from": "b", "to": "c"}]
    command = only(
        line("Decision", 0, nodes=["a", "b"], placements=moves),
        line("Begun", 1),
        line("WaitOver", 2),
        line("Completed", 3),
    )
    assert (command.outcome, command.nodes, command.evictions) == ("completed", ("a",), 1)
    assert (command.decided, command.started, command.ended) == (at(0), at(1), at(3))
    assert command.waits == ("Pod shop/web: is not ready",)


@pytest.mark.parametrize(
    ("lines", "outcome", "message"),
    [
        ([line("Decision", 0)], "decided", ""),
        ([line("Decision", 0, dryRun=True)], "dryRun", ""),
        ([line("Decision", 0), line("Begun", 1)], "running", ""),
        ([line("Decision", 0), line("Begun", 1), line("RolledBack", 2)], "rolledBack", "no node came"),
        ([line("Decision", 0), line("Dropped", 1)], "dropped", "NotCheaper: no cheaper node would hold its pods"),
        ([line("Completed", 1)], "completed", ""),
        ([line("RolledBack", 1)], "rolledBack", "no node came"),
        ([line("Dropped", 1)], "dropped", "NotCheaper: no cheaper node would hold its pods"),
        ([line("Begun", 1)], "running", ""),
    ],
)
def test_a_command_has_an_outcome_also_if_the_journal_begins_later(
    lines: list[bytes], outcome: str, message: str
) -> None:
    command = only(*lines)
    assert (command.outcome, command.message) == (outcome, message)


def test_savings_are_those_of_completed_commands() -> None:
    lines = [line("Begun", 0, id="y"), line("Completed", 1), line("Completed", 2, id="z", savingsPerHour=None)]
    totals = Timeline(lines).document().totals
    assert (totals.completed, totals.running, totals.savings_per_hour, totals.unpriced) == (2, 1, 0.2, 1)


def test_a_pause_lasts_until_it_is_lifted() -> None:
    lines = [
        line("Brake", 0, holds=True),
        line("Brake", 5, holds=True),  # the controller was restarted
        line("Brake", 9, holds=False),
        line("Brake", 10, holds=False, nodePool=None),
        line("Brake", 11, holds=True, nodePool="batch"),
    ]
    pauses = Timeline(lines).document().pauses
    assert [(pause.node_pool, pause.since, pause.until) for pause in pauses] == [
        ("web", at(0), at(9)),
        (None, None, at(10)),
        ("batch", at(11), None),
    ]


def fleet(timeline: Timeline, minutes: float) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    moment = timeline.fleet_at(at(minutes))
    return [node.name for node in moment.nodes], moment.gone, moment.requested


def test_the_fleet_of_a_past_moment_is_known_as_far_as_it_was_named() -> None:
    new = {"name": "web-x1", "nodePool": "web", "capacityTypes": [], "zones": [], "instanceTypes": []}
    timeline = Timeline(
        [
            line("Completed", 0, nodes=["z"]),
            line("Decision", 1, nodes=["a"], rejected=[stays("b"), stays("c")]),
            line("Decision", 1, nodes=["d"]),
            line("Begun", 2),
            line("Completed", 3),
            line("Provisioned", 4, newNodes=[new]),
            line("NoDecision", 6, rejected=[stays("b")]),
        ]
    )
    assert fleet(timeline, 0.5) == ([], ("z",), ())
    assert fleet(timeline, 1) == (["a", "b", "c", "d"], (), ())
    assert fleet(timeline, 3) == (["b", "c", "d"], ("a",), ())
    assert fleet(timeline, 5) == (["b", "c", "d"], ("a",), ("web-x1",))
    assert fleet(timeline, 6) == (["b"], (), ())
    moment = timeline.fleet_at(at(2))
    assert moment.known_at == at(1)
    assert {node.name: node.command for node in moment.nodes} == {"a": 1, "b": None, "c": None, "d": 2}
    assert moment.nodes[1].reasons[0].code == "NotCheaper"
    points = timeline.document().points
    assert [(point.nodes, round(point.savings_per_hour, 6)) for point in points] == [
        (None, 0.2),
        (4, 0.2),
        (None, 0.4),
        (1, 0.4),
    ]


@pytest.mark.parametrize(
    "bad",
    [
        b"\n",
        b"{}\n",
        b"[]\n",
        b"null\n",
        b"\xff\xfe\n",
        b'{"kind":"Doom","time":"2026-03-02T12:00:00Z"}\n',
        b'{"kind":"NoDecision","rejected":[]}\n',
        b'{"kind":"NoDecision","time":"2026-03-02T12:00:00","rejected":[]}\n',
        b'{"kind":"NoDecision","time":"yesterday","rejected":[]}\n',
        b'{"kind":"Decision","time":"2026-03-02T12:00:00Z","nodes":"all"}\n',
        b"[" * 100_000 + b"\n",
    ],
)
def test_lines_that_cannot_be_read_are_counted_and_left_out(bad: bytes) -> None:
    document = Timeline([line("Completed", 0), bad, line("Completed", 1, id="y")]).document()
    assert document.totals.completed == 2
    assert document.unreadable == (0 if bad == b"\n" else 1)


def test_a_last_line_that_is_cut_waits_for_its_rest() -> None:
    whole = line("Completed", 1, id="y")
    timeline = Timeline([line("Completed", 0), whole[:40]])
    document = timeline.document()
    assert (document.totals.completed, document.unreadable, document.cut) == (1, 0, True)
    timeline.read([whole[40:]])
    document = timeline.document()
    assert (document.totals.completed, document.unreadable, document.cut) == (2, 0, False)


def test_a_last_line_without_a_break_is_read_if_it_is_whole() -> None:
    assert Timeline([line("Completed", 0).rstrip()]).document().totals.completed == 1


@given(st.lists(st.binary(max_size=60)))
@examples(50)
def test_nothing_that_a_journal_holds_stops_the_reader(lines: list[bytes]) -> None:
    document = Timeline([line("Completed", 0), *(entry + b"\n" for entry in lines)]).document()
    assert document.totals.completed == 1


def test_nodes_of_a_past_moment_have_their_type_pool_and_price_of_then() -> None:
    fact = {"nodePool": "web", "instanceType": "m5.large", "capacityType": "spot", "zone": "a"}
    timeline = Timeline(
        [
            line("NoDecision", 0, rejected=[stays("a"), stays("b")]),
            line("Nodes", 1, nodes=[{**fact, "name": "a", "pricePerHour": 0.1}]),
            line("Nodes", 5, nodes=[{**fact, "name": "a", "pricePerHour": None}]),
        ]
    )

    def known(minutes: float) -> list[tuple[str, float | None] | None]:
        facts = [node.facts for node in timeline.fleet_at(at(minutes)).nodes]
        return [None if fact is None else (fact.instance_type, fact.price_per_hour) for fact in facts]

    assert known(0) == known(4) == [("m5.large", 0.1), None]
    assert known(5) == [("m5.large", None), None]


def test_an_empty_journal_is_an_empty_timeline() -> None:
    document = Timeline().document()
    assert (document.begins, document.commands, document.lines) == (None, (), 0)
    assert Timeline().fleet_at(at(0)).known_at is None


def test_hostile_words_stay_words() -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    command = only(line("Decision", 0, nodes=[evil]), line("Dropped", 1, nodes=[evil]))
    assert command.nodes == (evil,)


SCENARIO = """
name: evening
length: 1h
pools:
- metadata: {name: general}
  spec:
    template:
      spec: {requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}]}
    disruption: {consolidateAfter: 30s, budgets: [{nodes: "100%"}]}
workloads:
- name: web
  cpu: 500m
  memory: 1Gi
  replicas: {hours: [{at: "00:00", value: 30}, {at: "00:20", value: 4}], shape: steps}
policies: {karpool: {decisions: {search: prefix}}}
"""


def test_the_journal_of_a_simulation_tells_what_happened_there() -> None:
    scenario, catalog = read_scenario(SCENARIO), open_catalog("sample")
    journals: list[SimulationJournal] = []
    clusters: list[VirtualCluster] = []

    def observe(cluster: VirtualCluster) -> None:
        clusters.append(cluster)
        journals.append(SimulationJournal(cluster))

    watched = run(scenario, catalog, "karpool", 0, observe=observe)
    assert watched.summary == run(scenario, catalog, "karpool", 0).summary
    timeline = Timeline(journals[0].lines)
    document = timeline.document()
    assert document.unreadable == 0
    assert document.totals.completed > 0
    gone = {name for command in document.commands if command.outcome == "completed" for name in command.nodes}
    assert gone.isdisjoint(node.name for node in clusters[0].store.nodes)
    assert all(command.started is not None for command in document.commands if command.outcome == "completed")
    assert msgspec.json.decode(msgspec.json.encode(document), type=TimelineDocument) == document
