"""What would have to be otherwise for a rule to let a node go, in words."""

from typing import Final

from karpool.disruption.reasons import ReasonCode
from karpool.model.autoscaler_rules import SAFE_TO_EVICT, SCALE_DOWN_DISABLED
from karpool.model.labels import BUDGETS
from karpool.model.reasons import Reason

_UNREADABLE: Final = "what {about} says of Karpool could be read"
_CLAIM: Final = "its NodeClaim were in the input"
_OTHERWISE: Final[dict[str, str]] = {
    ReasonCode.AUTO_MODE_NODE: _CLAIM,
    # Only a node that names its NodePool gets so far: what nobody is known to manage has no pool.
    ReasonCode.NOT_MANAGED: _CLAIM,
    ReasonCode.POD_DO_NOT_DISRUPT: "{about} were not marked do-not-disrupt",
    ReasonCode.NODE_DO_NOT_DISRUPT: "{about} were not marked do-not-disrupt",
    ReasonCode.NODE_DO_NOT_REPAIR: "{about} were not marked do-not-repair",
    ReasonCode.POD_DISRUPTION_BUDGET: "the PodDisruptionBudget let {about} go",
    ReasonCode.MULTIPLE_POD_DISRUPTION_BUDGETS: "the PodDisruptionBudget let {about} go",
    ReasonCode.CONSOLIDATE_AFTER_WINDOW: "its time of quiet had passed",
    ReasonCode.GRACE_PERIOD: "its time of quiet had passed",
    ReasonCode.BUDGET_EXHAUSTED: "{about} had a budget left",
    ReasonCode.BUDGET_INVALID: "{about} had a budget left",
    ReasonCode.PAUSED: "{about} were not paused",
    ReasonCode.NOT_OPTED_IN: f"{{about}} had the annotation {BUDGETS}",
    ReasonCode.RATE_REACHED: "rates let more go in an hour",
    ReasonCode.RATE_INVALID: _UNREADABLE,
    ReasonCode.HARM_INVALID: _UNREADABLE,
    ReasonCode.HARM_DONE: "all pods that commands moved ran",
    ReasonCode.CLUSTER_UNHEALTHY: "more nodes of the cluster were ready",
    ReasonCode.COOLING_DOWN: "{about} had cooled down",
    ReasonCode.COMMAND_FAILED: "{about} had cooled down",
    ReasonCode.EVICTIONS_COST_MORE: "evictions were priced lower (--eviction-price)",
    ReasonCode.GROUP_AT_MINIMUM: "the minimum of {about} were lower",
    ReasonCode.SCALE_DOWN_DISABLED: f"{{about}} did not have the annotation {SCALE_DOWN_DISABLED}",
    ReasonCode.POD_NOT_SAFE_TO_EVICT: f"{{about}} did not have {SAFE_TO_EVICT} false",
    ReasonCode.POD_LOCAL_STORAGE: f"{{about}} had {SAFE_TO_EVICT} true, or kept no data on the node",
    ReasonCode.POD_NOT_REPLICATED: "a controller such as a Deployment owned {about}",
    ReasonCode.SYSTEM_POD: f"a PodDisruptionBudget covered {{about}}, or it had {SAFE_TO_EVICT} true",
    ReasonCode.POLICY_WHEN_EMPTY: "{about} had another consolidationPolicy",
}
_OF_KIND: Final[dict[tuple[str, str], str]] = {
    (ReasonCode.PAUSED, "ConfigMap"): "{about} were not there",
    (ReasonCode.RATE_REACHED, "Namespace"): "{about} let more of its pods go in an hour",
}
"""By code and kind of the object that is to blame, where that makes a difference."""


def otherwise(rule: str, reason: Reason | None) -> str:
    """What would have to be so for a rule that has refused a node for a reason."""
    if reason is None:
        return f"this were so: {rule}"
    kind = reason.object.partition(" ")[0]
    template = _OF_KIND.get((reason.code, kind)) or _OTHERWISE.get(reason.code)
    return f"this were so: {rule}" if template is None else template.format(about=reason.object)
