"""Reports decisions: in metrics, the journal, the log, and Events on the objects."""

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog

from karpool.catalog.instance_types import Catalog
from karpool.controller.observer import DecisionObserver
from karpool.controller.store import ClusterStore
from karpool.disruption.brakes.stop import Stop, Stops
from karpool.disruption.command import Cause, Command
from karpool.disruption.decide import Decision
from karpool.disruption.fleet_search.living_search import TargetEnd
from karpool.disruption.fleet_search.target import Answer
from karpool.disruption.policies import Verdict
from karpool.disruption.reasons import ReasonCode
from karpool.execution.actions import Kind, RecordEvent
from karpool.execution.state import RolledBack, WaitOver
from karpool.execution.tickets import REPLACES, Ticket, commands_in_progress
from karpool.model.labels import MIN_VALUES_RELAXED, NODEPOOL
from karpool.model.nodepool import NodeClaim, NodeClaimSpec
from karpool.model.reasons import Reason
from karpool.observability.metrics import Metrics
from karpool.operator.journal import Journal
from karpool.operator.meters.bound_meter import BoundMeter
from karpool.provisioning.provision import ProvisioningResult
from karpool.report.journals.journal_records import node_facts

_log = structlog.get_logger()
_MOST_FAILED: Final = 1_000
"""How many failed commands are remembered, so that none is told twice."""
MOST_EVENTS: Final = 50
"""How many nodes get an Event with their reason after one pass, at most."""


