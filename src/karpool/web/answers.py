"""Answers: worked out from the objects of a cluster, as `plan`, `explain` and `blockers` do it."""

import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from karpool.disruption.context import DecisionContext
from karpool.disruption.what_if.answer import WhatIf
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
    LongerWhatIfQuestion,
    MomentQuestion,
    NodeQuestion,
    PlanQuestion,
    PodQuestion,
    Progress,
    Question,
    QuestionError,
    TimelineQuestion,
    WhatIfQuestion,
)
from karpool.wire.objects import Object, encode_value

_SAME_BASIS: Final = 60.0
"""For so many seconds what-ifs about a living cluster are compared with the same plan of today."""
_BLOCKERS: Final = 20
_ANY: Final = sys.maxsize
"""However many nodes there are."""
_MISSING: Final = "no journal is read; start with --journal FILE, the same file as that of karpool run"


class Answers:
    """A copy of a cluster's objects, and what is asked about them."""

    def __init__(self, decider: Decider, journal: JournalFile | None = None) -> None:
        self._decide = decider
        self._journal = journal
        self._objects: dict[str, dict[str, Object]] = {}
        self._changes = 0
        self._context: tuple[int, DecisionContext] | None = None
        self._planned: Planned | None = None
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

    def answer(self, question: Question, progress: Progress) -> bytes:
        """The answer as JSON; raises a QuestionError if there is none."""
        how: Callable[[Any, Progress], Answer] = getattr(self, f"_{question.__struct_config__.tag}")
        return msgspec.json.encode(how(question, progress), enc_hook=encode_value)

    def _cluster(self) -> DecidedCluster:
        collections: dict[str, Any] = {name: tuple(kept.values()) for name, kept in self._objects.items()}
        return self._decide(Objects(**collections))

    def _today(self) -> DecisionContext:
        """The cluster of now, in a context that no answer changes."""
        if self._context is None or self._context[0] != self._changes:
            self._context = (self._changes, self._cluster().subject.context())
        return self._context[1]

    # -- plan and explanations -----------------------------------------------------------------------------------

    def _plan(self, _: PlanQuestion, progress: Progress) -> Answer:
        self._planned = planned(self._cluster(), progress)
        return self._planned.answer

    def _node(self, question: NodeQuestion, _: Progress) -> Answer:
        from karpool.disruption.decision_pass import DecisionPass
        from karpool.disruption.explain import explain_node
        from karpool.report.assemble import explanation

        context = self._today()
        row = context.snapshot.nodes.rows.get(question.name)
        if row is None:
            raise QuestionError(f"there is no node {question.name} now")
        return {"node": explanation(context, explain_node(DecisionPass(context), context.candidate(row)))}

    def _pod(self, question: PodQuestion, _: Progress) -> Answer:
        from karpool.web.pod_answer import pod_answer

        return {"pod": pod_answer(self._today(), question.name)}

    # -- what-ifs ------------------------------------------------------------------------------------------------

    def _what_if(self, question: WhatIfQuestion, progress: Progress) -> Answer:
        return self._turned(question.knobs, AT_ONCE, progress)

    def _longer_what_if(self, question: LongerWhatIfQuestion, progress: Progress) -> Answer:
        return self._turned(question.knobs, _ANY, progress)

    def _turned(self, knobs_text: str, global_up_to: int, progress: Progress) -> Answer:
        """Where plans end with knobs turned; a global search may be used up to so many nodes."""
        from karpool.disruption.what_if.exports import export
        from karpool.disruption.what_if.knobs import read_knobs
        from karpool.report.what_if_document import what_if_document
        from karpool.report.what_if_yaml import patch_files, scenario_file

        cluster, what_if = self._what_ifs(global_up_to, progress)
        try:
            knobs = read_knobs(knobs_text)
            document = what_if_document(what_if.ask(knobs))
            exported = export(cluster.subject, knobs)
            return {
                "whatIf": document,
                "patches": patch_files(cluster.subject, knobs),
                "scenario": scenario_file(cluster.subject, knobs),
                "options": exported.options,
                "byHand": exported.by_hand,
                "longer": what_if.question.settings.search != cluster.subject.settings.search,
            }
        except KnobError as error:
            raise QuestionError(str(error)) from None

    def _what_ifs(self, global_up_to: int, progress: Progress) -> tuple[DecidedCluster, WhatIf]:
        """What-ifs that are compared with one plan of today."""
        now = time.monotonic()
        if global_up_to in self._bases:
            changes, since, cluster, what_if = self._bases[global_up_to]
            if changes == self._changes or now - since < _SAME_BASIS:
                return cluster, what_if
        cluster = self._cluster()
        what_if = WhatIf(cluster.subject, global_up_to=global_up_to, progress=progress)
        self._bases[global_up_to] = (self._changes, now, cluster, what_if)
        return cluster, what_if

    def _blockers(self, question: BlockersQuestion, progress: Progress) -> Answer:
        from karpool.disruption.what_if.blockers import Blocker, blockers_of
        from karpool.disruption.what_if.quick import SOON
        from karpool.report.blockers_table import blockers_csv
        from karpool.report.costs import GroupingError, read_grouping
        from karpool.report.what_if_document import blockers_document, owner_of

        try:
            grouping = read_grouping(question.by) if question.by else None
        except GroupingError as error:
            raise QuestionError(str(error)) from None
        cluster = self._cluster()
        what_if = WhatIf(cluster.subject, global_up_to=SOON, progress=progress)
        namespaces = {entry.name: entry for entry in cluster.subject.objects.namespaces}

        def owner(blocker: Blocker) -> str:
            return "" if grouping is None else owner_of(blocker, grouping, namespaces)

        found = blockers_of(what_if, _BLOCKERS, owner=owner, progress=progress)
        document = blockers_document(what_if, found, grouping, cluster.warnings)
        return {"blockers": document, "csv": blockers_csv(document)}

    def _costs(self, question: CostsQuestion, progress: Progress) -> Answer:
        from karpool.report.costs import CostTally, GroupingError, read_grouping

        try:
            grouping = read_grouping(question.by)
        except GroupingError as error:
            raise QuestionError(str(error)) from None
        if self._planned is None:
            self._planned = planned(self._cluster(), progress)
        made = self._planned
        before = CostTally(made.cluster.subject.context(), grouping)
        costs = before.compare(CostTally(made.after, grouping))
        return {"costs": costs, "time": made.cluster.subject.now}

    # -- the past ------------------------------------------------------------------------------------------------

    def _timeline(self, _: TimelineQuestion, __: Progress) -> Answer:
        return {"timeline": None if self._journal is None else self._journal.timeline().document()}

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
