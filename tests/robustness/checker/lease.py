"""Who may write: the holder of the lease, and nobody else."""

from collections.abc import Iterator

from tests.robustness.checker.violations import Violation
from tests.robustness.checker.world import World

READS = ("get", "list", "watch")


def writes_without_lease(world: World) -> Iterator[Violation]:
    """Every write was sent by the replica that held the lease at that moment."""
    if "compactor" in world.start.settings:
        return  # there is only one, and it has no lease
    for revision, request in world.requests:
        if request.verb in READS or request.kind in ("Lease", "Event"):
            continue
        holders = [lease["spec"].get("holderIdentity") for lease in world.listed("Lease", request.sent)]
        if request.who not in holders:
            message = f"{request.who} asks to {request.verb} {request.kind} {request.key}; the lease is {holders}"
            yield Violation("Lease", revision, request.time, message)
