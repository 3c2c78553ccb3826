"""What is reported of decisions: every pass is measured, explained when there is something new to say."""

import json
import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs
from tests.disruption.repair.policies import POLICIES, fault
from tests.disruption.scenarios import CATALOG, NOW, POOL, cluster, node, pool_of
from tests.disruption.test_living_search import Living, wasteful
from tests.disruption.test_several_new_nodes import SIZES
from tests.factories import node_claim

from karpool.cluster.snapshot import Snapshot
from karpool.controller.store import ClusterStore
from karpool.disruption.brakes.failures import FailedCommand
from karpool.disruption.brakes.stop import Stop, Stops
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.disruption.command import Cause, Command, Method, Replacement, TerminateFirst
from karpool.disruption.decide import Decision, decide
from karpool.disruption.policies_in_force import Policies
from karpool.disruption.settings import PREFIX, DisruptionSettings
from karpool.execution.actions import RecordEvent
from karpool.execution.state import RolledBack
from karpool.execution.tickets import COMMAND, REPLACES, Ticket
from karpool.model.reasons import Reason
from karpool.model.requirements import Requirements
from karpool.observability.metrics import Metrics
from karpool.operator.decision_reporter import DecisionReporter
from karpool.operator.journal import Journal, JournalSettings
from karpool.operator.meters.bound_meter import BoundMeter, Work, in_a_thread
from karpool.optimization.programme import SolverError
from karpool.packing.engine import Engine
from karpool.packing.options import Options

REPLACE = Command(
    method=Method.SINGLE_NODE,
    cause=Cause.UNDERUTILIZED,
    nodes=("a",),
    replacements=(Replacement("default", Requirements(()), ("small",), "on-demand", ("z1",), 0.1),) * 2,
    price=0.4,
)
TICKET = Ticket("c1", NOW, "SingleNodeConsolidation", "Underutilized", ("old",), ("new",), committed=True, savings=0.2)


def decision(reporter: DecisionReporter) -> Decision:
    """A pass over one node that is too full to go."""
    objects = cluster([node("a", "tiny", pods=[{"cpu": "900m"}])], pools=(POOL,))
    engine = Engine(Snapshot(objects), CATALOG, Options())
    policies = Policies({POOL.name: POOL}, PdbLimits(()))
    return decide(engine, policies, NOW, explain=reporter.wants_reasons, bound=reporter.wants_bound)


class Reported:
    """A reporter, its clock, and all that it reported."""

    def __init__(self, path: Path | None = None, *, dry_run: bool = False) -> None:
        self.metrics = Metrics()
        self.events: list[RecordEvent] = []
        self.now = NOW
        self.beside: list[Work] = []
        self.store = ClusterStore()
        self.reporter = DecisionReporter(
            self.store,
            self.metrics,
            Journal(JournalSettings(path=path)),
            record=self.events.append,
            clock=lambda: self.now,
            dry_run=dry_run,
            explain_every=timedelta(minutes=1),
            bound=BoundMeter(self.metrics, lambda: self.now, beside=self.beside.append),
        )

    def make_pass(self, *commands: Command, after: float = 0.0, stops: Sequence[Stop] = ()) -> None:
        """Make a pass so many seconds later, while brakes hold."""
        self.now += timedelta(seconds=after)
        self.reporter.pass_started()
        decided = decision(self.reporter)
        assert decided.commands == ()
        self.reporter.pass_finished(replace(decided, commands=commands, stops=Stops(stops)))

    def created(self, reason: str) -> float:
        """How many NodeClaims of the pool `default` were created for a reason."""
        labels = {"nodepool": "default", "reason": reason, "min_values_relaxed": "false"}
        return self.value("nodeclaims_created_total", **labels)

    def value(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"karpool_{name}", labels) or 0.0


