"""Rules of requirements on nodes: in pools, claims, and the node affinity of pods."""

from collections.abc import Iterator, Sequence
from typing import Final

from karpool.model.labels import CAPACITY_TYPE, CAPACITY_TYPES, canonical
from karpool.model.nodepool import PoolRequirement
from karpool.model.requirements import OPERATORS, requirement
from karpool.model.rules.names import restricted_key, wrong_key, wrong_value
from karpool.wire.problems import Flaw

_MOST_REQUIREMENTS: Final = 100
_MOST_MIN_VALUES: Final = 50
BOUNDS: Final = ("Gt", "Lt", "Gte", "Lte")


def requirement_flaws(listed: Sequence[PoolRequirement], path: str) -> Iterator[Flaw]:
    """What an API server would refuse in the requirements of a pool or a claim."""
    if len(listed) > _MOST_REQUIREMENTS:
        message = f"{len(listed)} requirements are too many; at most {_MOST_REQUIREMENTS} are allowed"
        yield Flaw(path, "TooManyRequirements", message)
    for index, entry in enumerate(listed):
        yield from _entry_flaws(entry, f"{path}[{index}]")


def _entry_flaws(entry: PoolRequirement, path: str) -> Iterator[Flaw]:
    if not entry.key:
        yield Flaw(f"{path}.key", "MissingField", "is empty; name a label key")
    if entry.operator not in OPERATORS:
        yield unknown_operator(entry.operator, path, OPERATORS)
    elif entry.operator in BOUNDS:
        yield from _bound_flaws(entry, path)
    elif entry.operator == "In" and not entry.values:
        yield Flaw(f"{path}.values", "ValuesRequired", "In needs at least one value")
    yield from _min_values_flaws(entry, path)


def unknown_operator(operator: str, path: str, known: Sequence[str]) -> Flaw:
    message = f"{operator[:40]!r} is not an operator; use one of {', '.join(known)}"
    return Flaw(f"{path}.operator", "UnknownOperator", message)


def _bound_flaws(entry: PoolRequirement, path: str) -> Iterator[Flaw]:
    if len(entry.values) != 1:
        message = (
            f"{entry.operator} needs exactly one value, a whole number of 0 or more; {len(entry.values)} are given"
        )
        yield Flaw(f"{path}.values", "OneNumberRequired", message)
    elif not (entry.values[0].isascii() and entry.values[0].isdigit()):
        message = f"{entry.operator} needs a whole number of 0 or more, not {entry.values[0][:40]!r}"
        yield Flaw(f"{path}.values[0]", "OneNumberRequired", message)


def _min_values_flaws(entry: PoolRequirement, path: str) -> Iterator[Flaw]:
    least = entry.min_values
    if least is None:
        return
    if not 1 <= least <= _MOST_MIN_VALUES:
        yield Flaw(f"{path}.minValues", "MinValuesRange", f"{least} is out of range; write 1 to {_MOST_MIN_VALUES}")
    elif entry.operator == "In" and least > len(entry.values):
        message = f"{least} is more than the number of values ({len(entry.values)}); lower it or list more values"
        yield Flaw(f"{path}.minValues", "MinValuesTooMany", message)


def requirement_name_flaws(listed: Sequence[PoolRequirement], path: str) -> Iterator[Flaw]:
    """What the controller would refuse in the requirements of a pool: keys, values and capacity types."""
    for index, entry in enumerate(listed):
        yield from key_flaws(entry.key, f"{path}[{index}].key")
        for position, value in enumerate(entry.values):
            if message := wrong_value(value):
                yield Flaw(f"{path}[{index}].values[{position}]", "LabelValue", message)
        if canonical(entry.key) == CAPACITY_TYPE and entry.operator in OPERATORS:
            yield from _capacity_type_flaws(entry, f"{path}[{index}]")


def key_flaws(key: str, path: str) -> Iterator[Flaw]:
    if message := wrong_key(key):
        yield Flaw(path, "LabelKey", message)
    elif message := restricted_key(key):
        yield Flaw(path, "RestrictedLabel", message)


def _capacity_type_flaws(entry: PoolRequirement, path: str) -> Iterator[Flaw]:
    allowed = requirement(entry.operator, entry.values)
    known = [name for name in CAPACITY_TYPES if allowed.has(name)]
    if not known:
        message = f"allows no known capacity type; allow at least one of {', '.join(CAPACITY_TYPES)}"
        yield Flaw(f"{path}.values", "CapacityType", message)
    elif entry.min_values is not None and entry.min_values > len(known):
        message = f"{entry.min_values} is more than the known capacity types allowed here ({len(known)}); lower it"
        yield Flaw(f"{path}.minValues", "MinValuesTooMany", message)
