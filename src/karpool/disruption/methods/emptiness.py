"""Emptiness: nodes without a pod that needs another place go, all that budgets allow in one command."""

from karpool.disruption.candidates.eligibility import emptiness_refusal
from karpool.disruption.candidates.ordering import in_order
from karpool.disruption.command import Cause, Command, Method
from karpool.disruption.decision_pass import DecisionPass


def emptiness(decision_pass: DecisionPass) -> tuple[Command, ...]:
    """All empty nodes that budgets let go, in one command."""
    context = decision_pass.context
    empty = [node for node in decision_pass.candidates() if not node.pods and emptiness_refusal(context, node) is None]
    chosen = decision_pass.within_budgets(in_order(empty, context.settings.order, context.now), Cause.EMPTY)
    if not chosen:
        return ()
    command = Command(
        method=Method.EMPTINESS,
        cause=Cause.EMPTY,
        nodes=tuple(node.name for node in chosen),
        price=sum(node.price or 0.0 for node in chosen),
        unpriced=sum(node.price is None for node in chosen),
        disruption_cost=sum(node.cost for node in chosen),
    )
    return (command,)
