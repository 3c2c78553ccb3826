"""A controller that lost one of its brakes is found out by the history of some schedules."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import inf
from typing import Any

import pytest
from tests.robustness import injector, stories
from tests.robustness.compactor_process import CompactorProcess
from tests.robustness.process import Process
from tests.robustness.replica import Replica
from tests.robustness.requests import RequestSender
from tests.robustness.schedule import run_schedule
from tests.robustness.virtual_clock import DoubtfulClock
from tests.tables import row, table

from karpool.controller import disruption_controller
from karpool.controller.disruption_controller import DisruptionController
from karpool.disruption.brakes import health, pause, rates, stops_of
from karpool.disruption.brakes.ledger import COUNTED
from karpool.disruption.brakes.rates import Rates
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.candidates import pods
from karpool.execution import commands, drain, rollback, termination
from karpool.execution.actions import Action, DeletePod, NoteDisruption, RemoveFinalizer
from karpool.execution.fresh_facts import FreshNode
from karpool.execution.paced_drains import DrainPace
from karpool.execution.reconcile_context import ReconcileContext
from karpool.execution.tickets import CommandInProgress
from karpool.model.node import Node
from karpool.model.objects import Objects
from karpool.model.pod import Pod

pytestmark = pytest.mark.slow

Spoil = Callable[[pytest.MonkeyPatch], None]


def _no_budgets(patch: pytest.MonkeyPatch) -> None:
    start = Replica.start

    def without(replica: Replica) -> None:
        template = replica.recorder.cluster.controller
        template.settings = replace(template.settings, ignore_budgets=True)
        start(replica)

    patch.setattr(Replica, "start", without)


def _no_pauses(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stops_of, "BRAKES", tuple(brake for brake in stops_of.BRAKES if brake is not pause.pauses))


def _no_health(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stops_of, "BRAKES", tuple(brake for brake in stops_of.BRAKES if brake is not health.unhealthy))


def _no_harm_check(patch: pytest.MonkeyPatch) -> None:
    # The pace of drains keeps most harm from being done: without it, somebody has to notice.
    _no_pace(patch)
    start = Replica.start

    def without(replica: Replica) -> None:
        template = replica.recorder.cluster.controller
        brakes = replace(template.settings.brakes, harmed_pods=0)
        template.settings = replace(template.settings, brakes=brakes)
        start(replica)

    patch.setattr(Replica, "start", without)


def _no_rates(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stories, "limit_rates", lambda *_: None)


def _no_limits_of_namespaces(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rates, "most_evictions", lambda _: None)


def _forgetful_ledgers(patch: pytest.MonkeyPatch) -> None:
    """A process counts only what happened since it began."""
    start, read = Replica.start, rates.rates_left
    began: list[datetime] = []

    def starts(replica: Replica) -> None:
        began[:] = [replica.queue.moment]
        start(replica)

    def forgets(objects: Objects, settings: BrakeSettings, now: datetime) -> Rates:
        counted = COUNTED
        with pytest.MonkeyPatch.context() as briefly:
            briefly.setattr(rates, "COUNTED", min(counted, max(now - began[0], timedelta(seconds=1))))
            return read(objects, settings, now)

    patch.setattr(Replica, "start", starts)
    patch.setattr(rates, "rates_left", forgets)
    patch.setattr(disruption_controller, "rates_left", forgets)


def _no_ledgers(patch: pytest.MonkeyPatch) -> None:
    execute = RequestSender.execute

    def forgets(sender: RequestSender, actions: Sequence[Action], **options: Any) -> None:
        tidied = [action for action in actions if not isinstance(action, NoteDisruption) or action.entry is not None]
        execute(sender, tidied, **options)

    patch.setattr(RequestSender, "execute", forgets)


def _no_fresh_facts(patch: pytest.MonkeyPatch) -> None:
    def cached(replica: Process, name: str) -> FreshNode:
        cache = replica.watches.cache
        return FreshNode(cache.nodes.get(name), tuple(pod for pod in cache.pods if pod.spec.node_name == name))

    patch.setattr(RequestSender, "_read_node", lambda sender, name: cached(sender._replica, name))
    patch.setattr(CompactorProcess, "_read", cached)


def _no_distrust(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Process, "doubt_watches", lambda *_: None)
    patch.setattr(injector, "SILENCE", inf)


def _gullible_clock(patch: pytest.MonkeyPatch) -> None:
    """The date of an answer is the time from then on."""
    for name in ("moment", "earliest", "latest"):
        patch.setattr(DoubtfulClock, name, property(lambda clock: clock._queue.moment + clock._told))
    patch.setattr(DoubtfulClock, "doubt", "")
    patch.setattr(DoubtfulClock, "_told", timedelta(0), raising=False)
    patch.setattr(DoubtfulClock, "answered", lambda clock, ahead: setattr(clock, "_told", timedelta(seconds=ahead)))


def _long_wait(patch: pytest.MonkeyPatch) -> None:
    """Commands with replacements wait until they time out: meanwhile pods come to what is rolled back then."""
    held = commands._held

    def holds(context: ReconcileContext, command: CommandInProgress) -> bool:
        return bool(command.ticket.expected) or held(context, command)

    patch.setattr(commands, "_held", holds)


def _no_look_at_replacements(patch: pytest.MonkeyPatch) -> None:
    """A rollback deletes its replacements, whoever uses them."""
    _long_wait(patch)
    patch.setattr(rollback, "_in_use", lambda *_: False)
    patch.setattr(rollback, "_surely_unused", lambda *_, **__: True)


def _no_lease(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replica, "may_write", lambda _: True)


def _no_protection(patch: pytest.MonkeyPatch) -> None:
    for module in (pods, commands, drain):
        patch.setattr(module, "protected_until", lambda _: None)


def _no_eviction_api(patch: pytest.MonkeyPatch) -> None:
    def delete(context: ReconcileContext, node: Node, pod: Pod, _lets_go: object, *, may_go: bool) -> None:
        if may_go and context.may_evict(pod):
            context.do(DeletePod(pod.key, pod.metadata.uid, node.name, 1))

    patch.setattr(drain, "_evict", delete)


def _no_drain(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(termination, "_drained", lambda *_: True)


def _no_cleaning(patch: pytest.MonkeyPatch) -> None:
    execute = RequestSender.execute

    def forgets(sender: RequestSender, actions: Sequence[Action], **options: Any) -> None:
        execute(sender, [action for action in actions if not isinstance(action, RemoveFinalizer)], **options)

    patch.setattr(RequestSender, "execute", forgets)


def _no_pace(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DrainPace, "lets_go", lambda *_: True)


def _no_decisions_later(patch: pytest.MonkeyPatch) -> None:
    decide = DisruptionController._decide

    def tires(controller: DisruptionController) -> Any:
        clock: Any = controller.clock
        return () if clock.recorder.queue.time > 600 else decide(controller)

    patch.setattr(DisruptionController, "_decide", tires)


MOST_SEEDS = 100
"""So many schedules, and the likely one, are enough to find each of these out."""


@table(
    row("budgets", spoil=_no_budgets, rule="Budget", likely=4),
    row("pauses", spoil=_no_pauses, rule="Stopped", likely=8),
    row("the health of the cluster", spoil=_no_health, rule="Stopped", likely=18),
    row("the harm check", spoil=_no_harm_check, rule="Harm", likely=50),
    row("rates", spoil=_no_rates, rule="Rate", likely=0),
    row("limits of namespaces", spoil=_no_limits_of_namespaces, rule="Rate", likely=2),
    row("the memory of ledgers at a restart", spoil=_forgetful_ledgers, rule="Rate", likely=20),
    row("tidy ledgers", spoil=_no_ledgers, rule="Ledger", likely=16),
    row("fresh facts", spoil=_no_fresh_facts, rule="DoNotDisrupt", likely=25),
    row("distrust of silent watches", spoil=_no_distrust, rule="Stopped", likely=37),
    row("doubt about the time", spoil=_gullible_clock, rule="UnexplainedDeletion", likely=17),
    row("a look at replacements", spoil=_no_look_at_replacements, rule="UnexplainedDeletion", likely=22),
    row("the lease", spoil=_no_lease, rule="Lease", likely=0),
    row("do-not-disrupt", spoil=_no_protection, rule="DoNotDisrupt", likely=6),
    row("the Eviction API", spoil=_no_eviction_api, rule="PodDisruptionBudget", likely=4),
    row("drains", spoil=_no_drain, rule="PodLost", likely=0),
    row("the pace of drains", spoil=_no_pace, rule="Pace", likely=9),
    row("the removal of finalizers", spoil=_no_cleaning, rule="LeftOver", likely=0),
    row("decisions after a while", spoil=_no_decisions_later, rule="Progress", likely=0),
)
def test_a_controller_without_it_is_found_out(
    spoil: Spoil, rule: str, likely: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one of the schedules that a sound controller passes; the likely one is only tried first."""
    spoil(monkeypatch)
    seeds = (likely, *range(MOST_SEEDS))
    assert any(rule in {violation.rule for violation in run_schedule(seed).violations} for seed in seeds)


def test_a_controller_whose_commands_only_wait_long_deletes_no_replacement_that_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On the schedule that finds out the one that does not look at replacements."""
    _long_wait(monkeypatch)
    assert "UnexplainedDeletion" not in {violation.rule for violation in run_schedule(22).violations}
