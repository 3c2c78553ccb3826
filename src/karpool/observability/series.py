"""Every series that Karpool measures, declared once: its name without the prefix, what it says, and its labels.

Names and labels are those of the ecosystem where it has them, so that dashboards need only another prefix.
"""

from typing import Final, NamedTuple

PREFIX: Final = "karpool"
POOL: Final = "nodepool"


class Series(NamedTuple):
    """What a series says, and by what it is broken down."""

    help: str
    labels: tuple[str, ...] = ()


COUNTERS: Final = {
    "nodeclaims_created_total": Series("NodeClaims created, by why they were.", (POOL, "reason")),
    "nodeclaims_terminated_total": Series("NodeClaims that are gone, with their machines.", (POOL,)),
    "nodeclaims_disrupted_total": Series(
        "NodeClaims told to go: for a command's reason, `expired`, or `deleted` otherwise.",
        (POOL, "reason", "capacity_type"),
    ),
    "nodes_created_total": Series("Nodes that registered.", (POOL,)),
    "nodes_terminated_total": Series("Nodes that are gone.", (POOL,)),
    "nodes_drained_total": Series("Nodes to go whose last pod has left.", (POOL,)),
    "pods_eviction_requests_total": Series(
        "Evictions asked for, by the API server's answer; code is 0 without one.", ("code",)
    ),
    "voluntary_disruption_decisions_total": Series("Commands begun.", ("decision", "reason", "consolidation_type")),
    "voluntary_disruption_failed_validations_total": Series(
        "Commands dropped because a second look found them wrong.", ("consolidation_type",)
    ),
    "voluntary_disruption_queue_failures_total": Series(
        "Commands begun and taken back.", ("decision", "reason", "consolidation_type")
    ),
    "saved_dollars_per_hour_total": Series("What all commands begun so far save an hour; dearer ones count as 0."),
    "api_requests_total": Series(
        "Requests to the API server; code is 0 without an answer.", ("verb", "resource", "code")
    ),
    "watch_restarts_total": Series("Watches that were cut or refused, and begun again.", ("resource",)),
    "events_total": Series("Kubernetes Events: sent, repeated, dropped (too many), failed.", ("result",)),
    "leader_transitions_total": Series("How often this process began or ceased to lead."),
    "journal_failures_total": Series("Lines of the decision journal that could not be written."),
}

_INSTANT: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
_LONG: Final = (1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 450, 600, 900, 1800, 3600)
_AGES: Final = (60, 300, 900, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 432000, 864000, 2592000)

HISTOGRAMS: Final = {
    "decision_seconds": (Series("How long each pass over all nodes took, fruitful or not."), _INSTANT),
    "scheduler_scheduling_duration_seconds": (Series("How long finding nodes for pending pods took."), _INSTANT),
    "api_request_duration_seconds": (
        Series("How long requests waited for their answer.", ("verb", "resource")),
        _INSTANT,
    ),
    "nodeclaims_termination_duration_seconds": (Series("From a NodeClaim's deletion to its end.", (POOL,)), _LONG),
    "nodes_termination_duration_seconds": (Series("From a Node's deletion to its end.", (POOL,)), _LONG),
    "nodes_lifetime_duration_seconds": (Series("How old Nodes became.", (POOL,)), _AGES),
    "pods_bound_duration_seconds": (Series("From a pod's creation to its binding."), _LONG),
    "pods_startup_duration_seconds": (Series("From a pod's creation to its start."), _LONG),
}

GAUGES: Final = {
    "nodepools_limit": Series("What the pool may have.", (POOL, "resource_type")),
    "nodepools_usage": Series("What the pool has.", (POOL, "resource_type")),
    "nodepools_allowed_disruptions": Series("How many more nodes may be disrupted now.", (POOL, "reason")),
    "nodes_allocatable": Series("What the pool's nodes have for pods.", (POOL, "resource_type")),
    "nodes_total_pod_requests": Series(
        "What pods request of the pool's nodes, daemons' included.", (POOL, "resource_type")
    ),
    "nodes_count": Series("Nodes of the pool.", (POOL,)),
    "cluster_cost_dollars_per_hour": Series(
        "What the pool's nodes cost; those of unknown price are left out.", (POOL,)
    ),
    "cluster_unpriced_nodes": Series("Nodes of the pool whose price nobody knows.", (POOL,)),
    "voluntary_disruption_eligible_nodes": Series(
        "Nodes that could be disrupted, budgets aside, in the last pass that was explained.", ("reason",)
    ),
    "rejections": Series("Nodes by the reasons that kept them, in the last pass that was explained.", ("code",)),
    "scheduler_unschedulable_pods_count": Series("Pending pods that no node can take."),
    "cluster_state_node_count": Series("Nodes that the cache holds, of any pool or none."),
    "cluster_state_synced": Series("1: everything that decisions need has been read at least once."),
    "leading": Series("1: this process holds the lease."),
}
