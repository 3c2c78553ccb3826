"""What keeps nodes of groups: the rules of the autoscaler that removes them, and the least size of a group."""

from karpool.disruption.budgets import Allowance
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.disruption.reasons import ReasonCode
from karpool.model import autoscaler_rules as rules
from karpool.model.node_group import NodeGroup
from karpool.model.pod import Pod
from karpool.model.reasons import Reason


def autoscaler_block(pod: Pod, group: NodeGroup, pdbs: PdbLimits) -> Reason | None:
    """Why the autoscaler of a group would not remove a node for the sake of a pod, if it would not."""
    if pod.unreadable or not pod.active:
        return None
    if rules.unsafe_to_evict(pod):
        return _reason(ReasonCode.POD_NOT_SAFE_TO_EVICT, rules.UNSAFE_WORDS, pod)
    if pod.is_daemon or pod.is_mirror or rules.safe_to_evict(pod) or not pod.reschedulable or pod.is_headroom:
        return None
    if not rules.replicated(pod):
        return _reason(ReasonCode.POD_NOT_REPLICATED, rules.NOT_REPLICATED_WORDS, pod)
    local = rules.local_volume(pod) if group.local_storage_stays else None
    if local is not None:
        return _reason(ReasonCode.POD_LOCAL_STORAGE, rules.local_words(local), pod)
    if rules.kept_as_system_pod(pod, covered=bool(pdbs.matching(pod))):
        return _reason(ReasonCode.SYSTEM_POD, rules.SYSTEM_WORDS, pod)
    return None


def _reason(code: ReasonCode, message: str, pod: Pod) -> Reason:
    return Reason(code, message, f"Pod {pod.key}")


def group_allowance(group: NodeGroup, nodes: int, busy: int) -> Allowance:
    """How many nodes of a group may go at all: those above its minimum that are not on their way out already."""
    spare = max(0, nodes - group.least)
    known = f"its minimum is {group.minimum}" if group.minimum is not None else "its minimum is not known"
    message = f"group {group.name} has {nodes} node{'s' if nodes != 1 else ''}, and {known}"
    why = Reason(ReasonCode.GROUP_AT_MINIMUM, message, f"NodeGroup {group.name}")
    return Allowance(spare, max(0, spare - busy), why)
