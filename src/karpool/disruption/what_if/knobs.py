"""All knobs, and how they are read; a list of them is what a what-if is asked with."""

from typing import Final, get_args

import msgspec

from karpool.disruption.what_if.knob_values import refusal_of
from karpool.disruption.what_if.pod_knobs import (
    DoNotDisruptOff,
    GroupMinimumOff,
    NodeProtectionOff,
    PdbOff,
    Requests,
    SafeToEvict,
)
from karpool.disruption.what_if.pool_knobs import (
    BalancedK,
    Budgets,
    BudgetsOff,
    ConsolidateAfter,
    ConsolidationPolicy,
    FixedSizeOff,
    GracePeriod,
    MinimumSavingsKnob,
    PoolWeight,
)
from karpool.disruption.what_if.question import KnobError
from karpool.disruption.what_if.setting_knobs import (
    BrakeOff,
    EvictionPriceKnob,
    NodeFee,
    Ordering,
    Partitioning,
    SpotToSpot,
    WeightsMode,
)
from karpool.disruption.what_if.type_knobs import AddTypes, AnyMachine, ForbidTypes, OnlyTypes
from karpool.wire.objects import decode_value

AnyKnob = (
    BalancedK
    | Budgets
    | BudgetsOff
    | ConsolidateAfter
    | ConsolidationPolicy
    | FixedSizeOff
    | GracePeriod
    | MinimumSavingsKnob
    | PoolWeight
    | AddTypes
    | AnyMachine
    | ForbidTypes
    | OnlyTypes
    | BrakeOff
    | EvictionPriceKnob
    | NodeFee
    | Ordering
    | Partitioning
    | SpotToSpot
    | WeightsMode
    | DoNotDisruptOff
    | GroupMinimumOff
    | NodeProtectionOff
    | PdbOff
    | Requests
    | SafeToEvict
)
MOST_KNOBS: Final = 100
_EXAMPLE: Final = 'write a list such as [{"knob": "budgetsOff"}]'


def read_knobs(text: bytes | str) -> tuple[AnyKnob, ...]:
    """Knobs from a JSON list, as programs send them; whatever is wrong is a `KnobError`."""
    try:
        knobs = msgspec.json.decode(text, type=tuple[AnyKnob, ...], dec_hook=decode_value)
    except msgspec.ValidationError as error:
        raise _refused(text, error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise KnobError("knobs", f"they are no JSON; {_EXAMPLE}") from None
    if len(knobs) > MOST_KNOBS:
        raise KnobError("knobs", f"are {len(knobs)}; at most {MOST_KNOBS} can be turned at once")
    return knobs


def _refused(text: bytes | str, error: msgspec.ValidationError) -> KnobError:
    try:
        listed = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as unreadable:
        return KnobError("knobs", f"they cannot be read: {unreadable}"[:400])
    if not isinstance(listed, list):
        return KnobError("knobs", f"they are no list; {_EXAMPLE}")
    kinds = {str(kind.__struct_config__.tag): kind for kind in get_args(AnyKnob)}
    return refusal_of(listed, kinds) or KnobError("knobs", str(error)[:400])
