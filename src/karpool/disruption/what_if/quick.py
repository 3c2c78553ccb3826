"""Which search answers while somebody waits."""

from dataclasses import replace
from typing import Final

from karpool.disruption.settings import GLOBAL, PREFIX, DisruptionSettings

AT_ONCE: Final = 150
"""With more nodes than this, a global search takes too long for somebody who turns a knob and looks."""
SOON: Final = 500
"""With more nodes than this, it takes too long to be repeated for each of many blockers."""


def quick(settings: DisruptionSettings, nodes: int, global_up_to: int = AT_ONCE) -> DisruptionSettings:
    """Settings with the best search that answers soon; evictions have the price that they had before.

    Prefixes take a second for 300 nodes and five for 3,000; a global search without effort takes three times as long.
    """
    if settings.search != GLOBAL:
        return settings
    if nodes <= global_up_to:
        return replace(settings, effort=0)
    return replace(settings, search=PREFIX, eviction_price=settings.effective_eviction_price)


def search_words(settings: DisruptionSettings) -> str:
    """Which search it is, as people and programs read it."""
    return f"{settings.search}, effort {settings.effort}" if settings.search == GLOBAL else settings.search
