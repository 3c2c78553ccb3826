"""Rules of pods: budgets, do-not-disrupt, and nobody is lost with a node."""

from collections.abc import Iterator

from tests.robustness.checker import facts as f
from tests.robustness.checker.records import Json, Request
from tests.robustness.checker.violations import FRESH, GRACE, Violation
from tests.robustness.checker.world import World


def removals(world: World) -> Iterator[tuple[int, Request, Json]]:
    """Requests that made a pod go that was not going yet, with the pod before."""
    for revision, request in world.requests:
        if request.kind == "Pod" and request.verb in ("evict", "delete") and revision in world.effects:
            pod = world.get("Pod", request.key, revision)
            if pod is not None and f.active(pod):
                yield revision, request, pod


def known_at(world: World, revision: int, request: Request, node: str) -> int:
    """What the sender of a request had to know of the pods of a node: what it listed, or all but the last seconds."""
    for earlier, listed in reversed(world.requests):
        if earlier < revision and world.times[earlier] < request.time - FRESH:
            break
        about = (listed.verb, listed.kind, listed.key, listed.who, listed.status)
        if earlier < revision and about == ("list", "Pod", node, request.who, 200):
            return earlier
    return min(revision, world.before(request.time - GRACE))


# -- PodDisruptionBudgets ----------------------------------------------------------------------------------------------


def disruption_budgets(world: World) -> Iterator[Violation]:
    """No pod that a PodDisruptionBudget needs is evicted, and none is deleted past its budget."""
    for revision, request, pod in removals(world):
        if not f.healthy(pod) or (not world.start.exact and request.verb == "evict"):
            continue  # a real server answers evictions by itself
        if request.verb == "delete" and _deadline(world, revision, pod):
            continue
        for budget in world.listed("PodDisruptionBudget", revision):
            if not f.covers(budget, pod):
                continue
            left = sum(f.healthy(other) for other in world.listed("Pod", revision) if f.covers(budget, other)) - 1
            needed = budget.get("status", {}).get("desiredHealthy", 0)
            if left < needed:
                message = f"{request.who} makes {request.key} go: {left} of {needed} pods of {f.key(budget)} are left"
                yield Violation("PodDisruptionBudget", revision, request.time, message)


def _deadline(world: World, revision: int, pod: Json) -> bool:
    """Whether the pod's node has a termination grace period, which ends whatever budgets say."""
    node = pod.get("spec", {}).get("nodeName")
    claims = (claim for claim in world.listed("NodeClaim", revision) if f.node_of(claim) == node)
    return any(f.annotation(claim, f.DEADLINE) is not None for claim in claims)


# -- do-not-disrupt ----------------------------------------------------------------------------------------------------


def do_not_disrupt(world: World) -> Iterator[Violation]:
    """What do-not-disrupt protects is not evicted, and its node is not chosen."""
    yield from _protected_pods(world)
    yield from _protected_nodes(world)


def _protected_pods(world: World) -> Iterator[Violation]:
    for revision, request, pod in removals(world):
        known = min(request.view, world.before(request.time - GRACE))
        if "compactor" in world.start.settings:  # it reads a node again before every eviction
            known = known_at(world, revision, request, str(pod.get("spec", {}).get("nodeName", "")))
        if request.verb == "delete" and _deadline(world, revision, pod):
            continue
        versions = (world.get("Pod", request.key, at) for at in world.instants(["Pod"], known, revision))
        now = world.moment(request.time)
        if all(version is not None and f.same(version, pod) and f.protected(version, now) for version in versions):
            message = f"{request.who} makes {request.key} go, which {f.DO_NOT_DISRUPT} protects"
            yield Violation("DoNotDisrupt", revision, request.time, message)


def _protected_nodes(world: World) -> Iterator[Violation]:
    """A command deletes no NodeClaim whose node a pod protects."""
    for revision, request in world.requests:
        if request.kind != "NodeClaim" or request.verb != "delete" or revision not in world.effects:
            continue
        claim = world.get("NodeClaim", request.key, revision)
        ticket = f.ticket(claim)
        if claim is None or f.deleted(claim) or ticket is None or not ticket.get("committed"):
            continue  # why else it may be deleted is another rule's business
        if f.expired(claim, world.moment(request.time)):
            continue
        if ticket["cause"] == "Drifted" and claim.get("spec", {}).get("terminationGracePeriod") is not None:
            continue
        node, now = f.node_of(claim), world.moment(request.time)
        known = known_at(world, revision, request, node)
        for pod in f.on_node(world.listed("Pod", known), node):
            later = world.get("Pod", f.key(pod), revision)
            if later is not None and f.same(pod, later) and f.protected(pod, now) and f.protected(later, now):
                message = f"{request.who} deletes {request.key} though {f.key(pod)} on {node} has {f.DO_NOT_DISRUPT}"
                yield Violation("DoNotDisrupt", revision, request.time, message)


# -- nobody is lost ----------------------------------------------------------------------------------------------------


def only_leaving_nodes(world: World) -> Iterator[Violation]:
    """Pods are made to go only from nodes that are on their way out."""
    for revision, request, pod in removals(world):
        node = pod.get("spec", {}).get("nodeName", "")
        since = min(request.view, world.before(request.time - GRACE))
        if not any(_leaves(world, node, at) for at in world.instants(["Node", "NodeClaim"], since, revision)):
            message = f"{request.who} makes {request.key} go from {node or 'nowhere'}, which stays"
            yield Violation("EvictedFromStayingNode", revision, request.time, message)


def _leaves(world: World, name: str, at: int) -> bool:
    node = world.get("Node", name, at)
    return node is None or f.deleted(node) or (f.in_compaction(node) and f.cordoned(node))


def pods_of_deleted_nodes(world: World) -> Iterator[Violation]:
    """When a machine is ended, or its Node is let go, every pod on it was evicted, is finished, or chose to stay."""
    for revision, request in world.requests:
        node = _ended_node(world, revision, request)
        if node is None:
            continue
        known = known_at(world, revision, request, node)
        for pod in f.on_node(world.listed("Pod", known), node):
            now = world.get("Pod", f.key(pod), revision)
            if now is not None and f.same(pod, now) and f.active(pod) and f.active(now) and not _may_stay(pod):
                message = f"{request.who} ends node {node} with {f.key(pod)} on it, which nobody evicted"
                yield Violation("PodLost", revision, request.time, message)


def _ended_node(world: World, revision: int, request: Request) -> str | None:
    """The node that a request ends: its machine, or its object by taking the last finalizer."""
    if request.verb == "terminate" and request.status:
        claim = world.get("NodeClaim", request.key, revision)
        # A claim whose machine was never registered has no node.
        node = "" if claim is None else f.node_of(claim)
    else:
        changes = [change for _, change in world.effects.get(revision, ())]
        node = next((change.key for change in changes if change.kind == "Node" and change.object is None), "")
    if not node or (world.start.exact and world.get("Instance", node, revision) is None):
        return None  # the machine ended by itself before
    return node


def _may_stay(pod: Json) -> bool:
    return f.of_daemon_set(pod) or f.of_kubelet(pod) or f.tolerates_disruption(pod)
