"""Questions as a page writes them: a word in the path, and the rest in the query."""

from collections.abc import Callable, Mapping
from typing import Final

from karpool.web.questions import (
    BlockersQuestion,
    CostsQuestion,
    LongerWhatIfQuestion,
    MomentQuestion,
    NodeQuestion,
    PageQuestion,
    PlanQuestion,
    PodQuestion,
    QuestionError,
    TimelineQuestion,
    TodayQuestion,
    WhatIfQuestion,
)

_LONGEST: Final = 600
_LONGEST_KNOBS: Final = 6_000
Query = Mapping[str, str]


def read_question(what: str, query: Query) -> PageQuestion:
    """The question, or a QuestionError that says what is wrong with it."""
    read = _READERS.get(what)
    if read is None:
        raise QuestionError(f"nothing is known about {what!r}; there are {', '.join(_READERS)}")
    return read(query)


def _name(query: Query) -> str:
    name = query.get("name", "")
    if not name or len(name) > _LONGEST:
        raise QuestionError("the question names nothing; add name=…")
    return name


def _grouping(query: Query, default: str) -> str:
    by = query.get("by", default)
    if len(by) > _LONGEST:
        raise QuestionError("by is too long; write namespace, workload, or label=KEY")
    return by


def _knobs(query: Query) -> str:
    knobs = query.get("knobs", "")
    if not knobs or len(knobs) > _LONGEST_KNOBS:
        raise QuestionError("the question turns no knobs; add knobs=[…]")
    return knobs


def _since(query: Query) -> str:
    return query.get("since", "")[:_LONGEST]


_READERS: Final[dict[str, Callable[[Query], PageQuestion]]] = {
    "plan": lambda _query: PlanQuestion(),
    "node": lambda query: NodeQuestion(_name(query)),
    "pod": lambda query: PodQuestion(_name(query)),
    "today": lambda _query: TodayQuestion(),
    "what-if": lambda query: WhatIfQuestion(_knobs(query), _since(query)),
    "longer-what-if": lambda query: LongerWhatIfQuestion(_knobs(query), _since(query)),
    "blockers": lambda query: BlockersQuestion(_grouping(query, ""), _since(query)),
    "costs": lambda query: CostsQuestion(_grouping(query, "namespace"), query.get("plan", "")[:_LONGEST]),
    "timeline": lambda _query: TimelineQuestion(),
    "moment": lambda query: MomentQuestion(query.get("at", "")[:_LONGEST]),
}
