"""The methods of disruption, in the order in which they get their chance."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from karpool.disruption.candidates import consolidation_refusal, emptiness_refusal, refusal
from karpool.disruption.command import Cause, Command, Method
from karpool.disruption.context import Candidate, DecisionContext
from karpool.disruption.drift_detection import Drift
from karpool.disruption.evaluate import Evaluator, Footprint, footprint_of
from karpool.disruption.ordering import in_order, in_turns
from karpool.disruption.partition import bins
from karpool.disruption.policies import BALANCED, Worth, policy, saves_too_little, split_savings, unbalanced
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.refusal_cache import RefusalCache
from karpool.disruption.search import longest_prefix
from karpool.disruption.static_drift import static_drift, static_outcome
from karpool.model.reasons import Reason

Progress = Callable[[int, int], None]
_AT_ONCE: Final = 128
"""How many nodes are looked at in one go."""


def _silent(_done: int, _all: int) -> None:
    """Tell nobody."""


@dataclass
class DecisionPass:
    """One pass over a situation: what was found out on the way is kept for those who ask why."""

    context: DecisionContext
    refusals: RefusalCache
    progress: Progress = _silent

    def __post_init__(self) -> None:
        self.evaluator = Evaluator(self.context)
        self.tried: dict[int, Reason] = {}
        self._eligible: list[Candidate] | None = None
        self._drifted: list[tuple[Candidate, Drift]] | None = None
        self._consolidatable: list[Candidate] | None = None

    def decide(self) -> tuple[Command, ...]:
        """The commands of the first method that has any."""
        for method in (self.emptiness, self.static_drift, self.drift, self.multi_node, self.single_node):
            found = method()
            if found:
                return found
        return ()

    def eligible(self) -> list[Candidate]:
        """All nodes that may be disrupted at all."""
        if self._eligible is None:
            self._eligible = self._unopposed(self.context.rows(), refusal, False)  # noqa: FBT003
        return self._eligible

    def _unopposed(
        self, rows: Iterable[int], question: Callable[..., Reason | None], *details: object
    ) -> list[Candidate]:
        return [self.context.candidate(row) for row in self.context.unopposed(rows, question, *details)]

    def refusal(self, candidate: Candidate, *, eventual: bool = False) -> Reason | None:
        """Why a node may not be disrupted at all."""
        return self.context.once(candidate.row, refusal, eventual)

    # -- emptiness -----------------------------------------------------------------------------------------------

    def emptiness(self) -> tuple[Command, ...]:
        """All empty nodes that budgets let go, in one command."""
        context = self.context
        fitting = self._unopposed((one.row for one in self.eligible()), emptiness_refusal)
        chosen = self._within_budgets(in_order(fitting, context.settings.order, context.now), Cause.EMPTY)
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

    def _within_budgets(self, candidates: Iterable[Candidate], cause: Cause) -> list[Candidate]:
        """Candidates in order, as many of each pool as its budgets allow."""
        left: dict[str, int] = {}
        kept = []
        for one in candidates:
            if one.pool is None:
                continue
            name = one.pool_name
            if name not in left:
                left[name] = self.context.allowance(one.pool, cause).remaining
            if left[name] > 0:
                left[name] -= 1
                kept.append(one)
        return kept

    def allowed(self, candidate: Candidate, cause: Cause) -> Reason | None:
        """Why budgets keep a node, if they do."""
        if candidate.pool is None:
            return None
        allowance = self.context.allowance(candidate.pool, cause)
        return None if allowance.remaining > 0 else allowance.exhausted(candidate.pool)

    def _spent_pools(self, cause: Cause) -> set[str]:
        """The names of pools whose budgets let no node go."""
        allowances = {name: self.context.allowance(pool, cause) for name, pool in self.context.pools.items()}
        return {name for name, allowance in allowances.items() if allowance.remaining <= 0}

    # -- drift ---------------------------------------------------------------------------------------------------

    def drifted(self, candidate: Candidate) -> Drift | None:
        """How a node has drifted, if it has."""
        return self.context.drift(candidate)

    def static_drift(self) -> tuple[Command, ...]:
        """Drifted nodes of pools with a fixed number of nodes, each replaced by one of its pool."""
        return static_drift(self.context, [one for one, _ in self._drifting() if one.pool and one.pool.static])

    def _drifting(self) -> list[tuple[Candidate, Drift]]:
        """Nodes that have drifted and may be disrupted, each with how it has drifted."""
        if self._drifted is None:
            drifted = self.context.drifting((*self.eligible(), *self._overruled()))
            self._drifted = sorted(drifted, key=lambda entry: entry[0].name)
        return self._drifted

    def _overruled(self) -> list[Candidate]:
        """Nodes that may be disrupted only because a termination grace period overrules their pods."""
        limited, eligible = self.context.with_termination_grace_period(), {one.row for one in self.eligible()}
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

    def replaced(self, candidate: Candidate) -> Command | Reason | None:
        """What it takes to replace a drifted node, or why that cannot be done."""
        if candidate.pool is not None and candidate.pool.static:
            return static_outcome(self.context, candidate)
        key = ("drift", candidate.row)
        held = self.refusals.get(key)
        if held is not None:
            return held
        outcome = self.evaluator.drift(candidate)
        if outcome.reason is not None:
            self.refusals.put(key, outcome.reason, outcome.footprint)
        return outcome.command or outcome.reason

    # -- consolidation -------------------------------------------------------------------------------------------

    def consolidatable(self) -> list[Candidate]:
        """Candidates of consolidation, in order."""
        if self._consolidatable is None:
            fitting = self._unopposed((one.row for one in self.eligible()), consolidation_refusal)
            self._consolidatable = in_order(fitting, self.context.settings.order, self.context.now)
        return self._consolidatable

    def multi_node(self) -> tuple[Command, ...]:
        """The most nodes of a bin that can go together, the largest bin first."""
        settings = self.context.settings
        kept = self._within_budgets(self.consolidatable(), Cause.UNDERUTILIZED)
        for members in bins(kept, settings.partition):
            if len(members) < 2:  # noqa: PLR2004 - several nodes
                continue
            key = ("multi", tuple(one.row for one in members))
            held = self.refusals.get(key)
            if held is not None:
                self.tried.update((one.row, held) for one in members)
                continue
            rests: list[Footprint] = []
            disliked: list[Reason] = []
            found = longest_prefix(len(members), partial(self._together, members, rests=rests, disliked=disliked))
            if found is not None:
                return (found,)
            said = f"no group of the {len(members)} candidates it could be combined with can go for less"
            reason = Reason(ReasonCode.NO_GROUP, said, f"NodePool {members[0].state.pool}")
            if not disliked:  # what a pool thinks of a move changes with every node that it loses
                (footprint,) = rests  # nothing was found in the first scan, so that there was no second
                self.refusals.put(key, reason, footprint)
            self.tried.update((one.row, reason) for one in members)
        return ()

    def _together(
        self, members: Sequence[Candidate], lengths: Sequence[int], *, rests: list[Footprint], disliked: list[Reason]
    ) -> tuple[int, Command] | None:
        """The first of some lengths at which so many members can go together, by its place, and the command."""
        look = self.evaluator.scan_prefixes(members, lengths)
        for at in look.promising():
            candidates = members[: lengths[at]]
            outcome = self.evaluator.consolidate(candidates)
            refused = None if outcome.command is None else self.unworthy(outcome.command, candidates)
            if refused is not None:
                disliked.append(refused)
            elif outcome.command is not None:
                return at, outcome.command
        rests.append(footprint_of(look, len(lengths)))
        return None

    def single_node(self) -> tuple[Command, ...]:
        """The first node that can go alone; every pool gets its turn."""
        refused, spent = self.refusals.alone.rows(), self._spent_pools(Cause.UNDERUTILIZED)
        waiting = [one for one in in_turns(self.consolidatable()) if one.row not in refused]
        open_ = [one for one in waiting if one.pool_name not in spent]
        for done in range(0, len(open_), _AT_ONCE):
            self.progress(done, len(open_))
            found = self._first_alone(open_[done : done + _AT_ONCE])
            if found is not None:
                return (found,)
        return ()

    def _first_alone(self, candidates: Sequence[Candidate]) -> Command | None:
        """The first of some nodes that can go alone; those before it that cannot are remembered."""
        look = self.evaluator.scan(candidates)
        found, tried, disliked, reasons = None, len(candidates), set(), {}
        for at in look.promising():
            outcome = self.evaluator.consolidate([candidates[at]])
            if outcome.reason is not None:
                reasons[candidates[at].row] = outcome.reason
            elif outcome.command is not None and self.unworthy(outcome.command, [candidates[at]]) is None:
                found, tried = outcome.command, at
                break
            else:  # what a pool thinks of a move changes with every node that it loses
                disliked.add(at)
        alone, refused = self.refusals.alone, [at for at in range(tried) if at not in disliked]
        alone.put(look, [candidates[at].row for at in refused], refused)
        for row, reason in reasons.items():
            alone.explain(row, reason)
        return found

    def single_refusal(self, candidate: Candidate) -> Reason | None:
        """Why a node cannot go alone, if it cannot."""
        alone = self.refusals.alone
        held = alone.reason(candidate.row)
        if held is not None:
            return held
        outcome = self.evaluator.consolidate([candidate])
        if outcome.reason is not None:
            alone.explain(candidate.row, outcome.reason)
            return outcome.reason
        return None if outcome.command is None else self.unworthy(outcome.command, [candidate])

    def unworthy(self, command: Command, candidates: Sequence[Candidate]) -> Reason | None:
        """Why a command that would work is not worth its trouble to one of the pools, if it is not."""
        prices: dict[str, float] = {}
        trouble: dict[str, float] = {}
        pools = {one.pool.name: one.pool for one in candidates if one.pool is not None}
        for one in candidates:
            prices[one.state.pool] = prices.get(one.state.pool, 0.0) + (one.price or 0.0)
            trouble[one.state.pool] = trouble.get(one.state.pool, 0.0) + one.cost
        shares = split_savings(command.savings, prices)
        for name, pool in pools.items():
            # Only a Balanced pool compares a move with the whole, which takes a look at all of its nodes.
            whole = self.context.worth(name) if policy(pool) == BALANCED else Worth(0.0, 0.0)
            found = unbalanced(pool, Worth(shares[name], trouble[name]), whole) or saves_too_little(
                pool, command.savings, command.price
            )
            if found is not None:
                return found
        return None
