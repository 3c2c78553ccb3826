"""The price that no plan can bring a cluster below, and what each kind of blocker costs.

A blocker costs what the bound would be lower without it: the same linear programme, in which the nodes that nothing
else keeps may go.
"""

from collections.abc import Iterator
from typing import Final

from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.candidates.eligibility import node_rules
from karpool.disruption.candidates.windows import in_grace, source_closed
from karpool.disruption.command import Cause
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.fleet_search.bounded_problem import bounded_problem
from karpool.disruption.fleet_search.fleet import fleet_of
from karpool.disruption.fleet_search.plan_summary import BlockerCost, LowerBound
from karpool.disruption.policies import keeps_used_nodes
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.settings import MOST_EFFORT
from karpool.optimization.bound import lower_bound
from karpool.optimization.programme import SolverError

__all__ = ["LIFTED", "SolverError", "bound_of"]

LIFTED: Final = frozenset(
    {
        ReasonCode.POD_DO_NOT_DISRUPT,
        ReasonCode.POD_DISRUPTION_BUDGET,
        ReasonCode.NODE_DO_NOT_DISRUPT,
        ReasonCode.CONSOLIDATE_AFTER_NEVER,
        ReasonCode.CONSOLIDATE_AFTER_WINDOW,
        ReasonCode.GRACE_PERIOD,
        ReasonCode.POLICY_WHEN_EMPTY,
        ReasonCode.BUDGET_EXHAUSTED,
        ReasonCode.POD_NOT_SAFE_TO_EVICT,
        ReasonCode.POD_LOCAL_STORAGE,
        ReasonCode.POD_NOT_REPLICATED,
        ReasonCode.SYSTEM_POD,
        ReasonCode.SCALE_DOWN_DISABLED,
        ReasonCode.GROUP_AT_MINIMUM,
    }
)
"""What somebody chose and could choose otherwise."""
_MOST_NODES: Final = 2000
"""Up to how many nodes it is told what blockers cost, unless the effort is the highest."""


def bound_of(decision_pass: DecisionPass) -> LowerBound:
    """The bound for the cluster of a pass, and what blockers cost; without effort only what is known at once."""
    effort = decision_pass.context.settings.effort
    fleet = fleet_of(decision_pass)
    problem = bounded_problem(decision_pass, fleet)
    found = lower_bound(problem) if effort else lower_bound(problem, branches=0)
    blockers = effort == MOST_EFFORT or (effort > 0 and len(fleet.rows) <= _MOST_NODES)
    fixed = fleet.rows[~fleet.problem.nodes.movable].tolist() if blockers else []
    kept = _kept_by_one(decision_pass, decision_pass.context.candidates(fixed))
    # Whole machines on one side only would tell of these, not of the blocker.
    divisible = lower_bound(problem, branches=0).price if kept and found.method != "LP" else found.price
    costs = (_cost(decision_pass, code, nodes, divisible) for code, nodes in kept.items())
    ordered = tuple(sorted(costs, key=lambda cost: (-cost.price, cost.code)))
    return LowerBound(max(0.0, found.price), found.method, ordered)


def _cost(decision_pass: DecisionPass, code: str, nodes: list[Candidate], price: float) -> BlockerCost:
    fleet = fleet_of(decision_pass, lifted=frozenset(node.row for node in nodes))
    lifted = lower_bound(bounded_problem(decision_pass, fleet), branches=0)
    return BlockerCost(code, max(0.0, price - lifted.price), len(nodes))


def _kept_by_one(decision_pass: DecisionPass, nodes: list[Candidate]) -> dict[str, list[Candidate]]:
    """By blocker: the nodes of known price that nothing else keeps."""
    kept: dict[str, list[Candidate]] = {}
    for node in nodes:
        codes = set(_keeping(decision_pass, node))
        if len(codes) == 1 and codes <= LIFTED and node.price is not None:
            kept.setdefault(codes.pop(), []).append(node)
    return kept


def _keeping(decision_pass: DecisionPass, node: Candidate) -> Iterator[str]:
    """The code of every reason for which a node may not go."""
    context, claim, pool = decision_pass.context, node.state.claim, node.pool
    if claim is None or pool is None:
        yield ReasonCode.NOT_MANAGED
        return
    if pool.static:
        yield ReasonCode.STATIC_POOL
    reasons = [reason for _, reason in node_rules(context, node)]
    reasons += [reason for _, reason in context.blocking_pods(node.row)]
    reasons += [keeps_used_nodes(pool), source_closed(claim, pool, context.now), in_grace(claim, pool, context.now)]
    reasons.append(decision_pass.over_budget(node, Cause.UNDERUTILIZED))
    yield from (reason.code for reason in reasons if reason is not None)
