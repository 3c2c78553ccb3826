"""Node groups in sentences: what one is, and what the compactor would do."""

from collections.abc import Sequence
from typing import Final

from karpool.report.formatting import count, names_of
from karpool.report.plans.document import NodeGroupPart

_SHOWN: Final = 10


def what_it_is(group: NodeGroupPart) -> str:
    """A group in words: who makes it, of what machines."""
    machines = names_of(group.instance_types) or "unknown machine types"
    kinds, zones = ", ".join(group.capacity_types), names_of(group.zones)
    return ", ".join(text for text in (group.title, machines, kinds, zones) if text)


def drain_words(drains: Sequence[str]) -> str:
    """What the compactor would do, in a sentence."""
    if not drains:
        return "Left alone, `karpool compact` would drain no node."
    more = f" and {len(drains) - _SHOWN:,} more" if len(drains) > _SHOWN else ""
    listed = ", ".join(drains[:_SHOWN])
    return f"Left alone, `karpool compact` would drain {count(len(drains), 'node')} in this order: {listed}{more}."
