"""Who pays for a cluster: the shares of its nodes, added up by namespace, workload or label."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from karpool.disruption.context import DecisionContext
from karpool.model.owners import workload_of
from karpool.model.pod import Pod
from karpool.model.workloads import Namespace
from karpool.report.costs.cost_shares import NodeShares, node_shares
from karpool.report.costs.costs_document import CostGroupPart, CostPart, CostsPart
from karpool.wire.problems import suggestion

HEADROOM: Final = "room of CapacityBuffers"
SYSTEM: Final = "DaemonSets and static pods"
IDLE: Final = "idle"
TOTAL: Final = "total"
_LABEL: Final = "label="


class GroupingError(ValueError):
    """A text that is no way to group pods."""


class Grouping(NamedTuple):
    """What pods are grouped by; `label` is the key of a label."""

    by: Literal["namespace", "workload", "label"]
    label: str = ""

    def __str__(self) -> str:
        return self.label or self.by

    def name_of(self, pod: Pod, namespaces: Mapping[str, Namespace]) -> str:
        """The group of a pod; a label that it lacks is that of its namespace, and empty if that lacks it, too."""
        if self.by == "namespace":
            return pod.metadata.namespace
        if self.by == "workload":
            return str(workload_of(pod))
        namespace = namespaces.get(pod.metadata.namespace)
        inherited = "" if namespace is None else namespace.metadata.labels.get(self.label, "")
        return pod.metadata.labels.get(self.label, inherited)


def read_grouping(text: str) -> Grouping:
    """`namespace`, `workload`, or `label=KEY`."""
    key = text.removeprefix(_LABEL)
    if text.startswith(_LABEL) and key and "=" not in key and not key.isspace():
        return Grouping("label", key)
    if text in ("namespace", "workload"):
        return Grouping("namespace" if text == "namespace" else "workload")
    meant = suggestion(text, ("namespace", "workload"))
    raise GroupingError(f"{text!r} is not namespace, workload, or label=KEY such as label=team{meant}")


@dataclass(slots=True)
class _Sum:
    pods: int = 0
    prices: list[float] = field(default_factory=list)
    unpriced: int = 0

    def add(self, price: float | None, pods: int = 0) -> None:
        self.pods += pods
        if price is None:
            self.unpriced += 1
        else:
            self.prices.append(price)

    def part(self) -> CostPart:
        known = bool(self.prices) or not self.unpriced
        return CostPart(
            pods=self.pods, price_per_hour=math.fsum(self.prices) if known else None, unpriced=self.unpriced
        )


class CostTally:
    """What a cluster costs whom at one moment."""

    def __init__(self, context: DecisionContext, grouping: Grouping) -> None:
        self.grouping = grouping
        self._namespaces = context.snapshot.pods.namespaces
        self._groups: dict[str, _Sum] = {}
        self._headroom, self._system, self._idle, self._total = _Sum(), _Sum(), _Sum(), _Sum()
        for shares in node_shares(context):
            self._add(shares)

    def _add(self, shares: NodeShares) -> None:
        self._system.add(shares.system)
        self._idle.add(shares.idle)
        self._total.add(shares.price, len(shares.pods))
        for pod, price in shares.pods:
            if pod.is_headroom:
                self._headroom.add(price, 1)
            else:
                self._groups.setdefault(self.grouping.name_of(pod, self._namespaces), _Sum()).add(price, 1)

    def compare(self, after: "CostTally") -> CostsPart:
        """Who pays before and after; both are grouped alike."""
        names = dict.fromkeys((*self._groups, *after._groups))
        groups = [
            CostGroupPart(
                name=name,
                before=self._groups.get(name, _Sum()).part(),
                after=after._groups.get(name, _Sum()).part(),
            )
            for name in names
        ]
        return CostsPart(
            by=self.grouping.by,
            label=self.grouping.label,
            groups=tuple(sorted(groups, key=_dearest_first)),
            headroom=_pair(HEADROOM, self._headroom, after._headroom),
            system=_pair(SYSTEM, self._system, after._system),
            idle=_pair(IDLE, self._idle, after._idle),
            total=_pair(TOTAL, self._total, after._total),
        )


def _pair(name: str, before: _Sum, after: _Sum) -> CostGroupPart:
    return CostGroupPart(name=name, before=before.part(), after=after.part())


def _dearest_first(group: CostGroupPart) -> tuple[float, float, str]:
    return -(group.before.price_per_hour or 0.0), -(group.after.price_per_hour or 0.0), group.name
