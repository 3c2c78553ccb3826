"""Everything the compactor may ask of a cluster: small changes that may be asked for twice, in the order given.

A change whose object is gone, or whose pod has another uid, is done. Nothing answers: what came of an action is read
from the objects at the next look.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class SetState:
    """Write a node's annotation and, unless None, its cordon, as one change: one is never there without the other."""

    node: str
    annotation: str
    value: str
    unschedulable: bool | None = None


@dataclass(frozen=True, slots=True)
class EvictPod:
    """Ask the Eviction API to let a pod go; it refuses (429) while a PodDisruptionBudget forbids it."""

    key: str
    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a pod with its own grace period, past all PodDisruptionBudgets."""

    key: str
    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Tell people about a node, as a Kubernetes Event."""

    node: str
    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"


Action = SetState | EvictPod | DeletePod | RecordEvent
