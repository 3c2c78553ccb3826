"""Rules of rates: no more goes within an hour than is allowed, and the ledgers of pools say what went."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from math import inf

from tests.robustness.checker import facts as f
from tests.robustness.checker.pods import removals
from tests.robustness.checker.records import Json, Request
from tests.robustness.checker.violations import GRACE, Violation
from tests.robustness.checker.world import World

HOUR = 3600.0
COUNTED = HOUR + 60.0
"""So long an entry of a ledger counts after its node was last seen going."""
RECENT = timedelta(minutes=10)
"""A command that came to nothing may be in a ledger until somebody looks."""
SLACK = 150.0
"""So much longer it may take until there is room again: entries are renewed every minute, passes take their time."""


# -- what went ---------------------------------------------------------------------------------------------------------


def rates(world: World) -> Iterator[Violation]:
    """Commands disrupt no more nodes and evict no more pods within an hour than they were told, in all and by name."""
    nodes, pods = list(_nodes_gone(world)), list(_pods_gone(world))
    limits = world.start.settings
    yield from _too_many(nodes, float(limits.get("nodesPerHour", inf)), "nodesPerHour")
    yield from _too_many([entry[:2] for entry in pods], float(limits.get("evictionsPerHour", inf)), "evictionsPerHour")
    for namespace in sorted({name for _, _, name in pods}):
        most = limit_of(world, namespace, len(world.records))
        own = [(revision, request) for revision, request, name in pods if name == namespace]
        yield from _too_many(own, most, f"the limit of namespace {namespace}")


def _too_many(happened: list[tuple[int, Request]], most: float, limit: str) -> Iterator[Violation]:
    for number, (revision, request) in enumerate(happened):
        within = [at for at, earlier in happened[: number + 1] if earlier.time > request.time - HOUR]
        if len(within) > most:
            message = f"{request.who}: {request.key} is number {len(within)} within an hour, and {limit} is {most:g}"
            yield Violation("Rate", revision, request.time, message)


def limit_of(world: World, namespace: str, at: int) -> float:
    """How many pods of a namespace may be evicted within an hour; none where that cannot be read."""
    found = world.get("Namespace", namespace, at)
    text = None if found is None else f.annotation(found, f.MAX_EVICTIONS)
    if text is None:
        return inf
    return float(text) if text.isdigit() else 0.0


def removed_claims(world: World) -> Iterator[tuple[int, Request, Json, Json]]:
    """Requests by which a committed command deletes a NodeClaim, with the claim and its ticket."""
    for revision, request in world.requests:
        if (request.verb, request.kind) == ("delete", "NodeClaim") and revision in world.effects:
            claim = world.get("NodeClaim", request.key, revision)
            ticket = f.ticket(claim)
            if claim is not None and not f.deleted(claim) and ticket is not None and ticket.get("committed"):
                yield revision, request, claim, ticket


def _nodes_gone(world: World) -> Iterator[tuple[int, Request]]:
    for revision, request, _claim, _ticket in removed_claims(world):
        yield revision, request


def _pods_gone(world: World) -> Iterator[tuple[int, Request, str]]:
    """Evictions from nodes that commands removed, DaemonSets aside, with the namespace."""
    for revision, request, pod in removals(world):
        node = pod.get("spec", {}).get("nodeName")
        claims = [claim for claim in world.listed("NodeClaim", revision) if f.node_of(claim) == node]
        if not f.of_daemon_set(pod) and any((f.ticket(claim) or {}).get("committed") for claim in claims):
            yield revision, request, str(f.meta(pod).get("namespace", ""))


# -- room --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Use:
    """What one node took of the rates, from when to when."""

    start: float
    end: float
    pods: Counter[str]


class Room:
    """What rates leave at a time, counted from what happened and not from what ledgers say of it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._uses: list[_Use] = []
        commands: dict[tuple[str, ...], list[tuple[int, Json]]] = {}
        for revision, _, claim, ticket in removed_claims(world):
            self._uses.append(self._use(revision, claim))
            commands.setdefault((ticket["id"], *ticket["nodes"]), []).append((revision, claim))
        for (_command, *nodes), removed in commands.items():
            self._uses += self._let_go(nodes, removed)

    def _use(self, revision: int, claim: Json) -> _Use:
        world = self._world
        gone = next((at for at, obj in world.versions("NodeClaim", f.name(claim)) if at > revision and obj is None), -1)
        end = world.times[gone] + COUNTED + SLACK if gone > 0 else inf
        return _Use(world.times[revision], end, _evicted_with(world, f.node_of(claim), revision))

    def _let_go(self, nodes: list[str], removed: list[tuple[int, Json]]) -> Iterator[_Use]:
        """Nodes that a command let go at the last moment count as those that it removed: a ledger is never short."""
        revision, claim = removed[-1]
        end = self._use(revision, claim).end
        for name in set(nodes) - {f.node_of(other) for _, other in removed}:
            yield _Use(self._world.times[revision], end, _evicted_with(self._world, name, revision))

    def for_node(self, name: str, at: int, now: float) -> bool:
        """Whether a node may go at a revision and a time, as far as rates go."""
        world = self._world
        uses = [use for use in self._uses if use.start <= now < use.end]
        pods = _evicted_with(world, name, at)
        waiting = [claim for claim in world.listed("NodeClaim", at) if f.ticket(claim) and not f.deleted(claim)]
        uses += [_Use(now, inf, _evicted_with(world, f.node_of(claim), at)) for claim in waiting]
        used = sum((use.pods for use in uses), Counter[str]())
        limits = world.start.settings
        return (
            len(uses) < float(limits.get("nodesPerHour", inf))
            and used.total() + max(1, pods.total()) <= float(limits.get("evictionsPerHour", inf))
            and all(used[space] + count <= limit_of(world, space, at) for space, count in pods.items())
        )


