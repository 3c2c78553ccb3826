"""How many examples a property test draws: a number from which profiles scale."""

from typing import Final

from hypothesis import settings

PER_TEST: Final = 100
"""Examples of a property test that does not say otherwise; the default profile draws half of them."""


def examples(number: int) -> settings:
    """Draw this many examples where others draw `PER_TEST`, and in the same proportion in every profile."""
    return settings(max_examples=max(1, number * settings().max_examples // PER_TEST))