class DecisionReporter(DecisionObserver):
    def __init__(
        self,
        store: ClusterStore,
        metrics: Metrics,
        journal: Journal,
        *,
        record: Callable[[RecordEvent], None],
        clock: Callable[[], datetime],
        dry_run: bool = False,
        explain_every: timedelta = timedelta(0),
        bound: BoundMeter | None = None,
        catalog: Callable[[], Catalog] | None = None,
    ) -> None:
        """A pass without a command is explained every `explain_every`; one with a command always is."""
        self._store = store
        self._metrics = metrics
        self._journal = journal
        self._record = record
        self._clock = clock
        self._dry_run = dry_run
        self._explain_every = explain_every
        self._catalog = catalog
        self._bound = bound or BoundMeter(metrics, clock)
        self._explained: datetime | None = None
        self._reported: dict[str, tuple[str, ...]] = {}
        self._decided: tuple[Command, ...] = ()
        self._pass_started = 0.0
        self._failed: deque[str] = deque(maxlen=_MOST_FAILED)
        self._requested: tuple[NodeClaimSpec, ...] = ()
        self._braked: dict[tuple[str, str | None, str], Stop] = {}

    def pass_started(self) -> None:
        self._pass_started = time.perf_counter()

    def wants_reasons(self, commands: Sequence[Command]) -> bool:
        if commands:
            return tuple(commands) != self._decided  # a dry run repeats its decisions
        return self._explained is None or self._clock() - self._explained >= self._explain_every

    def wants_bound(self, commands: Sequence[Command]) -> bool:
        """Whether to measure the lower bound: now and then, and never while there is something to do."""
        return not commands and self._bound.ask()

    def pass_finished(self, decision: Decision) -> None:
        """Measure a pass, and report what it decided unless it repeats the last one."""
        self._metrics.decision_pass(time.perf_counter() - self._pass_started)
        self._report_brakes(decision.stops)
        for end in decision.ended:
            self._report_end(end)
        if decision.problem is not None:
            self._bound.measure(decision.problem)
        self._report_verdicts(decision)
        if not self.wants_reasons(decision.commands):
            return
        self._explained, self._decided = self._clock(), decision.commands
        rejected = list(decision.reasons.items())
        if self._catalog is not None:
            self._journal.nodes_known(self._explained, node_facts(self._store.nodes.listed(), self._catalog()))
        self._journal.decided(self._explained, decision.commands, rejected, dry_run=self._dry_run)
        self._metrics.rejections(
            rejections=Counter(reason.code for _, reasons in rejected for reason in reasons),
            eligible={str(Cause.UNDERUTILIZED): decision.eligible},
        )
        self._record_reasons(rejected)
        for command in decision.commands:
            _log.info("command decided", **_summary(command), dry_run=self._dry_run)

    def _report_verdicts(self, decision: Decision) -> None:
        """Count what pools said of moves, and tell whoever looks at a node that a Balanced pool approved; each once."""
        repeated = self._dry_run and decision.commands == self._decided
        for verdict in decision.verdicts:
            if verdict.approved and repeated:
                continue
            self._metrics.move_judged(verdict.pool, verdict.policy, approved=verdict.approved, score=verdict.score)
            if verdict.approved and verdict.score is not None:
                for kind, name in self._concerned(verdict):
                    self._record(RecordEvent(kind, name, "ConsolidationApproved", verdict.told))

    def _concerned(self, verdict: Verdict) -> list[tuple[Kind, str]]:
        """The objects that a move is about: one node and its NodeClaim, or of several nodes their pool."""
        if len(verdict.nodes) != 1:
            return [("NodePool", verdict.pool)]
        (node,) = verdict.nodes
        return [("Node", node), *(("NodeClaim", name) for name in self._claims_of(node))]

    def _claims_of(self, node: str) -> list[str]:
        return [claim.name for claim in self._store.claims if claim.status.node_name == node]

    def _report_brakes(self, stops: Stops) -> None:
        """Report the brakes that took hold since the last pass, and those that let go; their sentences may change."""
        # What holds single nodes is their own reason, and was told when their command failed.
        told = [stop for stop in stops if stop.node is None]
        before, self._braked = self._braked, {(stop.code, stop.pool, stop.object): stop for stop in told}
        self._metrics.brakes((stop.code, stop.pool or "") for stop in stops)
        for key in before.keys() - self._braked.keys():
            self._report_brake(before[key], holds=False)
        for key in self._braked.keys() - before.keys():
            self._report_brake(self._braked[key], holds=True)

    def _report_brake(self, stop: Stop, *, holds: bool) -> None:
        self._journal.braked(self._clock(), stop, holds=holds)
        say, event = (_log.warning, "brake holds") if holds else (_log.info, "brake released")
        say(event, code=stop.code, pool=stop.pool, why=stop.message, about=stop.object)
        pools = [pool.name for pool in self._store.pools.listed()] if stop.pool is None else [stop.pool]
        for name in pools:
            about = "" if stop.object == f"NodePool {name}" else f"{stop.object}: "
            if holds:
                self._record(RecordEvent("NodePool", name, stop.code, f"{about}{stop.message}", "Warning"))
            else:
                self._record(RecordEvent("NodePool", name, f"{stop.code}Ended", f"no longer: {about}{stop.message}"))

    def search_finished(self, answer: Answer | None, seconds: float) -> None:
        """Report a search, and the target that it found."""
        self._metrics.search(seconds)
        target = None if answer is None else answer.target
        if target is None:
            self._metrics.target_price(math.nan)
            _log.info("search finished", seconds=round(seconds, 3), found=False)
            return
        self._metrics.target_price(target.price)
        _log.info(
            "search finished",
            seconds=round(seconds, 3),
            found=True,
            price_per_hour=target.price,
            savings_per_hour=target.promised,
            nodes=len(target.going),
            new_nodes=len(target.coming),
        )

    def _report_end(self, end: TargetEnd) -> None:
        self._metrics.target_ended(end.ending)
        _log.info(
            "target ended",
            code=str(end.ending),
            why=end.message,
            nodes_left=len(end.target.going),
            new_nodes_left=len(end.target.coming),
            found=end.target.found.isoformat(),
        )

    def _record_reasons(self, rejected: list[tuple[str, tuple[Reason, ...]]]) -> None:
        codes = {name: tuple(reason.code for reason in reasons) for name, reasons in rejected}
        changed = [(name, reasons) for name, reasons in rejected if self._reported.get(name) != codes[name]]
        self._reported = codes
        for name, reasons in changed[:MOST_EVENTS]:
            self._record(RecordEvent("Node", name, "Unconsolidatable", _event_message(name, reasons[0])))
            for event in _repair_events(name, self._claims_of(name), reasons):
                self._record(event)

    def command_dropped(self, command: Command, reason: Reason, in_a_row: int) -> None:
        self._metrics.command_invalidated(str(command.method))
        self._journal.dropped(self._clock(), command, reason, in_a_row)
        why = {"code": reason.code, "why": reason.message, "about": reason.object, "in_a_row": in_a_row}
        _log.info("command dropped", **_summary(command), **why)

    def command_started(self, command: Command, identity: str) -> None:
        """Report a command that starts; in a dry run none does."""
        if self._dry_run:
            return
        self._metrics.command_started(str(command.method), command.decision, self._pools_of(command))
        self._journal.started(self._clock(), command, identity)
        if command.terminate_first is not None:
            for pool in self._pools_of(command):
                self._metrics.terminated_first(pool, str(command.method), command.terminate_first)
        if command.reboot:
            for name in command.nodes:
                self._record(
                    RecordEvent("Node", name, "DisruptionBegan", f"{command.cause}: rebooted: {command.reboot}")
                )
            _log.info("command started", **_summary(command))
            return
        instead = f" in favour of {command.launched}" if command.replacements else ""
        message = f"{command.cause}: removed by {command.method}{instead}, which saves {command.savings:.4g} $/h"
        for name in command.nodes:
            self._record(RecordEvent("Node", name, "DisruptionBegan", message))
        _log.info("command started", **_summary(command))

    def _pools_of(self, command: Command) -> list[str]:
        nodes = (self._store.nodes.get(name) for name in command.nodes)
        return sorted({"" if node is None else node.metadata.labels.get(NODEPOOL, "") for node in nodes})

    def command_completed(self, ticket: Ticket) -> None:
        """Report a command whose nodes are gone: only now its savings are real."""
        if self._dry_run:
            return
        self._metrics.command_completed(ticket.savings or 0.0)
        self._journal.completed(self._clock(), ticket)
        seconds = max(0.0, (self._clock() - ticket.created).total_seconds())
        _log.info("command completed", command=ticket.id, seconds=round(seconds, 1), savings_per_hour=ticket.savings)

    def claim_created(self, claim: NodeClaim) -> None:
        """Count a NodeClaim that the API server has created, with the cause of the command that needs it."""
        identity = claim.metadata.annotations.get(REPLACES)
        tickets = (command.ticket for command in commands_in_progress(self._store.claims) if identity is not None)
        cause = next((ticket.cause for ticket in tickets if ticket.id == identity), None)
        reason = "provisioned" if identity is None else cause or "replaced"
        relaxed = claim.metadata.annotations.get(MIN_VALUES_RELAXED) == "true"
        self._metrics.claim_created(claim.metadata.labels.get(NODEPOOL, ""), reason, relaxed=relaxed)

    def command_failed(self, command: RolledBack) -> None:
        """Report a failed command: each once, however often its rollback is tried."""
        ticket, failure = command
        if ticket.id in self._failed:
            return
        self._failed.append(ticket.id)
        self._metrics.command_rolled_back(ticket.method, "replace" if ticket.replacements else "delete")
        self._journal.rolled_back(self._clock(), ticket, failure)
        _log.warning(
            "command rolled back",
            command=ticket.id,
            nodes=list(ticket.nodes),
            code=failure.cause,
            why=failure.message,
            in_a_row=failure.tries,
        )

    def wait_over(self, wait: WaitOver) -> None:
        """Report a drain that goes on without pods that were waited for."""
        self._journal.waited(self._clock(), wait)
        _log.warning("drain goes on", command=wait.command, node=wait.node, about=wait.object, why=wait.message)

    def pods_provisioned(self, result: ProvisioningResult) -> None:
        """Report nodes for pending pods, and pods without a place; a dry run repeats its requests."""
        self._metrics.scheduling_pass(time.perf_counter() - self._pass_started, unschedulable=len(result.unschedulable))
        requested, previous = tuple(claim.spec for claim in result.claims), self._requested
        self._requested = requested if self._dry_run else ()
        if requested and requested == previous:
            return
        self._journal.provisioned(self._clock(), result.claims, result.unschedulable)
        for claim in result.claims:
            pool = claim.metadata.labels.get(NODEPOOL, "")
            _log.info("node requested", claim=claim.name, pool=pool, dry_run=self._dry_run)
        for key, reason in result.unschedulable:
            self._record(RecordEvent("Pod", key, "FailedScheduling", reason.message, "Warning"))


