"""Everything about one node: every rule with its answer, where each pod would go, and what would let the node go."""

from collections.abc import Callable
from dataclasses import dataclass

from karpool.disruption.candidates import NODE_CHECKS
from karpool.disruption.command import Cause, Command
from karpool.disruption.evaluate import Outcome
from karpool.disruption.methods import Pass
from karpool.disruption.policies import keeps_used_nodes
from karpool.disruption.reasons import Code
from karpool.disruption.situation import Standing
from karpool.disruption.windows import in_grace, source_closed
from karpool.model.pod import Pod
from karpool.model.reasons import Reason
from karpool.packing.kernels.columns import UNPLACED
from karpool.packing.refusals import refusals, sentence


@dataclass(frozen=True, slots=True)
class Ruling:
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
class Way:
    """Something that, if it were otherwise, would let the node go; and what that would save."""

    condition: str
    savings: float


@dataclass(frozen=True, slots=True)
class NodeStory:
    """What is to be said about one node."""

    standing: Standing
    rulings: tuple[Ruling, ...]
    destinations: tuple[Destination, ...]
    command: Command | None
    drift: Command | None
    ways: tuple[Way, ...]


def tell(last: Pass, standing: Standing) -> NodeStory:
    """Look at one node with all rules, and as if nothing forbade touching it."""
    situation = last.situation
    blocking = [Ruling(name, why := check(situation, standing), why is None) for name, check in NODE_CHECKS]
    blocking += _pod_rulings(last, standing)
    policy = _policy_rulings(last, standing)
    whole = standing._replace(movers=standing.pods)
    outcome = last.evaluator.consolidate([whole]) if standing.pool is not None else None
    drift, drifting = _drift_rulings(last, standing)
    rulings = (*blocking, *policy, *_money_rulings(last, standing, outcome), *drifting)
    return NodeStory(
        standing=standing,
        rulings=rulings,
        destinations=_destinations(last, whole),
        command=outcome.command if outcome else None,
        drift=drift,
        ways=() if drift else _ways(last, standing, outcome, [ruling for ruling in rulings if not ruling.passed]),
    )


def _pod_rulings(last: Pass, standing: Standing) -> list[Ruling]:
    """One line for each pod that must not be disturbed, or one for all if there is none."""
    held = sorted(last.situation.holds(standing.row), key=lambda one: one[0].key)
    refused = [Ruling("its pods may be moved", why, passed=False) for _, why in held]
    return refused or [Ruling("its pods may be moved", None, passed=True)]


def _policy_rulings(last: Pass, standing: Standing) -> list[Ruling]:
    claim, pool, now = standing.state.claim, standing.pool, last.situation.now
    if claim is None or pool is None:
        return []
    cause = Cause.EMPTY if standing.empty else Cause.UNDERUTILIZED
    questions: list[tuple[str, Reason | None]] = [
        ("quiet for as long as consolidateAfter asks", source_closed(claim, pool, now)),
        ("outside its consolidationGracePeriod", in_grace(claim, pool, now)),
        (f"a budget for {cause} is left", last.allowed(standing, cause)),
    ]
    if not standing.empty:
        questions.insert(0, ("its pool's policy looks at nodes with pods", keeps_used_nodes(pool)))
    return [Ruling(rule, why, why is None) for rule, why in questions]


def _drift_rulings(last: Pass, standing: Standing) -> tuple[Command | None, list[Ruling]]:
    """The command that replaces a drifted node, if it may go now; and what each rule of drift says."""
    drifted = last.drifted(standing)
    if drifted is None or standing.pool is None:
        return None, []
    found = last.replaced(standing)
    unplaced = found if isinstance(found, Reason) else None
    budget = last.allowed(standing, Cause.DRIFTED)
    refused = last.refusal(standing, eventual=True)
    rulings = [
        Ruling("drifted from its pool", drifted.reason, passed=True),
        Ruling("drift may touch it", refused, refused is None),
        Ruling("a budget for Drifted is left", budget, budget is None),
        Ruling("its pods have a place to be, at any price", unplaced, unplaced is None),
    ]
    goes = all(ruling.passed for ruling in rulings) and isinstance(found, Command)
    return (found if goes and isinstance(found, Command) else None), rulings


