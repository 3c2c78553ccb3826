"""Annotations and labels of Karpool's own that mean nothing where they are: misspelt, or on the wrong kind."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from karpool.execution.tickets import COMMAND, REPLACES
from karpool.model import labels as names
from karpool.model.annotations import annotation_path
from karpool.model.objects import Objects
from karpool.wire.objects import Object
from karpool.wire.problems import Flaw, suggestion

_PREFIX: Final = "karpool.sh/"
_MOST_SHOWN: Final = 100
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


_OF_VIRTUAL_CLUSTERS: Final = "karpool.sh/virtual-"
"""How labels begin that nodes and pods of simulations have."""


class StraySetting(NamedTuple):
    """A key that means nothing, and the first object that has it; `flaw` says how many others do."""

    kind: str
    key: str
    flaw: Flaw

    def __str__(self) -> str:
        return f"{self.kind} {self.key}: {self.flaw.field}: {self.flaw.message}"


def stray_settings(objects: Objects) -> Iterator[StraySetting]:
    """Annotations and labels that look like settings and are none, each once for all objects of a kind."""
    kinds: dict[str, Sequence[Object]] = {
        "NodePool": objects.node_pools,
        "NodeClaim": objects.node_claims,
        "Node": objects.nodes,
        "Namespace": objects.namespaces,
        "Pod": objects.pods,
    }
    for kind, entries in kinds.items():
        found: dict[Flaw, list[str]] = {}
        for entry in entries:
            for flaw in _stray(kind, entry):
                found.setdefault(flaw, []).append(entry.key)
        for flaw, (first, *others) in found.items():
            also = f" (so on {len(others):,} other{'s' * (len(others) > 1)})" if others else ""
            yield StraySetting(kind, first, flaw._replace(message=f"{flaw.message}{also}"))


def _stray(kind: str, entry: Object) -> Iterator[Flaw]:
    """What looks like a setting on an object and is none."""
    for key in entry.metadata.annotations:
        if not key.startswith(_PREFIX) or key in _WRITTEN_HERE or _SETTINGS.get(key) == kind:
            continue
        if key in _SETTINGS:
            message = f"means nothing on a {kind}; it is read of a {_SETTINGS[key]}"
        else:
            message = f"is not known and means nothing{suggestion(key, _SETTINGS, prefix=_PREFIX)}"
        yield Flaw(annotation_path(key[:_MOST_SHOWN]), "UnknownAnnotation", message)
    for key in entry.metadata.labels:
        if key.startswith(_PREFIX) and not key.startswith(_OF_VIRTUAL_CLUSTERS):
            message = (
                f"is a label and means nothing; settings are annotations{suggestion(key, _SETTINGS, prefix=_PREFIX)}"
            )
            yield Flaw(f"metadata.labels[{key[:_MOST_SHOWN]}]", "UnknownLabel", message)
