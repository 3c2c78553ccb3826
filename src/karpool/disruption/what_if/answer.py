"""What a what-if comes to: where plans end, today and with knobs turned."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from karpool.disruption.command import Command
from karpool.disruption.context import DecisionContext
from karpool.disruption.plan import ClusterTotals, Plan, Planner, Progress
from karpool.disruption.policies import HAIR
from karpool.disruption.settings import DisruptionSettings
from karpool.disruption.what_if.knob import Knob, turned
from karpool.disruption.what_if.question import Question
from karpool.disruption.what_if.quick import AT_ONCE, quick
from karpool.disruption.what_if.reached import reached


@dataclass(frozen=True, slots=True)
class PlanEnd:
    """A whole plan in numbers; `launches` counts new nodes that it asks for on the way."""

    before: ClusterTotals
    after: ClusterTotals
    steps: int
    evictions: int
    launches: int

    @property
    def savings(self) -> float:
        """What the plan saves, in $/h, as far as prices are known."""
        return self.before.price - self.after.price

    def then(self, other: "PlanEnd") -> "PlanEnd":
        """This plan, and another one that goes on from its end."""
        return PlanEnd(
            before=self.before,
            after=other.after,
            steps=self.steps + other.steps,
            evictions=self.evictions + other.evictions,
            launches=self.launches + other.launches,
        )


@dataclass(frozen=True, slots=True)
class Walked:
    """A plan that was followed to its end: what it comes to, and the cluster there."""

    end: PlanEnd
    there: Question


@dataclass(frozen=True, slots=True)
class Answer:
    """Where plans end today and with knobs turned."""

    question: Question
    """The question with knobs turned, under the settings of the search."""
    today_settings: DisruptionSettings
    """Those under which the plan of today was found: with the same search, or with a longer one."""
    knobs: tuple[Knob, ...]
    today: PlanEnd
    then: PlanEnd
    onwards: bool
    """Whether `then` is the plan of today and what the knobs let come after it."""


class WhatIf:
    """Answers what-ifs about one cluster; what is planned for today is kept, so that it is planned once."""

    def __init__(
        self,
        question: Question,
        *,
        global_up_to: int | None = AT_ONCE,
        progress: Progress | None = None,
        planned: Walked | None = None,
    ) -> None:
        """`global_up_to`: how many nodes may make people wait for a global search; None: it is as the settings say.

        `planned`: a plan of today that was looked for longer, under the settings of the question as they are.
        """
        self._asked, self.planned = question.settings, planned
        if global_up_to is not None:
            settings = quick(question.settings, len(question.objects.nodes), global_up_to)
            question = replace(question, settings=settings)
        self.question = question
        self.hasty = question.settings.search != self._asked.search
        """Whether there are too many nodes for the search that the settings name."""
        self._progress = progress

    @cached_property
    def today(self) -> Walked:
        """The plan for the cluster as it is."""
        return walk(self.question, self._progress)

    def ask(self, knobs: Sequence[Knob]) -> Answer:
        """Turn knobs; a `KnobError` if one does not fit.

        A search that is quick finds one good end of many. Where nothing but prohibitions fall, no end may be dearer
        than that of today, so it then goes on from there; in haste it does so at once. Then it is also the best plan
        of today that counts, however it was found; of one that was looked for longer than a what-if is, it always goes
        on, too: a plan from scratch alone would make what is lifted look worth too little.
        """
        question = turned(self.question, knobs)
        relaxing = all(knob.relaxes(self.question) for knob in knobs)
        today, settings = self.best if relaxing else (self.today, self.question.settings)
        scratch = None if relaxing and self.hasty else walk(question, self._progress).end
        if scratch is not None:
            dearer = scratch.after.price > today.end.after.price + HAIR
            if not relaxing or (self.planned is None and not dearer):
                return Answer(question, settings, tuple(knobs), today.end, scratch, onwards=False)
        later = today.end.then(self.onwards(knobs, today).end)
        if scratch is not None and scratch.after.price < later.after.price - HAIR:
            return Answer(question, settings, tuple(knobs), today.end, scratch, onwards=False)
        return Answer(question, settings, tuple(knobs), today.end, later, onwards=True)

    @property
    def best(self) -> tuple[Walked, DisruptionSettings]:
        """The best plan of today that is known, and what it was found with."""
        if self.planned is not None:
            return self.planned, self._asked
        return self.today, self.question.settings

    def onwards(self, knobs: Sequence[Knob], start: Walked | None = None) -> Walked:
        """Go on from the end of a plan, that of today, with knobs turned."""
        there = replace((start or self.today).there, settings=self.question.settings)
        return walk(turned(there, knobs), self._progress)


def walk(question: Question, progress: Progress | None = None) -> Walked:
    """Plan to the end, without asking why nodes stay."""
    planner = Planner(question.context(), progress)
    before = planner.totals()
    planner.walk()
    end = _end(before, planner.totals(), [step.command for step in planner.steps])
    return Walked(end, reached(question, planner.context))


def walked(question: Question, plan: Plan, context: DecisionContext) -> Walked:
    """A plan that was made for a question, and the context at its end."""
    commands = [step.command for step in plan.steps]
    return Walked(_end(plan.before, plan.after, commands), reached(question, context))


def _end(before: ClusterTotals, after: ClusterTotals, commands: Sequence[Command]) -> PlanEnd:
    return PlanEnd(
        before=before,
        after=after,
        steps=len(commands),
        evictions=sum(len(command.evicted) + len(command.ended) for command in commands),
        launches=sum(len(command.replacements) for command in commands),
    )
