"""The rule of paced drains: few pods that commands evicted are away, of a workload and in all."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from tests.robustness.checker import facts as f
from tests.robustness.checker.pods import removals
from tests.robustness.checker.records import Json, Request
from tests.robustness.checker.violations import GRACE, Violation
from tests.robustness.checker.world import World

WORKLOAD: Final = 0.25
ALL: Final = 0.05
LEAST: Final = 10
RECENT: Final = 60.0
"""Replacements are waited for longer than this, whatever happens."""
SENT: Final = 4.5
"""What a process has sent in the last seconds it knows, though nothing may be seen of it."""
LONGEST: Final = 1500.0
"""A node that drains for so long may have stopped waiting."""


class Eviction(NamedTuple):
    """A healthy pod that a command made to go, and the controller that makes it again."""

    revision: int
    request: Request
    owner: str
    created: datetime


def pace(world: World) -> Iterator[Violation]:
    """No pod is evicted while more are away than may be: a quarter of its workload, a twentieth of all, or ten."""
    if not world.start.exact:
        return  # when a real server did what it was asked for is not known to the second
    seen: list[Eviction] = []
    for eviction in _evictions(world):
        revision, request, owner, _ = eviction
        since = min(request.view, world.before(request.time - GRACE))
        known = [
            one
            for one in seen
            if one.request.time > request.time - RECENT
            and (one.revision < since or (one.request.who == request.who and one.request.time > request.time - SENT))
        ]
        first = {one.owner: one.request.time for one in reversed(known)}
        # A pod that came in the place of another and went, too, is away once.
        gone = Counter(one.owner for one in known if one.created < world.moment(int(first[one.owner])))
        instants = world.instants(["Pod"], since, revision)
        away = {own: min(_away(world, own, count, first[own], at) for at in instants) for own, count in gone.items()}
        sizes = [_size(world, owner, at) for at in {since, revision, *(one.revision for one in known)}]
        most = max(1, int(WORKLOAD * max(sizes)))
        if away.get(owner, 0) >= most:
            message = f"{request.who} makes {request.key} go: {away[owner]} of {max(sizes)} pods of {owner} are away"
            yield Violation("Pace", revision, request.time, message)
        everywhere = max(LEAST, int(ALL * max(len(world.listed("Pod", at)) for at in (since, revision))))
        if sum(away.values()) >= everywhere:
            message = f"{request.who} makes {request.key} go: {sum(away.values())} pods are away"
            yield Violation("Pace", revision, request.time, message)
        seen.append(eviction)


def _evictions(world: World) -> Iterator[Eviction]:
    for revision, request, pod in removals(world):
        owner, node = f.controller_of(pod), pod.get("spec", {}).get("nodeName")
        claims = [claim for claim in world.listed("NodeClaim", revision) if f.node_of(claim) == node]
        if request.verb != "evict" or not owner or "/Job/" in owner or f.of_daemon_set(pod) or not f.healthy(pod):
            continue
        if any(_waits(world, claim, request) for claim in claims):
            yield Eviction(revision, request, owner, f.created(pod))


def _waits(world: World, claim: Json, request: Request) -> bool:
    """Whether a command that is not a repair removes a node, without a deadline."""
    ticket = f.ticket(claim)
    if ticket is None or not ticket.get("committed") or ticket["cause"] == "Unhealthy":
        return False
    if not f.deleted(claim) or f.annotation(claim, f.DEADLINE) is not None:
        return False
    deleted = f.moment(f.meta(claim)["deletionTimestamp"])
    return (world.moment(request.time) - deleted).total_seconds() < LONGEST


def _away(world: World, owner: str, gone: int, since: float, at: int) -> int:
    """How many of the pods of a workload that went since a time are not ready elsewhere before a revision."""
    pods = (pod for pod in world.listed("Pod", at) if f.controller_of(pod) == owner and f.healthy(pod))
    return max(0, gone - sum(f.created(pod) >= world.moment(int(since)) for pod in pods))


def _size(world: World, owner: str, at: int) -> int:
    return sum(f.active(pod) and f.controller_of(pod) == owner for pod in world.listed("Pod", at))
