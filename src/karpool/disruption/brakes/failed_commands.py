"""Back-off after failed commands: their nodes are left alone for a while, and so is the pool, longer each time."""

from collections.abc import Iterator
from datetime import datetime

from karpool.disruption.brakes.failures import HARMLESS, OF_ITS_NODES, FailedCommand, failed_command, pool_of
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stamps import refuse_ahead
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.reasons import ReasonCode, clock
from karpool.model.annotations import AnnotationError
from karpool.model.labels import FAILED_COMMAND
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects


def backs_off(objects: Objects, settings: BrakeSettings, now: datetime) -> Iterator[Stop]:
    """A stop for each node of a command that failed lately, and one for each pool that may not be able to do better."""
    pools: dict[str, tuple[datetime, FailedCommand]] = {}
    for claim in objects.node_claims:
        if FAILED_COMMAND not in claim.metadata.annotations:
            continue
        try:
            failed = failed_command(claim)
            refuse_ahead(FAILED_COMMAND, now, None if failed is None else failed.at)
        except AnnotationError as problem:
            yield _of_node(claim, f"{problem}; it is left alone until the annotation is removed", None)
            continue
        if failed is None or failed.cause in HARMLESS:
            continue
        until = settings.after_failures(failed.at, failed.tries)
        if now < until:
            how_often = "" if failed.tries == 1 else f", {failed.tries} in a row"
            failure = f"command {failed.command} failed ({failed.message}){how_often}"
            message = f"is left alone until {clock(until, now)}: {failure}"
            yield _of_node(claim, message, until)
        if failed.cause not in OF_ITS_NODES:
            rest = settings.after_failures(failed.at, failed.pool_tries)
            if now < rest and (pool_of(claim) not in pools or rest > pools[pool_of(claim)][0]):
                pools[pool_of(claim)] = rest, failed
    for pool, (rest, failed) in sorted(pools.items()):
        yield _of_pool(pool, failed, rest, now)


def _of_node(claim: NodeClaim, message: str, until: datetime | None) -> Stop:
    node = claim.status.node_name or claim.name
    return Stop(ReasonCode.COMMAND_FAILED, message, f"Node {node}", pool_of(claim), until, node)


def _of_pool(pool: str, failed: FailedCommand, until: datetime, now: datetime) -> Stop:
    times = "a command" if failed.pool_tries == 1 else f"{failed.pool_tries} commands in a row"
    message = f"cools down until {clock(until, now)}: {times} failed ({failed.cause}), last {failed.message}"
    return Stop(ReasonCode.COOLING_DOWN, message, f"NodePool {pool}", pool, until)
