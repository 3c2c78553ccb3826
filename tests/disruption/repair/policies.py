"""Repair policies and faults for tests."""

from datetime import datetime
from typing import Any, Final

from karpool.disruption.repair.policies import RepairPolicies, RepairPolicy
from karpool.wire.duration import parse_duration
from karpool.wire.objects import Condition


def policy(kind: str = "Ready", status: str = "False", *, tolerated: str = "10m", **rest: Any) -> RepairPolicy:
    """A policy; `grace` is its terminationGracePeriod, `regex` its reasonRegex."""
    grace = rest.pop("grace", None)
    return RepairPolicy(
        condition_type=kind,
        condition_status=status,
        toleration_duration=parse_duration(tolerated),
        reason_regex=rest.pop("regex", ""),
        termination_grace_period=None if grace is None else parse_duration(grace),
        **rest,
    )


FALLBACK: Final = policy()
BROKEN: Final = policy("Broken", "True", regex=".*", tolerated="30s", grace="45s")
HANGING: Final = policy("Hanging", "True", regex=".*", tolerated="30s", grace="1m", action="RebootNode")
POLICIES: Final = RepairPolicies.checked((FALLBACK, policy("Ready", "Unknown", regex=".*"), BROKEN, HANGING))


def fault(kind: str, since: datetime | None, *, status: str = "True", reason: str = "") -> Condition:
    """A condition of a Node."""
    return Condition(type=kind, status=status, reason=reason, last_transition_time=since)
