"""Requirements on node labels as sets: which values a key may have, and whether it may be absent.

Every operator describes a set over the values of one key plus the state "absent". Two requirements are compatible when
their sets meet, and both hold together when they are intersected; there are no special cases beyond that.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from karpool.model.labels import canonical

OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
LARGEST: Final = 2**63 - 1
_MOST_DIGITS: Final = 63
_MOST_SHOWN: Final = 8


@lru_cache(maxsize=65536)
def _integer(value: str) -> int | None:
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _MOST_DIGITS:
        return None
    number = int(value)
    return number if abs(number) <= LARGEST else None


@dataclass(frozen=True, slots=True)
class Requirement:
    """The allowed values of one label key: those listed, or all but those listed, within whole-number bounds."""

    complement: bool
    values: frozenset[str]
    absent: bool
    lower: int | None = None
    upper: int | None = None
    min_values: int | None = None
    given: bool = False
    """Whether a pool writes the label on its nodes itself, so that no machine has to bring it along."""

    @property
    def bounded(self) -> bool:
        """Whether only whole numbers within bounds are allowed."""
        return self.lower is not None or self.upper is not None

    @property
    def some_value(self) -> bool:
        if not self.complement:
            return bool(self.values)
        if self.lower is None or self.upper is None:
            return True
        excluded = {number for value in self.values if (number := _integer(value)) is not None}
        return self.upper - self.lower + 1 > sum(self.lower <= number <= self.upper for number in excluded)

    @property
    def satisfiable(self) -> bool:
        return self.absent or self.some_value

    @property
    def operator(self) -> str:
        """The operator a person would read in this set."""
        if self.complement:
            return "NotIn" if self.values and not self.bounded else "Exists"
        return "In" if self.values else "DoesNotExist"

    def has(self, value: str) -> bool:
        if (value in self.values) is self.complement:
            return False
        if not self.bounded:
            return True
        number = _integer(value)
        return (
            number is not None
            and (self.lower is None or number >= self.lower)
            and (self.upper is None or number <= self.upper)
        )

    def intersect(self, other: "Requirement") -> "Requirement":
        absent = self.absent and other.absent
        lower = _tighter(self.lower, other.lower, max)
        upper = _tighter(self.upper, other.upper, min)
        minimum = _tighter(self.min_values, other.min_values, max)
        given = self.given or other.given
        if self.complement and other.complement:
            if lower is not None and upper is not None and lower > upper:
                return Requirement(complement=False, values=frozenset(), absent=absent, min_values=minimum, given=given)
            return Requirement(
                complement=True,
                values=self.values | other.values,
                absent=absent,
                lower=lower,
                upper=upper,
                min_values=minimum,
                given=given,
            )
        concrete, rest = (other, self) if self.complement else (self, other)
        values = frozenset(value for value in concrete.values if rest.has(value))
        return Requirement(complement=False, values=values, absent=absent, min_values=minimum, given=given)

    def overlaps(self, other: "Requirement") -> bool:
        """Whether some value, or the absence of the label, satisfies both."""
        if self.absent and other.absent:
            return True
        if not self.complement:
            return any(other.has(value) for value in self.values)
        return self.intersect(other).some_value

    def __str__(self) -> str:
        if self.bounded:
            parts = [f">= {self.lower}"] * (self.lower is not None) + [f"<= {self.upper}"] * (self.upper is not None)
            return " and ".join(parts) + (f" not in {sorted(self.values)}" if self.values else "")
        if not self.values:
            return self.operator if self.satisfiable else "nothing"
        listed = sorted(self.values)
        more = ", …" if len(listed) > _MOST_SHOWN else ""
        shown = (value or '""' for value in listed[:_MOST_SHOWN])
        return f"{self.operator} [{', '.join(shown)}{more}]"


def _tighter(first: int | None, second: int | None, choose: Callable[[int, int], int]) -> int | None:
    if first is None or second is None:
        return second if first is None else first
    return choose(first, second)


ANY: Final = Requirement(complement=True, values=frozenset(), absent=True)
EXISTS: Final = Requirement(complement=True, values=frozenset(), absent=False)
DOES_NOT_EXIST: Final = Requirement(complement=False, values=frozenset(), absent=True)
NOTHING: Final = Requirement(complement=False, values=frozenset(), absent=False)


def one_of(*values: str) -> Requirement:
    return Requirement(complement=False, values=frozenset(values), absent=False)


def requirement(operator: str, values: Iterable[str] = (), min_values: int | None = None) -> Requirement:
    listed = frozenset(values)
    match operator:
        case "In":
            allowed = Requirement(complement=False, values=listed, absent=False)
        case "NotIn":
            allowed = Requirement(complement=True, values=listed, absent=True)
        case "Exists":
            allowed = EXISTS
        case "DoesNotExist":
            allowed = DOES_NOT_EXIST
        case "Gt" | "Gte" | "Lt" | "Lte":
            allowed = _bound(operator, listed)
        case _:
            raise ValueError(f"unknown operator {operator!r}; use one of {', '.join(OPERATORS)}")
    return allowed if min_values is None else replace(allowed, min_values=min_values)


def _bound(operator: str, values: frozenset[str]) -> Requirement:
    number = _integer(next(iter(values))) if len(values) == 1 else None
    if number is None:
        raise ValueError(f"{operator} needs exactly one whole number")
    if operator in ("Gt", "Gte"):
        lower = number + (operator == "Gt")
        return NOTHING if lower > LARGEST else replace(EXISTS, lower=lower)
    return replace(EXISTS, upper=number - (operator == "Lt"))


class Requirements(Mapping[str, Requirement]):
    """Requirements on several keys, at most one set per key; immutable and hashable."""

    __slots__ = ("_hash", "_sets")

    def __init__(self, items: Iterable[tuple[str, Requirement]] = ()) -> None:
        sets: dict[str, Requirement] = {}
        for key, added in items:
            name = canonical(key)
            known = sets.get(name)
            sets[name] = added if known is None else known.intersect(added)
        self._sets = sets
        self._hash: int | None = None

    @classmethod
    def of_labels(cls, labels: Mapping[str, str]) -> "Requirements":
        """Labels that are known exactly, as requirements."""
        return cls((key, one_of(value)) for key, value in labels.items())

    def __getitem__(self, key: str) -> Requirement:
        return self._sets[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sets)

    def __len__(self) -> int:
        return len(self._sets)

    def __contains__(self, key: object) -> bool:
        return key in self._sets

    def __hash__(self) -> int:
        # Thousands of types have requirements that nobody ever looks up.
        if self._hash is None:
            self._hash = hash(frozenset(self._sets.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Requirements) and self._sets == other._sets

    def __repr__(self) -> str:
        return f"Requirements({', '.join(f'{key} {allowed}' for key, allowed in sorted(self._sets.items()))})"

    def intersect(self, other: "Requirements") -> "Requirements":
        return Requirements((*self._sets.items(), *other._sets.items()))

    def with_key(self, key: str, allowed: Requirement) -> "Requirements":
        return Requirements((*self._sets.items(), (key, allowed)))

    def without(self, *keys: str) -> "Requirements":
        return Requirements((key, allowed) for key, allowed in self._sets.items() if key not in keys)

    @property
    def satisfiable(self) -> bool:
        return all(allowed.satisfiable for allowed in self._sets.values())

    def conflict(self, incoming: "Requirements", *, undefined: frozenset[str] = frozenset()) -> str | None:
        """The first key on which `incoming` cannot hold on this side, or None.

        A key that this side does not define is free when it is in `undefined`, else it counts as absent.
        """
        for key, allowed in incoming._sets.items():
            own = self._sets.get(key)
            if own is None:
                if not allowed.satisfiable or (key not in undefined and not allowed.absent):
                    return key
            elif not own.overlaps(allowed):
                return key
        return None

    def meets(self, other: "Requirements") -> bool:
        """Whether the keys that both sides define overlap; all others are free."""
        return all(allowed.overlaps(other._sets[key]) for key, allowed in self._sets.items() if key in other._sets)


NO_REQUIREMENTS: Final = Requirements()
