"""How a story must end, some time after its last fault: nothing is left over, all pods run, and the work goes on."""

from collections.abc import Iterator
from typing import Final

from tests.robustness.checker import facts as f
from tests.robustness.checker.rates import Room
from tests.robustness.checker.records import Json
from tests.robustness.checker.violations import Violation
from tests.robustness.checker.world import Rest, World

LONGEST_COMMAND: Final = 900.0
"""A command is done or rolled back after this many seconds without faults; it may wait ten minutes for others."""
LONGEST_WAIT: Final = 600.0
"""A pod that fits a new node runs after this many seconds without faults."""
LONGEST_HARM: Final = 900.0 + 2 * 300.0
"""A pool goes on when all pods have been well for a quarter of an hour, as soon as somebody looks."""
LONGEST_IDLE: Final = 900.0
"""A node without pods is gone after this many seconds, if its pool allows it."""


def ending(world: World) -> Iterator[Violation]:
    """Asked at the end of every rest."""
    if not world.rests:
        yield Violation("Progress", len(world.records) - 1, world.times[-1], "the story has no end")
    for rest in world.rests:
        yield from _left_over(world, rest)
        yield from _waiting(world, rest)
        yield from _idle(world, rest)


def _patience(world: World, seconds: float) -> float:
    """How long something may take; a story that ends when all is at rest has none."""
    return float(world.start.settings.get("patience", seconds))


def _long_ago(world: World, rest: Rest, seconds: float) -> int:
    """The revision so long before the end, but not before the last fault was over."""
    since = world.times[rest.end] - _patience(world, seconds)
    return rest.end if since == world.times[rest.end] else max(world.before(since), rest.quiet or 0)


def _has_lasted(world: World, rest: Rest, seconds: float) -> bool:
    """Whether there was enough time without faults for something that takes so long."""
    quiet = world.times[rest.quiet] if rest.quiet is not None else 0.0
    return world.times[rest.end] - quiet >= _patience(world, seconds)


# -- what is left ------------------------------------------------------------------------------------------------------


def _left_over(world: World, rest: Rest) -> Iterator[Violation]:
    if not _has_lasted(world, rest, LONGEST_COMMAND):
        return
    since, end = _long_ago(world, rest, LONGEST_COMMAND), rest.end
    for kind in ("NodeClaim", "Node"):
        for obj in world.listed(kind, end):
            before = world.get(kind, f.key(obj), since)
            stale = _marks(obj) if before is None else _marks(obj) & _marks(before)
            if before is not None and stale and not (f.deleted(obj) and _must_wait(world, obj, end)):
                message = f"{kind} {f.key(obj)} keeps {', '.join(sorted(stale))}"
                yield Violation("LeftOver", end, world.times[end], message)
    yield from _widows(world, end, since)
    yield from _harm_left(world, rest)


def _harm_left(world: World, rest: Rest) -> Iterator[Violation]:
    """A pool that has stopped itself goes on when all pods have run for a while."""
    if not _has_lasted(world, rest, LONGEST_HARM):
        return
    instants = world.instants(["Pod"], _long_ago(world, rest, LONGEST_HARM), rest.end)
    pods = [pod for at in instants for pod in world.listed("Pod", at)]
    if all(f.healthy(pod) or f.deleted(pod) or f.finished(pod) for pod in pods):
        for pool in world.listed("NodePool", rest.end):
            if f.annotation(pool, f.HARM) is not None:
                yield Violation("LeftOver", rest.end, world.times[rest.end], f"pool {f.name(pool)} keeps {f.HARM}")


def _must_wait(world: World, obj: Json, at: int) -> bool:
    """Whether a node that goes holds a pod that nobody may evict: people have to decide."""
    node = f.node_of(obj) or f.name(obj)
    budgets = world.listed("PodDisruptionBudget", at)
    now = world.moment(world.times[at])
    closed = [budget for budget in budgets if not budget["status"].get("disruptionsAllowed")]
    pods = [pod for pod in f.on_node(world.listed("Pod", at), node) if f.active(pod)]
    return any(f.protected(pod, now) or any(f.covers(budget, pod) for budget in closed) for pod in pods)


