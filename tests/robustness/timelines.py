"""How long a story lasts: storms, in which things change and faults happen, each with a rest after it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

FIRST_CHANGE: Final = 90.0


class Kind(StrEnum):
    """What a story is mostly about."""

    PLAIN = "plain"
    LONG = "over two hours"
    HARMFUL = "moved pods crash"
    ZONED = "two zones"
    COMPACTED = "the compactor"


@dataclass(frozen=True, slots=True)
class Storm:
    """From when on something happens, until when, and until when it rests then, in seconds."""

    start: float
    end: float
    rests_until: float


_ONE: Final = (Storm(FIRST_CHANGE, 900.0, 2100.0),)
STORMS: Final[dict[Kind, tuple[Storm, ...]]] = {
    Kind.PLAIN: _ONE,
    Kind.ZONED: _ONE,
    Kind.COMPACTED: _ONE,
    # What an hour allows was used up in the first storm; it is there again before the second.
    Kind.LONG: (Storm(FIRST_CHANGE, 900.0, 6000.0), Storm(6000.0, 6900.0, 8400.0)),
    # Pods count as harmed after ten minutes, and their pool goes on when all have been well for fifteen.
    Kind.HARMFUL: (Storm(FIRST_CHANGE, 1500.0, 3300.0),),
}
