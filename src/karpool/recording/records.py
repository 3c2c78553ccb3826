"""The records of a recording, one JSON object each: typed, short, and in the order in which things were seen.

Times are seconds since the start that the header names. Pods are numbers, and what pods of one workload share is
written once, as a template. Other objects are written whole when new, and as JSON merge patches when they change.
"""

from enum import StrEnum
from typing import Any, Final

from karpool.model.pod import Pod
from karpool.wire.objects import Timestamp, Wire

FORMAT: Final = "karpool-recording"
VERSION: Final = 1
EVICTION: Final = "Eviction"
"""What `missing` calls evictions where a source does not say which pods were evicted."""


class LeaveCause(StrEnum):
    """Why a pod leaves, as the API server says; most that are deleted were scaled down or replaced by a rollout."""

    DELETED = "deleted"
    EVICTED = "evicted"
    FORCED = "forced"
    """Deleted, and not evicted, because the time for draining its node was over."""
    PREEMPTED = "preempted"
    TAINT = "taint"
    KUBELET = "kubelet"
    NODE_LOST = "nodeLost"


class End(StrEnum):
    """How a pod ended."""

    GONE = "gone"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Record(Wire, tag_field="e", forbid_unknown_fields=True):
    """Base of all records."""


class TimedRecord(Record, tag_field="e"):
    """Something that was seen at a time."""

    t: float


class Header(Record, tag="header", omit_defaults=False):
    """The first record of a file."""

    start: Timestamp
    format: str = FORMAT
    version: int = VERSION
    source: str = "cluster"
    """Where the history comes from: a live cluster, or what was imported."""
    recorder: str = ""
    """Which version of Karpool wrote it."""


class Template(Record, tag="template"):
    """What pods share: all of a pod but its name, its node, its status and its times."""

    id: int
    pod: Pod


class Born(TimedRecord, tag="born"):
    """A pod was created, or was there when the recording began."""

    pod: int
    template: int
    name: str
    created: float
    """By the clock of the API server, in whole seconds; negative if it is older than the recording."""
    labels: dict[str, str] = {}
    """Those that are this pod's own."""


class Became(TimedRecord, tag="became"):
    """A pod changed: it was resized, labelled or annotated."""

    pod: int
    template: int


class Bound(TimedRecord, tag="bound"):
    """A pod got a node."""

    pod: int
    node: str
    since: float | None = None
    """Since when it runs there, if that was before it was seen."""


class Ready(TimedRecord, tag="ready"):
    """A pod became ready, or ceased to be."""

    pod: int
    ready: bool = True
    since: float | None = None


class Leaving(TimedRecord, tag="leaving"):
    """A pod is being deleted; `because` is the reason for which its node is disrupted, if it is."""

    pod: int
    cause: LeaveCause = LeaveCause.DELETED
    because: str = ""


class Died(TimedRecord, tag="died"):
    """A pod ended."""

    pod: int
    how: End = End.GONE


class Put(TimedRecord, tag="put"):
    """Any other object that is new."""

    kind: str
    object: dict[str, Any]


class Changed(TimedRecord, tag="changed"):
    """Any other object that changed, as a JSON merge patch."""

    kind: str
    key: str
    patch: dict[str, Any]


class Gone(TimedRecord, tag="gone"):
    """Any other object that is no more."""

    kind: str
    key: str


class Prices(TimedRecord, tag="prices"):
    """What an hour of machines costs from now on, in $, by `TYPE/ZONE/CAPACITY_TYPE`; null if nobody knows any more."""

    prices: dict[str, float | None]


class Consolidator(TimedRecord, tag="consolidator"):
    """How what consolidates the cluster is set from now on, in the words of a scenario; null: nobody says."""

    settings: dict[str, Any] | None


class Gap(TimedRecord, tag="gap"):
    """Nothing was seen since a time: what happened in between is only known by what was different afterwards."""

    since: float
    why: str


class Missing(TimedRecord, tag="missing"):
    """Objects of a kind cannot be seen from now on, and why; an empty reason: they can again."""

    kind: str
    why: str


class Alive(TimedRecord, tag="alive"):
    """Nothing happened until now, and somebody looked."""


AnyRecord = (
    Header
    | Template
    | Born
    | Became
    | Bound
    | Ready
    | Leaving
    | Died
    | Put
    | Changed
    | Gone
    | Prices
    | Consolidator
    | Gap
    | Missing
    | Alive
)
