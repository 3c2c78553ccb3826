"""The closed set of changes that may be asked of a cluster; each is small and repeatable.

Rules for whoever carries them out:

* If the object is gone, or has another uid than the action names, the action is done: nothing happens.
* An action that is carried out twice has the effect of one.
* The actions of `start_command` run in order, and the first failure ends them. Those of one `advance` or `lifecycle`
  are independent: if one fails, the others go on.
* A process may stop between any two actions. No action returns a result; the next pass reads it from the objects. A
  successful eviction is a terminating pod; a refused one is asked for again.
"""

from datetime import datetime
from typing import Literal

import msgspec

from karpool.disruption.brakes.ledger import LedgerEntry
from karpool.model.nodepool import NodeClaim
from karpool.model.scheduling import Taint

Kind = Literal["ConfigMap", "Node", "NodeClaim", "NodePool", "Pod"]


class AddTaint(msgspec.Struct, frozen=True):
    """Add a taint to a node, unless it has one of the same key and effect."""

    node: str
    taint: Taint


class RemoveTaint(msgspec.Struct, frozen=True):
    """Remove the taint with this key and effect from a node."""

    node: str
    taint: Taint


class SetLabel(msgspec.Struct, frozen=True):
    """Set a label of an object; None removes it."""

    kind: Kind
    name: str
    key: str
    value: str | None


class Annotate(msgspec.Struct, frozen=True):
    """Set an annotation of an object; None removes it."""

    kind: Kind
    name: str
    key: str
    value: str | None


class AddFinalizer(msgspec.Struct, frozen=True):
    """Add a finalizer, which keeps a deleted object in the API until it is removed."""

    kind: Kind
    name: str
    finalizer: str


class RemoveFinalizer(msgspec.Struct, frozen=True):
    """Remove a finalizer; a deleted object disappears with its last one."""

    kind: Kind
    name: str
    finalizer: str


class SetClaimCondition(msgspec.Struct, frozen=True):
    """Write a condition of a NodeClaim; its transition time changes only with its status."""

    claim: str
    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""


class ClearClaimCondition(msgspec.Struct, frozen=True):
    claim: str
    type: str


class SetClaimNode(msgspec.Struct, frozen=True):
    claim: str
    node: str


class SetNodeOwner(msgspec.Struct, frozen=True):
    """Make a NodeClaim an owner of its Node, so that the Node goes with it."""

    node: str
    claim: str
    uid: str


class SetPodEventTime(msgspec.Struct, frozen=True):
    claim: str
    time: datetime


class NoteDisruption(msgspec.Struct, frozen=True):
    """Write what a command disrupts into the ledger of a NodePool, in place of what is there; None takes it out."""

    pool: str
    command: str
    entry: LedgerEntry | None


class CreateClaim(msgspec.Struct, frozen=True):
    """Create a NodeClaim, unless one of that name exists; a provider launches its instance."""

    claim: NodeClaim


class DeleteClaim(msgspec.Struct, frozen=True):
    """Delete a NodeClaim; its finalizer keeps it until the node is drained and terminated."""

    name: str
    uid: str


class DeleteNode(msgspec.Struct, frozen=True):
    """Delete a Node; its finalizer keeps it until it is drained and terminated."""

    name: str
    uid: str


class EvictPod(msgspec.Struct, frozen=True):
    """Evict a pod through the Eviction API, which refuses (429) while a PodDisruptionBudget forbids it."""

    key: str
    uid: str
    node: str


class DeletePod(msgspec.Struct, frozen=True):
    """Delete a pod regardless of PodDisruptionBudgets; None leaves it its own grace period, which never gets longer."""

    key: str
    uid: str
    node: str
    grace_seconds: int | None = None


class SetDeletionCost(msgspec.Struct, frozen=True):
    """Give a pod a deletion cost, or remove the one that Karpool gave it (None); one of somebody else stays.

    It is written once, and not in time for anything: a pod that changes or goes meanwhile gets none.
    """

    key: str
    uid: str
    node: str
    cost: int | None


class TerminateInstance(msgspec.Struct, frozen=True):
    """Ask the provider to terminate a NodeClaim's instance, and write the condition InstanceTerminating.

    The condition becomes True with reason `Terminating` while the instance exists, and `Terminated` when the provider
    no longer knows it. An instance that disappeared by itself gets `Terminated` too.
    """

    claim: str
    uid: str


class RebootInstance(msgspec.Struct, frozen=True):
    """Ask the provider to reboot a NodeClaim's instance; `operation` is the same each time that it is asked for.

    When the provider has taken it on, the claim gets the annotation `karpool.sh/reboot-issued` with the time, and its
    condition Rebooting the reason `RebootIssued`. If it never will, the claim gets `karpool.sh/reboot-refused`.
    """

    claim: str
    uid: str
    operation: str


class RecordEvent(msgspec.Struct, frozen=True):
    """Record a Kubernetes Event; the same event within two minutes is recorded once."""

    kind: Kind
    name: str
    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"


TaintEdit = AddTaint | RemoveTaint
FinalizerEdit = AddFinalizer | RemoveFinalizer
ConditionEdit = SetClaimCondition | ClearClaimCondition
MetadataEdit = FinalizerEdit | SetLabel | Annotate | SetNodeOwner
Edit = TaintEdit | MetadataEdit | ConditionEdit | SetClaimNode | SetPodEventTime | NoteDisruption
"""Changes of an object in place; several become one patch."""
Action = (
    Edit
    | CreateClaim
    | DeleteClaim
    | DeleteNode
    | EvictPod
    | DeletePod
    | SetDeletionCost
    | TerminateInstance
    | RebootInstance
    | RecordEvent
)
