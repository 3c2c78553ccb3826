"""Repair policies: which condition of a Node is tolerated for how long, and what is done about it then."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from karpool.model.node import Node
from karpool.wire.duration import Duration
from karpool.wire.objects import Condition, Wire
from karpool.wire.problems import Flaw

HIGHEST_PRIORITY: Final = 100
STATUSES: Final = ("True", "False", "Unknown")


class RepairAction(StrEnum):
    """What is done about a node."""

    REPLACE = "ReplaceNode"
    REBOOT = "RebootNode"


class RepairPolicy(Wire):
    """What is done about nodes that have had a condition for longer than it is tolerated.

    The policy without a `reason_regex` is the fallback: it serves all covered conditions that no other one matches.
    """

    condition_type: str
    condition_status: str
    toleration_duration: Duration
    reason_regex: str = ""
    termination_grace_period: Duration | None = None
    """How long pods may take to leave the node; None: as its NodeClaim says."""
    priority: int = 0
    action: str = RepairAction.REPLACE

    @property
    def fallback(self) -> bool:
        """Whether it serves conditions that no other policy matches."""
        return not self.reason_regex

    @property
    def reboots(self) -> bool:
        """Whether it has nodes rebooted, not replaced."""
        return self.action == RepairAction.REBOOT

    def named_by(self, entry: Condition) -> bool:
        """Whether it is about a condition of this type and status."""
        return (self.condition_type, self.condition_status) == (entry.type, entry.status)


class RepairPolicyError(ValueError):
    """Policies that cannot be followed; all flaws, in one sentence."""

    def __init__(self, flaws: Sequence[Flaw]) -> None:
        super().__init__("; ".join(f"{flaw.field}: {flaw.message}" if flaw.field else flaw.message for flaw in flaws))
        self.flaws = tuple(flaws)


@dataclass(frozen=True)
class RepairPolicies:
    """The policies of a provider; `checked` makes them."""

    listed: tuple[RepairPolicy, ...]

    @classmethod
    def checked(cls, listed: Iterable[RepairPolicy], *, legacy: bool = False) -> "RepairPolicies":
        """Policies that can be followed; the rules about the fallback do not concern legacy repair."""
        policies = tuple(listed)
        flaws = list(repair_flaws(policies, legacy=legacy))
        if flaws:
            raise RepairPolicyError(flaws)
        return cls(policies)

    @cached_property
    def covered(self) -> frozenset[tuple[str, str]]:
        """The types and statuses of conditions that some policy names."""
        return frozenset((policy.condition_type, policy.condition_status) for policy in self.listed)

    @cached_property
    def rank(self) -> dict[int, int]:
        """The place of each priority among those that policies have; 0 for the lowest."""
        return {priority: place for place, priority in enumerate(sorted({entry.priority for entry in self.listed}))}

    @cached_property
    def _patterns(self) -> tuple[tuple[RepairPolicy, re.Pattern[str]], ...]:
        return tuple((policy, re.compile(policy.reason_regex)) for policy in self.listed if not policy.fallback)

    @cached_property
    def _fallback(self) -> tuple[RepairPolicy, ...]:
        return tuple(policy for policy in self.listed if policy.fallback)

    def unhealthy(self, node: Node) -> bool:
        """Whether a node has a condition that a policy names, for whatever reason and however short."""
        return any((entry.type, entry.status) in self.covered for entry in node.status.conditions)

    def matching(self, entry: Condition) -> tuple[RepairPolicy, ...]:
        """The policies that a condition falls under: those that name its reason, else the fallback."""
        if (entry.type, entry.status) not in self.covered:
            return ()
        return self.naming_reason(entry) or self._fallback

    def naming_reason(self, entry: Condition) -> tuple[RepairPolicy, ...]:
        """The policies about a condition whose expression is found in its reason."""
        return tuple(
            policy
            for policy, pattern in self._patterns
            if policy.named_by(entry) and pattern.search(entry.reason) is not None
        )


def repair_flaws(policies: Sequence[RepairPolicy], *, legacy: bool = False) -> Iterator[Flaw]:
    """Everything that is wrong with policies, or that there are none."""
    if not policies:
        yield Flaw("", "NoPolicies", "there are no repair policies; list at least one")
    for number, policy in enumerate(policies):
        for flaw in _flaws(policy):
            yield flaw._replace(field=f"policies[{number}].{flaw.field}")
    if not legacy:
        yield from _fallback_flaws(policies)


def _flaws(policy: RepairPolicy) -> Iterator[Flaw]:
    if not policy.condition_type:
        yield Flaw("conditionType", "ConditionType", "is empty; name a condition of Nodes, such as Ready")
    if policy.condition_status not in STATUSES:
        message = f"{policy.condition_status!r} is not one of {', '.join(STATUSES)}"
        yield Flaw("conditionStatus", "ConditionStatus", message)
    if policy.toleration_duration.nanos is None or policy.toleration_duration.nanos < 0:
        message = f"is {policy.toleration_duration}; write 0s or more"
        yield Flaw("tolerationDuration", "TolerationDuration", message)
    period = policy.termination_grace_period
    if period is not None and (period.nanos is None or period.nanos < 0):
        yield Flaw(
            "terminationGracePeriod", "TerminationGracePeriod", f"is {period}; write 0s or more, or leave it out"
        )
    if not 0 <= policy.priority <= HIGHEST_PRIORITY:
        yield Flaw("priority", "Priority", f"is {policy.priority}; write 0 to {HIGHEST_PRIORITY}")
    if policy.action not in tuple(RepairAction):
        yield Flaw("action", "Action", f"{policy.action!r} is not one of {', '.join(RepairAction)}")
    try:
        re.compile(policy.reason_regex)
    except re.error as error:
        yield Flaw("reasonRegex", "ReasonRegex", f"is not a regular expression: {error}")


def _fallback_flaws(policies: Sequence[RepairPolicy]) -> Iterator[Flaw]:
    fallbacks = [(number, policy) for number, policy in enumerate(policies) if policy.fallback]
    if policies and len(fallbacks) != 1:
        found = "all have one" if not fallbacks else f"{len(fallbacks)} have none"
        message = f"exactly one policy is without reasonRegex, the one for conditions of any reason; {found}"
        yield Flaw("policies", "Fallback", message)
    for number, policy in fallbacks:
        if policy.action != RepairAction.REPLACE:
            message = f"a policy without reasonRegex has to say {RepairAction.REPLACE.value}"
            yield Flaw(f"policies[{number}].action", "FallbackAction", message)
