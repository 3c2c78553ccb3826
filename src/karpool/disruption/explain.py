"""Everything about one node: every rule with its answer, where each pod would go, and what would let the node go."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.candidates.eligibility import node_rules
from karpool.disruption.candidates.windows import in_grace, source_closed
from karpool.disruption.command import Cause, Command
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.methods.drift import replaced
from karpool.disruption.methods.evaluate import Outcome
from karpool.disruption.methods.multi_node import multi_node
from karpool.disruption.policies import keeps_used_nodes
from karpool.disruption.reasons import LEFT_ALONE, ReasonCode
from karpool.disruption.repair.method import repair_rules, repaired
from karpool.disruption.unblocking import otherwise
from karpool.model.node_group import NodeGroup
from karpool.model.nodepool import NodePool
from karpool.model.pod import Pod
from karpool.model.reasons import Reason
from karpool.packing.kernels.columns import UNPLACED
from karpool.packing.refusals import why_unplaced


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
    outcomes: tuple[RuleOutcome, ...]
    repairs: tuple[RuleOutcome, ...]
    """What the rules of repair say, if it is unhealthy; they keep no other method from removing it."""
    destinations: tuple[Destination, ...]
    command: Command | None
    alone: Command | None
    """A command that repairs it, or replaces it because it has drifted, whatever that costs."""
    together: Command | None
    """A command that removes it with others, if it may go but not alone."""
    hindrances: tuple[Reason, ...]
    """What keeps it from going alone; none if it may."""
    alternatives: tuple[Alternative, ...]


def explain_node(decision_pass: DecisionPass, candidate: Candidate) -> NodeExplanation:
    """Judge one node by all rules, and as if nothing forbade disrupting it."""
    context = decision_pass.context
    blocking = [RuleOutcome(rule, reason, reason is None) for rule, reason in node_rules(context, candidate)]
    for_good = [rule for rule in blocking if rule.reason is not None and rule.reason.code in LEFT_ALONE]
    if for_good:
        return _left_alone(candidate, for_good)
    blocking += _pod_outcomes(decision_pass, candidate)
    policy = _policy_outcomes(decision_pass, candidate)
    most = context.settings.most_new_nodes
    outcome = decision_pass.evaluator.consolidate([candidate], most) if candidate.pool is not None else None
    fix, repairing = _repair_outcomes(decision_pass, candidate)
    drift, drifting = _drift_outcomes(decision_pass, candidate)
    alone = fix or drift
    money = _money_outcomes(decision_pass, candidate, outcome)
    together, grouped = None, list[RuleOutcome]()
    if all(rule.passed for rule in (*blocking, *policy)) and not all(rule.passed for rule in money):
        together, grouped = _group_outcomes(decision_pass, candidate)
    failed = _distinct(rule for rule in (*blocking, *policy, *money, *drifting) if not rule.passed)
    return NodeExplanation(
        candidate=candidate,
        outcomes=(*blocking, *policy, *money, *grouped, *drifting),
        repairs=tuple(repairing),
        destinations=_destinations(decision_pass, candidate) if together is None else _moves(together, candidate),
        command=outcome.command if outcome else None,
        alone=alone,
        together=together,
        hindrances=() if alone else tuple(rule.reason for rule in failed if rule.reason is not None),
        alternatives=() if alone or together else _alternatives(decision_pass, candidate, outcome, failed),
    )


def _left_alone(candidate: Candidate, outcomes: list[RuleOutcome]) -> NodeExplanation:
    """A node that stays for what it is: no other rule matters, and nobody asks where its pods would go."""
    return NodeExplanation(
        candidate=candidate,
        outcomes=tuple(outcomes),
        repairs=(),
        destinations=(),
        command=None,
        alone=None,
        together=None,
        hindrances=tuple(rule.reason for rule in outcomes if rule.reason is not None),
        alternatives=(),
    )


def _distinct(outcomes: Iterable[RuleOutcome]) -> list[RuleOutcome]:
    """Outcomes with different reasons: what two rules refuse for the same reason is one thing to change."""
    by_reason = {outcome.reason or outcome.rule: outcome for outcome in reversed(list(outcomes))}
    return list(reversed(by_reason.values()))


def _pod_outcomes(decision_pass: DecisionPass, candidate: Candidate) -> list[RuleOutcome]:
    """One line for each pod that must not be disturbed, or one for all if there is none."""
    blocking = sorted(decision_pass.context.blocking_pods(candidate.row), key=lambda entry: entry[0].key)
    refused = [RuleOutcome("its pods may be moved", reason, passed=False) for _, reason in blocking]
    return refused or [RuleOutcome("its pods may be moved", None, passed=True)]


def _policy_outcomes(decision_pass: DecisionPass, candidate: Candidate) -> list[RuleOutcome]:
    claim, pool, now = candidate.state.claim, candidate.pool, decision_pass.context.now
    if claim is None or pool is None:
        return []
    cause = Cause.EMPTY if candidate.empty else Cause.UNDERUTILIZED
    if isinstance(pool, NodeGroup):
        least = _over_budget(decision_pass, pool, cause)
        return [RuleOutcome("its group may become smaller", least, least is None)]
    questions: list[tuple[str, Reason | None]] = [
        ("quiet for as long as consolidateAfter asks", source_closed(claim, pool, now)),
        ("outside its consolidationGracePeriod", in_grace(claim, pool, now)),
        (f"a budget for {cause} is left", _over_budget(decision_pass, pool, cause)),
    ]
    if not candidate.empty:
        questions.insert(0, ("its pool's policy looks at nodes with pods", keeps_used_nodes(pool)))
    return [RuleOutcome(rule, why, why is None) for rule, why in questions]


def _over_budget(decision_pass: DecisionPass, pool: NodePool, cause: Cause) -> Reason | None:
    """Why the budgets of a pool keep a node, if they do; rates have a rule of their own."""
    allowance = decision_pass.context.budgeted(pool, cause)
    return None if allowance.remaining > 0 else allowance.exhausted(pool)


def _repair_outcomes(decision_pass: DecisionPass, candidate: Candidate) -> tuple[Command | None, list[RuleOutcome]]:
    """The command that repairs an unhealthy node, if it may be repaired now; and what each rule of repair says."""
    node = next((entry for entry in decision_pass.repairs() if entry.candidate.row == candidate.row), None)
    if node is None:
        return None, []
    outcome = repaired(decision_pass, node) if node.diagnosis is not None and candidate.pool is not None else None
    why = None if node.diagnosis is None else node.diagnosis.reason(candidate.name, decision_pass.context.now)
    outcomes = [
        *([] if why is None else [RuleOutcome("unhealthy", why, passed=True)]),
        *(RuleOutcome(rule, reason, reason is None) for rule, reason in repair_rules(decision_pass, node)),
    ]
    if isinstance(outcome, Reason):
        outcomes.append(RuleOutcome("its pods have a place to be while it is repaired", outcome, passed=False))
    goes = isinstance(outcome, Command) and all(rule.passed for rule in outcomes)
    return (outcome if goes and isinstance(outcome, Command) else None), outcomes


def _drift_outcomes(decision_pass: DecisionPass, candidate: Candidate) -> tuple[Command | None, list[RuleOutcome]]:
    """The command that replaces a drifted node, if it may go now; and what each rule of drift says."""
    drifted = decision_pass.context.drift(candidate)
    if drifted is None or candidate.pool is None:
        return None, []
    outcome = replaced(decision_pass, candidate)
    unplaced = outcome if isinstance(outcome, Reason) else None
    budget = _over_budget(decision_pass, candidate.pool, Cause.DRIFTED)
    refused = decision_pass.refusal(candidate, eventual=True)
    outcomes = [
        RuleOutcome("drifted from its pool", drifted.reason, passed=True),
        RuleOutcome("drift may touch it", refused, refused is None),
        RuleOutcome("a budget for Drifted is left", budget, budget is None),
        RuleOutcome("its pods have a place to be, at any price", unplaced, unplaced is None),
    ]
    goes = all(rule.passed for rule in outcomes) and isinstance(outcome, Command)
    return (outcome if goes and isinstance(outcome, Command) else None), outcomes


def _money_outcomes(decision_pass: DecisionPass, candidate: Candidate, outcome: Outcome | None) -> list[RuleOutcome]:
    if candidate.empty:
        return [RuleOutcome("empty", Reason(ReasonCode.EMPTY, "has no pod that needs another place"), passed=True)]
    if outcome is None:
        return []
    if outcome.command is None:
        return [RuleOutcome("its pods have a cheaper place to be", outcome.reason, passed=False)]
    refused = decision_pass.worthless(outcome.command, [candidate])
    return [
        RuleOutcome("its pods have a cheaper place to be", None, passed=True),
        RuleOutcome("the saving is worth the disruption", refused, refused is None),
    ]


def _group_outcomes(decision_pass: DecisionPass, candidate: Candidate) -> tuple[Command | None, list[RuleOutcome]]:
    """The command that removes a node together with others, and what is to be said of that."""
    rule = "it can go together with others"
    for command in multi_node(decision_pass):
        if candidate.name in command.nodes:
            return command, [RuleOutcome(rule, None, passed=True)]
    reason = decision_pass.group_refusals.get(candidate.row)
    return None, [] if reason is None else [RuleOutcome(rule, reason, passed=False)]


def _moves(command: Command, candidate: Candidate) -> tuple[Destination, ...]:
    """Where a command sends the pods of one of its nodes."""
    return tuple(
        Destination(move.pod, move.target if isinstance(move.target, str) else f"new-{move.target + 1}", None)
        for move in command.moves
        if move.source == candidate.name
    )


def _destinations(decision_pass: DecisionPass, candidate: Candidate) -> tuple[Destination, ...]:
    """Where the pods would go if the node were gone."""
    context = decision_pass.context
    pods = list(candidate.pods)
    with context.engine.what_if() as trial:
        trial.remove([candidate.row])
        placement = trial.place(
            pods,
            exempt=[context.exempt(context.snapshot.pods.get(row)) for row in pods],
            closed=context.closed,
        )
        placed = []
        for row, target in zip(placement.pods, placement.targets, strict=True):
            pod = context.snapshot.pods.get(row)
            if target == UNPLACED:
                message = why_unplaced(context.engine, row, exempt=context.exempt(pod))
                reason = Reason(ReasonCode.PODS_WOULD_NOT_FIT, message, f"Pod {pod.key}")
                placed.append(Destination(pod.key, None, reason))
            else:
                name = context.snapshot.nodes.get(target).name if target >= 0 else f"new-{-1 - target}"
                placed.append(Destination(pod.key, name, None))
    return tuple(sorted(placed, key=lambda destination: destination.pod))


def _alternatives(
    decision_pass: DecisionPass, candidate: Candidate, outcome: Outcome | None, failed: list[RuleOutcome]
) -> tuple[Alternative, ...]:
    """What alone, or with its like, stands between the node and a saving; nothing could let go what nobody manages."""
    if candidate.pool is None:
        return ()
    if candidate.empty:
        savings = candidate.price or 0.0
    elif outcome is not None and outcome.command is not None:
        savings = outcome.command.savings
    else:
        return _alternatives_without_a_pod(decision_pass, candidate, failed)
    if not failed or savings <= 0:
        return ()
    conditions = [otherwise(rule.rule, rule.reason) for rule in failed]
    return (Alternative(" and ".join(dict.fromkeys(conditions)), savings),)


def _alternatives_without_a_pod(
    decision_pass: DecisionPass, candidate: Candidate, failed: list[RuleOutcome]
) -> tuple[Alternative, ...]:
    """Pods without which the node could go: each tried alone."""
    pods: Callable[[int], Pod] = decision_pass.context.snapshot.pods.get
    alternatives = []
    others = [rule for rule in failed if rule.reason is not None and rule.rule != failed[-1].rule]
    for row in candidate.pods:
        rest = tuple(other for other in candidate.pods if other != row)
        outcome = decision_pass.evaluator.consolidate(
            [candidate], decision_pass.context.settings.most_new_nodes, pods=rest
        )
        if outcome.command is not None and outcome.command.savings > 0:
            also = "".join(f" and {otherwise(rule.rule, rule.reason)}" for rule in others)
            alternatives.append(Alternative(f"Pod {pods(row).key} were not there{also}", outcome.command.savings))
    return tuple(sorted(alternatives, key=lambda entry: (-entry.savings, entry.condition))[:5])