def _money_rulings(last: Pass, standing: Standing, outcome: Outcome | None) -> list[Ruling]:
    if standing.empty:
        return [Ruling("empty", Reason(Code.EMPTY, "has no pod that needs another place"), passed=True)]
    if outcome is None:
        return []
    if outcome.command is None:
        return [Ruling("its pods have a cheaper place to be", outcome.reason, passed=False)]
    unworthy = last.unworthy(outcome.command, [standing])
    return [
        Ruling("its pods have a cheaper place to be", None, passed=True),
        Ruling("the saving is worth the disruption", unworthy, unworthy is None),
    ]


def _destinations(last: Pass, standing: Standing) -> tuple[Destination, ...]:
    """Where the pods would go if the node were gone."""
    situation = last.situation
    pods = list(standing.pods)
    with situation.engine.what_if() as trial:
        trial.remove([standing.row])
        found = trial.place(
            pods,
            exempt=[situation.exempt(situation.snapshot.pods.get(row)) for row in pods],
            closed=situation.closed,
        )
        placed = []
        for row, target in zip(found.pods, found.targets, strict=True):
            pod = situation.snapshot.pods.get(row)
            if target == UNPLACED:
                said = sentence(refusals(situation.engine, row, exempt=situation.exempt(pod)))
                reason = Reason(Code.PODS_WOULD_NOT_FIT, said, f"Pod {pod.key}")
                placed.append(Destination(pod.key, None, reason))
            else:
                name = situation.snapshot.nodes.get(target).name if target >= 0 else f"new-{-1 - target}"
                placed.append(Destination(pod.key, name, None))
    return tuple(sorted(placed, key=lambda one: one.pod))


def _ways(last: Pass, standing: Standing, outcome: Outcome | None, failed: list[Ruling]) -> tuple[Way, ...]:
    """What alone, or with its like, stands between the node and a saving."""
    if standing.empty:
        savings = standing.price or 0.0
    elif outcome is not None and outcome.command is not None:
        savings = outcome.command.savings
    else:
        return _ways_without_a_pod(last, standing, failed)
    if not failed or savings <= 0:
        return ()
    conditions = [_otherwise(ruling) for ruling in failed]
    return (Way(" and ".join(dict.fromkeys(conditions)), savings),)


def _ways_without_a_pod(last: Pass, standing: Standing, failed: list[Ruling]) -> tuple[Way, ...]:
    """Pods without which the node could go: each tried alone."""
    pods: Callable[[int], Pod] = last.situation.snapshot.pods.get
    ways = []
    others = [ruling for ruling in failed if ruling.reason is not None and ruling.rule != failed[-1].rule]
    for row in standing.pods:
        rest = tuple(other for other in standing.pods if other != row)
        outcome = last.evaluator.consolidate([standing._replace(movers=rest)])
        if outcome.command is not None and outcome.command.savings > 0:
            also = "".join(f" and {_otherwise(ruling)}" for ruling in others)
            ways.append(Way(f"Pod {pods(row).key} were not there{also}", outcome.command.savings))
    return tuple(sorted(ways, key=lambda way: (-way.savings, way.condition))[:5])


def _otherwise(ruling: Ruling) -> str:
    reason = ruling.reason
    about = reason.object if reason else "the node"
    match reason.code if reason else "":
        case Code.POD_DO_NOT_DISRUPT | Code.NODE_DO_NOT_DISRUPT:
            return f"{about} were not marked do-not-disrupt"
        case Code.POD_DISRUPTION_BUDGET | Code.MULTIPLE_POD_DISRUPTION_BUDGETS:
            return f"the PodDisruptionBudget let {about} go"
        case Code.CONSOLIDATE_AFTER_WINDOW | Code.GRACE_PERIOD:
            return "its time of quiet had passed"
        case Code.BUDGET_EXHAUSTED | Code.BUDGET_INVALID:
            return f"{about} had a budget left"
        case Code.POLICY_WHEN_EMPTY:
            return f"{about} had another consolidationPolicy"
        case _:
            return f"this were so: {ruling.rule}"
