"""The methods of disruption, in the order in which they get their chance."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from karpool.disruption.candidates import consolidation_refusal, emptiness_refusal, refusal
from karpool.disruption.command import Cause, Command, Method
from karpool.disruption.drifted import Drift
from karpool.disruption.evaluate import Evaluator, Footprint, footprint_of
from karpool.disruption.ordering import in_order, in_turns
from karpool.disruption.partition import bins
from karpool.disruption.policies import BALANCED, Worth, policy, saves_too_little, split_savings, unbalanced
from karpool.disruption.reasons import Code
from karpool.disruption.recall import Recall
from karpool.disruption.search import longest_prefix
from karpool.disruption.situation import Situation, Standing
from karpool.disruption.static import static_drift, static_outcome
from karpool.model.reasons import Reason

Progress = Callable[[int, int], None]
_AT_ONCE: Final = 128
"""How many nodes are looked at in one go."""


def _silent(_done: int, _all: int) -> None:
    """Tell nobody."""


@dataclass
class Pass:
    """One pass over a situation: what was found out on the way is kept for those who ask why."""

    situation: Situation
    recall: Recall
    progress: Progress = _silent

    def __post_init__(self) -> None:
        self.evaluator = Evaluator(self.situation)
        self.tried: dict[int, Reason] = {}
        self._eligible: list[Standing] | None = None
        self._drifted: list[tuple[Standing, Drift]] | None = None
        self._consolidatable: list[Standing] | None = None

    def decide(self) -> tuple[Command, ...]:
        """The commands of the first method that has any."""
        for method in (self.emptiness, self.static_drift, self.drift, self.multi_node, self.single_node):
            found = method()
            if found:
                return found
        return ()

    def eligible(self) -> list[Standing]:
        """All nodes that may be disrupted at all."""
        if self._eligible is None:
            self._eligible = self._unopposed(self.situation.rows(), refusal, False)  # noqa: FBT003
        return self._eligible

    def _unopposed(
        self, rows: Iterable[int], question: Callable[..., Reason | None], *details: object
    ) -> list[Standing]:
        return [self.situation.standing(row) for row in self.situation.unopposed(rows, question, *details)]

    def refusal(self, standing: Standing, *, eventual: bool = False) -> Reason | None:
        """Why a node may not be disrupted at all."""
        return self.situation.once(standing.row, refusal, eventual)

    # -- emptiness -----------------------------------------------------------------------------------------------

    def emptiness(self) -> tuple[Command, ...]:
        """All empty nodes that budgets let go, in one command."""
        situation = self.situation
        fitting = self._unopposed((one.row for one in self.eligible()), emptiness_refusal)
        chosen = self._within_budgets(in_order(fitting, situation.settings.order, situation.now), Cause.EMPTY)
        if not chosen:
            return ()
        command = Command(
            method=Method.EMPTINESS,
            cause=Cause.EMPTY,
            nodes=tuple(one.name for one in chosen),
            price=sum(one.price or 0.0 for one in chosen),
            unpriced=sum(one.price is None for one in chosen),
            disruption_cost=sum(one.cost for one in chosen),
        )
        return (command,)

    def _within_budgets(self, standings: Iterable[Standing], cause: Cause) -> list[Standing]:
        """Candidates in order, as many of each pool as its budgets allow."""
        left: dict[str, int] = {}
        kept = []
        for one in standings:
            if one.pool is None:
                continue
            name = one.pool_name
            if name not in left:
                left[name] = self.situation.allowance(one.pool, cause).remaining
            if left[name] > 0:
                left[name] -= 1
                kept.append(one)
        return kept

    def allowed(self, standing: Standing, cause: Cause) -> Reason | None:
        """Why budgets keep a node, if they do."""
        if standing.pool is None:
            return None
        allowance = self.situation.allowance(standing.pool, cause)
        return None if allowance.remaining > 0 else allowance.exhausted(standing.pool)

    def _spent_pools(self, cause: Cause) -> set[str]:
        """The names of pools whose budgets let no node go."""
        allowances = {name: self.situation.allowance(pool, cause) for name, pool in self.situation.pools.items()}
        return {name for name, allowance in allowances.items() if allowance.remaining <= 0}

    # -- drift ---------------------------------------------------------------------------------------------------

    def drifted(self, standing: Standing) -> Drift | None:
        """How a node has drifted, if it has."""
        return self.situation.drift(standing)

    def static_drift(self) -> tuple[Command, ...]:
        """Drifted nodes of pools with a fixed number of nodes, each replaced by one of its pool."""
        return static_drift(self.situation, [one for one, _ in self._drifting() if one.pool and one.pool.static])

    def _drifting(self) -> list[tuple[Standing, Drift]]:
        """Nodes that have drifted and may be disrupted, each with how it has drifted."""
        if self._drifted is None:
            drifted = self.situation.drifting((*self.eligible(), *self._overruled()))
            self._drifted = sorted(drifted, key=lambda entry: entry[0].name)
        return self._drifted

    def _overruled(self) -> list[Standing]:
        """Nodes that may be disrupted only because a termination grace period overrules their pods."""
        limited, eligible = self.situation.with_termination_grace_period(), {one.row for one in self.eligible()}
        return self._unopposed((row for row in limited if row not in eligible), refusal, True)  # noqa: FBT003

    def drift(self) -> tuple[Command, ...]:
        """The first drifted node whose pods find a place: empty ones before others, then the longest drifted."""
        waiting = [
            (not one.empty, how.since, one.name, one)
            for one, how in self._drifting()
            if one.pool is not None and not one.pool.static
        ]
        for *_, one in sorted(waiting, key=lambda entry: entry[:3]):
            if self.allowed(one, Cause.DRIFTED) is None:
                found = self.replaced(one)
                if isinstance(found, Command):
                    return (found,)
        return ()

    def replaced(self, standing: Standing) -> Command | Reason | None:
        """What it takes to replace a drifted node, or why that cannot be done."""
        if standing.pool is not None and standing.pool.static:
            return static_outcome(self.situation, standing)
        key = ("drift", standing.row)
        held = self.recall.get(key)
        if held is not None:
            return held
        outcome = self.evaluator.drift(standing)
        if outcome.reason is not None:
            self.recall.put(key, outcome.reason, outcome.footprint)
        return outcome.command or outcome.reason

    # -- consolidation -------------------------------------------------------------------------------------------

    def consolidatable(self) -> list[Standing]:
        """Candidates of consolidation, in order."""
        if self._consolidatable is None:
            fitting = self._unopposed((one.row for one in self.eligible()), consolidation_refusal)
            self._consolidatable = in_order(fitting, self.situation.settings.order, self.situation.now)
        return self._consolidatable

    def multi_node(self) -> tuple[Command, ...]:
        """The most nodes of a bin that can go together, the largest bin first."""
        settings = self.situation.settings
        kept = self._within_budgets(self.consolidatable(), Cause.UNDERUTILIZED)
        for members in bins(kept, settings.partition):
            if len(members) < 2:  # noqa: PLR2004 - several nodes
                continue
            key = ("multi", tuple(one.row for one in members))
            held = self.recall.get(key)
            if held is not None:
                self.tried.update((one.row, held) for one in members)
                continue
            rests: list[Footprint] = []
            disliked: list[Reason] = []
            found = longest_prefix(len(members), partial(self._together, members, rests=rests, disliked=disliked))
            if found is not None:
                return (found,)
            said = f"no group of the {len(members)} candidates it could be combined with can go for less"
            reason = Reason(Code.NO_GROUP, said, f"NodePool {members[0].state.pool}")
            if not disliked:  # what a pool thinks of a move changes with every node that it loses
                (footprint,) = rests  # nothing was found in the first scan, so that there was no second
                self.recall.put(key, reason, footprint)
            self.tried.update((one.row, reason) for one in members)
        return ()

    def _together(
        self, members: Sequence[Standing], lengths: Sequence[int], *, rests: list[Footprint], disliked: list[Reason]
    ) -> tuple[int, Command] | None:
        """The first of some lengths at which so many members can go together, by its place, and the command."""
        look = self.evaluator.scan_prefixes(members, lengths)
        for at in look.promising():
            standings = members[: lengths[at]]
            outcome = self.evaluator.consolidate(standings)
            refused = None if outcome.command is None else self.unworthy(outcome.command, standings)
            if refused is not None:
                disliked.append(refused)
            elif outcome.command is not None:
                return at, outcome.command
        rests.append(footprint_of(look, len(lengths)))
        return None

    def single_node(self) -> tuple[Command, ...]:
        """The first node that can go alone; every pool gets its turn."""
        refused, spent = self.recall.alone.rows(), self._spent_pools(Cause.UNDERUTILIZED)
        waiting = [one for one in in_turns(self.consolidatable()) if one.row not in refused]
        open_ = [one for one in waiting if one.pool_name not in spent]
        for done in range(0, len(open_), _AT_ONCE):
            self.progress(done, len(open_))
            found = self._first_alone(open_[done : done + _AT_ONCE])
            if found is not None:
                return (found,)
        return ()

    def _first_alone(self, standings: Sequence[Standing]) -> Command | None:
        """The first of some nodes that can go alone; those before it that cannot are remembered."""
        look = self.evaluator.scan(standings)
        found, tried, disliked, reasons = None, len(standings), set(), {}
        for at in look.promising():
            outcome = self.evaluator.consolidate([standings[at]])
            if outcome.reason is not None:
                reasons[standings[at].row] = outcome.reason
            elif outcome.command is not None and self.unworthy(outcome.command, [standings[at]]) is None:
                found, tried = outcome.command, at
                break
            else:  # what a pool thinks of a move changes with every node that it loses
                disliked.add(at)
        alone, refused = self.recall.alone, [at for at in range(tried) if at not in disliked]
        alone.put(look, [standings[at].row for at in refused], refused)
        for row, reason in reasons.items():
            alone.explain(row, reason)
        return found

    def single_refusal(self, standing: Standing) -> Reason | None:
        """Why a node cannot go alone, if it cannot."""
        alone = self.recall.alone
        held = alone.reason(standing.row)
        if held is not None:
            return held
        outcome = self.evaluator.consolidate([standing])
        if outcome.reason is not None:
            alone.explain(standing.row, outcome.reason)
            return outcome.reason
        return None if outcome.command is None else self.unworthy(outcome.command, [standing])

    def unworthy(self, command: Command, standings: Sequence[Standing]) -> Reason | None:
        """Why a command that would work is not worth its trouble to one of the pools, if it is not."""
        prices: dict[str, float] = {}
        trouble: dict[str, float] = {}
        pools = {one.pool.name: one.pool for one in standings if one.pool is not None}
        for one in standings:
            prices[one.state.pool] = prices.get(one.state.pool, 0.0) + (one.price or 0.0)
            trouble[one.state.pool] = trouble.get(one.state.pool, 0.0) + one.cost
        shares = split_savings(command.savings, prices)
        for name, pool in pools.items():
            # Only a Balanced pool compares a move with the whole, which takes a look at all of its nodes.
            whole = self.situation.worth(name) if policy(pool) == BALANCED else Worth(0.0, 0.0)
            found = unbalanced(pool, Worth(shares[name], trouble[name]), whole) or saves_too_little(
                pool, command.savings, command.price
            )
            if found is not None:
                return found
        return None
