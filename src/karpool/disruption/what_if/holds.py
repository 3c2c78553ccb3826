"""What holds each node that a plan leaves: every rule that somebody chose, and the knob that lifts it.

A node that nothing holds stays because nothing cheaper was found. What a pool or an option forbids of a single move
(minimum savings, machines, spot to spot, the price of evictions) holds no node by itself: it is `wide`, and lifting it
may free any node that nothing else holds.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.candidates.eligibility import consolidation_refusal, emptiness_refusal, node_rules
from karpool.disruption.candidates.windows import in_grace, source_closed
from karpool.disruption.command import Cause
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.policies import WHEN_UNDERUTILIZED, policy
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.settings import DisruptionSettings
from karpool.disruption.what_if.knob import Knob
from karpool.disruption.what_if.pod_knobs import (
    DoNotDisruptOff,
    GroupMinimumOff,
    NodeProtectionOff,
    PdbOff,
    SafeToEvict,
)
from karpool.disruption.what_if.pool_knobs import (
    BudgetsOff,
    ConsolidateAfter,
    ConsolidationPolicy,
    FixedSizeOff,
    GracePeriod,
    MinimumSavingsKnob,
)
from karpool.disruption.what_if.question import annotated
from karpool.disruption.what_if.setting_knobs import BrakeOff, EvictionPriceKnob, SpotToSpot
from karpool.disruption.what_if.type_knobs import AnyMachine, of_machine
from karpool.model.labels import DO_NOT_DISRUPT, MINIMUM_SAVINGS
from karpool.model.node_group import NodeGroup
from karpool.model.nodepool import ZERO_SECONDS, NodePool, PoolRequirement
from karpool.model.owners import OwningWorkload, workload_of
from karpool.model.pod import Pod
from karpool.model.reasons import Reason
from karpool.wire.duration import NEVER

MISSING_TYPES: Final = "InstanceTypesNotAllowed"
"""The code of a pool whose requirements leave out machines."""
_VALUES_NAMED: Final = 4
_BY_AUTOSCALER: Final = frozenset(
    {
        ReasonCode.POD_NOT_SAFE_TO_EVICT,
        ReasonCode.POD_LOCAL_STORAGE,
        ReasonCode.POD_NOT_REPLICATED,
        ReasonCode.SYSTEM_POD,
    }
)
_PROTECTED: Final = frozenset({ReasonCode.NODE_DO_NOT_DISRUPT, ReasonCode.SCALE_DOWN_DISABLED})
_OF_RATES: Final = frozenset({ReasonCode.RATE_REACHED, ReasonCode.RATE_INVALID})
"""What comes back as soon as it is lifted: a rate is about the plan itself."""
_OPENING: Final = frozenset({ReasonCode.CONSOLIDATE_AFTER_WINDOW, ReasonCode.GRACE_PERIOD})
"""What also keeps pods from coming, so that without it other nodes may go, too."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Something that holds nodes: a reason code, the object that is to blame, and what lifts it; no knob: nothing."""

    code: str
    object: str
    knobs: tuple[Knob, ...] = ()
    wide: bool = False
    """Whether lifting it may free nodes that it does not hold."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A rule that holds a node, in the words of the rule, and the pod for which it does."""

    rule: Holder
    message: str
    pod: Pod | None = None

    @property
    def workload(self) -> OwningWorkload | None:
        """The workload of the pod."""
        return None if self.pod is None else workload_of(self.pod)


def holds_of(decision_pass: DecisionPass, node: Candidate) -> list[Hold]:
    """Everything that holds a node; none if it may go."""
    context = decision_pass.context
    found = [_of_node(decision_pass, node, reason) for _, reason in node_rules(context, node) if reason is not None]
    for pod, reason in sorted(context.blocking_pods(node.row), key=lambda entry: entry[0].key):
        found += _of_pod(decision_pass, pod, reason)
    if node.state.claim is not None and node.pool is not None:
        found += [_of_pool(node.pool, reason) for reason in _pool_reasons(decision_pass, node, node.pool)]
    return found


def _of_node(decision_pass: DecisionPass, node: Candidate, reason: Reason) -> Hold:
    stops = {(stop.code, stop.object) for stop in decision_pass.context.policies.stops}
    if reason.code in _PROTECTED:
        rule = Holder(reason.code, f"Node {node.name}", (NodeProtectionOff(node=node.name),))
    elif (reason.code, reason.object) in stops and reason.code not in _OF_RATES:
        rule = Holder(reason.code, reason.object, (BrakeOff(code=reason.code, object=reason.object),))
    else:
        # What a node is (without a NodePool, being deleted, not ready), or cannot be read, nobody lifts by a word.
        rule = Holder(reason.code, "" if reason.object == f"Node {node.name}" else reason.object)
    return Hold(rule, reason.message)


def _of_pod(decision_pass: DecisionPass, pod: Pod, reason: Reason) -> Iterator[Hold]:
    workload = str(workload_of(pod))
    if reason.code == ReasonCode.POD_DO_NOT_DISRUPT:
        yield Hold(Holder(reason.code, workload, (DoNotDisruptOff(workload=workload),)), reason.message, pod)
        # Nobody asks a PodDisruptionBudget about a pod that must stay anyway; it is next to be in the way.
        free = annotated(pod, DO_NOT_DISRUPT, None)
        behind = decision_pass.context.pdbs.eviction_blocked(free, decision_pass.context.now)
        if behind is not None:
            yield from _of_pod(decision_pass, free, behind)
    elif reason.code in _BY_AUTOSCALER:
        yield Hold(Holder(reason.code, workload, (SafeToEvict(workload=workload),)), reason.message, pod)
    elif budgets := decision_pass.context.pdbs.matching(pod):
        names = sorted(budget.key for budget in budgets)
        # One budget may stay: it is two that Kubernetes does not get along with.
        lifted = names if len(names) == 1 else names[1:]
        about = f"PodDisruptionBudget {' and '.join(names)}"
        yield Hold(Holder(reason.code, about, tuple(PdbOff(name=name) for name in lifted)), reason.message, pod)
    else:
        yield Hold(Holder(reason.code, workload), reason.message, pod)


