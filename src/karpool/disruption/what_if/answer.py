"""What a what-if comes to: where plans end, today and with knobs turned."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from karpool.disruption.context import DecisionContext
from karpool.disruption.plan import ClusterTotals, Plan, Planner, PlanStep, Progress
from karpool.disruption.policies import HAIR
from karpool.disruption.settings import GLOBAL, DisruptionSettings
from karpool.disruption.what_if.again import Checked, take_again, worth_it
from karpool.disruption.what_if.knob import Knob, turned
from karpool.disruption.what_if.new_places import with_new_places
from karpool.disruption.what_if.question import Question
from karpool.disruption.what_if.quick import AT_ONCE, SOON, quick
from karpool.disruption.what_if.reached import reached
from karpool.model.reasons import Reason


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

    def with_fee(self, fee: float) -> "PlanEnd":
        """The same plan where every node costs so much more."""
        return replace(self, before=_with_fee(self.before, fee), after=_with_fee(self.after, fee)) if fee else self


@dataclass(frozen=True, slots=True)
class Walked:
    """A plan that was followed to its end: what it comes to, the cluster there, and its steps."""

    end: PlanEnd
    there: Question
    steps: tuple[PlanStep, ...] = ()
    checked: Checked | None = None
    """What became of the steps of the plan that it began with, if it did with one."""
    stopped: bool = False
    """Whether more steps might come: there was no time to look for them."""


@dataclass(frozen=True, slots=True)
class WhatIfAnswer:
    """Where plans end today and with knobs turned, both at the same prices."""

    question: Question
    """The question with knobs turned, under the settings of the search."""
    today_settings: DisruptionSettings
    """Those under which the plan of today was found: with the same search, or with a longer one."""
    knobs: tuple[Knob, ...]
    today: PlanEnd
    """Where the plan of today ends; a fee for nodes that the knobs bring is counted here, too."""
    then: PlanEnd
    there: Question
    """The cluster where `then` ends."""
    onwards: bool
    """Whether `then` is the plan of today and what the knobs let come after it."""
    first: bool
    """Whether a longer search may find more."""
    fee: float | None
    """What every node costs on top, in $/h, if the knobs say so."""
    displaced: int = 0
    """How many pods no longer fit on their nodes with knobs turned; `then` counts the nodes launched for them."""
    checked: Checked | None = None
    """What became of the steps of today's plan, if `then` begins with those that hold with knobs turned."""
    stopped: bool = False
    """Whether `then` is only what was found in the time that there was."""
    unplaced: tuple[tuple[str, Reason], ...] = ()
    """Those of them for which there would be no place, and why; `then` is without them."""

    @property
    def saved(self) -> float:
        """By how much the plan ends cheaper with knobs turned, in $/h; less than nothing if it ends dearer."""
        return self.today.after.price - self.then.after.price


