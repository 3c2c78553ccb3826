"""What a what-if comes to: where plans end, today and with knobs turned."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from karpool.disruption.plan import ClusterTotals, Planner, Progress
from karpool.disruption.policies import HAIR
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
    """Where plans end today and with knobs turned, found with the same search."""

    question: Question
    """The question with knobs turned, under the settings of the search."""
    knobs: tuple[Knob, ...]
    today: PlanEnd
    then: PlanEnd
    onwards: bool
    """Whether `then` is the plan of today and what the knobs let come after it, because that ends cheaper."""


class WhatIf:
    """Answers what-ifs about one cluster; what is planned for today is kept, so that it is planned once."""

    def __init__(
        self, question: Question, *, global_up_to: int | None = AT_ONCE, progress: Progress | None = None
    ) -> None:
        """`global_up_to`: how many nodes may make people wait for a global search; None: it is as the settings say."""
        if global_up_to is not None:
            settings = quick(question.settings, len(question.objects.nodes), global_up_to)
            question = replace(question, settings=settings)
        self.question = question
        self._progress = progress

    @cached_property
    def today(self) -> Walked:
        """The plan for the cluster as it is."""
        return walk(self.question, self._progress)

    def ask(self, knobs: Sequence[Knob]) -> Answer:
        """Turn knobs; a `KnobError` if one does not fit.

        A search that is quick finds one good end of many. Where nothing but prohibitions fall, no end may be dearer
        than that of today, so it then goes on from there.
        """
        question, today = turned(self.question, knobs), self.today.end
        then = walk(question, self._progress).end
        if then.after.price > today.after.price + HAIR and all(knob.relaxes(self.question) for knob in knobs):
            later = walk(turned(self.today.there, knobs), self._progress).end
            return Answer(question, tuple(knobs), today, today.then(later), onwards=True)
        return Answer(question, tuple(knobs), today, then, onwards=False)


def walk(question: Question, progress: Progress | None = None) -> Walked:
    """Plan to the end, without asking why nodes stay."""
    planner = Planner(question.context(), progress)
    before = planner.totals()
    planner.walk()
    commands = [step.command for step in planner.steps]
    end = PlanEnd(
        before=before,
        after=planner.totals(),
        steps=len(commands),
        evictions=sum(len(command.evicted) + len(command.ended) for command in commands),
        launches=sum(len(command.replacements) for command in commands),
    )
    return Walked(end, reached(question, planner.context))
