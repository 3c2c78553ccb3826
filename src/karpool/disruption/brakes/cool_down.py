"""Cool-downs: a pool just grew for pods that waited, a launch of it failed, or a command launched a node."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from karpool.disruption.brakes.failures import pool_of
from karpool.disruption.brakes.launch_failures import FailedLaunch, failed_launch
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stamps import refuse_ahead
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.reasons import ReasonCode, clock
from karpool.model.annotations import AnnotationError
from karpool.model.labels import FAILED_LAUNCH, LAUNCHED_FOR
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects

_OFF: Final = timedelta(0)


def after_scale_up(objects: Objects, settings: BrakeSettings, now: datetime) -> Iterator[Stop]:
    """A stop for each pool that grew lately; replacements of Karpool's own commands are no growth."""
    if settings.after_scale_up <= _OFF:
        return
    newest: dict[str, tuple[datetime, NodeClaim]] = {}
    for claim in objects.node_claims:
        created = claim.metadata.creation_timestamp
        if created is None or created + settings.after_scale_up <= now or LAUNCHED_FOR in claim.metadata.annotations:
            continue
        known = newest.get(pool_of(claim))
        if known is None or (created, claim.name) > (known[0], known[1].name):
            newest[pool_of(claim)] = created, claim
    for pool, (created, claim) in sorted(newest.items()):
        until = created + settings.after_scale_up
        message = f"cools down until {clock(until, now)}: it grew by NodeClaim {claim.name}"
        yield Stop(ReasonCode.COOLING_DOWN, message, f"NodePool {pool}", pool, until)


def after_replacement(objects: Objects, settings: BrakeSettings, now: datetime) -> Iterator[Stop]:
    """A stop for each node that a command launched lately, where another controller provisions.

    The scheduler binds pods elsewhere than a command planned, so the next search often sees a node to save at once. To
    launch a node and take it away minutes later is more trouble than what those minutes cost. Empty ones may go.
    """
    if settings.after_replacement <= _OFF or not settings.launched_by_others:
        return
    for claim in objects.node_claims:
        created, node = claim.metadata.creation_timestamp, claim.status.node_name
        if created is None or not node or LAUNCHED_FOR not in claim.metadata.annotations:
            continue
        until = created + settings.after_replacement
        if now < until:
            message = f"is kept until {clock(until, now)}: a command launched it at {clock(created, now)}"
            yield Stop(ReasonCode.COOLING_DOWN, message, f"Node {node}", pool_of(claim), until, node, spares_empty=True)


def after_failed_launch(objects: Objects, settings: BrakeSettings, now: datetime) -> Iterator[Stop]:
    """A stop for each pool of which a launch failed lately: what a command would launch may fail as well.

    Empty nodes may go: nothing is launched for them. Failures that do not end, as for a pod that nobody can sell a node
    for, do not stop a pool for ever: after a while commands try, and what they cannot launch is their own failure.
    """
    if settings.after_failed_launch <= _OFF:
        return
    latest: dict[str, FailedLaunch] = {}
    for claim in objects.node_claims:
        if FAILED_LAUNCH not in claim.metadata.annotations:
            continue
        try:
            failed = failed_launch(claim)
            refuse_ahead(FAILED_LAUNCH, now, *(() if failed is None else (failed.at, failed.row_since)))
        except AnnotationError as problem:
            message = f"{problem}; only empty nodes of its pool go until the annotation is removed"
            yield _unsure_of_launches(message, f"NodeClaim {claim.name}", pool_of(claim), None)
            continue
        known = latest.get(pool_of(claim))
        if failed is not None and (known is None or failed.at > known.at):
            latest[pool_of(claim)] = failed
    for pool, failed in sorted(latest.items()):
        until = settings.after_failed_launches(failed.at, failed.row_since)
        if now < until:
            failure = f"the launch of NodeClaim {failed.claim} failed ({failed.message})"
            message = f"cools down until {clock(until, now)}: {failure}"
            yield _unsure_of_launches(message, f"NodePool {pool}", pool, until)


def _unsure_of_launches(message: str, about: str, pool: str, until: datetime | None) -> Stop:
    return Stop(ReasonCode.COOLING_DOWN, message, about, pool, until, spares_empty=True)