def test_every_pass_is_measured_and_a_fruitless_one_explained_once_a_minute() -> None:
    reported = Reported()
    reported.make_pass()
    assert sum(_rejections(reported).values()) >= 1
    assert [(event.kind, event.name, event.reason) for event in reported.events] == [("Node", "a", "Unconsolidatable")]
    reported.metrics.rejections(rejections={}, eligible={})
    reported.make_pass(after=10)
    assert _rejections(reported) == {}
    reported.make_pass(after=50)
    assert _rejections(reported) != {}
    assert reported.value("decision_seconds_count") == 3


def test_a_dry_run_that_decides_the_same_again_tells_it_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    reported = Reported(path, dry_run=True)
    reported.make_pass(REPLACE)
    reported.make_pass(REPLACE, after=10)
    assert path.read_text().count('"kind":"Decision"') == 1
    assert reported.value("decision_seconds_count") == 2


def test_a_command_that_starts_has_neither_made_nor_saved_anything() -> None:
    reported = Reported()
    reported.reporter.command_started(REPLACE, "c1")
    assert reported.created("underutilized") == 0
    assert reported.value("saved_dollars_per_hour_total") == 0
    assert [event.reason for event in reported.events] == ["DisruptionBegan"]


def test_claims_are_counted_when_the_api_server_has_them_for_the_reason_of_their_command() -> None:
    reported = Reported()
    old = node_claim("old", annotations={COMMAND: msgspec.json.encode(TICKET).decode()})
    reported.store.claims.put(old)
    reported.reporter.claim_created(node_claim("new", annotations={REPLACES: TICKET.id}))
    reported.reporter.claim_created(node_claim("other"))
    assert reported.created("underutilized") == 1
    assert reported.created("provisioned") == 1


def test_savings_count_when_the_last_node_of_a_command_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    reported = Reported(path)
    reported.reporter.command_completed(TICKET)
    assert reported.value("saved_dollars_per_hour_total") == 0.2
    record = msgspec.json.decode(path.read_text())
    assert (record["kind"], record["id"], record["savingsPerHour"]) == ("Completed", TICKET.id, 0.2)


def test_a_dry_run_begins_nothing() -> None:
    reported = Reported(dry_run=True)
    reported.reporter.command_started(REPLACE, "c1")
    assert reported.created("underutilized") == 0
    assert reported.events == []


BALANCED = pool_of(policy="Balanced", budgets=["100%"])


def balanced_pass(reported: Reported, *, pods: int) -> Decision:
    """A pass over two nodes of a Balanced pool, of which the one with this many pods can go."""
    objects = cluster([node("a", pods=pods), node("b", "large", pods=3)], pools=(BALANCED,))
    for claim in objects.node_claims:
        reported.store.claims.put(claim)
    policies = Policies({BALANCED.name: BALANCED}, PdbLimits(()), DisruptionSettings(search=PREFIX))
    found = decide(Engine(Snapshot(objects), CATALOG, Options()), policies, NOW)
    reported.reporter.pass_finished(found)
    return found


def test_a_move_that_a_balanced_pool_approves_is_counted_and_told_on_its_node_and_claim() -> None:
    reported = Reported()
    found = balanced_pass(reported, pods=1)
    assert [command.nodes for command in found.commands] == [("a",)]
    labels = {"nodepool": "default", "policy": "Balanced"}
    assert reported.value("consolidation_moves_total", decision="approved", **labels) == 1
    assert reported.value("consolidation_moves_total", decision="rejected", **labels) == 0
    told = [(event.kind, event.name) for event in reported.events if event.reason == "ConsolidationApproved"]
    assert told == [("Node", "a"), ("NodeClaim", "a")]
    message = next(event.message for event in reported.events if event.reason == "ConsolidationApproved")
    # 0.2 of 0.6 $/h for 2 of 6
    assert message.startswith("score 1.00, at least 0.50 (k = 2): saves 33.3 %")
    reported.reporter.pass_finished(found)
    reported.reporter.command_dropped(found.commands[0], Reason("Changed", "has changed"), 1)
    assert reported.value("consolidation_moves_total", decision="approved", **labels) == 2


