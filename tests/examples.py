"""How many examples a property test draws: a number for the default profile, from which other profiles scale."""

from typing import Final

from hypothesis import settings

PER_TEST: Final = 100
"""Examples of a property test that does not say otherwise, in the default profile."""


def examples(number: int) -> settings:
    """Draw this many examples in the default profile, and in the same proportion in others."""
    return settings(max_examples=max(1, number * settings().max_examples // PER_TEST))