def _evicted_with(world: World, node: str, at: int) -> Counter[str]:
    """The pods that leave with a node, by namespace."""
    pods = [pod for pod in f.on_node(world.listed("Pod", at), node) if f.active(pod) and not f.of_kubelet(pod)]
    return Counter(str(f.meta(pod).get("namespace", "")) for pod in pods if not f.tolerates_disruption(pod))


# -- ledgers -----------------------------------------------------------------------------------------------------------


def ledgers(world: World) -> Iterator[Violation]:
    """A ledger has what a command removes before it does, as long as that counts, and nothing that came to nothing."""
    if not world.start.exact:
        return
    removed = list(removed_claims(world))
    for revision, request, claim, ticket in removed:
        yield from _noted(world, revision, request, claim, ticket)
        yield from _kept(world, revision, claim, str(ticket["id"]))
    committed = {str(ticket["id"]) for _, _, _, ticket in removed}
    for rest in world.rests:
        yield from _left(world, rest.end, committed)


def _noted(world: World, revision: int, request: Request, claim: Json, ticket: Json) -> Iterator[Violation]:
    pool = f.pool_of(claim)
    entry = f.ledger(world.get("NodePool", pool, revision)).get(str(ticket["id"]))
    if world.get("NodePool", pool, revision) is None:
        return
    message = ""
    own = [other for other in ticket["nodes"] if _pool_of_node(world, other, revision) == pool]
    if entry is None:
        message = f"the ledger of {pool} does not know {ticket['id']}"
    elif entry.get("nodes", 0) < 1 or entry.get("nodes", 0) > len(ticket["nodes"]):
        message = f"the ledger of {pool} counts {entry.get('nodes', 0)} nodes of {ticket['id']}, which has {len(own)}"
    else:
        going = _evicted_with(world, f.node_of(claim), world.before(request.time - GRACE))
        now = _evicted_with(world, f.node_of(claim), revision)
        for space, count in (going & now).items():
            if entry.get("pods", {}).get(space, 0) + entry.get("others", 0) < count:
                message = f"the ledger of {pool} counts {entry.get('pods')} of {ticket['id']}; {count} in {space} go"
    if message:
        yield Violation("Ledger", revision, request.time, f"{request.who} deletes {request.key}: {message}")


def _pool_of_node(world: World, name: str, at: int) -> str:
    node = world.get("Node", name, at)
    return "" if node is None else f.pool_of(node)


def _kept(world: World, revision: int, claim: Json, command: str) -> Iterator[Violation]:
    """The entry is there for an hour from when the node was deleted, whoever writes the ledger meanwhile."""
    pool, until = f.pool_of(claim), world.times[revision] + HOUR
    for at, obj in world.versions("NodePool", pool):
        if at > revision and world.times[at] < until and obj is not None and command not in f.ledger(obj):
            yield Violation("Ledger", at, world.times[at], f"the ledger of {pool} has lost {command}")
            return


def _left(world: World, end: int, committed: set[str]) -> Iterator[Violation]:
    """At the end of a rest ledgers have no entry of a command that removes nothing."""
    under_way = {str(ticket["id"]) for claim in world.listed("NodeClaim", end) if (ticket := f.ticket(claim))}
    for pool in world.listed("NodePool", end):
        for command, entry in sorted(f.ledger(pool).items()):
            age = world.moment(world.times[end]) - f.moment(entry["at"])
            if command in committed or command in under_way or age < RECENT:
                continue
            message = f"the ledger of {f.name(pool)} has {command}, which removed nothing"
            yield Violation("Ledger", end, world.times[end], message)