def test_the_lower_bound_is_measured_beside_every_few_minutes() -> None:
    reported = Reported()
    assert math.isnan(reported.value("cluster_price_lower_bound"))
    reported.make_pass()
    reported.make_pass(after=600)
    (work,) = reported.beside
    work()
    assert 0 <= reported.value("cluster_price_lower_bound") <= 0.05
    reported.make_pass(after=60)
    reported.make_pass(after=300)
    assert len(reported.beside) == 2


def test_no_bound_is_asked_for_while_there_is_something_to_do() -> None:
    assert not Reported().reporter.wants_bound([REPLACE])


def test_a_problem_that_has_no_solution_leaves_the_last_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise SolverError("the linear programme ended as Unknown")

    reported = Reported()
    reported.metrics.price_lower_bound(7.0)
    monkeypatch.setattr("karpool.optimization.bound.lower_bound", fail)
    reported.make_pass()
    with capture_logs() as logged:
        reported.beside[0]()
    assert reported.value("cluster_price_lower_bound") == 7.0
    assert [entry["event"] for entry in logged] == ["no lower bound of the cluster's price"]
    assert reported.reporter.wants_bound([]) is False
    reported.now += timedelta(minutes=5)
    assert reported.reporter.wants_bound([]) is True


def test_a_thread_measures_by_itself() -> None:
    done = threading.Event()
    in_a_thread(done.set)
    assert done.wait(10)


def _rejections(reported: Reported) -> dict[str, float]:
    families = {family.name: family for family in reported.metrics.registry.collect()}
    return {sample.labels["code"]: sample.value for sample in families["karpool_rejections"].samples}


def test_searches_and_the_ends_of_targets_are_reported() -> None:
    reported, living = Reported(), Living(wasteful())
    request = living.asked()
    answer = request.run()
    assert answer.target is not None
    assert math.isnan(reported.value("search_target_price"))
    with capture_logs() as logs:
        reported.reporter.search_finished(answer, 0.5)
    assert reported.value("search_seconds_count") == 1
    assert reported.value("search_target_price") == pytest.approx(answer.target.price)
    assert [(line["event"], line["nodes"]) for line in logs] == [("search finished", len(answer.target.going))]
    living.search.answered(answer, NOW)
    living.become([node("d", "c8", pods=[{"cpu": 7}], catalog=SIZES)])
    with capture_logs() as logs:
        reported.reporter.pass_finished(living.decide())
    assert ("target ended", "reached") in [(line["event"], line.get("code")) for line in logs]
    assert math.isnan(reported.value("search_target_price"))


PAUSE = Stop("Paused", "is paused", "NodePool default", "default")


def test_a_brake_is_reported_when_it_takes_hold_and_when_it_lets_go(tmp_path: Path) -> None:
    reported = Reported(tmp_path / "journal")
    with capture_logs() as logs:
        for stops in ([PAUSE], [PAUSE._replace(message="is paused, still")], []):
            reported.make_pass(after=10, stops=stops)
            assert reported.value("brakes", brake="Paused", nodepool="default") == len(stops)
    lines = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    braked = [(line["nodePool"], line["brake"], line["holds"]) for line in lines if line["kind"] == "Brake"]
    assert braked == [("default", "Paused", True), ("default", "Paused", False)]
    assert [entry["event"] for entry in logs if "brake" in entry["event"]] == ["brake holds", "brake released"]
    events = [(event.name, event.reason, event.message) for event in reported.events if event.kind == "NodePool"]
    assert events == [
        ("default", "Paused", "is paused"),
        ("default", "PausedEnded", "no longer: is paused, still"),
    ]


