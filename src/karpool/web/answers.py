"""Answers: worked out from the objects of a cluster, as `plan`, `explain` and `blockers` do it."""

import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from karpool.disruption.context import DecisionContext
from karpool.disruption.what_if.answer import Walked, WhatIf, walked
from karpool.disruption.what_if.question import KnobError
from karpool.disruption.what_if.quick import AT_ONCE
from karpool.model.objects import Objects
from karpool.web.journal_file import JournalFile
from karpool.web.plan_answer import Planned, planned
from karpool.web.questions import (
    Answer,
    BlockersQuestion,
    CostsQuestion,
    DecidedCluster,
    Decider,
    Foreseeing,
    LongerWhatIfQuestion,
    MomentQuestion,
    NodeQuestion,
    PageQuestion,
    PlanQuestion,
    PodQuestion,
    Progress,
    QuestionError,
    TimelineQuestion,
    TodayQuestion,
    WhatIfQuestion,
)
from karpool.wire.objects import Object, encode_value

_SAME_BASIS: Final = 60.0
"""For so many seconds what-ifs about a living cluster are compared with the same plan of today."""
_BLOCKERS: Final = 20
_BETWEEN: Final = 1.0
"""Seconds between two looks at an answer that is not complete."""
FIRST_SECONDS: Final = 4.0
"""Seconds after which a first answer to a what-if says what was found so far."""
_ANY: Final = sys.maxsize
"""However many nodes there are."""
_MISSING: Final = "no journal is read; start with --journal FILE, the same file as that of karpool run"


class _PlanEnd(NamedTuple):
    """Where the whole plan ends, of which cluster it is, and when it was made."""

    changes: int
    at: float
    cluster: DecidedCluster
    end: Walked


