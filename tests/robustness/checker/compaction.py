"""Rules of the compactor: which nodes it cordons, how many at once, and what it leaves behind."""

from collections.abc import Iterator

from tests.robustness.checker import facts as f
from tests.robustness.checker.records import Json, Request
from tests.robustness.checker.violations import GRACE, OLDEST, Violation
from tests.robustness.checker.world import World

_POOL = "cloud.google.com/gke-nodepool"
SLACK = 120.0


def cordons(world: World) -> Iterator[tuple[int, Request]]:
    """Requests by which a scale-down begins."""
    for revision, request in world.requests:
        for at, change in world.effects.get(revision, ()):
            before = world.get("Node", change.key, at)
            if change.kind == "Node" and f.in_compaction(change.object) and not f.in_compaction(before):
                yield revision, request


def compaction(world: World) -> Iterator[Violation]:
    """The compactor begins where it may, no more at once than it was told, and ends what it begins."""
    limits = world.start.settings
    if "compactor" not in limits:
        return
    for revision, request in cordons(world):
        known = max(min(request.view, world.before(request.time - GRACE)), world.before(request.time - OLDEST))
        instants = world.instants(["Node"], min(known, revision), revision)
        whys = [_refused(world, request.key, limits, at) for at in instants]
        if all(whys):
            yield Violation("Compaction", revision, request.time, f"{request.who} cordons {request.key}: {whys[-1]}")
    for rest in world.rests:
        yield from _left(world, limits, rest.end)


def _refused(world: World, name: str, limits: Json, at: int) -> str:
    node = world.get("Node", name, at)
    if node is None or f.deleted(node):
        return "it goes already"
    if f.cordoned(node):
        return "somebody else has cordoned it"
    if f.condition(node, "Ready") != "True":
        return "it is not ready"
    if f.annotation(node, f.DO_NOT_DISRUPT) == "true":
        return f"it has {f.DO_NOT_DISRUPT}"
    if f.label(node, _POOL) != limits["compactor"]:
        return "its pool takes no part"
    others = sum(f.in_compaction(other) and not f.deleted(other) for other in world.listed("Node", at))
    most = limits.get("atOnce")
    return f"{others} others are on their way, {most} may be" if most is not None and others >= most else ""


def _left(world: World, limits: Json, end: int) -> Iterator[Violation]:
    now = world.moment(world.times[end])
    for node in world.listed("Node", end):
        mark = f.compaction(node)
        if not f.in_compaction(node):
            if f.cordoned(node) and "lastUpdated" in mark and _ours(world, f.name(node), end):
                yield Violation("LeftOver", end, world.times[end], f"node {f.name(node)} is still cordoned")
            continue
        if not f.cordoned(node):
            yield Violation("LeftOver", end, world.times[end], f"node {f.name(node)} is marked and takes pods")
        drained = mark.get("drainedAt", "")
        since, longest = (drained, "removalTimeout") if drained else (mark["lastUpdated"], "drainTimeout")
        if (now - f.moment(since)).total_seconds() > limits[longest] + SLACK:
            yield Violation("Progress", end, world.times[end], f"the scale-down of {f.name(node)} has no end")


def _ours(world: World, name: str, end: int) -> bool:
    """Whether the last one to cordon a node was the compactor."""
    before: Json | None = None
    ours = False
    for revision, obj in world.versions("Node", name):
        if revision < end and obj is not None and f.cordoned(obj) and (before is None or not f.cordoned(before)):
            ours = f.in_compaction(obj)
        before = obj
    return ours
