"""The code of every reason for which a node stays, a pod blocks or a command is refused."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Final


class ReasonCode(StrEnum):
    """Stable names for programs; the sentence for people is made by the rule that refuses."""

    # Candidates
    IN_COMMAND = "InCommand"
    UNREADABLE = "Unreadable"
    NOT_MANAGED = "NotManaged"
    CONTROL_PLANE_NODE = "ControlPlaneNode"
    FARGATE_NODE = "FargateNode"
    VIRTUAL_NODE = "VirtualNode"
    WINDOWS_NODE = "WindowsNode"
    AUTO_MODE_NODE = "AutoModeNode"
    AUTOPILOT_NODE = "AutopilotNode"
    SCALE_DOWN_DISABLED = "ScaleDownDisabled"
    NO_NODE = "NoNode"
    NODE_NOT_INITIALIZED = "NodeNotInitialized"
    NODE_NOT_REGISTERED = "NodeNotRegistered"
    NODE_REBOOTING = "NodeRebooting"
    NODE_DELETING = "NodeDeleting"
    NODE_NOMINATED = "NodeNominated"
    NODE_DO_NOT_DISRUPT = "NodeDoNotDisrupt"
    MISSING_NODE_POOL_LABEL = "MissingNodePoolLabel"
    NODE_POOL_NOT_FOUND = "NodePoolNotFound"
    NO_INSTANCE_TYPES = "NoInstanceTypes"
    POD_DO_NOT_DISRUPT = "PodDoNotDisrupt"
    POD_DISRUPTION_BUDGET = "PodDisruptionBudget"
    MULTIPLE_POD_DISRUPTION_BUDGETS = "MultiplePodDisruptionBudgets"
    POD_NOT_SAFE_TO_EVICT = "PodNotSafeToEvict"
    POD_LOCAL_STORAGE = "PodLocalStorage"
    POD_NOT_REPLICATED = "PodNotReplicated"
    SYSTEM_POD = "SystemPod"

    # What a method accepts
    STATIC_POOL = "StaticPool"
    NOT_EMPTY = "NotEmpty"
    EMPTY = "Empty"
    HOLDS_HEADROOM = "HoldsHeadroom"
    CONSOLIDATE_AFTER_NEVER = "ConsolidateAfterNever"
    CONSOLIDATE_AFTER_WINDOW = "ConsolidateAfterWindow"
    GRACE_PERIOD = "GracePeriod"
    GRACE_PERIOD_INVALID = "GracePeriodInvalid"
    POLICY_WHEN_EMPTY = "PolicyWhenEmpty"
    POLICY_UNKNOWN = "PolicyUnknown"
    UNKNOWN_INSTANCE_TYPE = "UnknownInstanceType"
    MISSING_ZONE = "MissingZone"
    MISSING_CAPACITY_TYPE = "MissingCapacityType"
    SCALE_DOWN_FIRST = "ScaleDownFirst"
    NODE_LIMIT_REACHED = "NodeLimitReached"

    # What repair accepts
    UNHEALTHY = "Unhealthy"
    REPAIR_TOLERATED = "RepairTolerated"
    NODE_DO_NOT_REPAIR = "NodeDoNotRepair"
    DRAIN_BOUND_REQUIRED = "DrainBoundRequired"
    TOO_MANY_UNHEALTHY = "TooManyUnhealthy"

    # Why a node is drifted
    DRIFTED = "Drifted"
    NODE_POOL_DRIFTED = "NodePoolDrifted"
    REQUIREMENTS_DRIFTED = "RequirementsDrifted"
    INSTANCE_TYPE_NOT_FOUND = "InstanceTypeNotFound"

    # Where its pods would go
    PODS_WOULD_NOT_FIT = "PodsWouldNotFit"
    UNINITIALIZED_DESTINATION = "UninitializedDestination"
    SCHEDULER_SCATTERS = "SchedulerScatters"
    NEEDS_SEVERAL_NODES = "NeedsSeveralNodes"
    NO_GROUP = "NoGroup"
    NO_READY_NODE_POOL = "NoReadyNodePool"

    # Prices and policies
    PRICE_UNKNOWN = "PriceUnknown"
    NOT_CHEAPER = "NotCheaper"
    SAME_TYPE_REPLACEMENT = "SameTypeReplacement"
    MIN_VALUES_BROKEN = "MinValuesBroken"
    SPOT_TO_SPOT_DISABLED = "SpotToSpotDisabled"
    SPOT_TO_SPOT_TOO_FEW_TYPES = "SpotToSpotTooFewTypes"
    BALANCED_SCORE_TOO_LOW = "BalancedScoreTooLow"
    BALANCED_K_INVALID = "BalancedKInvalid"
    SAVINGS_BELOW_MINIMUM = "SavingsBelowMinimum"
    MINIMUM_SAVINGS_INVALID = "MinimumSavingsInvalid"
    EVICTIONS_COST_MORE = "EvictionsCostMore"

    # Budgets
    BUDGET_EXHAUSTED = "BudgetExhausted"
    BUDGET_INVALID = "BudgetInvalid"
    GROUP_AT_MINIMUM = "GroupAtMinimum"

    # Validation
    CANDIDATE_CHANGED = "CandidateChanged"
    REPLACEMENT_CHANGED = "ReplacementChanged"
    NOT_THIS_STEP = "NotThisStep"

    # Brakes, which stop a pool or everything
    NOT_OPTED_IN = "NotOptedIn"
    PAUSED = "Paused"
    COOLING_DOWN = "CoolingDown"
    COMMAND_FAILED = "CommandFailed"
    COMMAND_DROPPED = "CommandDropped"
    NOBODY_ANSWERS = "NobodyAnswers"
    CLUSTER_UNHEALTHY = "ClusterUnhealthy"
    RATE_REACHED = "RateReached"
    RATE_INVALID = "RateInvalid"
    HARM_DONE = "HarmDone"
    HARM_INVALID = "HarmInvalid"
    TIME_IN_DOUBT = "TimeInDoubt"
    WATCH_IN_DOUBT = "WatchInDoubt"

    # Warnings, which refuse nothing
    DO_NOT_DISRUPT_IGNORED = "DoNotDisruptIgnored"


LEFT_ALONE: Final = frozenset(
    {
        ReasonCode.CONTROL_PLANE_NODE,
        ReasonCode.FARGATE_NODE,
        ReasonCode.VIRTUAL_NODE,
        ReasonCode.WINDOWS_NODE,
        ReasonCode.AUTOPILOT_NODE,
    }
)
"""Why a node stays for what it is, whatever else holds."""


def clock(moment: datetime, now: datetime) -> str:
    """A moment as a person reads it: `14:30 UTC` today, with its date on other days."""
    there = moment.astimezone(UTC)
    time = f"{there:%H:%M:%S}" if there.second else f"{there:%H:%M}"
    return f"{time} UTC" if there.date() == now.astimezone(UTC).date() else f"{there:%Y-%m-%d} {time} UTC"
