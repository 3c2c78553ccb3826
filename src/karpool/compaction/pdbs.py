"""Whether PodDisruptionBudgets would let a pod go now."""

from karpool.cluster.pdb_index import PdbIndex
from karpool.compaction.reasons import CompactionReasonCode
from karpool.model.pod import Pod
from karpool.model.reasons import Reason


class EvictionBudgets(PdbIndex):
    """PodDisruptionBudgets, and what they say of a pod that should be evicted."""

    def refusal(self, pod: Pod) -> Reason | None:
        """Why an eviction of the pod would be refused now, if it would; pods that share a budget leave in turns."""
        if not pod.active:
            return None
        covering = self.matching(pod)
        if len(covering) > 1:
            names = ", ".join(pdb.key for pdb in covering)
            said = f"{len(covering)} PodDisruptionBudgets cover it ({names}), and Kubernetes evicts no such pod"
            return Reason(CompactionReasonCode.MULTIPLE_POD_DISRUPTION_BUDGETS, said, f"Pod {pod.key}")
        for pdb in covering:
            if pdb.status.disruptions_allowed <= 0 and not pdb.lets_go_unready(pod):
                healthy, needed = pdb.status.current_healthy, pdb.status.desired_healthy
                said = f"PodDisruptionBudget {pdb.key} allows no disruption now: {healthy} healthy, {needed} needed"
                return Reason(CompactionReasonCode.POD_DISRUPTION_BUDGET, said, f"Pod {pod.key}")
        return None
