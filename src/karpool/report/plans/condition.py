"""Conditions such as `savings>20% or evictions>100`, for pipelines: names, comparisons, `and`, `or`, parentheses.

They are read by hand, never evaluated as code. A value that is not known makes a comparison neither true nor false;
what that makes of the whole is worked out as far as it goes (`and` with something false is false), and is `None` at the
end if it hangs on the unknown.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from karpool.report.formatting import UNKNOWN
from karpool.wire.problems import suggestion

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<compare>>=|<=|==|!=|>|<|=)|(?P<paren>[()])"
    r"|(?P<number>[+-]?[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>%|\$/h|\$/month|\$)?|(?P<word>[A-Za-z]+))"
)
_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
}
_DECIMALS: Final = 6
"""To so many, values are compared and told: sums of prices are a hair beside what is written."""
_DEEPEST: Final = 50
_LONGEST: Final = 1000

Values = Mapping[str, Mapping[str, float | None]]
"""By name and unit: a value, None if it is not known. A plain number has the unit ``""``."""


class ConditionError(ValueError):
    """What is wrong with an expression, in one sentence."""


@dataclass(frozen=True, slots=True)
class ConditionTerm:
    name: str
    sign: str
    limit: float
    unit: str

    def holds(self, values: Values) -> bool | None:
        value = values[self.name][self.unit]
        return None if value is None else _COMPARE[self.sign](_rounded(value), self.limit)

    def comparisons(self) -> Iterator["ConditionTerm"]:
        yield self

    def told(self, values: Values) -> str:
        """The name and what it is: `savings is 66.9 %`."""
        value = values[self.name][self.unit]
        number = UNKNOWN if value is None else f"{_rounded(value):,.{_DECIMALS}f}".rstrip("0").rstrip(".")
        return f"{self.name} is {number}{f' {self.unit}' if self.unit else ''}"


def _rounded(value: float) -> float:
    return round(value, _DECIMALS) + 0.0  # -0.0 is 0.0


@dataclass(frozen=True, slots=True)
class Combination:
    """Conditions that must all hold, or of which one must."""

    every: bool
    parts: tuple["Condition", ...]

    def holds(self, values: Values) -> bool | None:
        found = [part.holds(values) for part in self.parts]
        decisive = not self.every
        if decisive in found:
            return decisive
        return None if None in found else self.every

    def comparisons(self) -> Iterator[ConditionTerm]:
        for part in self.parts:
            yield from part.comparisons()


Condition = ConditionTerm | Combination


def told(condition: Condition, values: Values) -> str:
    """What the values are that a condition is about."""
    return ", ".join(dict.fromkeys(entry.told(values) for entry in condition.comparisons()))


class Metric(NamedTuple):
    """A name in conditions: the units that its limits may have, and what it is."""

    units: tuple[str, ...]
    meaning: str


def parse_condition(text: str, metrics: Mapping[str, Metric]) -> Condition:
    """Read an expression over metrics; raises a ConditionError."""
    if len(text) > _LONGEST:
        raise ConditionError(f"is longer than {_LONGEST} characters")
    parser = _Parser(list(_tokens(text)), metrics)
    condition = parser.either(0)
    if parser.tokens:
        raise ConditionError(f"does not end at {parser.tokens[0].text!r}; join comparisons with and, or")
    return condition


class _Token(NamedTuple):
    kind: str
    text: str
    unit: str = ""


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise ConditionError(f"cannot be read at {text[position : position + 20].strip()!r}")
        kind = "number" if match["number"] is not None else match.lastgroup
        yield _Token(kind, match[kind], match["unit"] or "")
        position = match.end()


@dataclass(slots=True)
class _Parser:
    tokens: list[_Token]
    metrics: Mapping[str, Metric]

    def either(self, depth: int) -> Condition:
        return self._joined("or", lambda: self._both(depth), every=False)

    def _both(self, depth: int) -> Condition:
        return self._joined("and", lambda: self._single(depth), every=True)

    def _joined(self, word: str, part: Callable[[], Condition], *, every: bool) -> Condition:
        parts = [part()]
        while self.tokens and self.tokens[0].text.lower() == word:
            self.tokens.pop(0)
            parts.append(part())
        return parts[0] if len(parts) == 1 else Combination(every, tuple(parts))

    def _single(self, depth: int) -> Condition:
        token = self._next("a name")
        if token.text == "(":
            if depth == _DEEPEST:
                raise ConditionError(f"has more than {_DEEPEST} parentheses inside one another")
            inner = self.either(depth + 1)
            if self._next("a closing parenthesis").text != ")":
                raise ConditionError("has a parenthesis that is not closed")
            return inner
        return self._comparison(token)

    def _comparison(self, token: _Token) -> ConditionTerm:
        if token.kind != "word":
            raise ConditionError(f"has {token.text!r} where a name is expected; there are {', '.join(self.metrics)}")
        if token.text not in self.metrics:
            known = ", ".join(self.metrics)
            raise ConditionError(
                f"speaks of {token.text!r}, and there are {known}{suggestion(token.text, self.metrics)}"
            )
        sign = self._next("a comparison")
        if sign.kind != "compare":
            raise ConditionError(f"has {sign.text!r} after {token.text}; compare with >, >=, <, <=, == or !=")
        limit = self._next("a number")
        if limit.kind != "number":
            raise ConditionError(f"has {limit.text!r} after {token.text}{sign.text}; write a number")
        return ConditionTerm(token.text, sign.text, float(limit.text), self._unit(token.text, limit))

    def _unit(self, name: str, limit: _Token) -> str:
        units = self.metrics[name].units
        if limit.unit in units:
            return limit.unit
        listed = " or ".join(f"{limit.text}{unit}" for unit in units)
        raise ConditionError(f"compares {name} with {limit.text}{limit.unit}; write {listed}")

    def _next(self, wanted: str) -> _Token:
        if not self.tokens:
            raise ConditionError(f"ends where {wanted} is expected")
        return self.tokens.pop(0)
