"""Deadlines of drains, as an annotation of the NodeClaim: when the last pod has to be gone from its node."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from karpool.execution.actions import Annotate
from karpool.execution.reconcile_context import ReconcileContext
from karpool.model.labels import TERMINATION_TIMESTAMP
from karpool.model.nodepool import NodeClaim


def deadline_of(claim: NodeClaim | None) -> datetime | None:
    """When a node must be empty; None if there is no deadline, or it cannot be read."""
    return None if claim is None else written_deadline(claim.metadata.annotations)


def written_deadline(annotations: Mapping[str, str]) -> datetime | None:
    """The deadline that these annotations have, if any."""
    text = annotations.get(TERMINATION_TIMESTAMP)
    try:
        deadline = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return deadline.replace(tzinfo=UTC) if deadline is not None and deadline.tzinfo is None else deadline


def written(deadline: datetime) -> str:
    """A deadline as the annotation has it."""
    return f"{deadline.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def tighten_deadline(context: ReconcileContext, claim: NodeClaim, bound: timedelta) -> None:
    """Let pods leave within so long from now; an earlier deadline stays."""
    ends, known = context.now + bound, deadline_of(claim)
    if known is None or ends < known:
        context.do(Annotate("NodeClaim", claim.name, TERMINATION_TIMESTAMP, written(ends)))
