"""Whether PodDisruptionBudgets allow the eviction of a pod now."""

from karpool.cluster.pdb_index import PdbIndex
from karpool.compaction.reasons import CompactionReasonCode as Code
from karpool.model.pod import Pod
from karpool.model.reasons import Reason


class EvictionBudgets(PdbIndex):
    def refusal(self, pod: Pod) -> Reason | None:
        """Why an eviction of the pod would be refused now; pods that share a budget are evicted one after the other."""
        if not pod.active:
            return None
        lost = self.unreadable_over(pod)
        if lost is not None:
            return lost
        covering = self.matching(pod)
        if len(covering) > 1:
            names = ", ".join(pdb.key for pdb in covering)
            message = f"{len(covering)} PodDisruptionBudgets cover it ({names}), and Kubernetes evicts no such pod"
            return Reason(Code.MULTIPLE_POD_DISRUPTION_BUDGETS, message, f"Pod {pod.key}")
        for pdb in covering:
            if pdb.status.disruptions_allowed <= 0 and not pdb.lets_go_unready(pod):
                healthy, needed = pdb.status.current_healthy, pdb.status.desired_healthy
                message = f"PodDisruptionBudget {pdb.key} allows no disruption now: {healthy} healthy, {needed} needed"
                return Reason(Code.POD_DISRUPTION_BUDGET, message, f"Pod {pod.key}")
        return None
