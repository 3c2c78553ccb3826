"""The document of who pays for a cluster, before a plan and after it."""

from typing import Literal

from karpool.report.document_part import DocumentPart


class CostPart(DocumentPart, frozen=True, kw_only=True):
    """Pods and what they cost; the price is that of what is known of it, None if nothing is.

    `unpriced` counts the pods on nodes of unknown price; of idle room, of the system and of the total such nodes.
    """

    pods: int
    price_per_hour: float | None
    unpriced: int = 0


class CostGroupPart(DocumentPart, frozen=True, kw_only=True):
    """Who pays: a namespace, a workload, or the value of a label; an empty name is that of pods without the label."""

    name: str
    before: CostPart
    after: CostPart


class CostsPart(DocumentPart, frozen=True, kw_only=True):
    """What a cluster costs whom; groups, headroom, system and idle together are the total.

    `headroom`: the room that CapacityBuffers keep. `system`: DaemonSets and static pods. `groups`: the dearest first.
    """

    by: Literal["namespace", "workload", "label"]
    label: str = ""
    groups: tuple[CostGroupPart, ...]
    headroom: CostGroupPart
    system: CostGroupPart
    idle: CostGroupPart
    total: CostGroupPart