def _pool_reasons(decision_pass: DecisionPass, node: Candidate, pool: NodePool) -> Iterator[Reason]:
    """Why consolidation, or the removal of empty nodes, does not look at a node."""
    context, claim = decision_pass.context, node.state.claim
    refusal = emptiness_refusal if node.empty else consolidation_refusal
    reasons = [refusal(context, node)]
    if claim is not None and not pool.static:
        reasons += [source_closed(claim, pool, context.now), in_grace(claim, pool, context.now)]
    allowance = context.budgeted(pool, Cause.EMPTY if node.empty else Cause.UNDERUTILIZED)
    reasons.append(None if allowance.remaining > 0 else allowance.exhausted(pool))
    yield from dict.fromkeys(reason for reason in reasons if reason is not None and reason.code != ReasonCode.EMPTY)


def _of_pool(pool: NodePool, reason: Reason) -> Hold:
    knob = _pool_knob(pool, reason.code)
    about = f"NodeGroup {pool.name}" if isinstance(pool, NodeGroup) else f"NodePool {pool.name}"
    return Hold(Holder(reason.code, about, () if knob is None else (knob,), reason.code in _OPENING), reason.message)


def _pool_knob(pool: NodePool, code: str) -> Knob | None:
    if isinstance(pool, NodeGroup):
        return GroupMinimumOff(group=pool.name) if code == ReasonCode.GROUP_AT_MINIMUM else None
    match code:
        case ReasonCode.STATIC_POOL:
            return FixedSizeOff(node_pool=pool.name)
        case ReasonCode.CONSOLIDATE_AFTER_NEVER | ReasonCode.CONSOLIDATE_AFTER_WINDOW:
            return ConsolidateAfter(node_pool=pool.name, value=ZERO_SECONDS)
        case ReasonCode.GRACE_PERIOD | ReasonCode.GRACE_PERIOD_INVALID:
            return GracePeriod(node_pool=pool.name, value=NEVER)
        case ReasonCode.POLICY_WHEN_EMPTY | ReasonCode.POLICY_UNKNOWN:
            return ConsolidationPolicy(node_pool=pool.name, value="WhenEmptyOrUnderutilized")
        case ReasonCode.BUDGET_EXHAUSTED | ReasonCode.BUDGET_INVALID:
            return BudgetsOff(node_pool=pool.name)
    return None


def wide_rules(pools: Iterable[NodePool], settings: DisruptionSettings) -> Iterator[tuple[Holder, str]]:
    """Rules about moves that pools and options have, each with a sentence; whether they cost anything is not known."""
    for pool in pools:
        if not isinstance(pool, NodeGroup):
            yield from _wide_of_pool(pool)
    price = settings.effective_eviction_price
    if price:
        rule = Holder(
            ReasonCode.EVICTIONS_COST_MORE, "option --eviction-price", (EvictionPriceKnob(value=0.0),), wide=True
        )
        yield rule, f"a move must save {price:g} $/h for each eviction"
    if not settings.spot_to_spot:
        rule = Holder(
            ReasonCode.SPOT_TO_SPOT_DISABLED,
            "feature gate SpotToSpotConsolidation",
            (SpotToSpot(value=True),),
            wide=True,
        )
        yield rule, "spot nodes are not replaced by spot"


def _wide_of_pool(pool: NodePool) -> Iterator[tuple[Holder, str]]:
    about, annotations = f"NodePool {pool.name}", pool.metadata.annotations
    if MINIMUM_SAVINGS in annotations:
        knob: Knob = MinimumSavingsKnob(node_pool=pool.name, value="0")
        words = f"a move must save at least {annotations[MINIMUM_SAVINGS][:40]}"
        yield Holder(ReasonCode.SAVINGS_BELOW_MINIMUM, about, (knob,), wide=True), words
    if policy(pool) == "Balanced":
        knob = ConsolidationPolicy(node_pool=pool.name, value=WHEN_UNDERUTILIZED)
        words = "its consolidationPolicy is Balanced"
        yield Holder(ReasonCode.BALANCED_SCORE_TOO_LOW, about, (knob,), wide=True), words
    rules = [rule for rule in pool.spec.template.spec.requirements if of_machine(rule)]
    if rules:
        words = "allows only machines of some kinds: " + "; ".join(map(_rule_words, rules[:3]))
        yield Holder(MISSING_TYPES, about, (AnyMachine(node_pool=pool.name),), wide=True), words


def _rule_words(rule: PoolRequirement) -> str:
    """A requirement as it is written: `instance-family In c5, m5 and 4 more`."""
    shown, rest = rule.values[:_VALUES_NAMED], len(rule.values) - _VALUES_NAMED
    values = ", ".join(shown) + (f" and {rest} more" if rest > 0 else "")
    return f"{rule.key} {rule.operator} {values}".rstrip()
