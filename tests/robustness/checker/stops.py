"""Rules of brakes: nothing new is disrupted while something stops it."""

from collections.abc import Iterator
from datetime import timedelta

from tests.robustness.checker import facts as f
from tests.robustness.checker.compaction import cordons
from tests.robustness.checker.nodes import starts, view_of
from tests.robustness.checker.records import Json, Request
from tests.robustness.checker.violations import Violation
from tests.robustness.checker.world import World

MOST_UNREADY, MOST_UNREADY_PERCENT = 3, 45
"""With more nodes unready than both, nothing is disrupted."""
LEAST_OF_ZONE = 3
"""A zone with so many nodes is looked at alone."""
STARTUP = timedelta(minutes=15)
"""So long a new node may take to become ready."""
_KINDS = ("Node", "NodeClaim", "NodePool", "ConfigMap")


def stopped(world: World) -> Iterator[Violation]:
    """No command starts in a pool that is paused or has done harm, or while too much of the cluster is not ready.

    What is said by objects of one kind may be known, and what others say not yet: each has its own watch. So it must be
    one of these that stands against a command as long as its sender may have believed in.
    """
    begun: list[tuple[int, Request, str, str]] = [
        (revision, request, f.pool_of(claim), f"starts {ticket['id']}")
        for revision, request, claim, ticket in starts(world)
    ]
    begun += [(revision, request, "", f"cordons {request.key}") for revision, request in cordons(world)]
    for revision, request, pool, deed in begun:
        instants = world.instants(_KINDS, view_of(world, revision, request), revision)
        for why in (_paused, _held, _unhealthy):
            whys = [why(world, pool, at) for at in instants]
            if all(whys):
                yield Violation("Stopped", revision, request.time, f"{request.who} {deed}: {whys[-1]}")
                break


def _paused(world: World, _pool: str, at: int) -> str:
    paused = any(f.name(found) == f.PAUSE for found in world.listed("ConfigMap", at))
    return "everything is paused" if paused else ""


def _held(world: World, name: str, at: int) -> str:
    pool = world.get("NodePool", name, at)
    if pool is not None and f.annotation(pool, f.PAUSED) is not None:
        return f"pool {name} is paused"
    if pool is not None and f.annotation(pool, f.HARM) is not None:
        return f"pool {name} has done harm"
    return ""


def _unhealthy(world: World, _pool: str, at: int) -> str:
    nodes = world.listed("Node", at)
    unready = [node for node in nodes if _unready(world, node, at)]
    if len(unready) > MOST_UNREADY and 100 * len(unready) > MOST_UNREADY_PERCENT * len(nodes):
        return f"{len(unready)} of {len(nodes)} nodes are not ready"
    for zone in sorted({f.label(node, f.ZONE) for node in unready} - {""}):
        members = sum(f.label(node, f.ZONE) == zone for node in nodes)
        lost = sum(f.label(node, f.ZONE) == zone for node in unready)
        if members - _starting(world, nodes, zone, at) >= LEAST_OF_ZONE and 100 * lost > MOST_UNREADY_PERCENT * members:
            return f"{lost} of {members} nodes of zone {zone} are not ready"
    return ""


def _unready(world: World, node: Json, at: int) -> bool:
    ready = f.condition(node, "Ready")
    return bool(ready) and ready != "True" and not f.deleted(node) and not _is_starting(world, node, at)


def _is_starting(world: World, node: Json, at: int) -> bool:
    """Whether a node may not have been ready yet."""
    created = f.meta(node).get("creationTimestamp")
    young = created is not None and world.moment(world.times[at]) - f.moment(created) < STARTUP
    return young and f.condition(node, "Ready") != "True" and not f.label(node, f.INITIALIZED)


def _starting(world: World, nodes: list[Json], zone: str, at: int) -> int:
    return sum(f.label(node, f.ZONE) == zone and _is_starting(world, node, at) for node in nodes)
