"""Where labels of a plot stand, so that none is cut by its edge."""

from typing import Final

_WIDEST: Final = 7.5
"""What a character of 11 pixels takes at most, in the fonts of pages."""


def anchor(x: float, text: str, width: float) -> str:
    """How a label at `x` of a plot is anchored: in the middle, unless it would reach beyond an edge."""
    half = len(text) * _WIDEST / 2
    if x + half > width:
        return "end"
    return "start" if x < half else "middle"
