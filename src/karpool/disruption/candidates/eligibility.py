"""Which nodes may be disrupted at all, and by which method: every rule with its reason, the first failure wins."""

from typing import Final

from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.candidates.node_checks import NODE_CHECKS, about_node, node_refusal, without_pool
from karpool.disruption.candidates.windows import in_grace, source_closed
from karpool.disruption.context import DecisionContext
from karpool.disruption.methods.static_drift import static_size
from karpool.disruption.policies import keeps_used_nodes
from karpool.disruption.reasons import ReasonCode
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from karpool.model.reasons import Reason

_OF_RATES: Final = (ReasonCode.RATE_REACHED, ReasonCode.RATE_INVALID)


def refusal(context: DecisionContext, candidate: Candidate, *, eventual: bool = False) -> Reason | None:
    """Why a node may not be disrupted; `eventual`: its termination grace period may overrule its pods."""
    reason = (
        in_command(context, candidate)
        or context.seal(candidate.row)
        or node_refusal(candidate, context.catalog)
        or stopped(context, candidate)
        or context.over_rate((candidate.row,))
        or nominated(context, candidate)
    )
    if reason is not None:
        return reason
    claim = candidate.state.claim
    if eventual and claim is not None and claim.spec.termination_grace_period is not None:
        return None
    return pod_refusal(context, candidate)


def in_command(context: DecisionContext, candidate: Candidate) -> Reason | None:
    """Why a node of a command that is under way is left alone."""
    if candidate.name not in context.policies.in_command:
        return None
    return about_node(candidate, ReasonCode.IN_COMMAND, "is part of a command that is under way")


def stopped(context: DecisionContext, candidate: Candidate) -> Reason | None:
    """The brake that keeps a node, if one does."""
    stop = context.policies.stops.of(candidate.pool_name, candidate.name, empty=candidate.leaves_nothing)
    return None if stop is None else stop.reason


def nominated(context: DecisionContext, candidate: Candidate) -> Reason | None:
    """Why a node that a pod waits for stays."""
    if candidate.name not in context.policies.nominated:
        return None
    return about_node(candidate, ReasonCode.NODE_NOMINATED, "is expected by a pod that waits for it")


def node_rules(context: DecisionContext, candidate: Candidate) -> list[tuple[str, Reason | None]]:
    """Every rule about the node itself, with what it says."""
    brake, rates = stopped(context, candidate), list[tuple[str, Reason | None]]()
    if context.policies.rates:
        # A rate that is used up stops everything; it is told under the rule of rates, and only there.
        paced = brake is not None and brake.code in _OF_RATES
        rates = [("within the rates", brake if paced else context.over_rate((candidate.row,)))]
        brake = None if paced else brake
    # Of a node that nobody manages it is no news that it has no pool.
    checks = [(rule, check) for rule, check in NODE_CHECKS if check is not without_pool or candidate.state.managed]
    return [
        ("in no other command", in_command(context, candidate)),
        ("all that bears on it can be read", context.seal(candidate.row)),
        *((rule, check(candidate, context.catalog)) for rule, check in checks),
        ("no brake holds its pool", brake),
        *rates,
        ("not expected by a waiting pod", nominated(context, candidate)),
    ]


def pod_refusal(context: DecisionContext, candidate: Candidate) -> Reason | None:
    """The first pod that must not be disrupted, and why; do-not-disrupt comes before PodDisruptionBudgets."""
    blocking = context.blocking_pods(candidate.row)
    if not blocking:
        return None
    return min(blocking, key=lambda entry: (entry[1].code != ReasonCode.POD_DO_NOT_DISRUPT, entry[0].key))[1]


def emptiness_refusal(context: DecisionContext, candidate: Candidate) -> Reason | None:
    """Why an eligible node is not removed as empty."""
    claim, pool = candidate.state.claim, candidate.pool
    if claim is None or pool is None:
        return about_node(candidate, ReasonCode.NOT_MANAGED, "is not managed")
    if pool.static:
        return static_size(context, candidate, pool)
    if pool.spec.disruption.consolidate_after.never:
        return source_closed(claim, pool, context.now)
    if not candidate.empty:
        return _not_empty(context, candidate)
    return source_closed(claim, pool, context.now) or in_grace(claim, pool, context.now)


def _not_empty(context: DecisionContext, candidate: Candidate) -> Reason:
    pods = [context.snapshot.pods.get(row) for row in candidate.pods]
    if all(pod.is_headroom for pod in pods):
        return about_node(candidate, ReasonCode.HOLDS_HEADROOM, "has room that a CapacityBuffer keeps")
    count = sum(not pod.is_headroom for pod in pods)
    message = f"has {count} pod{'s' if count > 1 else ''} that would need another place"
    return about_node(candidate, ReasonCode.NOT_EMPTY, message)


def consolidation_refusal(context: DecisionContext, candidate: Candidate) -> Reason | None:
    """Why an eligible node is not considered by consolidation."""
    claim, pool = candidate.state.claim, candidate.pool
    if claim is None or pool is None:
        return about_node(candidate, ReasonCode.NOT_MANAGED, "is not managed")
    if pool.static:
        return static_size(context, candidate, pool)
    unclear = _unclear(candidate)
    if unclear is not None or pool.spec.disruption.consolidate_after.never:
        return unclear or source_closed(claim, pool, context.now)
    if candidate.empty:
        return about_node(candidate, ReasonCode.EMPTY, "is empty: emptiness deals with it")
    return keeps_used_nodes(pool) or source_closed(claim, pool, context.now) or in_grace(claim, pool, context.now)


def _unclear(candidate: Candidate) -> Reason | None:
    """What is not known about a node that its price depends on; a node of a group saves what it costs in any case."""
    if candidate.state.group:
        return None
    labels, entry = candidate.state.labels, candidate.entry
    if entry is None or (entry.observed and candidate.price is None):
        message = f"its instance type {labels.get(INSTANCE_TYPE, '?')} is not in the catalogue"
        return about_node(candidate, ReasonCode.UNKNOWN_INSTANCE_TYPE, message)
    if not labels.get(CAPACITY_TYPE):
        return about_node(candidate, ReasonCode.MISSING_CAPACITY_TYPE, f"has no label {CAPACITY_TYPE}")
    if not labels.get(ZONE):
        return about_node(candidate, ReasonCode.MISSING_ZONE, f"has no label {ZONE}")
    return None
