"""Knobs for what NodePools say."""

import json
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec.structs import replace

from karpool.disruption.policies import WHEN_UNDERUTILIZED
from karpool.disruption.what_if.knob import Knob
from karpool.disruption.what_if.question import KnobError, Question, annotated
from karpool.model.annotations import AnnotationError, balanced_k, minimum_savings
from karpool.model.labels import BALANCED_K, BUDGETS, GRACE_PERIOD, MINIMUM_SAVINGS
from karpool.model.nodepool import ZERO_SECONDS, Budget, NodePool
from karpool.model.rules.budgets import budget_flaws
from karpool.wire.duration import Duration

_HEAVIEST: Final = 100
_ALL: Final = (Budget(nodes="100%"),)
_ALL_WRITTEN: Final = '[{"nodes": "100%"}]'


class PoolKnob(Knob, kw_only=True):
    """A knob for a NodePool, or for all of them."""

    node_pool: str | None = None

    @property
    def where(self) -> str:
        """The pools, for people."""
        return "all NodePools" if self.node_pool is None else f"NodePool {self.node_pool}"


class BudgetsOff(PoolKnob, kw_only=True, tag="budgetsOff"):
    """No disruption budgets: all nodes of the pool may go at once, at any hour."""

    def turn(self, question: Question) -> Question:
        return question.with_pools(self.node_pool, _without_budgets)

    def relaxes(self, question: Question) -> bool:  # noqa: ARG002 - it never forbids anything
        return True

    @property
    def words(self) -> str:
        return f"lift the budgets of {self.where}"


def _without_budgets(pool: NodePool) -> NodePool:
    pool = with_disruption(pool, budgets=_ALL)
    return annotated(pool, BUDGETS, _ALL_WRITTEN) if BUDGETS in pool.metadata.annotations else pool


class Budgets(PoolKnob, kw_only=True, tag="budgets"):
    """One budget for all reasons and hours, such as `10%` or `3`, in place of all that there are."""

    value: Annotated[str, msgspec.Meta(max_length=40)]

    def turn(self, question: Question) -> Question:
        return question.with_pools(self.node_pool, self._changed)

    def _changed(self, pool: NodePool) -> NodePool:
        budgets = (Budget(nodes=self.value),)
        for flaw in budget_flaws(budgets, [{}], "value"):
            raise KnobError("value", flaw.message)
        pool = with_disruption(pool, budgets=budgets)
        written = json.dumps([{"nodes": self.value}])
        return annotated(pool, BUDGETS, written) if BUDGETS in pool.metadata.annotations else pool

    @property
    def words(self) -> str:
        return f"set the budget of {self.where} to {self.value} of its nodes"


class BalancedK(PoolKnob, kw_only=True, tag="balancedK"):
    """How much disruption a Balanced pool accepts for the money."""

    value: Annotated[str, msgspec.Meta(max_length=40)]

    def turn(self, question: Question) -> Question:
        return question.with_pools(self.node_pool, self._changed)

    def _changed(self, pool: NodePool) -> NodePool:
        changed = annotated(pool, BALANCED_K, self.value)
        try:
            balanced_k(changed)
        except AnnotationError as problem:
            raise KnobError("value", problem.flaws[0].message) from None
        return changed

    @property
    def words(self) -> str:
        return f"set k of {self.where} to {self.value}, for consolidationPolicy Balanced"


class ConsolidateAfter(PoolKnob, kw_only=True, tag="consolidateAfter"):
    value: Duration

    def turn(self, question: Question) -> Question:
        return question.with_pools(self.node_pool, lambda pool: with_disruption(pool, consolidate_after=self.value))

    def relaxes(self, question: Question) -> bool:  # noqa: ARG002 - 0s is the least there is
        return self.value == ZERO_SECONDS

    @property
    def words(self) -> str:
        return f"set consolidateAfter of {self.where} to {self.value}"


class GracePeriod(PoolKnob, kw_only=True, tag="gracePeriod"):
    """`consolidationGracePeriod`, as a pool has it: in its field, else in its annotation; `Never` is none."""

    value: Duration

    def turn(self, question: Question) -> Question:
        return question.with_pools(self.node_pool, self._changed)

    def _changed(self, pool: NodePool) -> NodePool:
        if pool.spec.disruption.consolidation_grace_period is not None:
            return with_disruption(pool, consolidation_grace_period=self.value)
        return annotated(pool, GRACE_PERIOD, None if self.value.never else str(self.value))

    def relaxes(self, question: Question) -> bool:  # noqa: ARG002 - none is the least there is
        return self.value.never

    @property
    def words(self) -> str:
        length = "no grace period" if self.value.never else f"a grace period of {self.value}"
        return f"give {self.where} {length}"


class PoolWeight(PoolKnob, kw_only=True, tag="weight"):
    value: Annotated[int, msgspec.Meta(ge=0, le=_HEAVIEST)]

    def turn(self, question: Question) -> Question:
        weight = self.value or None
        return question.with_pools(self.node_pool, lambda pool: replace(pool, spec=replace(pool.spec, weight=weight)))

    @property
    def words(self) -> str:
        return f"give {self.where} the weight {self.value}"


class MinimumSavingsKnob(PoolKnob, kw_only=True, tag="minimumSavings"):
    """The least that a command must save: `0.05` in $/h, or `5%` of what goes."""

    value: Annotated[str, msgspec.Meta(max_length=40)]

    def turn(self, question: Question) -> Question:
        return question.with_pools(self.node_pool, self._changed)

    def _changed(self, pool: NodePool) -> NodePool:
        changed = annotated(pool, MINIMUM_SAVINGS, None if self.value == "0" else self.value)
        try:
            minimum_savings(changed)
        except AnnotationError as problem:
            raise KnobError("value", problem.flaws[0].message) from None
        return changed

    def relaxes(self, question: Question) -> bool:  # noqa: ARG002 - nothing is the least there is
        return self.value == "0"

    @property
    def words(self) -> str:
        return f"set the minimum savings of {self.where} to {self.value}"


class ConsolidationPolicy(PoolKnob, kw_only=True, tag="consolidationPolicy"):
    value: Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"]

    def turn(self, question: Question) -> Question:
        return question.with_pools(self.node_pool, lambda pool: with_disruption(pool, consolidation_policy=self.value))

    def relaxes(self, question: Question) -> bool:  # noqa: ARG002 - this is the policy that allows most
        return self.value == WHEN_UNDERUTILIZED

    @property
    def words(self) -> str:
        return f"set consolidationPolicy of {self.where} to {self.value}"


class FixedSizeOff(PoolKnob, kw_only=True, tag="fixedSizeOff"):
    """A static pool is an ordinary one."""

    def turn(self, question: Question) -> Question:
        return question.with_pools(self.node_pool, lambda pool: replace(pool, spec=replace(pool.spec, replicas=None)))

    def relaxes(self, question: Question) -> bool:  # noqa: ARG002 - it never forbids anything
        return True

    @property
    def words(self) -> str:
        return f"remove the fixed number of replicas from {self.where}"


def with_disruption(pool: NodePool, **fields: Any) -> NodePool:
    """A pool whose `spec.disruption` says something else."""
    return replace(pool, spec=replace(pool.spec, disruption=replace(pool.spec.disruption, **fields)))
