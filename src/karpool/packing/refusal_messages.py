"""Refusals: why a pod finds no place, as values for programs and as messages for people."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, floor
from typing import Final

from karpool.cluster.codes import GroupKind
from karpool.cluster.groups import Group
from karpool.cluster.resources import ATTACH, UNLIMITED
from karpool.model.labels import HOSTNAME, REGION, ZONE

NODES: Final = "nodes"
POD: Final = "pod"
_MOST_PARTS: Final = 5
_LEAST_NODE_PARTS: Final = 3
_KIBI: Final = 1024
_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_PLACES: Final = {HOSTNAME: "host", ZONE: "zone", REGION: "region"}


class RefusalRule(StrEnum):
    """Stable names of the rules that refuse a pod a place."""

    REFUSED = "Refused"
    TAINT = "Taint"
    SYSTEM = "OperatingSystem"
    LABEL = "Label"
    VOLUME = "Volume"
    ATTACH_LIMIT = "AttachLimit"
    PORT = "Port"
    DEVICES = "Devices"
    NOT_ENOUGH = "NotEnough"
    SPREAD = "Spread"
    AFFINITY = "Affinity"
    ANTI_AFFINITY = "AntiAffinity"
    CLOSED = "Closed"
    UNREADABLE = "Unreadable"
    NO_TYPE = "NoType"
    UNKNOWN_LABEL = "UnknownLabel"
    LIMIT = "Limit"
    MIN_VALUES = "MinValues"
    RESERVED = "Reserved"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a rule refuses a pod: a number of nodes, or of types if `what` is `pool NAME`."""

    count: int
    what: str
    rule: RefusalRule
    detail: str


def sentence(refusals: Sequence[Refusal]) -> str:
    """All refusals of a pod in one line; after a few, the others are only counted."""
    nodes = [entry for entry in refusals if entry.what == NODES]
    others = [entry for entry in refusals if entry.what != NODES]
    shown = nodes[: max(_LEAST_NODE_PARTS, _MOST_PARTS - len(others))]
    rest = others[: _MOST_PARTS - len(shown)]
    parts = [_node_part(entry, first=at == 0) for at, entry in enumerate(shown)]
    parts += [entry.detail if entry.what == POD else f"{entry.what}: {entry.detail}" for entry in rest]
    left = len(refusals) - len(parts)
    if left:
        parts.append(f"and {left} other reason{'s' * (left > 1)}")
    return "; ".join(parts)


def _node_part(entry: Refusal, *, first: bool) -> str:
    noun = (" node" if entry.count == 1 else " nodes") if first else ""
    return f"{entry.count:,}{noun}: {entry.detail}"


def amount(name: str, value: int, *, up: bool = False) -> str:
    """An amount of a resource in units that people read; cut, or rounded up, to hundredths."""
    if name == "cpu":
        return f"{value / 1000:g}" if abs(value) < UNLIMITED else "any number"
    if name == "memory" or name.endswith("storage") or name.startswith("hugepages-"):
        return _binary(value, up=up)
    return f"{value:,}"


def _binary(value: int, *, up: bool) -> str:
    unit = 0
    while abs(value) >= _KIBI ** (unit + 1) and unit < len(_UNITS) - 1:
        unit += 1
    cut = (ceil if up else floor)(value * 100 / _KIBI**unit) / 100
    return f"{cut:.10g}{_UNITS[unit]}"


def with_unit(name: str, value: int) -> str:
    """What a pod asks for: `64 cpu`, `8Gi memory`."""
    return f"{amount(name, value, up=True)} {name}"


def not_enough(name: str, requested: int, most: int) -> tuple[RefusalRule, str]:
    """The refusal of nodes that have too little of a resource; the best of them has `most` left."""
    if name.startswith(ATTACH):
        return RefusalRule.ATTACH_LIMIT, f"cannot attach another {name.removeprefix(ATTACH)} volume"
    if name == "pods":
        return RefusalRule.NOT_ENOUGH, "no room for another pod"
    if requested == 0:
        return RefusalRule.NOT_ENOUGH, f"already overcommitted in {name}"
    best = amount(name, max(0, most))
    return RefusalRule.NOT_ENOUGH, f"not enough {name} ({amount(name, requested, up=True)} wanted, at most {best} free)"


_RULES: Final = {GroupKind.SPREAD: RefusalRule.SPREAD, GroupKind.AFFINITY: RefusalRule.AFFINITY}


def of_group(group: Group) -> RefusalRule:
    return _RULES.get(group.kind, RefusalRule.ANTI_AFFINITY)


def broken(group: Group) -> str:
    """Why a topology group refuses a place."""
    place = place_of(group)
    match group.kind:
        case GroupKind.SPREAD:
            return f"would break {place} spread"
        case GroupKind.AFFINITY:
            return f"{place} affinity: no pod {_selected(group)} there"
        case GroupKind.ANTI:
            return f"{place} anti-affinity: a pod {_selected(group)} is there"
        case GroupKind.INVERSE:
            return f"{place} anti-affinity of a pod there keeps {_selected(group)} away"


def place_of(group: Group) -> str:
    """The word for a group's domains: zone, host, or the label key itself."""
    return _PLACES.get(group.key, group.key)


def rule_name(group: Group) -> str:
    """A group in short: `zone spread`."""
    names = {GroupKind.SPREAD: "spread", GroupKind.AFFINITY: "affinity"}
    return f"{place_of(group)} {names.get(group.kind, 'anti-affinity')}"


def _selected(group: Group) -> str:
    if group.selector is None:
        return "of none"
    words = [f"{key}={value}" for key, value in group.selector.pairs]
    for entry in group.selector.expressions:
        values = f" ({', '.join(entry.values)})" if entry.values else ""
        words.append(f"{entry.key} {entry.operator}{values}")
    return ",".join(words) or "of any kind"


def listing(words: Iterable[str], last: str = "and") -> str:
    """Words as a list: `a`, `a and b`, `a, b and c`."""
    *head, tail = words
    return f"{', '.join(head)} {last} {tail}" if head else tail
