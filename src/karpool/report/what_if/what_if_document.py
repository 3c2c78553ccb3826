"""The documents of what-ifs and of blockers."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal

import msgspec

from karpool.disruption.what_if.answer import PlanEnd, WhatIf, WhatIfAnswer
from karpool.disruption.what_if.blockers import Blocker, Blockers, Lift
from karpool.disruption.what_if.knob import Knob
from karpool.disruption.what_if.quick import search_words
from karpool.model.workloads import Namespace
from karpool.report.costs.costs import Grouping
from karpool.report.document_part import API_VERSION, DocumentPart
from karpool.report.formatting import HOURS_PER_MONTH
from karpool.report.plans.document import Unschedulable
from karpool.wire.objects import encode_value


class WhatIfEndPart(DocumentPart, frozen=True, kw_only=True):
    """Where a plan begins and ends; prices are those of nodes whose price is known, None if there is none."""

    nodes_before: int
    nodes_after: int
    price_before: float | None
    price_after: float | None
    unpriced_nodes: int
    savings_per_hour: float | None
    steps: int
    evictions: int
    launches: int


class CheckedStepsPart(DocumentPart, frozen=True, kw_only=True):
    """The steps of today's plan that consolidate, with knobs turned: how many hold, do not, and were not looked at."""

    held: int
    dropped: int
    unchecked: int


class WhatIfDocument(DocumentPart, frozen=True, kw_only=True):
    """Where plans end today and with knobs turned, and the search that each was found with.

    `onwards`: `then` is the plan of today and what the knobs let come after it. `first`: a longer search may find more.
    `checked`: `then` begins with the steps of today's plan that hold, each judged anew; a plan from scratch may end
    elsewhere. `stopped`: planning was ended for want of time, and more may come; what is saved so far can be had.
    `node_fee`: what every node costs on top, if the knobs say so, in `today`, too. `displaced`: how many pods no longer
    fit on their nodes; nodes that are launched for them count in `then`. `unplaced`: those of them that would find no
    place at all; `then` is without them.
    """

    api_version: Literal["karpool.sh/v1"] = API_VERSION
    kind: Literal["WhatIf"] = "WhatIf"
    time: datetime
    search: str
    today_search: str
    knobs: tuple[dict[str, Any], ...]
    words: tuple[str, ...]
    today: WhatIfEndPart
    then: WhatIfEndPart
    onwards: bool
    first: bool = False
    checked: CheckedStepsPart | None = None
    stopped: bool = False
    node_fee: float | None = None
    displaced: int = 0
    unplaced: tuple[Unschedulable, ...] = ()


class BlockerDetail(DocumentPart, frozen=True, kw_only=True):
    """One rule that holds nodes: its reason code, the object to blame, and what the rule says of the first node."""

    code: str
    object: str
    message: str
    nodes: int
    workloads: tuple[str, ...]
    namespaces: tuple[str, ...]


class LiftPart(DocumentPart, frozen=True, kw_only=True):
    """What lifting blockers is worth: of one owner (`name`), or a single one.

    `computed`: whether the engine has looked for what they are worth, and not in haste; else only that it is worth
    no less than `at_least` and no more than `at_most` is known (None: not even that). `search` is what was looked with,
    None if nothing was; the numbers of nodes and evictions are those of what it found. `nodes` are held, `alone` of
    them by nothing else. `lift` says what is to be done; without it nothing that is known here lifts them.
    """

    name: str
    blockers: tuple[BlockerDetail, ...]
    nodes: tuple[str, ...]
    alone: int
    computed: bool
    savings_per_hour: float | None
    savings_per_month: float | None
    nodes_fewer: int | None
    nodes_freed: int | None
    evictions: int | None
    at_least: float | None
    at_most: float | None
    search: str | None
    lift: tuple[str, ...]
    knobs: tuple[dict[str, Any], ...]


