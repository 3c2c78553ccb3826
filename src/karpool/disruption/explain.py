"""Everything about one node: every rule with its answer, where each pod would go, and what would let the node go."""

from collections.abc import Callable
from dataclasses import dataclass

from karpool.disruption.candidates import NODE_CHECKS
from karpool.disruption.command import Cause, Command
from karpool.disruption.context import Candidate
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.evaluate import Outcome
from karpool.disruption.policies import keeps_used_nodes
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.windows import in_grace, source_closed
from karpool.model.pod import Pod
from karpool.model.reasons import Reason
from karpool.packing.kernels.columns import UNPLACED
from karpool.packing.refusals import refusals, sentence


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """A rule and what it says of a node."""

    rule: str
    reason: Reason | None
    passed: bool


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a pod of the node would go: a node, a new node, or nowhere, and why."""

    pod: str
    target: str | None
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class Alternative:
    """Something that, if it were otherwise, would let the node go; and what that would save."""

    condition: str
    savings: float


@dataclass(frozen=True, slots=True)
class NodeExplanation:
    """What is to be said about one node."""

    candidate: Candidate
    rulings: tuple[RuleOutcome, ...]
    destinations: tuple[Destination, ...]
    command: Command | None
    drift: Command | None
    ways: tuple[Alternative, ...]


def tell(last: DecisionPass, candidate: Candidate) -> NodeExplanation:
    """Look at one node with all rules, and as if nothing forbade touching it."""
    context = last.context
    blocking = [RuleOutcome(name, why := check(context, candidate), why is None) for name, check in NODE_CHECKS]
    blocking += _pod_rulings(last, candidate)
    policy = _policy_rulings(last, candidate)
    whole = candidate._replace(movers=candidate.pods)
    outcome = last.evaluator.consolidate([whole]) if candidate.pool is not None else None
    drift, drifting = _drift_rulings(last, candidate)
    rulings = (*blocking, *policy, *_money_rulings(last, candidate, outcome), *drifting)
    return NodeExplanation(
        candidate=candidate,
        rulings=rulings,
        destinations=_destinations(last, whole),
        command=outcome.command if outcome else None,
        drift=drift,
        ways=() if drift else _ways(last, candidate, outcome, [ruling for ruling in rulings if not ruling.passed]),
    )


def _pod_rulings(last: DecisionPass, candidate: Candidate) -> list[RuleOutcome]:
    """One line for each pod that must not be disturbed, or one for all if there is none."""
    held = sorted(last.context.holds(candidate.row), key=lambda one: one[0].key)
    refused = [RuleOutcome("its pods may be moved", why, passed=False) for _, why in held]
    return refused or [RuleOutcome("its pods may be moved", None, passed=True)]


def _policy_rulings(last: DecisionPass, candidate: Candidate) -> list[RuleOutcome]:
    claim, pool, now = candidate.state.claim, candidate.pool, last.context.now
    if claim is None or pool is None:
        return []
    cause = Cause.EMPTY if candidate.empty else Cause.UNDERUTILIZED
    questions: list[tuple[str, Reason | None]] = [
        ("quiet for as long as consolidateAfter asks", source_closed(claim, pool, now)),
        ("outside its consolidationGracePeriod", in_grace(claim, pool, now)),
        (f"a budget for {cause} is left", last.allowed(candidate, cause)),
    ]
    if not candidate.empty:
        questions.insert(0, ("its pool's policy looks at nodes with pods", keeps_used_nodes(pool)))
    return [RuleOutcome(rule, why, why is None) for rule, why in questions]


def _drift_rulings(last: DecisionPass, candidate: Candidate) -> tuple[Command | None, list[RuleOutcome]]:
    """The command that replaces a drifted node, if it may go now; and what each rule of drift says."""
    drifted = last.drifted(candidate)
    if drifted is None or candidate.pool is None:
        return None, []
    found = last.replaced(candidate)
    unplaced = found if isinstance(found, Reason) else None
    budget = last.allowed(candidate, Cause.DRIFTED)
    refused = last.refusal(candidate, eventual=True)
    rulings = [
        RuleOutcome("drifted from its pool", drifted.reason, passed=True),
        RuleOutcome("drift may touch it", refused, refused is None),
        RuleOutcome("a budget for Drifted is left", budget, budget is None),
        RuleOutcome("its pods have a place to be, at any price", unplaced, unplaced is None),
    ]
    goes = all(ruling.passed for ruling in rulings) and isinstance(found, Command)
    return (found if goes and isinstance(found, Command) else None), rulings


def _money_rulings(last: DecisionPass, candidate: Candidate, outcome: Outcome | None) -> list[RuleOutcome]:
    if candidate.empty:
        return [RuleOutcome("empty", Reason(ReasonCode.EMPTY, "has no pod that needs another place"), passed=True)]
    if outcome is None:
        return []
    if outcome.command is None:
        return [RuleOutcome("its pods have a cheaper place to be", outcome.reason, passed=False)]
    unworthy = last.unworthy(outcome.command, [candidate])
    return [
        RuleOutcome("its pods have a cheaper place to be", None, passed=True),
        RuleOutcome("the saving is worth the disruption", unworthy, unworthy is None),
    ]


def _destinations(last: DecisionPass, candidate: Candidate) -> tuple[Destination, ...]:
    """Where the pods would go if the node were gone."""
    context = last.context
    pods = list(candidate.pods)
    with context.engine.what_if() as trial:
        trial.remove([candidate.row])
        found = trial.place(
            pods,
            exempt=[context.exempt(context.snapshot.pods.get(row)) for row in pods],
            closed=context.closed,
        )
        placed = []
        for row, target in zip(found.pods, found.targets, strict=True):
            pod = context.snapshot.pods.get(row)
            if target == UNPLACED:
                said = sentence(refusals(context.engine, row, exempt=context.exempt(pod)))
                reason = Reason(ReasonCode.PODS_WOULD_NOT_FIT, said, f"Pod {pod.key}")
                placed.append(Destination(pod.key, None, reason))
            else:
                name = context.snapshot.nodes.get(target).name if target >= 0 else f"new-{-1 - target}"
                placed.append(Destination(pod.key, name, None))
    return tuple(sorted(placed, key=lambda one: one.pod))


def _ways(
    last: DecisionPass, candidate: Candidate, outcome: Outcome | None, failed: list[RuleOutcome]
) -> tuple[Alternative, ...]:
    """What alone, or with its like, stands between the node and a saving."""
    if candidate.empty:
        savings = candidate.price or 0.0
    elif outcome is not None and outcome.command is not None:
        savings = outcome.command.savings
    else:
        return _ways_without_a_pod(last, candidate, failed)
    if not failed or savings <= 0:
        return ()
    conditions = [_otherwise(ruling) for ruling in failed]
    return (Alternative(" and ".join(dict.fromkeys(conditions)), savings),)


def _ways_without_a_pod(last: DecisionPass, candidate: Candidate, failed: list[RuleOutcome]) -> tuple[Alternative, ...]:
    """Pods without which the node could go: each tried alone."""
    pods: Callable[[int], Pod] = last.context.snapshot.pods.get
    ways = []
    others = [ruling for ruling in failed if ruling.reason is not None and ruling.rule != failed[-1].rule]
    for row in candidate.pods:
        rest = tuple(other for other in candidate.pods if other != row)
        outcome = last.evaluator.consolidate([candidate._replace(movers=rest)])
        if outcome.command is not None and outcome.command.savings > 0:
            also = "".join(f" and {_otherwise(ruling)}" for ruling in others)
            ways.append(Alternative(f"Pod {pods(row).key} were not there{also}", outcome.command.savings))
    return tuple(sorted(ways, key=lambda way: (-way.savings, way.condition))[:5])


def _otherwise(ruling: RuleOutcome) -> str:
    reason = ruling.reason
    about = reason.object if reason else "the node"
    match reason.code if reason else "":
        case ReasonCode.POD_DO_NOT_DISRUPT | ReasonCode.NODE_DO_NOT_DISRUPT:
            return f"{about} were not marked do-not-disrupt"
        case ReasonCode.POD_DISRUPTION_BUDGET | ReasonCode.MULTIPLE_POD_DISRUPTION_BUDGETS:
            return f"the PodDisruptionBudget let {about} go"
        case ReasonCode.CONSOLIDATE_AFTER_WINDOW | ReasonCode.GRACE_PERIOD:
            return "its time of quiet had passed"
        case ReasonCode.BUDGET_EXHAUSTED | ReasonCode.BUDGET_INVALID:
            return f"{about} had a budget left"
        case ReasonCode.POLICY_WHEN_EMPTY:
            return f"{about} had another consolidationPolicy"
        case _:
            return f"this were so: {ruling.rule}"
