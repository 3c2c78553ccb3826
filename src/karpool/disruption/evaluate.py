"""What removing a set of nodes together would mean: nothing else is needed, or one cheaper node, or it cannot be."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from karpool.disruption.command import Cause, Command, Method, Move, Replacement
from karpool.disruption.reasons import Code
from karpool.disruption.replacements import Market, about
from karpool.disruption.situation import Situation, Standing
from karpool.model.reasons import Reason
from karpool.packing.kernels.columns import UNPLACED
from karpool.packing.placement import Placement
from karpool.packing.refusals import refusals, sentence
from karpool.packing.roster import Sets
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

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.market = Market(situation)

    def consolidate(self, standings: Sequence[Standing]) -> Outcome:
        """Whether nodes can go with nothing, or with one cheaper node, in their place."""
        with self._without(standings) as found:
            footprint = self._footprint(standings, found)
            replacements = self._at_most_one(standings, found)
            if isinstance(replacements, Reason):
                return Outcome(None, replacements, footprint)
            method = Method.MULTI_NODE if len(standings) > 1 else Method.SINGLE_NODE
            return Outcome(self._command(method, Cause.UNDERUTILIZED, standings, found, replacements), None, footprint)

    def drift(self, standing: Standing) -> Outcome:
        """What removing a drifted node takes: as many new nodes as its pods need, at any price."""
        with self._without([standing], windows=False) as found:
            footprint = self._footprint([standing], found)
            reason = self._nowhere(found)
            if reason is not None:
                return Outcome(None, reason, footprint)
            made = [self.market.at_any_price(found, claim) for claim in range(found.claims)]
            replacements = tuple(new for new in made if new is not None)
            if len(replacements) < len(made):
                said = "the types that a NodeClaim can name are too few for its pool's minValues"
                return Outcome(None, about([standing], Code.MIN_VALUES_BROKEN, said), footprint)
            command = self._command(Method.DRIFT, Cause.DRIFTED, [standing], found, replacements)
            return Outcome(command, None, footprint)

    def again(self, command: Command, standings: Sequence[Standing]) -> Command | Reason:
        """A consolidation looked at anew: the same new nodes, or none, still do; where pods go may have changed."""
        with self._without(standings) as found:
            reason = self._nowhere(found)
            if reason is not None:
                return reason
            if found.claims != len(command.replacements):
                said = f"its pods now need {found.claims} new nodes, not {len(command.replacements)}"
                return about(standings, Code.REPLACEMENT_CHANGED, said)
            for number, planned in enumerate(command.replacements):
                fitting = set(self.market.table.names[found.claim_types(number)].tolist())
                if unfit := [name for name in planned.instance_types if name not in fitting]:
                    return about(standings, Code.REPLACEMENT_CHANGED, f"its pods no longer suit type {unfit[0]}")
            return replace(command, moves=self._moves(found))

    def scan(self, standings: Sequence[Standing]) -> Scan:
        """Look at nodes alone: which have to stay for sure, and which may go or be replaced by a cheaper node.

        Every set that `consolidate` gives a command for is among the promising ones.
        """
        return self._scan(self.situation.roster(standings).alone([one.row for one in standings]))

    def scan_prefixes(self, standings: Sequence[Standing], lengths: Sequence[int]) -> Scan:
        """Look at sets of nodes: the first so many of a list, for several lengths."""
        roster = self.situation.roster(standings[: max(lengths)])
        rows, below = [one.row for one in standings], [self.situation.ceiling(standings[:length]) for length in lengths]
        return self._scan(roster.prefixes(rows, lengths, below, self.situation.snapshot.pods.ranking.order))

    def _scan(self, sets: Sets) -> Scan:
        situation = self.situation
        return Scan(situation.engine, sets, closed=situation.closed, unready=situation.unready)

    # -- where pods go -------------------------------------------------------------------------------------------

    @contextmanager
    def _without(self, standings: Sequence[Standing], *, windows: bool = True) -> Iterator[Placement]:
        """Where the pods of nodes go without them; `windows`: pods are not sent to nodes that are settling."""
        situation = self.situation
        pods = [row for standing in standings for row in standing.movers]
        closed = situation.closed if windows and situation.closed.any() else None
        exempt = [] if closed is None else [situation.exempt(situation.snapshot.pods.get(row)) for row in pods]
        with situation.engine.what_if() as trial:
            trial.remove([standing.row for standing in standings])
            yield trial.place(pods, exempt=exempt, closed=closed)

    def _at_most_one(self, standings: Sequence[Standing], found: Placement) -> tuple[Replacement, ...] | Reason:
        """The new nodes of a consolidation: none, or a cheaper one."""
        reason = self._nowhere(found)
        if reason is not None or not found.claims:
            return reason or ()
        if found.claims > 1:
            return about(standings, Code.NEEDS_SEVERAL_NODES, f"its pods would need {found.claims} new nodes")
        made = self.market.cheaper(standings, found)
        return made if isinstance(made, Reason) else (made,)

    def _footprint(self, standings: Sequence[Standing], found: Placement) -> Footprint:
        snapshot = self.situation.snapshot
        classes = set(snapshot.pods.class_of[found.pods].tolist())
        groups: set[int] = set()
        for labels in set(snapshot.pods.labels_of[found.pods].tolist()):
            groups.update(snapshot.topology.kept_off_by.row(labels))
        for number in classes:
            groups.update(snapshot.classes.groups_of(number))
        nodes = {standing.row for standing in standings} | {target for target in found.targets if target >= 0}
        opened = found.claims > 0 or UNPLACED in found.targets
        return Footprint(frozenset(nodes), frozenset(groups), frozenset(classes), opened)

    def _nowhere(self, found: Placement) -> Reason | None:
        """The first pod that has no place to go to, or only one on a node that is not up yet."""
        situation = self.situation
        pods, nodes = situation.snapshot.pods, situation.snapshot.nodes
        for row, target in zip(found.pods, found.targets, strict=True):
            pod = pods.get(row)
            if target == UNPLACED:
                why = sentence(refusals(situation.engine, row, exempt=situation.exempt(pod)))
                return Reason(Code.PODS_WOULD_NOT_FIT, f"would find no other place: {why}", f"Pod {pod.key}")
            if target >= 0 and not nodes.get(target).initialized and not situation.expected(pod):
                said = f"would have to go to node {nodes.get(target).name}, which is not initialized"
                return Reason(Code.UNINITIALIZED_DESTINATION, said, f"Pod {pod.key}")
        return None

    def _command(
        self,
        method: Method,
        cause: Cause,
        standings: Sequence[Standing],
        found: Placement,
        replacements: tuple[Replacement, ...],
    ) -> Command:
        situation = self.situation
        pods = (situation.snapshot.pods.get(row) for row in found.pods)
        going = [pod for pod in pods if not situation.expected(pod)]
        return Command(
            method=method,
            cause=cause,
            nodes=tuple(standing.name for standing in standings),
            replacements=replacements,
            moves=self._moves(found),
            price=sum(standing.price or 0.0 for standing in standings),
            unpriced=sum(standing.price is None for standing in standings),
            disruption_cost=sum(standing.cost for standing in standings),
            waves=situation.pdbs.waves(going, situation.now),
            ended=tuple(sorted(key for standing in standings for key in self._ended(standing))),
        )

    def _ended(self, standing: Standing) -> list[str]:
        """The pods of a node that need another place and are given none."""
        pods = self.situation.snapshot.pods
        return [pods.get(row).key for row in set(standing.pods) - set(standing.movers)]

    def _moves(self, found: Placement) -> tuple[Move, ...]:
        situation = self.situation
        pods, nodes = situation.snapshot.pods, situation.snapshot.nodes
        moves = []
        for row, target in zip(found.pods, found.targets, strict=True):
            key = pods.get(row).key
            source = None if key in situation.pending else nodes.get(int(pods.node_of[row])).name
            place = nodes.get(target).name if target >= 0 else -2 - target
            moves.append(Move(pod=key, source=source, target=place, leaving=key in situation.leaving))
        return tuple(sorted(moves, key=lambda move: move.pod))
