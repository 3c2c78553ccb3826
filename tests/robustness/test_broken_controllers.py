"""A controller that lost one of its brakes is found out by the history of some schedules."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.robustness import schedule
from tests.robustness.replica import Replica
from tests.robustness.requests import RequestSender
from tests.robustness.schedule import run_schedule
from tests.robustness.test_schedules import SCHEDULES
from tests.tables import row, table

from karpool.controller.disruption_controller import DisruptionController
from karpool.disruption import pods
from karpool.disruption.brakes import pause, stops_of
from karpool.execution import commands, drain, termination
from karpool.execution.actions import Action, DeletePod, RemoveFinalizer
from karpool.execution.reconcile_context import ReconcileContext
from karpool.model.node import Node
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


def _no_rates(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(schedule, "limit_rates", lambda *_: None)


def _no_lease(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replica, "may_write", lambda _: True)


def _no_protection(patch: pytest.MonkeyPatch) -> None:
    for module in (pods, commands, drain):
        patch.setattr(module, "protected_until", lambda _: None)


def _no_eviction_api(patch: pytest.MonkeyPatch) -> None:
    def delete(context: ReconcileContext, node: Node, pod: Pod) -> None:
        if pods.evictable(pod, context.now) and context.may_evict(pod):
            context.do(DeletePod(pod.key, pod.metadata.uid, node.name, 1))

    patch.setattr(drain, "_evict", delete)


def _no_drain(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(termination, "_drained", lambda *_: True)


def _no_cleaning(patch: pytest.MonkeyPatch) -> None:
    execute = RequestSender.execute

    def forgets(sender: RequestSender, actions: Sequence[Action], **options: Any) -> None:
        execute(sender, [action for action in actions if not isinstance(action, RemoveFinalizer)], **options)

    patch.setattr(RequestSender, "execute", forgets)


def _no_decisions_later(patch: pytest.MonkeyPatch) -> None:
    decide = DisruptionController._decide

    def tires(controller: DisruptionController) -> Any:
        clock: Any = controller.clock
        return () if clock.recorder.queue.time > 600 else decide(controller)

    patch.setattr(DisruptionController, "_decide", tires)


@table(
    row("budgets", spoil=_no_budgets, rule="Budget", likely=6),
    row("pauses", spoil=_no_pauses, rule="Stopped", likely=2),
    row("rates", spoil=_no_rates, rule="Rate", likely=5),
    row("the lease", spoil=_no_lease, rule="Lease", likely=1),
    row("do-not-disrupt", spoil=_no_protection, rule="DoNotDisrupt", likely=0),
    row("the Eviction API", spoil=_no_eviction_api, rule="PodDisruptionBudget", likely=2),
    row("drains", spoil=_no_drain, rule="PodLost", likely=0),
    row("the removal of finalizers", spoil=_no_cleaning, rule="LeftOver", likely=0),
    row("decisions after a while", spoil=_no_decisions_later, rule="Progress", likely=0),
)
def test_a_controller_without_it_is_found_out(
    spoil: Spoil, rule: str, likely: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one of the schedules that a sound controller passes; the likely one is only tried first."""
    spoil(monkeypatch)
    seeds = (likely, *range(SCHEDULES))
    assert any(rule in {violation.rule for violation in run_schedule(seed).violations} for seed in seeds)
