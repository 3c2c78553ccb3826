"""The rule of harm: a pool whose commands moved pods that do not run again stops by itself."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime

from tests.robustness.checker import facts as f
from tests.robustness.checker.nodes import starts
from tests.robustness.checker.pods import removals
from tests.robustness.checker.records import Json
from tests.robustness.checker.violations import Violation
from tests.robustness.checker.world import World

HARM_AFTER = 600.0
"""A pod that does not run for so long after a move counts as harmed."""
HARMED_PODS = 3
WATCHED = 3600.0
"""So long after a move its pods are looked at."""
LATE = 240.0
"""So much later than it could be known a pool may be stopped: pods are looked at every minute, by whoever leads."""


def harm(world: World) -> Iterator[Violation]:
    """No command starts in a pool where commands have harmed several pods, unless somebody said that it may."""
    if "looks" not in world.start.settings:
        return
    moved = _moved(world)
    for revision, request, claim, ticket in starts(world):
        pool = f.pool_of(claim)
        if _forgiven(world, pool, revision):
            continue
        seen = world.before(request.time - LATE)
        harmed = {at: _harmed(world, moved[pool], at) for at in (seen, revision)}
        if all(count >= HARMED_PODS for count in harmed.values()):
            message = f"{request.who} starts {ticket['id']} though {harmed[revision]} pods that left {pool} do not run"
            yield Violation("Harm", revision, request.time, message)


def _moved(world: World) -> dict[str, list[tuple[int, Json]]]:
    """The pods that commands evicted and that ran before, by the pool of their node, with the revision."""
    moved = defaultdict(list)
    for revision, _request, pod in removals(world):
        node = pod.get("spec", {}).get("nodeName")
        for claim in world.listed("NodeClaim", revision):
            if f.node_of(claim) == node and (f.ticket(claim) or {}).get("committed") and f.healthy(pod):
                moved[f.pool_of(claim)].append((revision, pod))
    return moved


def _forgiven(world: World, pool: str, at: int) -> bool:
    """Whether somebody else than the controller took the annotation away in the last hours."""
    before: Json | None = None
    for revision, obj in world.versions("NodePool", pool):
        if revision >= at:
            break
        had = before is not None and f.annotation(before, f.HARM) is not None
        if had and obj is not None and f.annotation(obj, f.HARM) is None:
            return True
        before = obj
    return False


def _harmed(world: World, moved: list[tuple[int, Json]], at: int) -> int:
    """How many pods came for those that were moved and have not run for long."""
    now = world.moment(world.times[min(at, len(world.times) - 1)])
    recent = [(revision, pod) for revision, pod in moved if revision < at and world.times[revision] > _since(world, at)]
    by_controller = Counter(f.controller_of(pod) for _, pod in recent)
    count = 0
    for controller, wanted in by_controller.items():
        first = min(world.times[revision] for revision, pod in recent if f.controller_of(pod) == controller)
        successors = sorted(
            (pod for pod in world.listed("Pod", at) if controller and f.controller_of(pod) == controller),
            key=lambda pod: (str(f.meta(pod)["creationTimestamp"]), f.key(pod)),
        )
        later = [pod for pod in successors if f.created(pod) >= world.moment(first) and f.active(pod)]
        # Only the first ones stand in for those that were moved.
        count += sum(_crashes_for(pod, now) >= HARM_AFTER for pod in later[:wanted])
    return count


def _since(world: World, at: int) -> float:
    return world.times[min(at, len(world.times) - 1)] - WATCHED + HARM_AFTER


def _crashes_for(pod: Json, now: datetime) -> float:
    if not f.crashes(pod):
        return 0.0
    age = now - f.created(pod)
    return age.total_seconds()
