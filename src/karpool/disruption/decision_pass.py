"""One pass over a cluster: the methods of disruption in their order, and what was found out on the way."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np

from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.candidates.costs import eviction_weight
from karpool.disruption.candidates.drift_detection import Drift
from karpool.disruption.candidates.eligibility import consolidation_refusal, refusal
from karpool.disruption.candidates.ordering import in_order
from karpool.disruption.command import Cause, Command
from karpool.disruption.context import DecisionContext
from karpool.disruption.methods.evaluate import Evaluator
from karpool.disruption.methods.replacements import about
from karpool.disruption.policies import (
    BALANCED,
    Verdict,
    Worth,
    evictions_cost_more,
    policy,
    saves_too_little,
    split_savings,
    unbalanced,
    verdict,
)
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.refusal_cache import RefusalCache
from karpool.disruption.repair.method import UnhealthyNode, unhealthy_nodes
from karpool.model.nodepool import NodePool
from karpool.model.reasons import Reason

Progress = Callable[[str, int, int], None]
"""Told what is being done, if it has a name, how much of it is done, and how much there is."""


def _no_progress(_what: str, _done: int, _all: int) -> None:
    """Nobody watches."""


class DecisionPass:
    """What the methods of one pass share; kept for those who ask why a node stays."""

    def __init__(
        self, context: DecisionContext, refusals: RefusalCache | None = None, progress: Progress = _no_progress
    ) -> None:
        self.context = context
        self.refusals = refusals or RefusalCache()
        self.progress = progress
        self.evaluator = Evaluator(context)
        self.group_refusals: dict[int, Reason] = {}
        """By row: why no set of nodes that includes this one can go."""
        self.verdicts: list[Verdict] = []
        """What Balanced pools said against moves that would have worked."""
        self.postponed = False
        """Whether consolidation waits for a global search or for its target."""
        self._open: list[Candidate] | None = None
        self._consolidatable: list[Candidate] | None = None
        self._drifted: list[tuple[Candidate, Drift]] | None = None
        self._unhealthy: list[UnhealthyNode] | None = None

    def searching(self, done: int, moves: int, price: float, turn: int = 1) -> None:
        """Tell that a search has made so many moves of its turn, and the price of the best fleet so far."""
        again = f" (turn {turn})" if turn > 1 else ""
        self.progress(f"Searching: {price:,.2f} $/h{again}", done, moves)

    def candidates(self) -> list[Candidate]:
        """Nodes that may be disrupted and whose window is open: those of emptiness and consolidation."""
        if self._open is None:
            self._open = self.context.candidates(self.context.eligible_rows(open_only=True))
        return self._open

    def consolidatable(self) -> list[Candidate]:
        """Candidates of consolidation, in order."""
        if self._consolidatable is None:
            kept, known = list[Candidate](), self.context.memo.consolidatable
            for candidate in self.candidates():
                entry = known.get(candidate.row)
                if entry is None or entry[0] is not candidate:
                    # Time alone does not change that for a node whose window is open.
                    entry = (candidate, consolidation_refusal(self.context, candidate) is None)
                    known[candidate.row] = entry
                if entry[1]:
                    kept.append(candidate)
            self._consolidatable = in_order(kept, self.context.settings.order, self.context.now)
        return self._consolidatable

    def drifted(self) -> list[tuple[Candidate, Drift]]:
        """Nodes that have drifted and may be disrupted, or may be when their grace period is over; by name."""
        if self._drifted is None:
            context = self.context
            drifted = set(np.flatnonzero(context.drifted_rows()).tolist())
            eligible = [*context.eligible_rows(), *context.eligible_rows(eventual=True)] if drifted else []
            nodes = context.candidates([row for row in eligible if row in drifted])
            drifts = [(node, drift) for node in nodes if (drift := context.drift(node)) is not None]
            self._drifted = sorted(drifts, key=lambda entry: entry[0].name)
        return self._drifted

    def repairs(self) -> list[UnhealthyNode]:
        """Nodes with a condition that a repair policy names, in the order in which they are repaired."""
        if self._unhealthy is None:
            self._unhealthy = unhealthy_nodes(self.context)
        return self._unhealthy

    def refusal(self, candidate: Candidate, *, eventual: bool = False) -> Reason | None:
        """Why a node may not be disrupted at all."""
        return refusal(self.context, candidate, eventual=eventual)

    # -- budgets -------------------------------------------------------------------------------------------------

    def over_budget(self, candidate: Candidate, cause: Cause) -> Reason | None:
        """Why the budgets of its pool keep a node, if they do."""
        if candidate.pool is None:
            return None
        allowance = self.context.allowance(candidate.pool, cause)
        return None if allowance.remaining > 0 else allowance.exhausted(candidate.pool)

    def exhausted_pools(self, cause: Cause) -> set[str]:
        """The names of pools whose budgets let no node go."""
        context = self.context
        return {name for name, pool in context.pools.items() if context.allowance(pool, cause).remaining <= 0}

    def within_budgets(self, candidates: Iterable[Candidate], cause: Cause) -> list[Candidate]:
        """Candidates in order, as many of each pool as its budgets allow."""
        left: dict[str, int] = {}
        kept: list[Candidate] = []
        limited = bool(self.context.policies.rates)
        for candidate in candidates:
            if candidate.pool is None or (limited and self._over_rate(candidate, kept, cause)):
                continue
            name = candidate.pool_name
            if name not in left:
                left[name] = self.context.allowance(candidate.pool, cause).remaining
            if left[name] > 0:
                left[name] -= 1
                kept.append(candidate)
            elif len(left) == len(self.context.pools) and not any(left.values()):
                break
        return kept

    def _over_rate(self, candidate: Candidate, kept: Sequence[Candidate], cause: Cause) -> bool:
        """Whether rates do not let a node go beside others.

        Empty nodes all go in one command, so that pods of DaemonSets on them count together; of other nodes a search
        chooses some, and asks for these.
        """
        rates = self.context.policies.rates
        rows = [node.row for node in (*kept, candidate)]
        pods = self.context.evictions(rows) if cause is Cause.EMPTY else {}
        return rates.refusal(len(rows), pods) is not None

    # -- worth ---------------------------------------------------------------------------------------------------

    def not_worth_it(self, command: Command, candidates: Sequence[Candidate]) -> Reason | None:
        """Why a command that would work is not worth its disruption now, at all or to one of the pools, if so."""
        return self._evictions_cost_more(command, candidates) or self.unwanted(command, candidates)

    def unwanted(self, command: Command, candidates: Sequence[Candidate]) -> Reason | None:
        """Why rates or one of the pools do not want a command that would work, if they do not."""
        too_fast = self.context.over_rate([candidate.row for candidate in candidates])
        return too_fast or self._saves_too_little(command, candidates)

    def worthless(self, command: Command, candidates: Sequence[Candidate]) -> Reason | None:
        """Why a command that would work is not worth its disruption, whatever rates say."""
        return self._evictions_cost_more(command, candidates) or self._saves_too_little(command, candidates)

    def _saves_too_little(self, command: Command, candidates: Sequence[Candidate]) -> Reason | None:
        for pool, move, total in self._by_pool(command.savings, candidates):
            reason = unbalanced(pool, move, total) or saves_too_little(pool, command.savings, command.price)
            if reason is not None:
                return reason
        return None

    def _by_pool(self, savings: float, candidates: Sequence[Candidate]) -> Iterator[tuple[NodePool, Worth, Worth]]:
        """What a move that saves so much is to each pool that it takes nodes from, and what the pool is worth."""
        prices: dict[str, float] = {}
        costs: dict[str, float] = {}
        pools = {node.pool.name: node.pool for node in candidates if node.pool is not None}
        for candidate in candidates:
            prices[candidate.pool_name] = prices.get(candidate.pool_name, 0.0) + (candidate.price or 0.0)
            costs[candidate.pool_name] = costs.get(candidate.pool_name, 0.0) + candidate.cost
        shares = split_savings(savings, prices)
        for name, pool in pools.items():
            # Only a Balanced pool compares a move with the whole, which takes all of its nodes.
            total = self.context.worth(name) if policy(pool) == BALANCED else Worth(0.0, 0.0)
            yield pool, Worth(shares[name], costs[name]), total

    def not_even_deleted(self, candidate: Candidate) -> bool:
        """Whether a Balanced pool would not even approve of the deletion of a node, whatever a replacement costs."""
        moves = self._by_pool(candidate.price or 0.0, (candidate,))
        return any(total.price > 0 and unbalanced(pool, move, total) is not None for pool, move, total in moves)

    def judged(self, command: Command, candidates: Sequence[Candidate]) -> list[Verdict]:
        """What each pool says of a move of consolidation that takes nodes from it."""
        nodes = tuple(candidate.name for candidate in candidates)
        return [verdict(*parts, nodes) for parts in self._by_pool(command.savings, candidates)]

    def _evictions_cost_more(self, command: Command, candidates: Sequence[Candidate]) -> Reason | None:
        price = self.context.settings.effective_eviction_price
        # What a node of unknown price saves is unknown as well: that is no reason to keep it.
        if not price or command.unpriced:
            return None
        pods, told = self.context.snapshot.pods, self.context.settings.by_deletion_cost
        weights = [eviction_weight(pods.get(pods.rows[key]), by_deletion_cost=told) for key in command.evicted]
        message = evictions_cost_more(command.savings, weights, price)
        return None if message is None else about(candidates, ReasonCode.EVICTIONS_COST_MORE, message)


def lasting(refused: Reason) -> bool:
    """Whether a command that is not worth it stays so as long as nothing that it depends on changes.

    What a pool approves changes with every node that it loses.
    """
    return refused.code == ReasonCode.EVICTIONS_COST_MORE


class DisruptionMethod(Protocol):
    """A method of disruption: the commands that it finds in a pass, none if there is nothing for it to do."""

    def __call__(self, decision_pass: DecisionPass) -> tuple[Command, ...]:
        """Find commands."""
