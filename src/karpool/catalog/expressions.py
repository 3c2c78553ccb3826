"""Requirement expressions as people type them: `arch=arm64`, `cpu>=8`, `zone!=us-east-1a`, `family in (m6i,m7i)`.

A key is a label, or a short name for the labels that mean it. Amounts (cpu, memory, pods, gpu, price) are compared as
numbers; everything else is a requirement on labels, as in a NodePool.
"""

import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.catalog.machines import GPU
from karpool.catalog.pricing import by_price
from karpool.catalog.unknown_values import known_values, unknown_values
from karpool.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, REGION, RESERVATION_ID, ZONE, canonical
from karpool.model.requirements import Requirement, requirement
from karpool.wire.problems import InputError, closest, suggestion
from karpool.wire.quantity import NANO, ZERO, parse_quantity

_AWS: Final = "karpenter.k8s.aws/instance-"
_KWOK: Final = "karpenter.kwok.sh/instance-"
_GCP: Final = "karpenter.k8s.gcp/instance-"
_AZURE: Final = "karpenter.azure.com/sku-"
SHORT_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "type": (INSTANCE_TYPE,),
    "arch": (ARCH,),
    "os": (OS,),
    "zone": (ZONE,),
    "region": (REGION,),
    "capacity-type": (CAPACITY_TYPE,),
    "reservation-id": (RESERVATION_ID,),
    "family": (f"{_AWS}family", f"{_GCP}family", f"{_AZURE}family", f"{_KWOK}family"),
    "size": (f"{_AWS}size", f"{_GCP}size", f"{_KWOK}size"),
    "category": (f"{_AWS}category", f"{_GCP}category"),
    "generation": (f"{_AWS}generation", f"{_GCP}generation", f"{_AZURE}version"),
}
AMOUNTS: Final[Mapping[str, str]] = {"cpu": "cpu", "memory": "memory", "pods": "pods", "gpu": GPU}
PRICE: Final = "price"
_MIB: Final = 1024**2
_MOST_LISTED: Final = 12

_SYMBOLS: Final = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", ">=": "Gte", "<": "Lt", "<=": "Lte"}
_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "Gt": operator.gt,
    "Gte": operator.ge,
    "Lt": operator.lt,
    "Lte": operator.le,
}
_KEY: Final = r"(?P<key>[A-Za-z0-9][-A-Za-z0-9_./]*)"
_SET: Final = re.compile(rf"{_KEY}\s+(?P<negated>not\s*)?in\s*\((?P<values>[^()]*)\)", re.IGNORECASE)
_COMPARISON: Final = re.compile(rf"{_KEY}\s*(?P<symbol>==|!=|>=|<=|=|>|<)\s*(?P<value>[^\s=<>!(),]+)")
_PRESENCE: Final = re.compile(rf"(?P<negated>!?)\s*{_KEY}")
_BETWEEN: Final = re.compile(r",(?![^(]*\))")


@dataclass(frozen=True)
class TypeExpression:
    """One condition: on labels (any of the keys, as the type has it) or on an amount."""

    keys: tuple[str, ...]
    operator: str
    wanted: Requirement | None
    numbers: tuple[float, ...] = ()

    def offering_matches(self, offering: Offering, catalog: Catalog) -> bool:
        """Whether an offering of a type meets the condition, as far as it speaks of offerings."""
        if self.keys == (PRICE,):
            price = catalog.price(offering)
            return price is not None and self._compares(price)
        offered = next((offering.requirements[key] for key in self.keys if key in offering.requirements), None)
        return offered is None or self.wanted is None or offered.overlaps(self.wanted)

    def type_matches(self, entry: InstanceType) -> bool:
        """Whether the type itself meets the condition; its offerings are checked by themselves."""
        if self.wanted is None:
            return bool(entry.offerings) if self.keys == (PRICE,) else self._compares(_amount(entry, self.keys[0]))
        if any(key in offering.requirements for offering in entry.offerings for key in self.keys):
            return True
        label = next((entry.requirements[key] for key in self.keys if key in entry.requirements), None)
        return self.wanted.absent if label is None else label.overlaps(self.wanted)

    def _compares(self, value: float) -> bool:
        match self.operator:
            case "In" | "NotIn":
                return any(math.isclose(value, number) for number in self.numbers) is (self.operator == "In")
            case "Exists" | "DoesNotExist":
                return (value > 0) is (self.operator == "Exists")
            case compare:
                return _COMPARE[compare](value, self.numbers[0])


