"""Karpool's own settings of a NodePool, written as annotations where the installed CRD has no field for them."""

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from karpool.model.labels import BALANCED_K, BUDGETS, MINIMUM_SAVINGS
from karpool.model.nodepool import Budget
from karpool.wire.objects import decode_value

_BALANCED: Final = "a number above 0 such as 2"
_SAVINGS: Final = "dollars an hour such as 0.05, or a percentage of at most 100 such as 5%"
_LONGEST: Final = 40


class MinimumSavings(NamedTuple):
    """What a move must save at least: dollars an hour, or a part of what the nodes cost today."""

    per_hour: float = 0.0
    fraction: float = 0.0


def balanced_k(annotations: Mapping[str, str]) -> float | None:
    """The annotated k of balanced consolidation; None when there is none."""
    text = annotations.get(BALANCED_K)
    if text is None:
        return None
    k = _number(text, _BALANCED)
    if k == 0:
        message = f"{text[:40]!r} is not allowed; write {_BALANCED}"
        raise ValueError(message)
    return k


def minimum_savings(annotations: Mapping[str, str]) -> MinimumSavings | None:
    """The annotated minimum saving; None when there is none."""
    text = annotations.get(MINIMUM_SAVINGS)
    if text is None:
        return None
    if text.endswith("%"):
        return MinimumSavings(fraction=_number(text.removesuffix("%"), _SAVINGS, largest=100.0) / 100)
    return MinimumSavings(per_hour=_number(text, _SAVINGS))


def budgets(annotations: Mapping[str, str]) -> tuple[Budget, ...] | None:
    """The annotated budgets; None when there are none."""
    text = annotations.get(BUDGETS)
    if text is None:
        return None
    return msgspec.json.decode(text, type=tuple[Budget, ...], dec_hook=decode_value)


def _number(text: str, right: str, *, largest: float = math.inf) -> float:
    digits = text.replace(".", "", 1)
    if not (digits.isascii() and digits.isdigit()) or len(text) > _LONGEST or float(text) > largest:
        message = f"{text[:40]!r} is not allowed; write {right}"
        raise ValueError(message)
    return float(text)
