"""The code of every reason for which the compactor does not drain a node, or gives up a drain."""

from enum import StrEnum


class CompactionReasonCode(StrEnum):
    """Stable names for programs; the rule that refuses makes the sentence for people."""

    # Its pool
    NO_POOL = "NoPool"
    POOL_NOT_ENABLED = "PoolNotEnabled"
    TOO_FEW_UNDERUTILIZED = "TooFewUnderutilizedNodes"
    TOO_MANY_IN_PROGRESS = "TooManyScaleDowns"
    OUTSIDE_WINDOW = "OutsideWindow"
    GROUP_AT_MINIMUM = "GroupAtMinimum"

    # Brakes, which stop everything
    PAUSED = "Paused"
    CLUSTER_UNHEALTHY = "ClusterUnhealthy"

    # Rates, which let nothing new begin
    RATE_REACHED = "RateReached"
    RATE_INVALID = "RateInvalid"

    # Its own state
    UNREADABLE = "Unreadable"
    IN_PROGRESS = "ScaleDownInProgress"
    NODE_DELETING = "NodeDeleting"
    NODE_CORDONED = "NodeCordoned"
    NODE_NOT_READY = "NodeNotReady"
    NODE_TOO_YOUNG = "NodeTooYoung"
    SIZE_UNKNOWN = "SizeUnknown"
    CPU_OVER_LIMIT = "CPUOverLimit"
    MEMORY_OVER_LIMIT = "MemoryOverLimit"
    SCALE_DOWN_DISABLED = "ScaleDownDisabled"
    NODE_DO_NOT_DISRUPT = "NodeDoNotDisrupt"
    MARKED_TOO_SHORT = "MarkedTooShort"
    GIVEN_UP_RECENTLY = "GivenUpRecently"

    # Its pods
    POD_NOT_SAFE_TO_EVICT = "PodNotSafeToEvict"
    POD_DO_NOT_DISRUPT = "PodDoNotDisrupt"
    POD_LOCAL_STORAGE = "PodLocalStorage"
    POD_NOT_REPLICATED = "PodNotReplicated"
    SYSTEM_POD = "SystemPod"
    POD_DISRUPTION_BUDGET = "PodDisruptionBudget"
    MULTIPLE_POD_DISRUPTION_BUDGETS = "MultiplePodDisruptionBudgets"
    PODS_WOULD_NOT_FIT = "PodsWouldNotFit"

    # The choice
    ANOTHER_NODE_FIRST = "AnotherNodeFirst"
    TAKES_PODS = "TakesPods"

    # The last look before a drain
    FACTS_CHANGED = "FactsChanged"
    FACTS_UNKNOWN = "FactsUnknown"

    # Why a scale-down was given up
    UNCORDONED = "Uncordoned"
    POOL_FILLED_UP = "PoolFilledUp"
    DRAIN_STALLED = "DrainStalled"
    NOT_REMOVED = "NotRemoved"
