"""What people get to know of decisions: metrics, the journal, the log, and events on the objects concerned."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog

from karpool.controller.observer import DecisionObserver
from karpool.controller.store import ClusterStore
from karpool.disruption.command import Cause, Command
from karpool.disruption.context import Candidate
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.stay_reasons import why_it_stays
from karpool.execution.actions import Action, RecordEvent
from karpool.execution.rollback import ROLLED_BACK
from karpool.execution.tickets import Ticket, ticket_of
from karpool.model.labels import NODEPOOL
from karpool.model.nodepool import NodeClaimSpec
from karpool.model.reasons import Reason
from karpool.observability.metrics import Metrics
from karpool.operator.journal import Journal
from karpool.provisioning.provision import ProvisioningResult

_log = structlog.get_logger()
MOST_EVENTS: Final = 50
"""About how many nodes at most events say, after one pass, why they stay."""


class DecisionReporter(DecisionObserver):
    """Tells of everything that was decided; knows nothing that decisions rest on."""

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
    ) -> None:
        """A pass that found nothing is explained node by node every so often; one that found something always is."""
        self._store = store
        self._metrics = metrics
        self._journal = journal
        self._record = record
        self._clock = clock
        self._dry_run = dry_run
        self._explain_every = explain_every
        self._explained: datetime | None = None
        self._said: dict[str, tuple[str, ...]] = {}
        self._decided: tuple[Command, ...] = ()
        self._began = 0.0
        self._taken_back: set[str] = set()
        self._wanted: tuple[NodeClaimSpec, ...] = ()

    def looking(self) -> None:
        """Note when a look began."""
        self._began = time.perf_counter()

    # -- passes --------------------------------------------------------------------------------------------------

    def looked(self, look: DecisionPass, commands: Sequence[Command]) -> None:
        """Measure a pass, and explain it unless it only repeats one of a moment ago."""
        self._metrics.decision_pass(time.perf_counter() - self._began)
        now = self._clock()
        if self._is_news(tuple(commands), now):
            self._explained, self._decided = now, tuple(commands)
            self._explain(look, commands, now)

    def _is_news(self, commands: tuple[Command, ...], now: datetime) -> bool:
        if commands:
            return commands != self._decided  # a dry run decides the same again and again
        return self._explained is None or now - self._explained >= self._explain_every

    def _explain(self, look: DecisionPass, commands: Sequence[Command], now: datetime) -> None:
        chosen = {name for command in commands for name in command.nodes}
        stay = [one for one in _candidates(look) if one.name not in chosen]
        rejected = [(one.name, why_it_stays(look, one)) for one in stay]
        self._journal.decided(now, commands, rejected, dry_run=self._dry_run)
        self._metrics.rejections(
            rejections=Counter(reason.code for _, reasons in rejected for reason in reasons),
            eligible={str(Cause.UNDERUTILIZED): len(look.eligible())},
        )
        self._tell_nodes(rejected)
        for command in commands:
            _log.info("decided", **_summary(command), dry_run=self._dry_run)

    def _tell_nodes(self, rejected: list[tuple[str, tuple[Reason, ...]]]) -> None:
        """Say on nodes why they stay, when that is another reason than before."""
        changed = [(name, why) for name, why in rejected if self._said.get(name) != tuple(one.code for one in why)]
        self._said = {name: tuple(one.code for one in why) for name, why in rejected}
        for name, why in changed[:MOST_EVENTS]:
            self._record(RecordEvent("Node", name, "Unconsolidatable", _words(name, why[0])))

    # -- commands ------------------------------------------------------------------------------------------------

    def dropped(self, command: Command, reason: Reason) -> None:
        """A command no longer stood."""
        self._metrics.command_invalidated(str(command.method))
        self._journal.dropped(self._clock(), command, reason)
        _log.info("dropped", **_summary(command), code=reason.code, why=reason.message, about=reason.object)

    def began(self, command: Command) -> None:
        """A command begins; in a dry run none does."""
        if self._dry_run:
            return
        self._metrics.command_started(str(command.method), command.decision, command.savings)
        for replacement in command.replacements:
            self._metrics.claim_created(replacement.pool, str(command.cause))
        self._journal.begun(self._clock(), command)
        said = f"{command.cause}: goes by {command.method}, which saves {command.savings:.4g} $/h"
        for name in command.nodes:
            self._record(RecordEvent("Node", name, "DisruptionBegan", said))
        _log.info("began", **_summary(command))

    def acts(self, actions: Sequence[Action]) -> None:
        """Commands that are taken back are told of once each."""
        for action in actions:
            if isinstance(action, RecordEvent) and action.reason == ROLLED_BACK:
                ticket = self._ticket(action.name)
                if ticket is not None and ticket.id not in self._taken_back:
                    self._taken_back.add(ticket.id)
                    self._metrics.command_rolled_back(ticket.method, "replace" if ticket.replacements else "delete")
                    self._journal.rolled_back(self._clock(), ticket, action.message)
                    _log.warning("rolled back", command=ticket.id, nodes=list(ticket.nodes), why=action.message)

    def _ticket(self, claim: str) -> Ticket | None:
        held = self._store.claims.get(claim)
        return None if held is None else ticket_of(held)

    # -- provisioning --------------------------------------------------------------------------------------------

    def provisioned(self, found: ProvisioningResult) -> None:
        """Pods that wait were looked at; a dry run finds the same nodes again and again."""
        self._metrics.scheduling_pass(time.perf_counter() - self._began, unschedulable=len(found.unschedulable))
        wanted, before = tuple(claim.spec for claim in found.claims), self._wanted
        self._wanted = wanted if self._dry_run else ()
        if wanted and wanted == before:
            return
        self._journal.provisioned(self._clock(), found.claims, found.unschedulable)
        for claim in found.claims:
            pool = claim.metadata.labels.get(NODEPOOL, "")
            if not self._dry_run:
                self._metrics.claim_created(pool, "provisioned")
            _log.info("asked for a node", claim=claim.name, pool=pool, dry_run=self._dry_run)
        for key, reason in found.unschedulable:
            self._record(RecordEvent("Pod", key, "FailedScheduling", reason.message, "Warning"))


def _candidates(look: DecisionPass) -> list[Candidate]:
    nodes = look.context.snapshot.nodes
    return [look.context.candidate(row) for row, state in enumerate(nodes.states) if state is not None]


def _words(node: str, why: Reason) -> str:
    """A reason in an event on a node, with the object that it is about if that is another one."""
    about = "" if why.object in ("", f"Node {node}") else f"{why.object} "
    return f"{why.code}: {about}{why.message}"


def _summary(command: Command) -> dict[str, object]:
    return {
        "method": str(command.method),
        "cause": str(command.cause),
        "nodes": list(command.nodes),
        "replacements": [list(one.instance_types[:3]) for one in command.replacements],
        "savings_per_hour": command.savings,
    }
