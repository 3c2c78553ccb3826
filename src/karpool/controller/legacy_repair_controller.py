"""Legacy repair: looks for unhealthy nodes at every poll, and deletes their NodeClaims with a deadline of now."""

from karpool.controller.session import Session
from karpool.disruption.command import Cause
from karpool.disruption.repair.legacy import LegacyRepair, legacy_repairs
from karpool.execution.actions import Action, Annotate, DeleteClaim, RecordEvent, SetClaimCondition
from karpool.execution.conditions import DISRUPTION_REASON
from karpool.execution.deadlines import deadline_of, written
from karpool.model.labels import TERMINATION_TIMESTAMP


class LegacyRepairController:
    """Repairs by force, as long as brakes let it; it has no memory."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def start(self) -> None:
        """Look now and at every poll, if that is wanted."""
        if self.session.settings.legacy_repair:
            self._look()

    def _look(self) -> None:
        session, policies = self.session, self.session.settings.repair
        if not session.alive or policies is None:
            return
        now = session.clock.earliest
        for repair in legacy_repairs(policies, session.store.but_pods(), session.stops(now), now):
            session.execute(self._actions(repair), in_order=True)
        session.clock.after(session.intervals.poll, self._look)

    def _actions(self, repair: LegacyRepair) -> list[Action]:
        """The deadline comes before the deletion, so that the drain knows it from the start."""
        claim, now, known = repair.claim, self.session.clock.moment, deadline_of(repair.claim)
        message = f"condition {repair.condition.type} is {repair.condition.status}"
        actions: list[Action] = []
        if known is None or now < known:
            actions.append(Annotate("NodeClaim", claim.name, TERMINATION_TIMESTAMP, written(now)))
        return [
            *actions,
            SetClaimCondition(claim.name, DISRUPTION_REASON, "True", Cause.UNHEALTHY, message),
            DeleteClaim(claim.name, claim.metadata.uid),
            RecordEvent("Node", repair.node.name, "DisruptionTerminating", message),
        ]
