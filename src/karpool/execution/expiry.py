"""Claims that have to go by themselves: too slow to start, too old, or without a machine."""

from datetime import datetime

from karpool.execution.actions import DeleteClaim
from karpool.execution.conditions import INSTANCE_TERMINATING, LAUNCHED, REGISTERED, TERMINATED
from karpool.execution.turn import Turn
from karpool.model.nodepool import NodeClaim
from karpool.wire.objects import condition


def end_of_life(turn: Turn, claim: NodeClaim) -> bool:
    """Whether a claim has to go now; if so, it is deleted. The next moment at which it may is noted."""
    due = [moment for moment in (_expires(claim), _given_up(turn, claim)) if moment is not None]
    gone = _machine_gone(turn, claim)
    if not gone and not any(moment <= turn.now for moment in due):
        for moment in due:
            turn.look_again(moment)
        return False
    turn.do(DeleteClaim(claim.name, claim.metadata.uid))
    return True


def _expires(claim: NodeClaim) -> datetime | None:
    """When the claim is as old as it may become."""
    created, length = claim.metadata.creation_timestamp, claim.spec.expire_after.delta
    return None if created is None or length is None else created + length


def _given_up(turn: Turn, claim: NodeClaim) -> datetime | None:
    """When a claim that does not launch, or whose node does not come, is given up."""
    settings = turn.settings
    for kind, timeout in ((LAUNCHED, settings.launch_timeout), (REGISTERED, settings.registration_timeout)):
        if not claim.is_true(kind):
            said = condition(claim.status.conditions, kind)
            since = (said.last_transition_time if said else None) or claim.metadata.creation_timestamp
            return None if since is None else since + timeout
    return None


def _machine_gone(turn: Turn, claim: NodeClaim) -> bool:
    """Whether the provider knows no machine of a claim any more, and no node says otherwise."""
    said = condition(claim.status.conditions, INSTANCE_TERMINATING)
    gone = said is not None and said.status == "True" and said.reason == TERMINATED
    return gone and not any(node.ready for node in turn.nodes_of.get(claim.name, ()))
