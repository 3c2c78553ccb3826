"""A what-if to keep: merge patches for NodePools, options of the command line, and what has to be done by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from karpool.disruption.settings import DisruptionSettings
from karpool.disruption.what_if.knob import Knob, turned
from karpool.disruption.what_if.question import Question
from karpool.model.node_group import NodeGroup
from karpool.model.nodepool import NodePool
from karpool.wire.objects import encode_value

_DECISIONS: Final = (
    "order",
    "partition",
    "search",
    "effort",
    "eviction_price",
    "weights",
    "spot_to_spot",
    "spot_floor",
    "ignore_budgets",
    "pod_deletion_costs",
    "terminate_first_repair",
    "terminate_first_drift",
)
"""What a policy of a scenario can say of decisions, by the names of settings."""
_OPTIONS: Final = ("order", "partition", "eviction_price", "weights", "spot_floor")


@dataclass(frozen=True, slots=True)
class Export:
    """What a what-if comes to in the world."""

    patches: Mapping[str, Mapping[str, Any]]
    """By NodePool: a JSON merge patch."""
    options: tuple[str, ...]
    """Options of `karpool plan` and `karpool run` that differ, with their values."""
    by_hand: tuple[str, ...]
    """What neither patches nor options say, in words."""


def export(question: Question, knobs: Sequence[Knob]) -> Export:
    """What has to be changed so that the world is as the knobs have it."""
    by_hand, before = [], question
    for knob in knobs:
        after = knob.turn(before)
        if after != before and not (_patches(before, after) or _options(before, after)):
            by_hand.append(knob.words)
        before = after
    return Export(_patches(question, before), _options(question, before), tuple(by_hand))


def _patches(before: Question, after: Question) -> dict[str, dict[str, Any]]:
    now = {pool.name: pool for pool in after.objects.node_pools}
    pairs = [(pool, now[pool.name]) for pool in before.objects.node_pools if not isinstance(pool, NodeGroup)]
    return {old.name: merge_patch(_plain(old), _plain(new)) for old, new in pairs if old != new}


def _plain(pool: NodePool) -> dict[str, Any]:
    written: dict[str, Any] = msgspec.to_builtins(pool, enc_hook=encode_value)
    return written


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch that makes one map of another: lists are replaced as a whole, null removes.

    A map that goes loses each key that is known: others may be in it that nobody has read, such as annotations.
    """
    patch: dict[str, Any] = {}
    for key in {**old, **new}:
        was, now = old.get(key), new.get(key)
        if was == now:
            continue
        nested = isinstance(was, Mapping) and isinstance(now, Mapping | None)
        patch[key] = merge_patch(was or {}, now or {}) if nested else now
    return patch


def _options(before: Question, after: Question) -> tuple[str, ...]:
    old, new = before.settings, after.settings
    options = [
        f"--{name.replace('_', '-')}={getattr(new, name)}"
        for name in _OPTIONS
        if getattr(old, name) != getattr(new, name)
    ]
    if old.spot_to_spot != new.spot_to_spot:
        options.append(f"--feature-gates=SpotToSpotConsolidation={str(new.spot_to_spot).lower()}")
    if before.catalog.node_fee != after.catalog.node_fee:
        options.append(f"--node-fee={after.catalog.node_fee:g}")
    return tuple(options)


def scenario(question: Question, knobs: Sequence[Knob], cluster: str, length: str = "24h") -> dict[str, Any]:
    """A scenario for `karpool simulate` with the policies `today` and `what-if`; `cluster`: the file of a snapshot.

    A policy changes pools and decisions only. A fee for nodes holds for both; whatever else knobs change is left out,
    and the description says what.
    """
    then, exported = turned(question, knobs), export(question, knobs)
    missing = f"Left out: {'; '.join(exported.by_hand)}." if exported.by_hand else ""
    changed: dict[str, Any] = {"decisions": _decisions(then.settings)}
    if exported.patches:
        changed["pools"] = dict(exported.patches)
    return {
        "name": "what-if",
        "description": " ".join(filter(None, ("; ".join(knob.words for knob in knobs) + ".", missing))),
        "cluster": [cluster],
        "length": length,
        "nodeFee": then.catalog.node_fee,
        "policies": {"today": {"decisions": _decisions(question.settings)}, "what-if": changed},
    }


def _decisions(settings: DisruptionSettings) -> dict[str, Any]:
    """The settings as a scenario writes them; those of the defaults are left out."""
    own = DisruptionSettings()
    values = {name: getattr(settings, name) for name in _DECISIONS if getattr(settings, name) != getattr(own, name)}
    return {_camel(name): str(value) if isinstance(value, str) else value for name, value in values.items()}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
