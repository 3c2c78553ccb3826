"""Which PodDisruptionBudgets cover a pod, and whether they let it go.

Pods are tested one by one: a budget that allows one disruption blocks nobody. Pods that share it leave in waves.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from karpool.cluster.pdb_index import PdbIndex
from karpool.disruption.candidates.pods import disruptable, evictable
from karpool.disruption.reasons import ReasonCode
from karpool.model.pod import Pod
from karpool.model.reasons import Reason
from karpool.model.workloads import BudgetStatus, PodDisruptionBudget


@dataclass(frozen=True, slots=True)
class Waves:
    """Pods of one command that share a PodDisruptionBudget, and in how many goes they leave; None: never."""

    pods: int
    allowed: int
    waves: int | None


class PdbLimits(PdbIndex):
    """PodDisruptionBudgets, and what they say of pods that should move."""

    def eviction_blocked(self, pod: Pod, now: datetime) -> Reason | None:
        """Why an eviction of the pod would be refused now, if it would; a status that lags behind is not trusted."""
        if self.unreadable and evictable(pod, now) and (reason := self.unreadable_over(pod)) is not None:
            return reason
        covering = self._tested(pod, now)
        if len(covering) > 1:
            return _several(pod, covering)
        for pdb in covering:
            if pdb.lets_go_unready(pod):
                continue
            if pdb.status.disruptions_allowed <= 0:
                return Reason(ReasonCode.POD_DISRUPTION_BUDGET, _allows_nothing(pdb), f"Pod {pod.key}")
            if pdb.fully_blocking:
                return _never_allows(pod, pdb)
        return None

    def fully_blocked(self, pod: Pod, now: datetime) -> Reason | None:
        """Why an eviction of the pod would always be refused, whatever the state of its neighbours, if it would."""
        if self.unreadable and evictable(pod, now) and (reason := self.unreadable_over(pod)) is not None:
            return reason
        covering = self._tested(pod, now)
        if len(covering) > 1:
            return _several(pod, covering)
        for pdb in covering:
            if not pdb.lets_go_unready(pod) and pdb.fully_blocking:
                return _never_allows(pod, pdb)
        return None

    def names_covering(self, pod: Pod) -> tuple[str, ...]:
        """The keys of the budgets that cover any pod with the labels of this one, which their rules alone tell."""
        lost = tuple(pdb.key for pdb in self.unreadable if self.unreadable_over(pod) is not None)
        return lost + tuple(pdb.key for pdb in self.matching(pod))

    def let_all_go(self, covering: tuple[str, ...]) -> bool:
        """Whether budgets with these keys let go any pod that they cover now."""
        if len(covering) != 1:
            return not covering
        pdb = self.readable(covering[0])
        return pdb is not None and pdb.status.disruptions_allowed > 0 and not pdb.fully_blocking

    def waves(self, pods: Iterable[Pod], now: datetime) -> dict[str, Waves]:
        """In how many goes pods that leave together get past each budget that covers them, by the budget's key."""
        sharing: Counter[str] = Counter()
        allowed: dict[str, int] = {}
        for pod in pods:
            for pdb in self._tested(pod, now):
                if not pdb.lets_go_unready(pod):
                    sharing[pdb.key] += 1
                    allowed[pdb.key] = max(0, pdb.status.disruptions_allowed)
        return {
            key: Waves(count, allowed[key], -(-count // allowed[key]) if allowed[key] else None)
            for key, count in sorted(sharing.items())
        }

    def _tested(self, pod: Pod, now: datetime) -> list[PodDisruptionBudget]:
        covering = self.matching(pod)
        return covering if covering and evictable(pod, now) else []


def currently_reschedulable(pod: Pod, pdbs: PdbLimits, now: datetime) -> bool:
    """Whether the pod needs another place when its node goes, and nothing keeps it where it is."""
    return pod.reschedulable and disruptable(pod, now) and pdbs.fully_blocked(pod, now) is None


def _several(pod: Pod, covering: list[PodDisruptionBudget]) -> Reason:
    names = ", ".join(pdb.key for pdb in covering)
    message = f"{len(covering)} PodDisruptionBudgets cover it ({names}), and Kubernetes evicts no such pod"
    return Reason(ReasonCode.MULTIPLE_POD_DISRUPTION_BUDGETS, message, f"Pod {pod.key}")


def _never_allows(pod: Pod, pdb: PodDisruptionBudget) -> Reason:
    message = f"PodDisruptionBudget {pdb.key} is written so that it never allows a disruption"
    return Reason(ReasonCode.POD_DISRUPTION_BUDGET, message, f"Pod {pod.key}")


def _allows_nothing(pdb: PodDisruptionBudget) -> str:
    status = pdb.status
    if status == BudgetStatus():
        return f"PodDisruptionBudget {pdb.key} has no status yet, so it counts as allowing no disruption"
    return (
        f"PodDisruptionBudget {pdb.key} allows no disruption now: "
        f"{status.current_healthy} healthy, {status.desired_healthy} needed"
    )