def _amount(entry: InstanceType, key: str) -> float:
    return entry.capacity.get(AMOUNTS[key], ZERO).nano / NANO


def unknown_in(catalog: Catalog, wanted: Iterable[TypeExpression]) -> Iterator[str]:
    """What expressions ask for and no type has, a sentence each: misspelt, most likely."""
    for entry in wanted:
        if entry.wanted is None or not entry.wanted.values:
            continue
        name = next((short for short, keys in SHORT_NAMES.items() if keys == entry.keys), entry.keys[0])
        known = known_values(catalog, entry.keys)
        if not known:
            if known is not None and not entry.wanted.absent:
                hint = suggestion(name, catalog.well_known) if "/" in name else ""
                yield f"no type of the catalogue has {name}{hint}"
            continue
        for value, meant in unknown_values(catalog, entry.keys, entry.wanted):
            hint = f"; did you mean {meant}?" if meant else ""
            if entry.keys == (INSTANCE_TYPE,):
                yield f"the catalogue has no type {value}{hint}"
            else:
                there = "" if hint or len(known) > _MOST_LISTED else f"; there are {', '.join(sorted(known))}"
                yield f"no type of the catalogue has {name}={value}{hint}{there}"


def select(catalog: Catalog, wanted: Sequence[TypeExpression]) -> list[InstanceType]:
    """The types that meet every expression, with the offerings that do, cheapest first, then by name."""
    selected = []
    for entry in catalog.types:
        offerings = tuple(o for o in entry.offerings if all(e.offering_matches(o, catalog) for e in wanted))
        if (offerings or not entry.offerings) and all(e.type_matches(entry) for e in wanted):
            selected.append(replace(entry, offerings=offerings))
    return by_price(selected)


def parse_expressions(texts: Iterable[str], types: Collection[str] = ()) -> tuple[TypeExpression, ...]:
    """Read expressions; one text may hold several, separated by commas. `types` are names that may be meant alone."""
    return tuple(_parse(part.strip(), text, types) for text in texts for part in _BETWEEN.split(text))


def _parse(part: str, text: str, types: Collection[str]) -> TypeExpression:
    if match := _SET.fullmatch(part):
        values = tuple(value.strip() for value in match["values"].split(","))
        return _made(match["key"], "NotIn" if match["negated"] else "In", values, text, types)
    if match := _COMPARISON.fullmatch(part):
        return _made(match["key"], _SYMBOLS[match["symbol"]], (match["value"],), text, types)
    if match := _PRESENCE.fullmatch(part):
        return _made(match["key"], "DoesNotExist" if match["negated"] else "Exists", (), text, types)
    raise _refused(text, "write KEY=VALUE, KEY!=VALUE, KEY>=NUMBER, KEY in (A,B), KEY notin (A,B), KEY or !KEY")


def _made(key: str, op: str, values: tuple[str, ...], text: str, types: Collection[str]) -> TypeExpression:
    if not all(values):
        raise _refused(text, "a value is empty")
    if key in AMOUNTS or key == PRICE:
        return TypeExpression((key,), op, None, tuple(_number(key, value, text) for value in values))
    if key not in SHORT_NAMES and "/" not in key:
        known = ", ".join([*SHORT_NAMES, *AMOUNTS, PRICE])
        hint = suggestion(key, [*SHORT_NAMES, *AMOUNTS, PRICE])
        if op == "Exists" and (meant := closest(key, list(types))):
            raise _refused(text, f"{key!r} is no condition; did you mean type={meant}?")
        hint = hint or (f"; for a type by its name, write type={key}" if op == "Exists" and "." in key else "")
        raise _refused(text, f"unknown key {key!r}; use a whole label key or one of {known}{hint}")
    try:
        wanted = requirement(op, values)
    except ValueError as error:
        raise _refused(text, str(error)) from None
    return TypeExpression(SHORT_NAMES.get(key, (canonical(key),)), op, wanted)


def _number(key: str, value: str, text: str) -> float:
    try:
        number = float(value) if key == PRICE else parse_quantity(value).nano / NANO
    except ValueError as error:
        raise _refused(text, f"{value!r} is not a price" if key == PRICE else str(error)) from None
    # As in the label karpenter.k8s.aws/instance-memory, a number without a unit counts MiB.
    return number * _MIB if key == "memory" and value.isdigit() else number


def _refused(text: str, why: str) -> InputError:
    return InputError.at("expression", f"{text[:120]!r}: {why}")
