"""What removing a set of nodes together would mean: nothing else is needed, or cheaper nodes, or it cannot be."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.command import Cause, Command, Method, Move, Replacement
from karpool.disruption.context import DecisionContext
from karpool.disruption.methods.replacements import ReplacementFinder, about
from karpool.disruption.methods.search import Proposal
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.refusal_cache import Footprint
from karpool.disruption.scheduled import Foresight
from karpool.disruption.settings import GLOBAL
from karpool.model.node_group import NodeGroup
from karpool.model.reasons import Reason
from karpool.packing.candidate_pods import CandidateSets
from karpool.packing.directions import DirectedNode, Directions
from karpool.packing.kernels.columns import UNPLACED
from karpool.packing.placement import Placement
from karpool.packing.refusals import why_unplaced
from karpool.packing.scan import Scan


@dataclass(frozen=True, slots=True)
class Outcome:
    """A command, or why there is none; and what that depends on."""

    command: Command | None
    reason: Reason | None
    footprint: Footprint
    directed: tuple[int, ...] = ()
    """By new node of the directions: which replacement it became, -1 if none."""


def _with_drivers(replacements: tuple[Replacement, ...], placement: Placement) -> tuple[Replacement, ...]:
    """New nodes with the drivers whose devices their pods count on."""
    if not placement.drivers:
        return replacements
    return tuple(replace(new, drivers=placement.drivers.get(claim, ())) for claim, new in enumerate(replacements))


def footprint_of(scan: Scan, count: int) -> Footprint:
    """What the answers to the first sets of a scan depend on."""
    nodes, groups, classes = (
        frozenset(np.flatnonzero(np.unpackbits(np.bitwise_or.reduce(bits[:count]), bitorder="little")).tolist())
        for bits in (scan.on_nodes, scan.on_groups, scan.on_classes)
    )
    return Footprint(nodes, groups, classes, bool(scan.opened[:count].any()))


def directions_of(command: Command, context: DecisionContext) -> Directions:
    """A command's own moves and replacements as directions; pods and nodes that are gone are left out."""
    pods, nodes = context.snapshot.pods.rows, context.snapshot.nodes.rows
    targets: dict[int, int] = {}
    for move in command.moves:
        target = -2 - move.target if isinstance(move.target, int) else nodes.get(move.target)
        if target is not None and move.pod in pods:
            targets[pods[move.pod]] = target
    wanted = (DirectedNode(new.pool, new.requirements, new.instance_types) for new in command.replacements)
    return Directions(tuple(wanted), targets, every_level=True)


