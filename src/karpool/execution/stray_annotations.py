"""Annotations of Karpool's own that mean nothing where they are: misspelt, or on an object of another kind."""

from collections.abc import Iterator
from typing import Final

from karpool.execution.tickets import COMMAND, REPLACES
from karpool.model import labels as names
from karpool.model.annotations import annotation_path
from karpool.wire.objects import Object
from karpool.wire.problems import Flaw, suggestion

_PREFIX: Final = "karpool.sh/"
_SETTINGS: Final = {
    **dict.fromkeys(
        (names.GRACE_PERIOD, names.BALANCED_K, names.MINIMUM_SAVINGS, names.BUDGETS, names.PAUSED), "NodePool"
    ),
    names.MAX_EVICTIONS: "Namespace",
}
"""Those that people write, each with the kind that it is read of."""
_WRITTEN_HERE: Final = frozenset(
    {
        names.DISRUPTIONS,
        names.HARM,
        names.FAILED_COMMAND,
        names.FAILED_LAUNCH,
        names.LAUNCHED_FOR,
        COMMAND,
        REPLACES,
        names.REBOOTS,
        names.REBOOT_ISSUED,
        names.REBOOT_REFUSED,
        names.OWN_DELETION_COST,
        names.EVICTED_FROM,
    }
)
"""Those that Karpool writes."""


def stray_annotations(kind: str, entry: Object) -> Iterator[Flaw]:
    """Annotations of an object that look like settings and are none."""
    for key in entry.metadata.annotations:
        if not key.startswith(_PREFIX) or key in _WRITTEN_HERE or _SETTINGS.get(key) == kind:
            continue
        if key in _SETTINGS:
            message = f"means nothing on a {kind}; it is read of a {_SETTINGS[key]}"
        else:
            message = f"is not known and means nothing{suggestion(key, _SETTINGS, prefix=_PREFIX)}"
        yield Flaw(annotation_path(key[:100]), "UnknownAnnotation", message)