def _marks(obj: Json) -> set[str]:
    """The marks of something under way, each with what it is about."""
    marks = {f"{key}={f.annotation(obj, key)}" for key in (f.TICKET, f.REPLACEMENT) if f.annotation(obj, key)}
    if f.deleted(obj):
        marks.add(f"its finalizers {f.meta(obj).get('finalizers', [])}")
    if f.tainted(obj):
        marks.add(f"the taint {f.DISRUPTED}")
    if f.condition(obj, "DisruptionReason"):
        marks.add("the condition DisruptionReason")
    return marks


def _widows(world: World, end: int, since: int) -> Iterator[Violation]:
    """Machines, NodeClaims and Nodes come and go together."""
    if "compactor" in world.start.settings:
        return  # its nodes belong to an autoscaler
    claims, nodes = world.listed("NodeClaim", end), world.listed("Node", end)
    named = {f.node_of(claim) for claim in claims}
    there = {f.name(node) for node in nodes}
    alone = [("Node", f.name(node), "has no NodeClaim") for node in nodes if f.name(node) not in named]
    alone += [("NodeClaim", f.name(claim), "has no Node") for claim in claims if f.node_of(claim) not in there]
    if world.start.exact:
        alone += [("Instance", key, "has no Node") for key in world.keys("Instance") if key not in there]
    for kind, key, problem in alone:
        if world.get(kind, key, end) is not None and world.get(kind, key, since) is not None:
            yield Violation("LeftOver", end, world.times[end], f"{kind} {key} {problem}")


# -- who waits ---------------------------------------------------------------------------------------------------------


def _waiting(world: World, rest: Rest) -> Iterator[Violation]:
    if not _has_lasted(world, rest, LONGEST_WAIT):
        return
    since, end = _long_ago(world, rest, LONGEST_WAIT), rest.end
    for pod in world.listed("Pod", end):
        before = world.get("Pod", f.key(pod), since)
        if before is None or not f.same(before, pod) or f.finished(pod):
            continue
        if not f.healthy(pod) and not f.healthy(before):
            message = f"pod {f.key(pod)} does not run and did not {LONGEST_WAIT:g} s ago"
            yield Violation("Progress", end, world.times[end], message)


# -- work that nobody does ---------------------------------------------------------------------------------------------


def _idle(world: World, rest: Rest) -> Iterator[Violation]:
    """A node that has been empty all the time is gone by now, unless something speaks for it, or rates left no room."""
    if "compactor" in world.start.settings or not _has_lasted(world, rest, LONGEST_IDLE):
        return
    since, end = _long_ago(world, rest, LONGEST_IDLE), rest.end
    began = world.times[end] - _patience(world, LONGEST_IDLE)
    instants = world.instants(["Pod", "Node", "NodeClaim", "NodePool", "ConfigMap"], since, end)
    # What is so before a revision has been so since the one before it.
    moments = [(at, max(began, world.times[at - 1])) for at in instants]
    room = Room(world)
    for node in world.listed("Node", end):
        name = f.name(node)
        if all(_removable(world, name, at, now) and room.for_node(name, at, now) for at, now in moments):
            message = f"node {f.name(node)} is empty and stays"
            yield Violation("Progress", end, world.times[end], message)


def _removable(world: World, name: str, at: int, time: float) -> bool:
    node = world.get("Node", name, at)
    pool = None if node is None else world.get("NodePool", f.pool_of(node), at)
    if any(f.name(found) == f.PAUSE for found in world.listed("ConfigMap", at)):
        return False
    if node is None or pool is None or not f.label(node, f.INITIALIZED) or f.condition(node, "Ready") != "True":
        return False
    if f.annotation(node, f.DO_NOT_DISRUPT) is not None:
        return False
    if any(f.annotation(pool, key) is not None for key in (f.PAUSED, f.HARM)):
        return False
    now = world.moment(time)
    if any(f.cools_down(claim, now) for claim in world.listed("NodeClaim", at) if f.pool_of(claim) == f.name(pool)):
        return False
    disruption = pool["spec"].get("disruption", {})
    if any(str(budget.get("nodes")) in ("0", "0%") for budget in disruption.get("budgets", ())):
        return False
    if (f.seconds(str(disruption.get("consolidateAfter", "0s"))) or 0.0) > LONGEST_IDLE / 3:
        return False
    pods = f.on_node(world.listed("Pod", at), name)
    return all(f.finished(pod) or f.of_daemon_set(pod) for pod in pods)