class Evaluator:
    """Judges sets of nodes in one context."""

    def __init__(self, context: DecisionContext) -> None:
        self.context = context
        self.finder = ReplacementFinder(context)
        self.foresight = Foresight(context)

    def consolidate(
        self,
        candidates: Sequence[Candidate],
        most_new_nodes: int = 1,
        *,
        pods: Sequence[int] | None = None,
        directions: Directions | None = None,
        avoided: Collection[int] = (),
    ) -> Outcome:
        """Whether nodes can go with nothing, or with so many nodes that are cheaper together, in their place.

        `pods`: the rows of the pods that move, if not all that need another place; `directions`: where they should go
        if they can; `avoided`: rows of nodes that go later, and ask pods to stay away.
        """
        moving = [row for node in candidates for row in node.pods] if pods is None else pods
        with self._without(candidates, moving, directions=directions) as placement:
            footprint = self._footprint(candidates, placement)
            replacements = self._replacements(candidates, placement, most_new_nodes)
            if isinstance(replacements, Reason):
                return Outcome(None, replacements, footprint)
            method = Method.MULTI_NODE if len(candidates) > 1 else Method.SINGLE_NODE
            command = self._command(method, Cause.UNDERUTILIZED, candidates, placement, replacements)
            directed = tuple(placement.directed_claims)
        most = most_new_nodes if self._may_be_launched_for(candidates) else 0
        foreseen = self.foresight.as_scheduled(command, candidates, most_new_nodes=most, avoided=avoided)
        if isinstance(foreseen, Reason):
            return Outcome(None, foreseen, footprint)
        numbers = (None if claim < 0 else foreseen.numbers[claim] for claim in directed)
        return Outcome(foreseen.command, None, footprint, tuple(-1 if number is None else number for number in numbers))

    def drift(self, candidate: Candidate) -> Outcome:
        """What removing a drifted node takes; pods that may not be moved yet get no room."""
        return self._at_any_price(candidate, self.context.movers(candidate), Method.DRIFT, Cause.DRIFTED)

    def repair(self, candidate: Candidate) -> Outcome:
        """What removing an unhealthy node takes; there is room for all its pods, also for those that block."""
        return self._at_any_price(candidate, candidate.pods, Method.REPAIR, Cause.UNHEALTHY)

    def _at_any_price(self, candidate: Candidate, moving: Sequence[int], method: Method, cause: Cause) -> Outcome:
        """What removing a node takes: as many new nodes as its pods need, at any price."""
        with self._without([candidate], moving, windows=False) as placement:
            footprint = self._footprint([candidate], placement)
            reason = self._unplaced(placement)
            if reason is not None:
                return Outcome(None, reason, footprint)
            made = [self.finder.at_any_price(placement, claim) for claim in range(placement.claims)]
            replacements = tuple(new for new in made if new is not None)
            if len(replacements) < len(made):
                message = "the types that a NodeClaim can name are too few for its pool's minValues"
                return Outcome(None, about([candidate], ReasonCode.MIN_VALUES_BROKEN, message), footprint)
            command = self._command(method, cause, [candidate], placement, replacements)
            ended = {self.context.snapshot.pods.get(row).key for row in set(candidate.pods).difference(moving)}
            return Outcome(replace(command, ended=tuple(sorted(ended))), None, footprint)

    def revalidate(self, command: Command, candidates: Sequence[Candidate]) -> Command | Reason:
        """A consolidation judged again: the same new nodes, or none, still do; where pods go may have changed.

        What a global search decided is judged as it was decided: pods are sent where the command moves them.
        """
        directions = directions_of(command, self.context) if self.context.settings.search == GLOBAL else None
        moving = [row for node in candidates for row in node.pods]
        with self._without(candidates, moving, directions=directions) as placement:
            reason = self._unplaced(placement)
            if reason is not None:
                return reason
            # By claim: the number of the replacement that it is.
            numbers = list(range(len(command.replacements)))
            if directions is not None:
                numbers.sort(key=placement.directed_claims.__getitem__)
            if placement.claims != len(numbers):
                new = f"{placement.claims} new node{'s' * (placement.claims != 1)}"
                message = f"its pods now need {new}, not {len(numbers)}"
                return about(candidates, ReasonCode.REPLACEMENT_CHANGED, message)
            for claim, number in enumerate(numbers):
                opened = directions is None or placement.directed_claims[number] == claim
                fitting = set(self.finder.table.names[placement.claim_types(claim)].tolist()) if opened else set()
                planned = command.replacements[number].instance_types
                if unfit := [name for name in planned if name not in fitting]:
                    message = f"its pods no longer suit type {unfit[0]}"
                    return about(candidates, ReasonCode.REPLACEMENT_CHANGED, message)
            return replace(command, moves=self._moves(placement, numbers))

    def scan_single(self, candidates: Sequence[Candidate], most_new_nodes: int = 1) -> Scan:
        """Judge nodes alone, quickly: which have to stay for sure, and which may go or be replaced by cheaper nodes.

        Every set that `consolidate` gives a command for is among the promising ones.
        """
        rows = [node.row for node in candidates]
        return self._scan(self.context.candidate_pods(candidates).alone(rows, most_new_nodes))

    def scan_sets(self, proposals: Sequence[Proposal]) -> Scan:
        """Judge sets of nodes, quickly."""
        members = {node.row: node for proposal in proposals for node in proposal.candidates}
        pods = self.context.candidate_pods(list(members.values()))
        groups = [[node.row for node in proposal.candidates] for proposal in proposals]
        below = [self.context.ceiling(proposal.candidates) for proposal in proposals]
        most = [proposal.most_new_nodes for proposal in proposals]
        return self._scan(pods.sets(groups, below, most, self.context.snapshot.pods.ranking.order))

    def _scan(self, sets: CandidateSets) -> Scan:
        context = self.context
        return Scan(context.engine, sets, closed=context.closed, unready=context.unready)

    # -- where pods go -------------------------------------------------------------------------------------------

    @contextmanager
    def _without(
        self,
        candidates: Sequence[Candidate],
        pods: Sequence[int],
        *,
        windows: bool = True,
        directions: Directions | None = None,
    ) -> Iterator[Placement]:
        """Where pods go without nodes; `windows`: pods are not sent to nodes whose window is closed."""
        context = self.context
        closed = context.closed if windows and context.closed.any() else None
        exempt = [] if closed is None else [context.exempt(context.snapshot.pods.get(row)) for row in pods]
        with context.engine.what_if() as trial:
            trial.remove([candidate.row for candidate in candidates])
            yield trial.place(pods, exempt=exempt, closed=closed, directions=directions)

    def _replacements(
        self, candidates: Sequence[Candidate], placement: Placement, most: int
    ) -> tuple[Replacement, ...] | Reason:
        """The new nodes of a consolidation: none, or some that are cheaper together."""
        reason = self._unplaced(placement)
        if reason is not None or not placement.claims:
            return reason or ()
        if not self._may_be_launched_for(candidates):
            message = (
                "its pods find no place on the nodes that are there, and nobody launches one of"
                f" NodePool {placement.claim_pool(0)} for a node of a group before its pods wait"
            )
            return about(candidates, ReasonCode.PODS_WOULD_NOT_FIT, message)
        if placement.claims > most:
            message = f"its pods would need {placement.claims} new nodes"
            return about(candidates, ReasonCode.NEEDS_SEVERAL_NODES, message)
        return self.finder.cheaper(candidates, placement)

    def _may_be_launched_for(self, candidates: Sequence[Candidate]) -> bool:
        """Whether somebody launches nodes before pods wait: not one of a NodePool for what is on a node of a group."""
        pools = self.context.pools.values()
        return not any(isinstance(node.pool, NodeGroup) for node in candidates) or all(
            isinstance(pool, NodeGroup) for pool in pools
        )

    def _footprint(self, candidates: Sequence[Candidate], placement: Placement) -> Footprint:
        snapshot = self.context.snapshot
        classes = set(snapshot.pods.class_of[placement.pods].tolist())
        groups: set[int] = set()
        for labels in set(snapshot.pods.labels_of[placement.pods].tolist()):
            groups.update(snapshot.topology.kept_off_by.row(labels))
        for number in classes:
            groups.update(snapshot.classes.groups_of(number))
        nodes = {candidate.row for candidate in candidates} | {target for target in placement.targets if target >= 0}
        users = snapshot.pods.device_rows
        if users and not users.isdisjoint(placement.pods):
            nodes.update(snapshot.nodes.rows.values())  # whoever has a device, and where, may be anywhere
        opened = placement.claims > 0 or UNPLACED in placement.targets
        return Footprint(frozenset(nodes), frozenset(groups), frozenset(classes), opened)

    def _unplaced(self, placement: Placement) -> Reason | None:
        """The first pod that has no place to go to, or only one on a node that is not initialized yet."""
        context = self.context
        pods, nodes = context.snapshot.pods, context.snapshot.nodes
        for row, target in zip(placement.pods, placement.targets, strict=True):
            pod = pods.get(row)
            if target == UNPLACED:
                why = why_unplaced(context.engine, row, exempt=context.exempt(pod))
                return Reason(ReasonCode.PODS_WOULD_NOT_FIT, f"would find no other place: {why}", f"Pod {pod.key}")
            node = None if target < 0 else nodes.get(target)
            awaited = node is None or node.initialized or node.name in context.policies.coming
            if node is not None and not awaited and not context.expected(pod):
                message = f"would have to go to node {node.name}, which is not initialized"
                return Reason(ReasonCode.UNINITIALIZED_DESTINATION, message, f"Pod {pod.key}")
        return None

    def _command(
        self,
        method: Method,
        cause: Cause,
        candidates: Sequence[Candidate],
        placement: Placement,
        replacements: tuple[Replacement, ...],
    ) -> Command:
        context = self.context
        pods = (context.snapshot.pods.get(row) for row in placement.pods)
        evicted = [pod for pod in pods if not context.expected(pod)]
        return Command(
            method=method,
            cause=cause,
            nodes=tuple(candidate.name for candidate in candidates),
            replacements=_with_drivers(replacements, placement),
            moves=self._moves(placement, range(placement.claims)),
            price=sum(candidate.price or 0.0 for candidate in candidates),
            unpriced=sum(candidate.price is None for candidate in candidates),
            disruption_cost=sum(candidate.cost for candidate in candidates),
            waves=context.pdbs.waves(evicted, context.now),
        )

    def _moves(self, placement: Placement, numbers: Sequence[int]) -> tuple[Move, ...]:
        """Where every pod goes; `numbers`: by claim, which replacement it is."""
        context = self.context
        pods, nodes = context.snapshot.pods, context.snapshot.nodes
        moves = []
        for row, target in zip(placement.pods, placement.targets, strict=True):
            pod = pods.get(row)
            key, headroom = pod.key, pod.is_headroom
            source = None if key in context.pending and not headroom else nodes.get(int(pods.node_of[row])).name
            place = nodes.get(target).name if target >= 0 else numbers[-2 - target]
            moves.append(Move(pod=key, source=source, target=place, leaving=key in context.leaving, headroom=headroom))
        return tuple(sorted(moves, key=lambda move: move.pod))
