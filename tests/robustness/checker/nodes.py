"""Rules of nodes: budgets of pools, and no NodeClaim is deleted without a reason."""

from collections.abc import Iterator
from datetime import timedelta

from tests.robustness.checker import facts as f
from tests.robustness.checker.pods import known_at
from tests.robustness.checker.records import Json, Request
from tests.robustness.checker.violations import GRACE, OLDEST, Violation
from tests.robustness.checker.world import World

LAUNCH_TIMEOUT = 300.0
"""A NodeClaim that got nowhere may be given up after this many seconds, and no sooner."""
_KINDS = ("Node", "NodeClaim", "NodePool", "ConfigMap")


def starts(world: World) -> Iterator[tuple[int, Request, Json, Json]]:
    """Requests that put a command's ticket on a NodeClaim, with the claim after and the ticket."""
    for revision, request in world.requests:
        for at, change in world.effects.get(revision, ()):
            after = f.ticket(change.object)
            if change.kind != "NodeClaim" or change.object is None or after is None:
                continue
            before = f.ticket(world.get("NodeClaim", change.key, at))
            if before is None or before["id"] != after["id"]:
                yield revision, request, change.object, after


def view_of(world: World, revision: int, request: Request) -> int:
    """The oldest state that the sender may still have believed in: it knows when what it hears is older than that."""
    known = min(request.view, world.before(request.time - GRACE), revision)
    return max(known, min(revision, world.before(request.time - OLDEST)))


# -- budgets of pools --------------------------------------------------------------------------------------------------


def budgets(world: World) -> Iterator[Violation]:
    """A command starts only if the budgets of its pools allow as many nodes at once, as far as its sender knew."""
    checked = set()
    for revision, request, claim, ticket in starts(world):
        pool = f.pool_of(claim)
        if (ticket["id"], pool) in checked:
            continue
        checked.add((ticket["id"], pool))
        own = {node for node in ticket["nodes"] if _pool_of_node(world, node, revision) == pool}
        instants = world.instants(_KINDS, view_of(world, revision, request), revision)
        found = [_over(world, pool, str(ticket["cause"]), own, at) for at in instants]
        if all(message is not None for message in found):
            yield Violation("Budget", revision, request.time, f"{request.who} starts {ticket['id']}: {found[-1]}")


def _pool_of_node(world: World, name: str, at: int) -> str:
    node = world.get("Node", name, at)
    return "" if node is None else f.pool_of(node)


def _over(world: World, name: str, cause: str, own: set[str], at: int) -> str | None:
    """What is too much, if the command had started at a revision."""
    pool = world.get("NodePool", name, at)
    nodes = [node for node in world.listed("Node", at) if f.pool_of(node) == name and f.label(node, f.INITIALIZED)]
    if pool is None:
        return None
    allowed = _allowed(pool, cause, len(nodes))
    leaving = own | {f.name(node) for node in nodes if _leaves(world, node, at)}
    if len(leaving) <= allowed:
        return None
    return f"{len(leaving)} nodes of pool {name} would go at once, {allowed} of {len(nodes)} may"


def _leaves(world: World, node: Json, at: int) -> bool:
    """Whether a node counts against its budget: marked or deleted, and its machine not on its end."""
    claims = [claim for claim in world.listed("NodeClaim", at) if f.node_of(claim) == f.name(node)]
    if any(f.condition(claim, "InstanceTerminating") == "True" for claim in claims):
        return False
    marked = any(f.deleted(claim) or f.ticket(claim) is not None for claim in claims)
    return marked or f.tainted(node) or f.deleted(node)


def _allowed(pool: Json, cause: str, nodes: int) -> int:
    """The tightest of the budgets that name a cause; those with hours are not in these stories."""
    limits = [2**31]
    for budget in pool["spec"].get("disruption", {}).get("budgets", [{"nodes": "10%"}]):
        if cause in budget.get("reasons", (cause,)) and "schedule" not in budget:
            text = str(budget.get("nodes", "10%"))
            limits.append(-(-int(text[:-1]) * nodes // 100) if text.endswith("%") else int(text))
    return min(limits)


def protected_nodes(world: World) -> Iterator[Violation]:
    """No command starts on a node that carries do-not-disrupt itself."""
    for revision, request, claim, ticket in starts(world):
        instants = world.instants(["Node"], view_of(world, revision, request), revision)
        nodes = [world.get("Node", f.node_of(claim), at) for at in instants]
        if all(node is not None and f.annotation(node, f.DO_NOT_DISRUPT) == "true" for node in nodes):
            message = f"{request.who} starts {ticket['id']} on {f.node_of(claim)}, which has {f.DO_NOT_DISRUPT}"
            yield Violation("DoNotDisrupt", revision, request.time, message)


# -- deletions ---------------------------------------------------------------------------------------------------------


def unexplained_deletions(world: World) -> Iterator[Violation]:
    """A NodeClaim is deleted by a committed command, as its unused replacement, because it is old, or got nowhere."""
    for revision, request in world.requests:
        if request.kind != "NodeClaim" or request.verb != "delete" or revision not in world.effects:
            continue
        claim = world.get("NodeClaim", request.key, revision)
        if claim is None or f.deleted(claim) or _explained(world, claim, request, revision):
            continue
        message = f"{request.who} deletes {request.key}, and nothing says why"
        yield Violation("UnexplainedDeletion", revision, request.time, message)


def _explained(world: World, claim: Json, request: Request, revision: int) -> bool:
    ticket = f.ticket(claim)
    if ticket is not None and ticket.get("committed"):
        return True
    if f.annotation(claim, f.REPLACEMENT) is not None and not _used(world, request, revision):
        return True
    node = world.get("Node", f.node_of(claim), revision)
    if f.node_of(claim) and f.deleted(node):
        return True
    age = world.moment(request.time) - f.moment(f.meta(claim)["creationTimestamp"])
    if f.condition(claim, "Initialized") != "True" and age >= timedelta(seconds=LAUNCH_TIMEOUT - GRACE):
        return True
    return f.expired(claim, world.moment(request.time), GRACE)


def _used(world: World, request: Request, revision: int) -> bool:
    """Whether a pod that would need another node is on that of a claim to delete, as far as the sender had to know."""
    seen = world.get("NodeClaim", request.key, view_of(world, revision, request))
    node = "" if seen is None else f.node_of(seen)
    if not node:
        return False
    for pod in f.on_node(world.listed("Pod", known_at(world, revision, request, node)), node):
        later = world.get("Pod", f.key(pod), revision)
        there = later is not None and f.same(pod, later) and f.active(pod) and f.active(later)
        if there and not f.of_daemon_set(pod) and not f.of_kubelet(pod):
            return True
    return False
