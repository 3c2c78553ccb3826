"""Annotations that are settings, each with its one reader: `validate` and decisions agree on what they mean.

A reader returns the default where the annotation is missing, and raises an `AnnotationError` where it cannot be read.
"""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, Final, NamedTuple

import msgspec

from karpool.model.labels import BALANCED_K, BUDGETS, DO_NOT_DISRUPT, GRACE_PERIOD, MAX_EVICTIONS, MINIMUM_SAVINGS
from karpool.model.nodepool import Budget, NodePool
from karpool.model.pod import Pod
from karpool.model.rules.budgets import budget_flaws, schedule_flaws, span_flaws
from karpool.model.workloads import Namespace
from karpool.wire.duration import NEVER, Duration, parse_duration
from karpool.wire.fields import explain, unknown_field, unknown_fields
from karpool.wire.objects import decode_value
from karpool.wire.problems import Flaw, one_line

_DEFAULT_K: Final = 2.0
_WHOLE: Final = 100
_LONGEST_NUMBER: Final = 40
_LONGEST_COUNT: Final = 9
_EXAMPLE_BUDGETS: Final = '[{"nodes": "10%"}]'
_DENIALS: Final = frozenset({"false", "no", "off", "0", "disabled"})


class AnnotationError(ValueError):
    """An annotation that cannot be read, with everything that is wrong with it."""

    def __init__(self, flaws: Iterable[Flaw]) -> None:
        self.flaws = tuple(flaws)
        super().__init__(f"{self.flaws[0].field}: {self.flaws[0].message}")


class MinimumSavings(NamedTuple):
    """The least that a command must save: $/h, and a fraction of the price of the nodes it removes."""

    per_hour: float = 0.0
    fraction: float = 0.0

    def of(self, removed: float) -> float:
        """The least saving in $/h when nodes of this price go."""
        return self.per_hour + self.fraction * removed


def balanced_k(pool: NodePool) -> float:
    """How many times the share of money saved the share of disruption may be."""
    text = pool.metadata.annotations.get(BALANCED_K)
    if text is None:
        return _DEFAULT_K
    k = _number(text)
    if not k:
        raise _not_allowed(BALANCED_K, text, "a number above 0 such as 2")
    return k


def minimum_savings(pool: NodePool) -> MinimumSavings:
    text = pool.metadata.annotations.get(MINIMUM_SAVINGS)
    if text is None:
        return MinimumSavings()
    percent, number = text.endswith("%"), _number(text.removesuffix("%"))
    if number is None or (percent and number > _WHOLE):
        example = f"dollars an hour such as 0.05, or a percentage of at most {_WHOLE} such as 5%"
        raise _not_allowed(MINIMUM_SAVINGS, text, example)
    return MinimumSavings(fraction=number / _WHOLE) if percent else MinimumSavings(per_hour=number)


def grace_period(pool: NodePool) -> Duration:
    """How long a node of the pool stays invisible to consolidation after a pod event; `Never` when that is off."""
    field = pool.spec.disruption.consolidation_grace_period
    return annotated_grace_period(pool) if field is None else field


def annotated_grace_period(pool: NodePool) -> Duration:
    """The grace period in the pool's annotation, which counts where the field is missing."""
    text = pool.metadata.annotations.get(GRACE_PERIOD)
    if text is None:
        return NEVER
    try:
        period = parse_duration(text)
    except ValueError as error:
        raise AnnotationError([_flaw(GRACE_PERIOD, str(error))]) from None
    if flaws := list(span_flaws(text, annotation_path(GRACE_PERIOD))):
        raise AnnotationError(flaws)
    return period


def annotated_budgets(pool: NodePool) -> tuple[Budget, ...] | None:
    """The budgets in the pool's annotation, which may replace those in its spec; None without it."""
    budgets = written_budgets(pool)
    if budgets and (flaws := list(schedule_flaws(budgets, annotation_path(BUDGETS)))):
        raise AnnotationError(flaws)
    return budgets


def written_budgets(pool: NodePool) -> tuple[Budget, ...] | None:
    """The budgets in the pool's annotation, with schedules that may never come."""
    text = pool.metadata.annotations.get(BUDGETS)
    if text is None:
        return None
    written, path = _json_list(text), annotation_path(BUDGETS)
    if written is None:
        raise _not_allowed(BUDGETS, text, f"a list of budgets such as {_EXAMPLE_BUDGETS}")
    try:
        budgets = msgspec.convert(written, tuple[Budget, ...], dec_hook=decode_value)
    except msgspec.ValidationError as error:
        flaw = explain(error, tuple[Budget, ...], written)
        raise AnnotationError([flaw._replace(field=f"{path}{flaw.field}")]) from None
    if flaws := [*_unknown_budget_fields(written, path), *budget_flaws(budgets, written, path)]:
        raise AnnotationError(flaws)
    return budgets


def _json_list(text: str) -> list[dict[str, Any]] | None:
    """A list of mappings, written as JSON; None if it is anything else."""
    try:
        return msgspec.json.decode(text, type=list[dict[str, Any]])
    except ValueError:  # msgspec's errors are ValueErrors too
        return None


def _unknown_budget_fields(written: Any, path: str) -> Iterator[Flaw]:
    """Misspelt fields: no API server drops them here, and the limit that was meant is unknown."""
    for place, known in unknown_fields(tuple[Budget, ...], written):
        flaw = unknown_field(place, known)
        yield flaw._replace(field=f"{path}{one_line(flaw.field[:60])}")


def do_not_disrupt(pod: Pod) -> Duration | None:
    """How long from its start the pod must not be disrupted: for ever is `Never`, and None is not at all."""
    text = pod.metadata.annotations.get(DO_NOT_DISRUPT)
    if text is None:
        return None
    if text == "true":
        return NEVER
    try:
        length = parse_duration(text)
    except ValueError:
        length = NEVER
    if length.delta is None or length.delta <= timedelta(0):
        message = f"has {DO_NOT_DISRUPT} {text[:40]!r}, which is neither true nor a duration above zero"
        raise AnnotationError([_flaw(DO_NOT_DISRUPT, message)])
    return length


def most_evictions(namespace: Namespace) -> int | None:
    """How many pods of a namespace may be evicted within an hour; None: any number."""
    text = namespace.metadata.annotations.get(MAX_EVICTIONS)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_COUNT):
        raise _not_allowed(MAX_EVICTIONS, text, "a whole number such as 10, or 0 to evict no pod")
    return int(text)


def denies_pause(text: str) -> bool:
    """Whether a value of the annotation that pauses a pool looks as if it were meant to say that it is not paused."""
    return text.strip().casefold() in _DENIALS


def annotation_path(key: str) -> str:
    return f"metadata.annotations[{key}]"


def _number(text: str) -> float | None:
    digits = text.replace(".", "", 1)
    return float(text) if digits.isascii() and digits.isdigit() and len(text) <= _LONGEST_NUMBER else None


def _not_allowed(key: str, text: str, example: str) -> AnnotationError:
    return AnnotationError([_flaw(key, f"{text[:40]!r} is not allowed; write {example}")])


def _flaw(key: str, message: str) -> Flaw:
    return Flaw(annotation_path(key), "Annotation", message)
