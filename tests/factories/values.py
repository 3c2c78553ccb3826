"""Small values that many factories take: amounts, selectors, taints, dates."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, cast

from karpool.model.scheduling import (
    Effect,
    Taint,
    Toleration,
)
from karpool.model.selectors import LabelSelector
from karpool.wire.quantity import Quantity, parse_quantity

Amount = str | int | float
Labels = Mapping[str, str]
Rule = tuple[str, ...]
"""A requirement on node labels: key, operator, values."""

LONG_AGO: Final = datetime(2026, 1, 1, tzinfo=UTC)
Z1, Z2, Z3 = "test-zone-1", "test-zone-2", "test-zone-3"


def amounts(listed: Mapping[str, Amount | None]) -> dict[str, Quantity]:
    """Quantities of what is given; None leaves a resource out."""
    return {name: parse_quantity(value) for name, value in listed.items() if value is not None}


def selecting(labels: Labels | LabelSelector | None) -> LabelSelector | None:
    """A selector of plain labels; None stays none."""
    return labels if labels is None or isinstance(labels, LabelSelector) else LabelSelector(match_labels=dict(labels))


def taint(text: str) -> Taint:
    """A taint as kubectl writes it: `key=value:Effect` or `key:Effect`; without an effect, NoSchedule."""
    rest, _, effect = text.partition(":")
    key, _, value = rest.partition("=")
    return Taint(key=key, value=value, effect=cast("Effect", effect or "NoSchedule"))


def toleration(text: str = "") -> Toleration:
    """`key=value:Effect` tolerates that value, `key` any value, nothing everything; the effect is optional."""
    rest, _, effect = text.partition(":")
    key, equals, value = rest.partition("=")
    return Toleration(
        key=key, operator="Equal" if equals else "Exists", value=value, effect=cast("Literal[Effect, '']", effect)
    )


def taints_of(listed: Sequence[Taint | str]) -> tuple[Taint, ...]:
    """Taints, given as such or as text."""
    return tuple(taint(entry) if isinstance(entry, str) else entry for entry in listed)