def test_a_brake_on_everything_is_an_event_of_every_pool() -> None:
    reported = Reported()
    for name in ("a", "b"):
        reported.store.pools.put(pool_of(name))
    reported.make_pass(stops=[Stop("ClusterUnhealthy", "4 of 8 nodes are not ready", "Cluster")])
    events = [(event.name, event.message) for event in reported.events if event.reason == "ClusterUnhealthy"]
    assert events == [("a", "Cluster: 4 of 8 nodes are not ready"), ("b", "Cluster: 4 of 8 nodes are not ready")]
    assert reported.value("brakes", brake="ClusterUnhealthy", nodepool="") == 1


def _failed(number: int) -> RolledBack:
    method, cause = "SingleNodeConsolidation", "Underutilized"
    ticket = Ticket(f"c{number}", NOW, method, cause, nodes=("a",), replacements=("r",))
    refused = FailedCommand(command=ticket.id, cause="ReplacementRefused", at=NOW, message="quota", tries=number)
    return RolledBack(ticket, refused)


def test_every_failed_command_is_counted_logged_and_journalled_and_none_twice(tmp_path: Path) -> None:
    reported = Reported(tmp_path / "journal")
    with capture_logs() as logs:
        for number in (1, 1, 2, 3, 3):
            reported.now += timedelta(seconds=26)
            reported.reporter.command_failed(_failed(number))
    labels = {"decision": "replace", "reason": "underutilized", "consolidation_type": "single"}
    assert reported.value("voluntary_disruption_queue_failures_total", **labels) == 3
    lines = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    assert [(line["id"], line["cause"], line["inARow"]) for line in lines] == [
        ("c1", "ReplacementRefused", 1),
        ("c2", "ReplacementRefused", 2),
        ("c3", "ReplacementRefused", 3),
    ]
    assert [entry["why"] for entry in logs] == ["quota"] * 3


def test_a_brake_on_single_nodes_is_in_the_metrics_and_no_event_of_the_pool() -> None:
    reported = Reported()
    reported.make_pass(stops=[Stop("CommandFailed", "is left alone", "Node a", "default", node="a")])
    assert reported.value("brakes", brake="CommandFailed", nodepool="default") == 1
    assert [event for event in reported.events if event.kind == "NodePool"] == []


def test_a_pool_that_is_too_unhealthy_to_be_repaired_says_so_in_events() -> None:
    reported = Reported()
    broken = [node(name, pods=1, conditions=[fault("Broken", NOW - timedelta(hours=1))]) for name in "ab"]
    quiet = pool_of(consolidate_after="Never")
    objects = cluster(broken, pools=(quiet,))
    reported.store.claims.put(objects.node_claims[0])
    engine = Engine(Snapshot(objects), CATALOG, Options())
    policies = Policies({quiet.name: quiet}, PdbLimits(()), DisruptionSettings(repair=POLICIES))
    reported.reporter.pass_started()
    made = decide(engine, policies, NOW, explain=reported.reporter.wants_reasons)
    reported.reporter.pass_finished(made)
    blocked = {(event.kind, event.name) for event in reported.events if event.reason == "NodeRepairBlocked"}
    claim = objects.node_claims[0].name
    assert blocked == {("Node", "a"), ("NodeClaim", claim), ("Node", "b"), ("NodePool", "default")}


def test_a_node_that_goes_first_is_counted_with_why() -> None:
    reported = Reported()
    first = Command(Method.REPAIR, Cause.UNHEALTHY, ("a",), terminate_first=TerminateFirst.STATIC_AT_LIMIT)
    reported.reporter.command_started(first, "c1")
    labels = {"nodepool": "", "reason": "unhealthy", "terminate_first_reason": "static-at-limit"}
    name = "karpool_voluntary_disruption_terminate_first_decisions_total"
    assert reported.metrics.registry.get_sample_value(name, labels) == 1.0
    reported.reporter.command_started(Command(Method.REPAIR, Cause.UNHEALTHY, ("a",), reboot="it hangs"), "c2")
    assert reported.events[-1].message == "Unhealthy: rebooted: it hangs"
