"""A title and a suggested action for every reason code of plans and of the compactor; sentences are the rules' own."""

from typing import Final, NamedTuple


class ReasonWords(NamedTuple):
    title: str
    action: str
    """What a person can do about it; where there is nothing to do it says so."""


_WAIT: Final = "Nothing to do: it passes by itself."
_REPAIR_NODE: Final = "Look at the conditions of the node and at its kubelet; Karpool goes on when the node is ready."
_FIX_LABELS: Final = (
    "Find out who removed the label from the node; `kubectl get node NAME --show-labels` shows what is left."
)
_PDB: Final = (
    "Add a replica, or let the PodDisruptionBudget allow one disruption; `karpool blockers` says what that is worth."
)
_MANIFEST: Final = "Run `karpool validate`; it names the object, the field and what to write."

REASON_WORDS: Final = {
    # Who may be disrupted
    "InCommand": ReasonWords("Part of a running command", _WAIT),
    "Unreadable": ReasonWords("Something about it cannot be read", _MANIFEST),
    "NotManaged": ReasonWords(
        "Nobody manages the node",
        "If a node group owns it, name the label of groups with `--pool-label`; else Karpool leaves it alone.",
    ),
    "ControlPlaneNode": ReasonWords("Control plane", "Nothing to do: such nodes are never disrupted."),
    "FargateNode": ReasonWords("Fargate node", "Nothing to do: it goes when its pod goes."),
    "VirtualNode": ReasonWords("Virtual node", "Nothing to do: there is no machine behind it."),
    "WindowsNode": ReasonWords("Windows node without a NodeClaim", "Nothing to do: such nodes are left alone."),
    "AutoModeNode": ReasonWords("EKS Auto Mode owns the node", "Nothing to do: Auto Mode consolidates it itself."),
    "AutopilotNode": ReasonWords("GKE Autopilot owns the node", "Nothing to do: Autopilot bills pods, not nodes."),
    "ScaleDownDisabled": ReasonWords(
        "The autoscaler may not remove it",
        "Remove the annotation `cluster-autoscaler.kubernetes.io/scale-down-disabled` if it is not needed any more.",
    ),
    "NoNode": ReasonWords(
        "A NodeClaim without a node yet", "Wait for the node; if it does not come, look at Karpenter's log."
    ),
    "NodeNotInitialized": ReasonWords(
        "Not fully up yet", "Wait; if it lasts, look for startup taints that nobody removes."
    ),
    "NodeNotRegistered": ReasonWords(
        "Has not joined the cluster", "Look at the instance's own log: network, role, bootstrap."
    ),
    "NodeRebooting": ReasonWords("Being rebooted", _WAIT),
    "NodeDeleting": ReasonWords(
        "Being deleted already", "Wait; if it lasts, look for pods that do not leave and for finalizers."
    ),
    "NodeNominated": ReasonWords("A pod is expected there", _WAIT),
    "NodeDoNotDisrupt": ReasonWords(
        "The node is marked do-not-disrupt", "Remove the annotation `karpenter.sh/do-not-disrupt` of the node."
    ),
    "MissingNodePoolLabel": ReasonWords("No label of a NodePool", _FIX_LABELS),
    "NodePoolNotFound": ReasonWords(
        "Its NodePool is gone", "Create the NodePool again, or drain the node and delete its NodeClaim."
    ),
    "NoInstanceTypes": ReasonWords(
        "No machine is known for its pool",
        "Check the pool's requirements and `--catalog`; `karpool lint` names the requirement.",
    ),
    "PodDoNotDisrupt": ReasonWords(
        "A pod is marked do-not-disrupt",
        "Give the annotation a duration, such as `4h`, or remove it; `karpool blockers` says what that is worth.",
    ),
    "PodDisruptionBudget": ReasonWords("A PodDisruptionBudget allows no eviction", _PDB),
    "MultiplePodDisruptionBudgets": ReasonWords(
        "Several PodDisruptionBudgets select one pod",
        "Let one of them select it: the eviction API refuses such a pod always.",
    ),
    "PodNotSafeToEvict": ReasonWords(
        "A pod is marked as not safe to evict",
        'Remove `cluster-autoscaler.kubernetes.io/safe-to-evict: "false"` if the pod may move.',
    ),
    "PodLocalStorage": ReasonWords(
        "A pod has local storage",
        'Mark the pod `cluster-autoscaler.kubernetes.io/safe-to-evict: "true"` if what it keeps there may be lost.',
    ),
    "PodNotReplicated": ReasonWords(
        "No controller would start the pod again", "Run it from a Deployment or a Job, or delete it."
    ),
    "SystemPod": ReasonWords(
        "A system pod that the autoscaler does not move",
        "Give the pod a PodDisruptionBudget: then the autoscaler moves it.",
    ),
    # What a method accepts
    "StaticPool": ReasonWords(
        "The pool keeps a fixed number of nodes", "Lower `spec.replicas` of the pool for fewer nodes."
    ),
    "NotEmpty": ReasonWords("Not empty", "Nothing to do: another method looks at nodes with pods."),
    "Empty": ReasonWords("Empty", "Nothing to do: it goes as soon as budgets allow."),
    "HoldsHeadroom": ReasonWords(
        "Keeps room for a CapacityBuffer", "Make the buffer smaller if the room is not needed."
    ),
    "ConsolidateAfterNever": ReasonWords(
        "consolidateAfter is Never", "Set `spec.disruption.consolidateAfter` of the pool to a duration."
    ),
    "ConsolidateAfterWindow": ReasonWords(
        "Not quiet for long enough", "Wait, or set a shorter `spec.disruption.consolidateAfter`."
    ),
    "GracePeriod": ReasonWords("In its grace period", "Wait, or set a shorter `consolidationGracePeriod`."),
    "GracePeriodInvalid": ReasonWords("The grace period cannot be read", _MANIFEST),
    "PolicyWhenEmpty": ReasonWords(
        "The pool gives up empty nodes only", "Set `consolidationPolicy: WhenEmptyOrUnderutilized` for the others."
    ),
    "PolicyUnknown": ReasonWords("Unknown consolidationPolicy", _MANIFEST),
    "UnknownInstanceType": ReasonWords(
        "Its type is in no catalogue", "Give its price with `--price TYPE=PRICE`, or a catalogue with `--catalog`."
    ),
    "MissingZone": ReasonWords("No label of its zone", _FIX_LABELS),
    "MissingCapacityType": ReasonWords("No label of its capacity type", _FIX_LABELS),
    "ScaleDownFirst": ReasonWords("A static pool has too many nodes", _WAIT),
    "NodeLimitReached": ReasonWords(
        "The pool's limit leaves no room for one more", "Raise `spec.limits` of the pool by one node."
    ),
    # Repair
    "Unhealthy": ReasonWords("Broken for longer than tolerated", "Nothing to do: it is replaced or rebooted."),
    "RepairTolerated": ReasonWords(
        "Broken, but not for long enough yet", "Wait, or set a shorter time in `--repair-policies`."
    ),
    "NodeDoNotRepair": ReasonWords(
        "The node is marked do-not-repair",
        "Remove the annotation `karpenter.sh/do-not-repair` when you are done with it.",
    ),
    "DrainBoundRequired": ReasonWords(
        "Nothing says when its pods must have left",
        "Set `terminationGracePeriod` in the repair policy or in the NodePool's template.",
    ),
    "TooManyUnhealthy": ReasonWords(
        "Too many nodes of the pool are broken", "Look for the common cause; replacing them would not help."
    ),
    # Drift
    "Drifted": ReasonWords("Drifted", "Nothing to do: it is replaced as budgets for `Drifted` allow."),
    "NodePoolDrifted": ReasonWords("The pool's template has changed", "Nothing to do: it is replaced."),
    "RequirementsDrifted": ReasonWords("The pool's requirements exclude it now", "Nothing to do: it is replaced."),
    "InstanceTypeNotFound": ReasonWords(
        "Nobody sells its type any more", "Nothing to do: it is replaced by another type."
    ),
    # Where pods would go
    "PodsWouldNotFit": ReasonWords(
        "A pod has no other place",
        "Change the rule or the request that refuses most nodes, or let a pool or group grow; `karpool blockers` says"
        " what that is worth.",
    ),
    "UninitializedDestination": ReasonWords("The new place is not up yet", _WAIT),
    "SchedulerScatters": ReasonWords(
        "kube-scheduler would place the pods elsewhere",
        "Let kube-scheduler pack (`MostAllocated`), and say so with `--scheduler`.",
    ),
    "NeedsSeveralNodes": ReasonWords(
        "Needs several new nodes that cost no less",
        "Use `--search global` if `prefix` is set; else nothing is to be saved.",
    ),
    "NoGroup": ReasonWords(
        "In no set that something cheaper replaces", "Nothing to do, or search longer with `--effort 3`."
    ),
    "NoReadyNodePool": ReasonWords(
        "No NodePool can supply a node", "Look at the conditions of NodePools and node classes; `Ready` must be true."
    ),
    # Prices and policies
    "PriceUnknown": ReasonWords("Unknown price", "Give it with `--price TYPE=PRICE`, or `karpool catalog update`."),
    "NotCheaper": ReasonWords("Nothing is cheaper", "Nothing to do; more types in the pool's requirements may help."),
    "SameTypeReplacement": ReasonWords("One of them could simply be kept", "Nothing to do."),
    "MinValuesBroken": ReasonWords(
        "minValues leaves no cheaper choice", "Allow more types, or lower `minValues` of the pool."
    ),
    "SpotToSpotDisabled": ReasonWords(
        "Spot for spot is off", "Set `--feature-gates SpotToSpotConsolidation=true` if interruptions are no trouble."
    ),
    "SpotToSpotTooFewTypes": ReasonWords(
        "Too few cheaper spot types", "Allow more types in the pool; with few of them interruptions grow."
    ),
    "BalancedScoreTooLow": ReasonWords(
        "Saves too little for what it disrupts", "Raise `karpool.sh/balanced-k`, or use `WhenEmptyOrUnderutilized`."
    ),
    "BalancedKInvalid": ReasonWords("`karpool.sh/balanced-k` cannot be read", _MANIFEST),
    "SavingsBelowMinimum": ReasonWords(
        "Saves less than the pool asks for", "Lower `karpool.sh/minimum-savings` of the pool."
    ),
    "MinimumSavingsInvalid": ReasonWords("`karpool.sh/minimum-savings` cannot be read", _MANIFEST),
    "EvictionsCostMore": ReasonWords(
        "Saves less than its evictions cost", "Lower `--eviction-price` if moves cost you less."
    ),
    # Budgets
    "BudgetExhausted": ReasonWords(
        "The budget allows no more nodes now",
        "`karpool budgets` says when it does, and which entry binds; a larger one lets more nodes go at once.",
    ),
    "BudgetInvalid": ReasonWords("A budget cannot be read", _MANIFEST),
    "GroupAtMinimum": ReasonWords(
        "The node group is at its minimum", "Lower the minimum of the group, or tell it with `--groups`."
    ),
    # Validation
    "CandidateChanged": ReasonWords("Has changed since it was chosen", _WAIT),
    "ReplacementChanged": ReasonWords("The replacement is not what was planned", _WAIT),
    "NotThisStep": ReasonWords("Goes in a later step", _WAIT),
    # Brakes
    "NotOptedIn": ReasonWords("The pool is not opted in", "Give its NodePool the annotation `karpool.sh/budgets`."),
    "Paused": ReasonWords(
        "Paused", "Remove the annotation `karpool.sh/paused`, or the ConfigMap `karpool-pause`, when the time has come."
    ),
    "CoolingDown": ReasonWords(
        "Cooling down", "Wait; the sentence says until when. Failed launches have their own Events."
    ),
    "CommandFailed": ReasonWords("Its last command failed", "Look for `command rolled back` in the log; it says why."),
    "CommandDropped": ReasonWords("Its last command was dropped", _WAIT),
    "NobodyAnswers": ReasonWords(
        "Nobody works on NodeClaims", "Look at Karpenter: whether it runs, and whether one of its replicas leads."
    ),
    "ClusterUnhealthy": ReasonWords("Too many nodes are not ready", _REPAIR_NODE),
    "RateReached": ReasonWords(
        "As much as an hour allows has gone", "Wait, or raise `--max-nodes-per-hour` or `--max-evictions-per-hour`."
    ),
    "RateInvalid": ReasonWords(
        "The record of rates cannot be read", "The sentence names the annotation and what to write."
    ),
    "HarmDone": ReasonWords(
        "Moved pods do not run", "Look at the pods that the log names first; it lets go when they run."
    ),
    "HarmInvalid": ReasonWords(
        "The record of harm cannot be read", "The sentence names the annotation and what to write."
    ),
    "TimeInDoubt": ReasonWords("API servers disagree on the time", "Look at the clocks of the API servers."),
    "WatchInDoubt": ReasonWords("A watch is silent", "Look at the API server; Karpool asks again by itself."),
    "DoNotDisruptIgnored": ReasonWords(
        "A do-not-disrupt that protects nobody", "Write `true` or a duration; any other value means nothing."
    ),
    # The compactor
    "NoPool": ReasonWords("No label of a node pool", "Look at the labels of the node; the compactor needs its pool's."),
    "PoolNotEnabled": ReasonWords("Its pool is not enabled", "Set `enabled: true` for the pool in the configuration."),
    "TooFewUnderutilizedNodes": ReasonWords(
        "Too few nodes are under-used", "Wait, or lower `scaleDownRequiredUnderutilizedNodeCount`."
    ),
    "TooManyScaleDowns": ReasonWords("Another scale-down is running", "Wait, or raise `maxConcurrentScaleDowns`."),
    "OutsideWindow": ReasonWords("Outside its windows", "Wait, or change `scaleDownWindows`."),
    "ScaleDownInProgress": ReasonWords("Being drained or removed", _WAIT),
    "NodeCordoned": ReasonWords(
        "Cordoned by somebody else", "Uncordon it when its owner is done: `kubectl uncordon NAME`."
    ),
    "NodeNotReady": ReasonWords("Not ready", _REPAIR_NODE),
    "NodeTooYoung": ReasonWords("Too young", "Wait, or lower `MINIMUM_NODE_AGE_SECONDS`."),
    "SizeUnknown": ReasonWords("It does not say how large it is", _REPAIR_NODE),
    "CPUOverLimit": ReasonWords("Enough CPU is requested", "Nothing to do, or raise `scaleDownCPURequestRatioLimit`."),
    "MemoryOverLimit": ReasonWords(
        "Enough memory is requested", "Nothing to do, or raise `scaleDownMemoryRequestRatioLimit`."
    ),
    "MarkedTooShort": ReasonWords(
        "Not marked for long enough", "Wait, or lower `NEEDED_MARKED_TIME_FOR_REMOVAL_SECONDS`."
    ),
    "GivenUpRecently": ReasonWords("Given up a short time ago", "Wait; the log says why it was given up."),
    "AnotherNodeFirst": ReasonWords("Another node was chosen", _WAIT),
    "TakesPods": ReasonWords("It takes the pods of another node", _WAIT),
    "FactsChanged": ReasonWords("Has changed since it was chosen", _WAIT),
    "FactsUnknown": ReasonWords("Could not be read again", "Look at the API server; it is tried again."),
    "Uncordoned": ReasonWords("Somebody has uncordoned it", "Nothing to do: that is respected."),
    "PoolFilledUp": ReasonWords("Its pool has filled up", "Nothing to do: the node is needed."),
    "DrainStalled": ReasonWords("Pods do not leave", "Look for PodDisruptionBudgets and finalizers of its pods."),
    "NotRemoved": ReasonWords(
        "The autoscaler does not remove it", "Look at `cluster-autoscaler-status`; its own threshold must be met, too."
    ),
}
