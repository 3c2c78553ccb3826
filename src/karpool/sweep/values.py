"""Values of knobs as `--set` writes them, refused by the rules with which `karpool validate` reads NodePools."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from karpool.catalog.instance_types import Catalog
from karpool.disruption.settings import DisruptionSettings
from karpool.disruption.what_if.knob import Knob
from karpool.disruption.what_if.knob_values import not_allowed
from karpool.disruption.what_if.pool_knobs import (
    BalancedK,
    Budgets,
    ConsolidateAfter,
    ConsolidationPolicy,
    GracePeriod,
    MinimumSavingsKnob,
    PoolKnob,
    PoolWeight,
)
from karpool.disruption.what_if.question import KnobError, Question
from karpool.disruption.what_if.setting_knobs import (
    EvictionPriceKnob,
    NodeFee,
    Ordering,
    Partitioning,
    SpotToSpot,
    WeightsMode,
)
from karpool.disruption.what_if.type_knobs import MOST_TYPES, AddTypes, ForbidTypes, OnlyTypes, TypesKnob
from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.model.rules.pools import refused_pool
from karpool.packing.options import Options
from karpool.wire.objects import decode_value, encode_value
from karpool.wire.problems import Flaw, InputError, suggestion

TODAY: Final = "today"
"""The value that leaves everything as it is."""
_KNOBS: Final[tuple[type[Knob], ...]] = (
    ConsolidateAfter,
    GracePeriod,
    ConsolidationPolicy,
    BalancedK,
    Budgets,
    MinimumSavingsKnob,
    PoolWeight,
    OnlyTypes,
    ForbidTypes,
    AddTypes,
    NodeFee,
    EvictionPriceKnob,
    SpotToSpot,
    Partitioning,
    Ordering,
    WeightsMode,
)
NAMES: Final[Mapping[str, type[Knob]]] = {str(kind.__struct_config__.tag): kind for kind in _KNOBS}
_ANY_TIME: Final = datetime(2026, 1, 1, tzinfo=UTC)


def kind_of(name: str) -> type[Knob]:
    """The knob that `NAME` or `NAME@POOL` means."""
    bare, at, pool = name.partition("@")
    kind = NAMES.get(bare)
    if kind is None:
        raise wrong(f"there is no setting {bare!r}; there are {', '.join(NAMES)}{suggestion(bare, NAMES)}")
    if at and not issubclass(kind, PoolKnob):
        raise wrong(f"{bare} is not a NodePool's; leave @{pool} out")
    return kind


def knob_of(name: str, value: str) -> Knob | None:
    """The knob for a value; None for what is so today."""
    kind = kind_of(name)
    if value == TODAY:
        return None
    bare, at, pool = name.partition("@")
    fields: dict[str, Any] = {"nodePool": pool} if at else {}
    if issubclass(kind, TypesKnob):
        fields["instanceTypes"] = value.split("+")
    else:
        fields["value"] = value
    try:
        return msgspec.convert({"knob": bare, **fields}, type=kind, dec_hook=decode_value, strict=False)
    except msgspec.ValidationError:
        raise wrong(f"{name}={value}: {_sentence(kind, value)}") from None


def refuse_value(name: str, value: str) -> None:
    """An `InputError` for a value that no NodePool may have, or that cannot be read at all."""
    knob = knob_of(name, value)
    if not isinstance(knob, PoolKnob) or isinstance(knob, TypesKnob):
        return
    pool = msgspec.convert({"metadata": {"name": knob.node_pool or "general"}}, NodePool)
    question = Question(Objects(node_pools=(pool,)), Catalog(()), DisruptionSettings(), Options(), _ANY_TIME)
    try:
        after = knob.turn(question)
    except KnobError as error:
        raise wrong(f"{name}={value}: {error.args[1]}") from None
    for _, flaw in new_flaws(question, after):
        raise wrong(f"{name}={value}: {flaw.message}")


def new_flaws(before: Question, after: Question) -> Iterator[tuple[NodePool, Flaw]]:
    """What an API server would refuse in NodePools only since knobs were turned."""
    for old, new in zip(before.objects.node_pools, after.objects.node_pools, strict=True):
        if old != new:
            known = set(_flaws(old))
            yield from ((new, flaw) for flaw in _flaws(new) if flaw not in known)


def _flaws(pool: NodePool) -> Iterator[Flaw]:
    return refused_pool(pool, msgspec.to_builtins(pool, enc_hook=encode_value))


def _sentence(kind: type[Knob], value: str) -> str:
    """What is wrong with a value that has not the type of its knob."""
    if issubclass(kind, TypesKnob):
        return f"{value[:40]!r} is not allowed; join at most {MOST_TYPES} names or patterns by +, such as m5.*+c5.large"
    return not_allowed(kind, "value", value)


def wrong(message: str) -> InputError:
    """What is wrong with a `--set`."""
    return InputError.at("--set", message)
