"""Everything execution may ask of a cluster: a closed set of small, repeatable changes.

Rules for a cluster that carries them out:

* An action whose object is gone, or has another uid than the one named, is done: nothing happens.
* An action that is carried out twice has the effect of one.
* The actions of `begin` are carried out in their order and end with the first that fails. Those of one `advance` or
  `lifecycle` are independent: when one fails the others go on, and their order is only the most useful one.
* Everything may stop between any two actions, and nothing answers: what came of an action is read from the objects. An
  eviction that worked is a terminating pod; one that was refused is asked for again.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from karpool.model.nodepool import NodeClaim
from karpool.model.scheduling import Taint

Kind = Literal["ConfigMap", "Node", "NodeClaim", "NodePool", "Pod"]


@dataclass(frozen=True, slots=True)
class AddTaint:
    """Put a taint on a node; one of the same key and effect is left as it is."""

    node: str
    taint: Taint


@dataclass(frozen=True, slots=True)
class RemoveTaint:
    """Take the taint with this key and effect off a node."""

    node: str
    taint: Taint


@dataclass(frozen=True, slots=True)
class SetLabel:
    """Give an object a label; None takes it away."""

    kind: Kind
    name: str
    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Annotate:
    """Give an object an annotation; None takes it away."""

    kind: Kind
    name: str
    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Keep an object in the API, once deleted, until the finalizer is removed."""

    kind: Kind
    name: str
    finalizer: str


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Take a finalizer away; a deleted object goes with its last one."""

    kind: Kind
    name: str
    finalizer: str


@dataclass(frozen=True, slots=True)
class SetClaimCondition:
    """Write a condition of a NodeClaim; its transition time moves to now only if the status is another than before."""

    claim: str
    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class ClearClaimCondition:
    """Take a condition off a NodeClaim."""

    claim: str
    type: str


@dataclass(frozen=True, slots=True)
class SetClaimNode:
    """Write the name of its node into a NodeClaim's status."""

    claim: str
    node: str


@dataclass(frozen=True, slots=True)
class SetPodEventTime:
    """Write a NodeClaim's status.lastPodEventTime."""

    claim: str
    time: datetime


@dataclass(frozen=True, slots=True)
class CreateClaim:
    """Create a NodeClaim; if one of that name exists, it is taken as the one meant. A provider launches it."""

    claim: NodeClaim


@dataclass(frozen=True, slots=True)
class DeleteClaim:
    """Ask for a NodeClaim's deletion; its finalizer keeps it until the node has been drained and terminated."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class DeleteNode:
    """Ask for a Node's deletion; its finalizer keeps it until it has been drained and terminated."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class EvictPod:
    """Ask the Eviction API to let a pod go; it refuses (429) while a PodDisruptionBudget forbids it."""

    key: str
    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a pod with this many seconds of grace, past all PodDisruptionBudgets; grace is never made longer."""

    key: str
    uid: str
    grace_seconds: int


@dataclass(frozen=True, slots=True)
class TerminateInstance:
    """Ask the provider to end a NodeClaim's machine, and write what it says into the condition InstanceTerminating.

    The condition becomes True, with reason `Terminating` while the machine still exists and `Terminated` once the
    provider knows none (constants in `execution.conditions`). A cluster that finds out by itself that a machine is gone
    writes `Terminated` too.
    """

    claim: str
    uid: str


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Tell people, as a Kubernetes Event; the same event within two minutes is told once."""

    kind: Kind
    name: str
    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"


Action = (
    AddTaint
    | RemoveTaint
    | SetLabel
    | Annotate
    | AddFinalizer
    | RemoveFinalizer
    | SetClaimCondition
    | ClearClaimCondition
    | SetClaimNode
    | SetPodEventTime
    | CreateClaim
    | DeleteClaim
    | DeleteNode
    | EvictPod
    | DeletePod
    | TerminateInstance
    | RecordEvent
)
