"""A command as kube-scheduler will carry it out: it is the scheduler that binds the pods that come back.

The engine proves that there is a place for every pod. The scheduler does not look for that proof: it takes pods one by
one, each to the node that it likes best. If it leaves a pod without a node, the provisioner launches one more, and what
the command was to save is gone. So what the scheduler will do is foreseen. Where pods would be left, the command
launches what they need from the start, a larger node or one more, if it is still worth it; else it is refused.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Final, NamedTuple

import numpy as np

from karpool.disruption.arrivals import in_order_of_arrival
from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.command import Command, Move
from karpool.disruption.context import DecisionContext
from karpool.disruption.methods.replacements import ReplacementFinder, about
from karpool.disruption.policies import HAIR
from karpool.disruption.predict import predicted_node
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.settings import Scoring
from karpool.model.labels import CAPACITY_TYPE, SPOT
from karpool.model.reasons import Reason
from karpool.packing.kernels.fullness import NOBODY
from karpool.packing.scheduler_choice import SchedulerChoice

_ORDERS: Final = 2
"""In how many further orders pods must find room."""
_MENDINGS: Final = 4
"""How often a command gets a larger node, or one more."""


class Scheduled(NamedTuple):
    """A command with the places that a scheduler will choose."""

    command: Command
    numbers: tuple[int | None, ...]
    """By replacement that was asked for: its number in the command; None if no pod would come to it."""

    @classmethod
    def unchanged(cls, command: Command) -> "Scheduled":
        """A command of which nothing is foreseen."""
        return cls(command, tuple(range(len(command.replacements))))


class _Foreseen(NamedTuple):
    """Where a scheduler puts pods, the rows of those for which it finds no node, and the new nodes that get any."""

    moves: tuple[Move, ...]
    left: tuple[int, ...]
    used: frozenset[int] = frozenset()


class Foresight:
    """What a scheduler makes of commands in one context."""

    def __init__(self, context: DecisionContext) -> None:
        self.context = context
        self._finder = ReplacementFinder(context)
        self._scheduler = context.settings.scheduler

    def as_scheduled(
        self,
        command: Command,
        candidates: Sequence[Candidate],
        *,
        most_new_nodes: int,
        avoided: Collection[int] = (),
    ) -> Scheduled | Reason:
        """The command with the places that a scheduler will choose; or why it would leave pods without a node.

        `avoided`: rows of nodes that pods are asked to stay away from, because they go later.
        """
        pods = self.context.snapshot.pods
        if self._scheduler is Scoring.ANY:
            return Scheduled.unchanged(command)
        if not command.moves or not pods.device_rows.isdisjoint(pods.rows[move.pod] for move in command.moves):
            return Scheduled.unchanged(command)  # which devices are free where is not foreseen
        mended: Command | None = command
        first: _Foreseen | None = None
        for _ in range(_MENDINGS + 1):
            if mended is None:
                break
            foreseen = self._foreseen(mended, avoided)
            if not foreseen.left:
                return self._without_unused(mended, foreseen, avoided)
            first = first or foreseen
            mended = self._mended(mended, candidates, foreseen.left, most_new_nodes)
        left = 0 if first is None else len(first.left)
        left_over = "a pod" if left == 1 else f"{left} pods"
        message = f"the scheduler would leave {left_over} without a node, although there is a place for each"
        return about(candidates, ReasonCode.SCHEDULER_SCATTERS, message)

    # -- the scheduler -------------------------------------------------------------------------------------------

    def _foreseen(self, command: Command, avoided: Collection[int]) -> _Foreseen:
        """Where pods come in the order in which they arrive."""
        context, snapshot = self.context, self.context.snapshot
        new = [predicted_node(context, one, f"replacement-{number}") for number, one in enumerate(command.replacements)]
        gone = [snapshot.nodes.rows[name] for name in command.nodes]
        moves = {snapshot.pods.rows[move.pod]: move for move in command.moves}
        rows = in_order_of_arrival(context, moves, command.nodes)
        choice = SchedulerChoice(snapshot, rows, without=gone, new=new, avoided=avoided)
        packs = self._scheduler is Scoring.MOST_ALLOCATED
        places = choice.places(rows, packs=packs)
        left, reached = _left(rows, places), set(places)
        for order in _other_orders(rows):
            others = choice.places(order, packs=packs)
            left = left or _left(order, others)
            reached.update(others)
        if left:
            return _Foreseen((), left)
        used = frozenset(place - choice.first_new for place in reached if place >= choice.first_new)
        made = []
        for row, place in zip(rows, places, strict=True):
            there = place < choice.first_new
            made.append(
                replace(moves[row], target=snapshot.nodes.get(place).name if there else place - choice.first_new)
            )
        return _Foreseen(tuple(sorted(made, key=lambda move: move.pod)), (), used)

    def _without_unused(self, command: Command, foreseen: _Foreseen, avoided: Collection[int]) -> Scheduled:
        """The command without new nodes to which no pod would come in any order."""
        kept = [number for number in range(len(command.replacements)) if number in foreseen.used]
        if len(kept) < len(command.replacements):
            fewer = tuple(command.replacements[number] for number in kept)
            renumbered = tuple(_renumbered(move, kept) for move in foreseen.moves)
            leaner = replace(command, replacements=fewer, moves=renumbered)
            again = self._foreseen(leaner, avoided)
            if not again.left:
                numbers = tuple(kept.index(n) if n in kept else None for n in range(len(command.replacements)))
                return Scheduled(replace(leaner, scheduled=again.moves), numbers)
        return Scheduled.unchanged(replace(command, scheduled=foreseen.moves))

    # -- what makes room -----------------------------------------------------------------------------------------

    def _mended(
        self, command: Command, candidates: Sequence[Candidate], left: Sequence[int], most: int
    ) -> Command | None:
        """The command with the least dear node more, or larger one, that may hold the pods that are left."""
        options = [self._larger(command, number) for number in range(len(command.replacements))]
        if len(command.replacements) < most:
            options.append(self._one_more(command, candidates, left))
        worth = [option for option in options if option is not None and option.savings > HAIR]
        return max(worth, key=lambda option: option.savings, default=None)

    def _larger(self, command: Command, number: int) -> Command | None:
        """The command with one replacement that is larger than the cheapest that would do."""
        one, types = command.replacements[number], self.context.catalog.by_name
        if one.price is None or any(wanted.min_values for wanted in one.requirements.values()):
            return None
        first = types[one.instance_types[0]].allocatable
        larger = [
            name
            for name in one.instance_types[1:]
            if all(types[name].allocatable[key].nano >= first[key].nano for key in ("cpu", "memory"))
            and any(types[name].allocatable[key].nano > first[key].nano for key in ("cpu", "memory"))
        ]
        if not larger or (one.capacity_type == SPOT and len(larger) < self.context.settings.spot_floor):
            return None
        grown = self._finder.made(one.pool, one.requirements, self._finder.table.numbers(larger))
        return replace(
            command, replacements=(*command.replacements[:number], grown, *command.replacements[number + 1 :])
        )

    def _one_more(self, command: Command, candidates: Sequence[Candidate], left: Sequence[int]) -> Command | None:
        """The command with one more new node, for pods that are left; None if they need several or dearer ones."""
        context, engine = self.context, self.context.engine
        with engine.what_if() as trial:
            trial.remove([candidate.row for candidate in candidates])
            everywhere = np.ones(len(context.snapshot.nodes.live), dtype=np.uint8)
            placement = trial.place(left, exempt=[False] * len(left), closed=everywhere)
            if placement.claims != 1 or placement.unplaced or placement.reservations(0):
                return None
            wanted, types = placement.claim_requirements(0), placement.claim_types(0)
            affordable = types[engine.worst_prices(wanted)[types] < command.savings - HAIR]
            if not len(affordable) or not placement.keeps_minimums(0, affordable):
                return None
            fits = np.zeros(len(self._finder.table.names), dtype=np.bool_)
            fits[affordable] = True
            new = self._finder.of_pool(placement.claim_pool(0), wanted, fits)
        spot = all(candidate.state.labels.get(CAPACITY_TYPE) == SPOT for candidate in candidates)
        if new is None or (new.capacity_type == SPOT and spot):
            return None
        keys = {context.snapshot.pods.get(row).key for row in left}
        number = len(command.replacements)
        moves = tuple(replace(move, target=number) if move.pod in keys else move for move in command.moves)
        return replace(command, replacements=(*command.replacements, new), moves=moves)


def _renumbered(move: Move, kept: Sequence[int]) -> Move:
    """A move after some new nodes were left out."""
    return replace(move, target=kept.index(move.target)) if isinstance(move.target, int) else move


def _left(rows: Sequence[int], places: Sequence[int]) -> tuple[int, ...]:
    """The pods for which there is no node."""
    return tuple(row for row, place in zip(rows, places, strict=True) if place == NOBODY)


def _other_orders(rows: Sequence[int]) -> Iterator[list[int]]:
    """Further orders in which pods may arrive: whoever drains nodes may have another, and pods take time to leave."""
    chance = Random(len(rows))
    for _ in range(_ORDERS):
        yield chance.sample(rows, len(rows))