def _repair_events(node: str, claims: Sequence[str], reasons: Sequence[Reason]) -> Iterator[RecordEvent]:
    """Events of a node, and of its NodeClaims, that would be repaired, but for what a person may want to change."""
    about: list[tuple[Kind, str]] = [("Node", node), *(("NodeClaim", claim) for claim in claims)]
    for reason in reasons:
        if reason.code == ReasonCode.TOO_MANY_UNHEALTHY:
            yield from (RecordEvent(*entry, "NodeRepairBlocked", reason.message, "Warning") for entry in about)
            kind, _, pool = reason.object.partition(" ")
            if kind == "NodePool":
                yield RecordEvent("NodePool", pool, "NodeRepairBlocked", reason.message, "Warning")
        elif reason.code in (ReasonCode.NODE_DO_NOT_REPAIR, ReasonCode.DRAIN_BOUND_REQUIRED):
            yield from (RecordEvent(*entry, "DisruptionBlocked", _event_message(node, reason)) for entry in about)


def _event_message(node: str, reason: Reason) -> str:
    about = "" if reason.object in ("", f"Node {node}") else f"{reason.object} "
    return f"{reason.code}: {about}{reason.message}"


def _summary(command: Command) -> dict[str, object]:
    return {
        "method": str(command.method),
        "cause": str(command.cause),
        "nodes": list(command.nodes),
        "replacements": [list(replacement.instance_types[:3]) for replacement in command.replacements],
        "savings_per_hour": command.savings,
    }
