"""Knobs for options of decisions, for prices, and for brakes."""

from dataclasses import replace
from typing import Annotated, Final, Literal

import msgspec

from karpool.disruption.settings import MOST_EVICTION_PRICE, Order, Partition, Weights
from karpool.disruption.what_if.knob import Knob
from karpool.disruption.what_if.question import Question

_MOST_FEE: Final = 1e6
_MOST_TYPES: Final = 10_000


class NodeFee(Knob, kw_only=True, tag="nodeFee"):
    """What every node costs on top of its price, in $/h."""

    value: Annotated[float, msgspec.Meta(ge=0, le=_MOST_FEE)]

    def turn(self, question: Question) -> Question:
        return replace(question, catalog=replace(question.catalog, node_fee=self.value))

    @property
    def words(self) -> str:
        return f"count {self.value:g} $/h for each node (--node-fee)"


class EvictionPriceKnob(Knob, kw_only=True, tag="evictionPrice"):
    value: Annotated[float, msgspec.Meta(ge=0, le=MOST_EVICTION_PRICE)]

    def turn(self, question: Question) -> Question:
        return question.with_settings(eviction_price=self.value)

    def relaxes(self, question: Question) -> bool:
        return self.value <= question.settings.effective_eviction_price

    @property
    def words(self) -> str:
        return f"price an eviction at {self.value:g} $/h (--eviction-price)"


class SpotToSpot(Knob, kw_only=True, tag="spotToSpot"):
    """Whether spot nodes may be replaced by spot; `floor`: how many cheaper types there must be for a single one."""

    value: bool
    floor: Annotated[int, msgspec.Meta(ge=1, le=_MOST_TYPES)] | None = None

    def turn(self, question: Question) -> Question:
        floor = question.settings.spot_floor if self.floor is None else self.floor
        return question.with_settings(spot_to_spot=self.value, spot_floor=floor)

    def relaxes(self, question: Question) -> bool:
        settings = question.settings
        return (self.value or not settings.spot_to_spot) and self.floor in (None, *range(1, settings.spot_floor + 1))

    @property
    def words(self) -> str:
        floor = "" if self.floor is None else f" --spot-floor {self.floor}"
        state = "on" if self.value else "off"
        return f"switch SpotToSpotConsolidation {state} (--feature-gates{floor})"


class Partitioning(Knob, kw_only=True, tag="partition"):
    value: Literal["none", "pool", "auto"]

    def turn(self, question: Question) -> Question:
        return question.with_settings(partition=Partition(self.value))

    @property
    def words(self) -> str:
        return f"combine nodes by --partition {self.value}"


class Ordering(Knob, kw_only=True, tag="order"):
    value: Literal["cost", "ratio"]

    def turn(self, question: Question) -> Question:
        return question.with_settings(order=Order(self.value))

    @property
    def words(self) -> str:
        return f"take candidates by --order {self.value}"


class WeightsMode(Knob, kw_only=True, tag="weights"):
    value: Literal["prefer", "strict"]

    def turn(self, question: Question) -> Question:
        return question.with_settings(weights=Weights(self.value))

    @property
    def words(self) -> str:
        return f"take pools by --weights {self.value}"


class BrakeOff(Knob, kw_only=True, tag="brakeOff"):
    """A brake lets go: the one of this code for which this object is to blame."""

    code: str
    object: str

    def turn(self, question: Question) -> Question:
        brakes = question.settings.brakes
        return question.with_settings(brakes=replace(brakes, released=brakes.released | {(self.code, self.object)}))

    def relaxes(self, question: Question) -> bool:  # noqa: ARG002 - it never forbids anything
        return True

    @property
    def words(self) -> str:
        return f"let go what {self.object} holds ({self.code})"