class BlockersDocument(DocumentPart, frozen=True, kw_only=True):
    """What keeps money where it is after the plan of today, the dearest first; `held` nodes are held by something."""

    api_version: Literal["karpool.sh/v1"] = API_VERSION
    kind: Literal["Blockers"] = "Blockers"
    time: datetime
    search: str
    today_search: str
    by: str
    today: WhatIfEndPart
    held: int
    blockers: tuple[LiftPart, ...]
    warnings: tuple[str, ...] = ()


def what_if_document(answer: WhatIfAnswer) -> WhatIfDocument:
    checked = answer.checked
    return WhatIfDocument(
        time=answer.question.now,
        search=search_words(answer.question.settings),
        today_search=search_words(answer.today_settings),
        knobs=tuple(map(_knob, answer.knobs)),
        words=tuple(knob.words for knob in answer.knobs),
        today=end_part(answer.today),
        then=end_part(answer.then),
        onwards=answer.onwards,
        first=answer.first,
        checked=None if checked is None else CheckedStepsPart(**asdict(checked)),
        stopped=answer.stopped,
        node_fee=answer.fee,
        displaced=answer.displaced,
        unplaced=tuple(Unschedulable(pod=pod, reasons=(why,)) for pod, why in answer.unplaced),
    )


def blockers_document(
    what_if: WhatIf, found: Blockers, grouping: Grouping | None = None, warnings: Sequence[str] = ()
) -> BlockersDocument:
    return BlockersDocument(
        time=what_if.question.now,
        search=search_words(what_if.question.settings),
        today_search=search_words(found.today_settings),
        by="" if grouping is None else str(grouping),
        today=end_part(found.today),
        held=found.held,
        blockers=tuple(map(_lift, found.lifts)),
        warnings=tuple(warnings),
    )


def owner_of(blocker: Blocker, grouping: Grouping, namespaces: Mapping[str, Namespace]) -> str:
    """Whose a blocker is: whose most of the pods are for which it holds nodes; empty if it is about none."""
    names = [grouping.name_of(pod, namespaces) for pod in blocker.pods.values()]
    return min(names, key=lambda name: (-names.count(name), name), default="")


def end_part(end: PlanEnd) -> WhatIfEndPart:
    before, after = end.before, end.after
    known = before.unpriced == after.unpriced
    return WhatIfEndPart(
        nodes_before=before.nodes,
        nodes_after=after.nodes,
        price_before=before.price if before.unpriced < before.nodes or not before.nodes else None,
        price_after=after.price if after.unpriced < after.nodes or not after.nodes else None,
        unpriced_nodes=after.unpriced,
        savings_per_hour=end.savings if known else None,
        steps=end.steps,
        evictions=end.evictions,
        launches=end.launches,
    )


def _lift(lift: Lift) -> LiftPart:
    worth = lift.worth
    nodes = sorted({node.name for blocker in lift.blockers for node in blocker.nodes})
    saved = worth.savings if worth is not None and lift.settled else None
    return LiftPart(
        name=lift.name,
        blockers=tuple(map(_detail, lift.blockers)),
        nodes=tuple(nodes),
        alone=len(lift.alone),
        computed=saved is not None,
        savings_per_hour=saved,
        savings_per_month=None if saved is None else saved * HOURS_PER_MONTH,
        nodes_fewer=None if worth is None else worth.nodes,
        nodes_freed=None if worth is None else worth.freed,
        evictions=None if worth is None else worth.evictions,
        at_least=None if worth is None else worth.savings,
        at_most=lift.bound,
        search=None if worth is None else worth.search,
        lift=tuple(knob.words for knob in lift.knobs),
        knobs=tuple(map(_knob, lift.knobs)),
    )


def _detail(blocker: Blocker) -> BlockerDetail:
    return BlockerDetail(
        code=blocker.rule.code,
        object=blocker.rule.object,
        message=blocker.message,
        nodes=len(blocker.nodes),
        workloads=tuple(map(str, blocker.workloads)),
        namespaces=tuple(sorted({workload.namespace for workload in blocker.workloads})),
    )


def _knob(knob: Knob) -> dict[str, Any]:
    """A knob as programs send it."""
    written: dict[str, Any] = msgspec.to_builtins(knob, enc_hook=encode_value)
    return written