class WhatIf:
    """Answers what-ifs about one cluster; what is planned for today is kept, so that it is planned once."""

    def __init__(
        self,
        question: Question,
        *,
        global_up_to: int | None = AT_ONCE,
        thorough: bool = False,
        progress: Progress | None = None,
        planned: Walked | None = None,
        seconds: float | None = None,
    ) -> None:
        """`global_up_to`: how many nodes may make people wait for a global search; None: it is as the settings say.

        `planned`: a plan of today that was looked for longer, under the settings of the question as they are.
        `thorough`: what cannot go on from that plan is looked for as long as it was. `seconds`: how long somebody waits
        for an answer about a large cluster, once the plan of today is there.
        """
        self._seconds = seconds
        self._asked, self.planned, self._thorough = question.settings, planned, thorough
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

    @property
    def _large(self) -> bool:
        """Whether there are so many nodes that a plan is not looked for from scratch while somebody waits."""
        waited_for = self.hasty or self._seconds is not None
        return waited_for and not self._thorough and len(self.question.objects.nodes) > SOON

    def ask(self, knobs: Sequence[Knob], *, patient: bool = False) -> WhatIfAnswer:
        """Turn knobs; a `KnobError` if one does not fit. `patient`: somebody waits longer, until nothing more comes.

        A search that is quick finds one good end of many. Where nothing but prohibitions fall, no end may be dearer
        than that of today, so it then goes on from there; in haste it does so at once. Then it is also the best plan
        of today that counts, however it was found; of one that was looked for longer than a what-if is, it always goes
        on, too: a plan from scratch alone would make what is lifted look worth too little. In large clusters one from
        scratch, looked for less, never ends as cheap, and is not tried.
        """
        if not all(knob.relaxes(self.question) for knob in knobs):
            return self._anew(knobs, patient=patient)
        today, settings = self.best
        question = turned(self.question, knobs)
        known = self.planned is not None and len(question.objects.nodes) > SOON
        scratch = None if self.hasty or self._large or known else walk(question, self._progress)
        if scratch is not None and self.planned is None and not _dearer(scratch.end, today.end):
            return self._answer(question, settings, knobs, today.end, scratch)
        later = self.onwards(knobs, today, patient=patient)
        later = replace(later, end=today.end.then(later.end))
        if scratch is not None and _dearer(later.end, scratch.end):
            return self._answer(question, settings, knobs, today.end, scratch)
        return self._answer(question, settings, knobs, today.end, later, onwards=True)

    def _anew(self, knobs: Sequence[Knob], *, patient: bool) -> WhatIfAnswer:
        """What may also forbid or make dearer is planned anew, and compared with what was looked for just as long.

        In large clusters that takes too long for somebody who waits: there it begins with the steps of the plan of
        today that hold with knobs turned, which are judged one by one, and goes on from there.
        """
        asked, settings, today = self.question, self.question.settings, self.planned
        if self._thorough and today is not None:
            asked, settings = replace(self.question, settings=self._asked), self._asked
        elif self._large:
            today, settings = self.best
        else:
            today = self.today
        stop = self._stop(patient=patient)
        question = turned(asked, knobs)
        placed = with_new_places(asked, question)
        steps = today.steps if self._large else None
        found = walk(placed.question, self._progress, stop, steps, directed=settings.search == GLOBAL)
        answer = self._answer(question, settings, knobs, today.end, found)
        if not placed.displaced:
            return answer
        # What is launched for them is no part of the cluster of today.
        launches = answer.then.launches + placed.launched
        then = replace(answer.then, before=answer.today.before, launches=launches)
        return replace(answer, then=then, displaced=placed.displaced, unplaced=placed.unplaced)

    def _answer(
        self,
        question: Question,
        settings: DisruptionSettings,
        knobs: Sequence[Knob],
        today: PlanEnd,
        then: Walked,
        *,
        onwards: bool = False,
    ) -> WhatIfAnswer:
        fee = question.catalog.node_fee - self.question.catalog.node_fee
        return WhatIfAnswer(
            question=question,
            today_settings=settings,
            knobs=tuple(knobs),
            today=today.with_fee(fee),
            then=then.end,
            there=then.there,
            onwards=onwards,
            first=self.hasty or self._large or settings != self._asked,
            fee=question.catalog.node_fee if fee else None,
            checked=then.checked,
            stopped=then.stopped,
        )

    @property
    def best(self) -> tuple[Walked, DisruptionSettings]:
        """The best plan of today that is known, and what it was found with."""
        if self.planned is not None:
            return self.planned, self._asked
        return self.today, self.question.settings

    def onwards(self, knobs: Sequence[Knob], start: Walked | None = None, *, patient: bool = True) -> Walked:
        """Go on from the end of a plan, that of today, with knobs turned."""
        there = replace((start or self.today).there, settings=self.question.settings)
        return walk(turned(there, knobs), self._progress, self._stop(patient=patient))

    def _stop(self, *, patient: bool) -> Callable[[], bool]:
        """Tells when somebody has waited long enough, from now on."""
        if patient or self._seconds is None or not self._large:
            return _never
        until = time.monotonic() + self._seconds
        return lambda: time.monotonic() > until


def _dearer(one: PlanEnd, other: PlanEnd) -> bool:
    return one.after.price > other.after.price + HAIR


def _with_fee(totals: ClusterTotals, fee: float) -> ClusterTotals:
    return replace(totals, price=totals.price + fee * (totals.nodes - totals.unpriced))


def _never() -> bool:
    return False


def walk(
    question: Question,
    progress: Progress | None = None,
    stop: Callable[[], bool] = _never,
    steps: Sequence[PlanStep] | None = None,
    *,
    directed: bool = False,
) -> Walked:
    """Plan to the end, without asking why nodes stay; `steps` are taken first, those that hold here."""
    planner = Planner(question.context(), progress)
    before = planner.totals()
    checked = None
    if steps is not None:
        # Steps of a global search may pay only together; if they do not any more, each has to.
        checked = take_again(planner, steps, directed=directed, together=directed, stop=stop)
        if directed and not worth_it(planner):
            planner = Planner(question.context(), progress)
            checked = take_again(planner, steps, directed=directed, stop=stop)
    whole = planner.walk(stop=stop)
    end = _end(before, planner.totals(), planner.steps)
    return Walked(end, reached(question, planner.context), tuple(planner.steps), checked, not whole)


def plan_and_walk(question: Question, progress: Progress | None = None) -> Walked:
    """Plan to the end as `karpool plan` does."""
    planner = Planner(question.context(), progress, afresh=question.context)
    return walked(question, planner.plan(), planner.context)


def walked(question: Question, plan: Plan, context: DecisionContext) -> Walked:
    """A plan that was made for a question, and the context at its end."""
    return Walked(_end(plan.before, plan.after, plan.steps), reached(question, context), plan.steps)


def _end(before: ClusterTotals, after: ClusterTotals, steps: Sequence[PlanStep]) -> PlanEnd:
    commands = [step.command for step in steps]
    return PlanEnd(
        before=before,
        after=after,
        steps=len(commands),
        evictions=sum(len(command.evicted) + len(command.ended) for command in commands),
        launches=sum(len(command.new_nodes) for command in commands),
    )