class Answers:
    """A copy of a cluster's objects, and what is asked about them."""

    def __init__(self, decider: Decider, journal: JournalFile | None = None) -> None:
        self._decide = decider
        self._journal = journal
        self._objects: dict[str, dict[str, Object]] = {}
        self._changes = 0
        self._context: tuple[int, DecisionContext] | None = None
        self._planned: Planned | None = None
        self._plan_end: _PlanEnd | None = None
        self._stopped: set[str] = set()
        """Knobs whose answer was given before everything was looked at."""
        self._progress: Progress = lambda _what, _done, _most: None
        self._above: tuple[str, int, int | None] | None = None
        """What is said in place of what planning says, while that is only a part of what is worked on."""
        self._bases: dict[int, tuple[int, float, DecidedCluster, WhatIf]] = {}

    def update(self, collection: str, changed: Mapping[str, Object | None]) -> None:
        """Take note of objects that are new, changed, or gone."""
        self._changes += 1
        kept = self._objects.setdefault(collection, {})
        for key, entry in changed.items():
            if entry is None:
                kept.pop(key, None)
            else:
                kept[key] = entry

    def answer(
        self, question: PageQuestion, progress: Progress, foresee: Callable[[bytes], None] = lambda _: None
    ) -> bytes:
        """The answer as JSON; raises a QuestionError if there is none. `foresee` is told what is known early."""
        before, self._progress, self._above = (self._progress, self._above), progress, None
        try:
            if isinstance(question, BlockersQuestion):
                return _encoded(self._blockers(question, _seldom(lambda known: foresee(_encoded(known)))))
            if isinstance(question, LongerWhatIfQuestion):
                return _encoded(self._longer_what_if(question, lambda known: foresee(_encoded(known))))
            how: Callable[[Any, Progress], Answer] = getattr(self, f"_{question.__struct_config__.tag}")
            return _encoded(how(question, progress))
        finally:
            self._progress, self._above = before  # a short question may come within a long one

    def _say(self, what: str, done: int, most: int | None) -> None:
        """The progress of what plans are made for, or of what they are parts of."""
        self._progress(*(self._above or (what, done, most)))

    def _say_above(self, what: str, done: int, most: int | None) -> None:
        self._above = (what, done, most)
        self._progress(what, done, most)

    def _cluster(self) -> DecidedCluster:
        collections: dict[str, Any] = {name: tuple(kept.values()) for name, kept in self._objects.items()}
        return self._decide(Objects(**collections))

    def _now(self) -> DecisionContext:
        """The cluster of now, in a context that no answer changes."""
        if self._context is None or self._context[0] != self._changes:
            self._context = (self._changes, self._cluster().subject.context())
        return self._context[1]

    # -- plan and explanations -----------------------------------------------------------------------------------

    def _plan(self, _: PlanQuestion, progress: Progress) -> Answer:
        return self._made_plan(progress).answer

    def _made_plan(self, progress: Progress) -> Planned:
        """A plan of now, which what-ifs go on from."""
        changes = self._changes  # more may come while the plan is made
        self._planned = planned(self._cluster(), progress)
        subject = self._planned.cluster.subject
        end = walked(subject, self._planned.plan, self._planned.after)
        self._plan_end = _PlanEnd(changes, time.monotonic(), self._planned.cluster, end)
        return self._planned

    def _node(self, question: NodeQuestion, _: Progress) -> Answer:
        from karpool.disruption.decision_pass import DecisionPass
        from karpool.disruption.explain import explain_node
        from karpool.report.plans.assemble import explanation

        context = self._now()
        row = context.snapshot.nodes.rows.get(question.name)
        if row is None:
            raise QuestionError(f"there is no node {question.name} now")
        return {"node": explanation(context, explain_node(DecisionPass(context), context.candidate(row)))}

    def _pod(self, question: PodQuestion, _: Progress) -> Answer:
        from karpool.report.plans.pod_document import pod_document

        found = pod_document(self._now(), question.name)
        if found is None:
            raise QuestionError(f"there is no pod {question.name} now")
        return {"pod": found}

    # -- what-ifs ------------------------------------------------------------------------------------------------

    def _today(self, _: TodayQuestion, __: Progress) -> Answer:
        from karpool.disruption.what_if.quick import search_words
        from karpool.report.what_if.what_if_document import end_part

        cluster, what_if = self._what_ifs(AT_ONCE)
        pdbs = sorted(pdb.key for pdb in cluster.subject.objects.pod_disruption_budgets)
        planned_soon = what_if.today  # before a knob is turned
        best, settings = what_if.best if what_if.planned is not None else (planned_soon, what_if.question.settings)
        return {"today": end_part(best.end), "search": search_words(settings), "pdbs": pdbs}

    def _what_if(self, question: WhatIfQuestion, _: Progress) -> Answer:
        return self._turned(question.knobs, AT_ONCE, again=bool(question.since))

    def _longer_what_if(self, question: LongerWhatIfQuestion, foresee: Foreseeing) -> Answer:
        if question.knobs in self._stopped:
            # What the first answer had no time for comes in between: the longer search takes minutes.
            foresee(self._turned(question.knobs, AT_ONCE, again=False, patient=True))
        return self._turned(question.knobs, _ANY, again=bool(question.since))

    def _turned(self, knobs_text: str, global_up_to: int, *, again: bool, patient: bool = False) -> Answer:
        """Where plans end with knobs turned; a global search may be used up to so many nodes."""
        from karpool.disruption.what_if.exports import export
        from karpool.disruption.what_if.knobs import read_knobs
        from karpool.report.what_if.what_if_document import what_if_document
        from karpool.report.what_if.what_if_yaml import patch_files, scenario_file

        try:
            knobs = read_knobs(knobs_text)
            cluster, what_if = self._what_ifs(global_up_to, again=again)
            answer = what_if.ask(knobs, patient=patient)
            if answer.stopped:
                self._stopped.add(knobs_text)
            else:
                self._stopped.discard(knobs_text)
            exported = export(cluster.subject, knobs)
            return {
                "whatIf": what_if_document(answer),
                "patches": patch_files(cluster.subject, knobs),
                "scenario": scenario_file(cluster.subject, knobs, cluster.source),
                "options": exported.options,
                "byHand": exported.by_hand,
                "longer": answer.first and global_up_to != _ANY,
            }
        except KnobError as error:
            raise QuestionError(str(error)) from None

    def _what_ifs(self, global_up_to: int, *, again: bool = False) -> tuple[DecidedCluster, WhatIf]:
        """What-ifs that are compared with one plan of today; those that take long, with that of the Plan view.

        `again`: what was planned before the cluster has changed is not good enough.
        """
        longer = global_up_to == _ANY
        now, made = time.monotonic(), self._plan_end
        good = 0.0 if again else _SAME_BASIS
        if global_up_to in self._bases:
            changes, since, cluster, what_if = self._bases[global_up_to]
            if changes == self._changes or now - since < good:
                if made is not None and made.changes == changes:
                    what_if.planned = made.end
                return cluster, what_if
        fresh = made is not None and (made.changes == self._changes or now - made.at < good)
        if longer and not fresh:
            self._made_plan(self._say)
            made, fresh = self._plan_end, True
        if made is not None and fresh:
            changes, cluster, planned_end = made.changes, made.cluster, made.end
        else:
            changes, cluster, planned_end = self._changes, self._cluster(), None
        what_if = WhatIf(
            cluster.subject,
            global_up_to=global_up_to,
            thorough=longer,
            progress=self._say,
            planned=planned_end,
            seconds=None if longer else FIRST_SECONDS,
        )
        self._bases[global_up_to] = (changes, now, cluster, what_if)
        return cluster, what_if

    def _blockers(self, question: BlockersQuestion, foresee: Foreseeing) -> Answer:
        from karpool.disruption.what_if.blockers import Blocker, Blockers, blockers_of
        from karpool.report.costs.costs import GroupingError, read_grouping
        from karpool.report.what_if.blockers_table import blockers_csv
        from karpool.report.what_if.what_if_document import BlockersDocument, blockers_document, owner_of

        try:
            grouping = read_grouping(question.by) if question.by else None
        except GroupingError as error:
            raise QuestionError(str(error)) from None
        # One after the other, and never in haste: each is worth what a what-if comes to that lifts it.
        cluster, what_if = self._what_ifs(_ANY, again=bool(question.since))
        namespaces = {entry.name: entry for entry in cluster.subject.objects.namespaces}

        def owner(blocker: Blocker) -> str:
            return "" if grouping is None else owner_of(blocker, grouping, namespaces)

        def written(found: Blockers) -> BlockersDocument:
            return blockers_document(what_if, found, grouping, cluster.warnings)

        found = blockers_of(
            what_if,
            _BLOCKERS,
            owner=owner,
            progress=self._say_above,
            so_far=lambda known: foresee({"blockers": written(known)}),
        )
        document = written(found)
        return {"blockers": document, "csv": blockers_csv(document)}

    def _costs(self, question: CostsQuestion, progress: Progress) -> Answer:
        from karpool.report.costs.costs import CostTally, GroupingError, read_grouping
        from karpool.report.costs.costs_csv import costs_csv

        try:
            grouping = read_grouping(question.by)
        except GroupingError as error:
            raise QuestionError(str(error)) from None
        made = self._planned or self._made_plan(progress)
        before = CostTally(made.cluster.subject.context(), grouping)
        costs = before.compare(CostTally(made.after, grouping))
        return {"costs": costs, "csv": costs_csv(costs), "time": made.cluster.subject.now}

    # -- the past ------------------------------------------------------------------------------------------------

    def _timeline(self, _: TimelineQuestion, __: Progress) -> Answer:
        if self._journal is None:
            return {"timeline": None, "journal": None}
        return {"timeline": self._journal.timeline().document(), "journal": str(self._journal)}

    def _moment(self, question: MomentQuestion, _: Progress) -> Answer:
        if self._journal is None:
            raise QuestionError(_MISSING)
        try:
            at = datetime.fromisoformat(question.at)
        except ValueError:
            raise QuestionError(f"{question.at!r} is not a time") from None
        if at.tzinfo is None:
            raise QuestionError(f"{question.at!r} has no time zone")
        return {"moment": self._journal.timeline().fleet_at(at)}


def _encoded(answer: Answer) -> bytes:
    return msgspec.json.encode(answer, enc_hook=encode_value)


def _seldom(tell: Foreseeing) -> Foreseeing:
    """Tells the first of what it is told, and then no more than one a second."""
    last = -_BETWEEN

    def maybe(known: Any) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _BETWEEN:
            last = now
            tell(known)

    return maybe
