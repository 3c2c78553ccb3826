"""What policies say of one node: which have waited for long enough, and the one decision that they come to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from karpool.cluster.nodes import StateNode
from karpool.disruption.command import Cause
from karpool.disruption.reasons import ReasonCode, clock
from karpool.disruption.repair.history import reboots_too_often
from karpool.disruption.repair.policies import RepairAction, RepairPolicies, RepairPolicy
from karpool.model.nodepool import REBOOTING
from karpool.model.reasons import Reason
from karpool.wire.objects import Condition, condition

_NEVER: Final = datetime.max.replace(tzinfo=UTC)
_RANK: Final = timedelta(minutes=30)
"""So long a wait counts as much as the next higher priority."""


class UnhealthyCondition(NamedTuple):
    """A condition of a node that falls under a policy, and when it has been tolerated for long enough."""

    policy: RepairPolicy
    condition: Condition
    due: datetime


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is to be done about a node, and why."""

    action: RepairAction
    condition: Condition
    due: datetime
    """Since when."""
    drain_bound: timedelta | None
    """The least time that a policy leaves pods to leave; None if none says."""
    score: float
    """The node with the highest comes first."""
    escalated: bool = False
    """Whether it is replaced because reboots did not help."""

    @property
    def reboots(self) -> bool:
        """Whether the node is rebooted, not replaced."""
        return self.action is RepairAction.REBOOT

    @property
    def told(self) -> str:
        """The condition in words."""
        reason = f" ({self.condition.reason})" if self.condition.reason else ""
        return f"condition {self.condition.type} is {self.condition.status}{reason}"

    def reason(self, node: str, now: datetime) -> Reason:
        """Why the node is repaired."""
        again = ", and it was rebooted often enough" if self.escalated else ""
        message = f"{self.told}, which was tolerated until {clock(self.due, now)}{again}"
        return Reason(Cause.UNHEALTHY, message, f"Node {node}")


def findings(policies: RepairPolicies, state: StateNode) -> tuple[UnhealthyCondition, ...]:
    """Every condition of a node that falls under a policy."""
    node = state.node
    if node is None:
        return ()
    ended = _reboot_ended(state)
    return tuple(
        UnhealthyCondition(
            policy, entry, _due(policy, entry.last_transition_time, node.metadata.creation_timestamp, ended)
        )
        for entry in node.status.conditions
        for policy in policies.matching(entry)
    )


def _reboot_ended(state: StateNode) -> datetime | None:
    last = None if state.claim is None else condition(state.claim.status.conditions, REBOOTING)
    return last.last_transition_time if last is not None and last.status == "False" else None


def _due(policy: RepairPolicy, *since: datetime | None) -> datetime:
    """When a condition has been there for long enough; never, if nobody knows since when it is there."""
    known, length = [moment for moment in since if moment is not None], policy.toleration_duration.delta
    return _NEVER if not known or length is None else max(known) + length


def diagnose(
    policies: RepairPolicies, state: StateNode, now: datetime, found: Sequence[UnhealthyCondition] | None = None
) -> Diagnosis | None:
    """The one decision that all policies whose time has come make together; None while there is none."""
    listed = findings(policies, state) if found is None else found
    eligible = [finding for finding in listed if finding.due <= now]
    if not eligible:
        return None
    first = min(eligible, key=_precedence)
    action = RepairAction(first.policy.action)
    escalated = action is RepairAction.REBOOT and state.claim is not None and reboots_too_often(state.claim, now)
    return Diagnosis(
        action=RepairAction.REPLACE if escalated else action,
        condition=first.condition,
        due=first.due,
        drain_bound=_shortest(finding.policy for finding in eligible),
        score=max(policies.rank[finding.policy.priority] + (now - finding.due) / _RANK for finding in eligible),
        escalated=escalated,
    )


def _precedence(finding: UnhealthyCondition) -> tuple[bool, int, datetime, str]:
    return finding.policy.reboots, -finding.policy.priority, finding.due, finding.condition.type


def _shortest(policies: Iterable[RepairPolicy]) -> timedelta | None:
    periods = (policy.termination_grace_period for policy in policies)
    lengths = [period.delta for period in periods if period is not None and period.delta is not None]
    return min(lengths, default=None)


def tolerated(found: Sequence[UnhealthyCondition], node: str, now: datetime) -> Reason | None:
    """Why a node with a covered condition is not repaired yet: its time has not come."""
    if not found:
        return None
    first = min(found, key=lambda finding: (finding.due, finding.condition.type))
    until = "as long as nobody knows since when" if first.due == _NEVER else f"until {clock(first.due, now)}"
    message = f"condition {first.condition.type} is {first.condition.status}, which is tolerated {until}"
    return Reason(ReasonCode.REPAIR_TOLERATED, message, f"Node {node}")


def healed(policies: RepairPolicies | None, state: StateNode, now: datetime) -> Reason | None:
    """Why a node that was to be repaired no longer needs that."""
    if policies is not None and diagnose(policies, state, now) is not None:
        return None
    return Reason(ReasonCode.CANDIDATE_CHANGED, "is healthy again", f"Node {state.name}")
