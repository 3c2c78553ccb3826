"""What a page may ask, and who answers: values that travel to the process that works answers out."""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import msgspec

from karpool.disruption.plan import Plan
from karpool.disruption.what_if.question import Question as Subject
from karpool.model.objects import Objects
from karpool.report.plans.document import PlanDocument

Progress = Callable[[str, int, int | None], None]
"""Takes what is being done, how much of it is done, and how much there is, if known."""


class DecidedCluster(Protocol):
    """A cluster with everything that decisions about it need."""

    @property
    def subject(self) -> Subject:
        """All that a plan for it is made of, at the time of the question."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the input lacks, so that answers may mislead."""

    @property
    def source(self) -> tuple[str, ...]:
        """The options that name it on a command line; none for the cluster of the current kube context."""

    def document(self, plan: Plan) -> PlanDocument:
        """A plan for it as a document."""


class Decider(Protocol):
    """How to decide about a cluster; it is pickled on its way to the process that answers."""

    def __call__(self, objects: Objects) -> DecidedCluster:
        """The cluster that these objects are, now."""


Foreseeing = Callable[[Any], None]
"""Takes what is known of an answer before it is complete."""


class PageQuestion(msgspec.Struct, frozen=True, tag=True):
    """Something to ask about a cluster."""

    long: ClassVar[bool] = False
    """Whether others may be answered while this one is being worked on."""
    moves: ClassVar[bool] = False
    """Whether its answer changes, though the cluster may not."""


class PlanQuestion(PageQuestion, frozen=True, tag="plan"):
    """What should be done, all of it."""

    long: ClassVar[bool] = True


class NodeQuestion(PageQuestion, frozen=True, tag="node"):
    """Why a node stays, or goes."""

    name: str


class PodQuestion(PageQuestion, frozen=True, tag="pod"):
    """Why a pod is where it is, and where it could be."""

    name: str


class TodayQuestion(PageQuestion, frozen=True, tag="today"):
    """Where the plan ends that first answers to what-ifs are compared with; asked early, so that it is there."""


class WhatIfQuestion(PageQuestion, frozen=True, tag="what_if"):
    """Where plans end if something is otherwise; `knobs` is a JSON list. `since`: as for blockers."""

    knobs: str
    since: str = ""


class LongerWhatIfQuestion(PageQuestion, frozen=True, tag="longer_what_if"):
    """The same, with a search that finds more, for those who wait."""

    long: ClassVar[bool] = True
    knobs: str
    since: str = ""


class BlockersQuestion(PageQuestion, frozen=True, tag="blockers"):
    """What keeps the most money where it is; `by`: whose blockers are lifted together, if not each alone.

    `since`: which change the page has seen, if what was planned before it is not to be used any more.
    """

    long: ClassVar[bool] = True
    by: str = ""
    since: str = ""


class CostsQuestion(PageQuestion, frozen=True, tag="costs"):
    """Who pays, before the plan of a time and after it."""

    long: ClassVar[bool] = True
    by: str
    time: str = ""


class TimelineQuestion(PageQuestion, frozen=True, tag="timeline"):
    """What a controller has done, as its journal tells."""

    moves: ClassVar[bool] = True


class MomentQuestion(PageQuestion, frozen=True, tag="moment"):
    """The fleet at a past moment, as far as the journal knows."""

    at: str


class QuestionError(ValueError):
    """A question that has no answer, such as one about a node that is not there."""


Answer = dict[str, Any]
