"""What an API server refuses in NodeOverlays."""

import re
from collections.abc import Iterator
from typing import Final

from karpool.model.node_overlay import NodeOverlay
from karpool.wire.problems import Flaw

_PRICE: Final = re.compile(r"\d+(\.\d+)?", re.ASCII)
_ADJUSTMENT: Final = re.compile(r"[+-]\d*\.?\d+|\+\d*\.?\d+%|-\d{1,2}(\.\d+)?%|-100%", re.ASCII)
_STANDARD: Final = ("cpu", "memory", "ephemeral-storage", "pods")
_HEAVIEST: Final = 10_000


def refused_overlay(overlay: NodeOverlay) -> Iterator[Flaw]:
    spec = overlay.spec
    if spec.price is not None and spec.price_adjustment is not None:
        message = "is not allowed together with price; remove one of the two"
        yield Flaw("spec.priceAdjustment", "NodeOverlay", message)
    if spec.price is not None and not _PRICE.fullmatch(spec.price):
        yield Flaw("spec.price", "NodeOverlay", f"{spec.price[:40]!r} is no price in $/h; write one such as '0.096'")
    if spec.price_adjustment is not None and not _ADJUSTMENT.fullmatch(spec.price_adjustment):
        message = f"{spec.price_adjustment[:40]!r} is no change of a price; write '-0.5', '+1.2', '+10%' or '-15%'"
        yield Flaw("spec.priceAdjustment", "NodeOverlay", message)
    for name in spec.capacity:
        if name in _STANDARD:
            yield Flaw(
                f"spec.capacity.{name}", "NodeOverlay", "is set by the machine; only other resources can be added"
            )
    if not 0 <= spec.weight <= _HEAVIEST:
        yield Flaw("spec.weight", "NodeOverlay", f"{spec.weight} is out of range; write 1 to {_HEAVIEST}")
