"""What removing a set of nodes together would mean: nothing else is needed, or one cheaper node, or it cannot be."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from karpool.disruption.command import Cause, Command, Method, Move, Replacement
from karpool.disruption.context import Candidate, DecisionContext
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.replacements import ReplacementFinder, about
from karpool.model.reasons import Reason
from karpool.packing.candidate_pods import CandidateSets
from karpool.packing.kernels.columns import UNPLACED
from karpool.packing.placement import Placement
from karpool.packing.refusals import refusals, sentence
from karpool.packing.scan import Scan


@dataclass(frozen=True, slots=True)
class Footprint:
    """What an answer rests on: if none of it changes, neither does the answer."""

    nodes: frozenset[int]
    groups: frozenset[int]
    classes: frozenset[int]
    opened: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """A command, or why there is none; and what that rests on."""

    command: Command | None
    reason: Reason | None
    footprint: Footprint


def footprint_of(look: Scan, count: int) -> Footprint:
    """What the answers to the first sets of a scan rest on."""
    nodes, groups, classes = (
        frozenset(np.flatnonzero(np.unpackbits(np.bitwise_or.reduce(bits[:count]), bitorder="little")).tolist())
        for bits in (look.on_nodes, look.on_groups, look.on_classes)
    )
    return Footprint(nodes, groups, classes, bool(look.opened[:count].any()))


class Evaluator:
    """Evaluates sets of nodes against one situation."""

    def __init__(self, context: DecisionContext) -> None:
        self.context = context
        self.market = ReplacementFinder(context)

    def consolidate(self, candidates: Sequence[Candidate]) -> Outcome:
        """Whether nodes can go with nothing, or with one cheaper node, in their place."""
        with self._without(candidates) as found:
            footprint = self._footprint(candidates, found)
            replacements = self._at_most_one(candidates, found)
            if isinstance(replacements, Reason):
                return Outcome(None, replacements, footprint)
            method = Method.MULTI_NODE if len(candidates) > 1 else Method.SINGLE_NODE
            return Outcome(self._command(method, Cause.UNDERUTILIZED, candidates, found, replacements), None, footprint)

    def drift(self, candidate: Candidate) -> Outcome:
        """What removing a drifted node takes: as many new nodes as its pods need, at any price."""
        with self._without([candidate], windows=False) as found:
            footprint = self._footprint([candidate], found)
            reason = self._nowhere(found)
            if reason is not None:
                return Outcome(None, reason, footprint)
            made = [self.market.at_any_price(found, claim) for claim in range(found.claims)]
            replacements = tuple(new for new in made if new is not None)
            if len(replacements) < len(made):
                said = "the types that a NodeClaim can name are too few for its pool's minValues"
                return Outcome(None, about([candidate], ReasonCode.MIN_VALUES_BROKEN, said), footprint)
            command = self._command(Method.DRIFT, Cause.DRIFTED, [candidate], found, replacements)
            return Outcome(command, None, footprint)

    def again(self, command: Command, candidates: Sequence[Candidate]) -> Command | Reason:
        """A consolidation looked at anew: the same new nodes, or none, still do; where pods go may have changed."""
        with self._without(candidates) as found:
            reason = self._nowhere(found)
            if reason is not None:
                return reason
            if found.claims != len(command.replacements):
                said = f"its pods now need {found.claims} new nodes, not {len(command.replacements)}"
                return about(candidates, ReasonCode.REPLACEMENT_CHANGED, said)
            for number, planned in enumerate(command.replacements):
                fitting = set(self.market.table.names[found.claim_types(number)].tolist())
                if unfit := [name for name in planned.instance_types if name not in fitting]:
                    return about(candidates, ReasonCode.REPLACEMENT_CHANGED, f"its pods no longer suit type {unfit[0]}")
            return replace(command, moves=self._moves(found))

    def scan(self, candidates: Sequence[Candidate]) -> Scan:
        """Look at nodes alone: which have to stay for sure, and which may go or be replaced by a cheaper node.

        Every set that `consolidate` gives a command for is among the promising ones.
        """
        return self._scan(self.context.candidate_pods(candidates).alone([one.row for one in candidates]))

    def scan_prefixes(self, candidates: Sequence[Candidate], lengths: Sequence[int]) -> Scan:
        """Look at sets of nodes: the first so many of a list, for several lengths."""
        candidate_pods = self.context.candidate_pods(candidates[: max(lengths)])
        rows, below = [one.row for one in candidates], [self.context.ceiling(candidates[:length]) for length in lengths]
        return self._scan(candidate_pods.prefixes(rows, lengths, below, self.context.snapshot.pods.ranking.order))

    def _scan(self, sets: CandidateSets) -> Scan:
        context = self.context
        return Scan(context.engine, sets, closed=context.closed, unready=context.unready)

    # -- where pods go -------------------------------------------------------------------------------------------

    @contextmanager
    def _without(self, candidates: Sequence[Candidate], *, windows: bool = True) -> Iterator[Placement]:
        """Where the pods of nodes go without them; `windows`: pods are not sent to nodes that are settling."""
        context = self.context
        pods = [row for candidate in candidates for row in candidate.movers]
        closed = context.closed if windows and context.closed.any() else None
        exempt = [] if closed is None else [context.exempt(context.snapshot.pods.get(row)) for row in pods]
        with context.engine.what_if() as trial:
            trial.remove([candidate.row for candidate in candidates])
            yield trial.place(pods, exempt=exempt, closed=closed)

    def _at_most_one(self, candidates: Sequence[Candidate], found: Placement) -> tuple[Replacement, ...] | Reason:
        """The new nodes of a consolidation: none, or a cheaper one."""
        reason = self._nowhere(found)
        if reason is not None or not found.claims:
            return reason or ()
        if found.claims > 1:
            return about(candidates, ReasonCode.NEEDS_SEVERAL_NODES, f"its pods would need {found.claims} new nodes")
        made = self.market.cheaper(candidates, found)
        return made if isinstance(made, Reason) else (made,)

    def _footprint(self, candidates: Sequence[Candidate], found: Placement) -> Footprint:
        snapshot = self.context.snapshot
        classes = set(snapshot.pods.class_of[found.pods].tolist())
        groups: set[int] = set()
        for labels in set(snapshot.pods.labels_of[found.pods].tolist()):
            groups.update(snapshot.topology.kept_off_by.row(labels))
        for number in classes:
            groups.update(snapshot.classes.groups_of(number))
        nodes = {candidate.row for candidate in candidates} | {target for target in found.targets if target >= 0}
        opened = found.claims > 0 or UNPLACED in found.targets
        return Footprint(frozenset(nodes), frozenset(groups), frozenset(classes), opened)

    def _nowhere(self, found: Placement) -> Reason | None:
        """The first pod that has no place to go to, or only one on a node that is not up yet."""
        context = self.context
        pods, nodes = context.snapshot.pods, context.snapshot.nodes
        for row, target in zip(found.pods, found.targets, strict=True):
            pod = pods.get(row)
            if target == UNPLACED:
                why = sentence(refusals(context.engine, row, exempt=context.exempt(pod)))
                return Reason(ReasonCode.PODS_WOULD_NOT_FIT, f"would find no other place: {why}", f"Pod {pod.key}")
            if target >= 0 and not nodes.get(target).initialized and not context.expected(pod):
                said = f"would have to go to node {nodes.get(target).name}, which is not initialized"
                return Reason(ReasonCode.UNINITIALIZED_DESTINATION, said, f"Pod {pod.key}")
        return None

    def _command(
        self,
        method: Method,
        cause: Cause,
        candidates: Sequence[Candidate],
        found: Placement,
        replacements: tuple[Replacement, ...],
    ) -> Command:
        context = self.context
        pods = (context.snapshot.pods.get(row) for row in found.pods)
        going = [pod for pod in pods if not context.expected(pod)]
        return Command(
            method=method,
            cause=cause,
            nodes=tuple(candidate.name for candidate in candidates),
            replacements=replacements,
            moves=self._moves(found),
            price=sum(candidate.price or 0.0 for candidate in candidates),
            unpriced=sum(candidate.price is None for candidate in candidates),
            disruption_cost=sum(candidate.cost for candidate in candidates),
            waves=context.pdbs.waves(going, context.now),
            ended=tuple(sorted(key for candidate in candidates for key in self._ended(candidate))),
        )

    def _ended(self, candidate: Candidate) -> list[str]:
        """The pods of a node that need another place and are given none."""
        pods = self.context.snapshot.pods
        return [pods.get(row).key for row in set(candidate.pods) - set(candidate.movers)]

    def _moves(self, found: Placement) -> tuple[Move, ...]:
        context = self.context
        pods, nodes = context.snapshot.pods, context.snapshot.nodes
        moves = []
        for row, target in zip(found.pods, found.targets, strict=True):
            key = pods.get(row).key
            source = None if key in context.pending else nodes.get(int(pods.node_of[row])).name
            place = nodes.get(target).name if target >= 0 else -2 - target
            moves.append(Move(pod=key, source=source, target=place, leaving=key in context.leaving))
        return tuple(sorted(moves, key=lambda move: move.pod))
