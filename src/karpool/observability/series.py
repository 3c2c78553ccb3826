"""Every metric of `karpool run`, declared once: its name without the prefix, its help text and its labels.

Names and labels are those of Karpenter where it has them, so that its dashboards need only another prefix.
"""

from typing import Final, NamedTuple

PREFIX: Final = "karpool"
POOL: Final = "nodepool"


class Series(NamedTuple):
    help: str
    labels: tuple[str, ...] = ()


_DISRUPTED: Final = (POOL, "reason", "capacity_type", "consolidation_policy", "termination_mode")

COUNTERS: Final = {
    "nodeclaims_created_total": Series(
        "NodeClaims created, by reason, and whether minValues were relaxed for them.",
        (POOL, "reason", "min_values_relaxed"),
    ),
    "nodeclaims_terminated_total": Series(
        "NodeClaims removed after their instances were terminated.", (POOL, "capacity_type", "zone")
    ),
    "nodeclaims_disrupted_total": Series(
        "NodeClaims deleted: for the reason of a command, `expired`, or `deleted` by anybody else.", _DISRUPTED
    ),
    "nodeclaims_unhealthy_disrupted_total": Series(
        "NodeClaims deleted because a condition of their nodes was to be repaired.",
        ("condition", POOL, "capacity_type", "image_id", "termination_mode"),
    ),
    "pods_disruption_initiated_total": Series(
        "Pods that needed another place when their NodeClaim was deleted, with the labels of that.", _DISRUPTED
    ),
    "nodes_created_total": Series("Nodes that registered.", (POOL, "zone")),
    "nodes_terminated_total": Series("Nodes removed.", (POOL, "zone")),
    "nodes_drained_total": Series("Nodes under deletion whose last pod has left.", (POOL,)),
    "pods_eviction_requests_total": Series(
        "Eviction requests, by the status code of the response; 0 without a response.", ("code",)
    ),
    "voluntary_disruption_decisions_total": Series("Commands started.", ("decision", "reason", "consolidation_type")),
    "voluntary_disruption_decisions_by_nodepool_total": Series(
        "Commands started, for each pool that they take nodes from.",
        (POOL, "decision", "reason", "consolidation_type"),
    ),
    "consolidation_moves_total": Series(
        "Moves of consolidation that pools approved of, and those that Balanced pools rejected.",
        ("decision", POOL, "policy"),
    ),
    "voluntary_disruption_failed_validations_total": Series(
        "Commands dropped before they started: they were no longer valid, or could not be checked again.",
        ("consolidation_type",),
    ),
    "voluntary_disruption_queue_failures_total": Series(
        "Commands started and rolled back.", ("decision", "reason", "consolidation_type")
    ),
    "voluntary_disruption_terminate_first_decisions_total": Series(
        "Commands started whose nodes go before anything can replace them, by why.",
        (POOL, "reason", "terminate_first_reason"),
    ),
    "nodes_reboots_total": Series("Reboots that ended, by how.", ("result",)),
    "pod_deletion_cost_pod_annotation_writes_total": Series(
        "Deletion costs of pods, by what became of them.", ("result",)
    ),
    "saved_dollars_per_hour_total": Series(
        "Savings per hour of all commands whose nodes are gone; a command that costs more counts as 0."
    ),
    "cloudprovider_errors_total": Series(
        "Calls of the provider that failed, by the kind of error; `unknown` for any that is not foreseen.",
        ("method", "provider", "error"),
    ),
    "search_targets_total": Series("Targets of a global search that are not followed any more, by why.", ("reason",)),
    "api_requests_total": Series(
        "Requests to the API server, by the status code of the response; 0 without a response.",
        ("verb", "resource", "code"),
    ),
    "watch_restarts_total": Series("Watches that were cut or refused, and started again.", ("resource",)),
    "events_total": Series("Kubernetes Events: sent, repeated, dropped (too many) or failed.", ("result",)),
    "notifications_total": Series(
        "Notices for the webhook: delivered, dropped (too many) or failed (refused, or no answer).", ("result",)
    ),
    "leader_transitions_total": Series("How often this process started or stopped leading."),
    "unexpected_errors_total": Series(
        "Errors that nobody declared, of a provider or of Karpool, by where.", ("where",)
    ),
    "journal_failures_total": Series("Lines of the decision journal that could not be written."),
}

_INSTANT: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
_LONG: Final = (1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 450, 600, 900, 1800, 3600)
_SCORES: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 5.0, 10.0)
_AGES: Final = (60, 300, 900, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 432000, 864000, 2592000)

HISTOGRAMS: Final = {
    "decision_seconds": (Series("Duration of each decision pass over all nodes."), _INSTANT),
    "search_seconds": (Series("Duration of each global search, which runs beside the decisions."), _INSTANT),
    "scheduler_scheduling_duration_seconds": (Series("Duration of finding nodes for pending pods."), _INSTANT),
    "api_request_duration_seconds": (
        Series("Duration of requests until the response begins.", ("verb", "resource")),
        _INSTANT,
    ),
    "event_loop_delay_seconds": (
        Series("How late the event loop comes to a beat that is due four times a second: how long it is held up."),
        _INSTANT,
    ),
    "cloudprovider_duration_seconds": (Series("Duration of calls of the provider.", ("method", "provider")), _INSTANT),
    "consolidation_score": (
        Series(
            "How many times the share of disruption the share of money is that a move saves in a Balanced pool.",
            ("decision", POOL, "policy"),
        ),
        _SCORES,
    ),
    "nodeclaims_termination_duration_seconds": (Series("From a NodeClaim's deletion to its removal.", (POOL,)), _LONG),
    "nodes_termination_duration_seconds": (Series("From a Node's deletion to its removal.", (POOL,)), _LONG),
    "nodes_lifetime_duration_seconds": (Series("Age of Nodes at their removal.", (POOL,)), _AGES),
    "nodes_reboot_duration_seconds": (Series("From the request of a reboot to its end, by how.", ("result",)), _LONG),
    "nodes_reboot_recovery_duration_seconds": (
        Series("From a reboot that the provider took on to the node that is back."),
        _LONG,
    ),
    "pods_bound_duration_seconds": (
        Series(
            "From a pod's creation to its binding, and whether it asks for devices (`resourceClaims`).",
            ("dynamic_resources",),
        ),
        _LONG,
    ),
    "pods_startup_duration_seconds": (Series("From a pod's creation to its start."), _LONG),
}

GAUGES: Final = {
    "nodepools_limit": Series("Limit of the pool.", (POOL, "resource_type")),
    "nodepools_usage": Series("Capacity of the pool's nodes, as counted against its limit.", (POOL, "resource_type")),
    "nodepools_allowed_disruptions": Series("How many more nodes may be disrupted now.", (POOL, "reason")),
    "nodepools_nodes_consuming_budgets": Series(
        "Nodes that are on their way out or not ready, and take part of the budgets.", (POOL, "reason")
    ),
    "nodes_allocatable": Series(
        "Allocatable resources of the pool's nodes, and whether they have a NodeClaim.",
        (POOL, "managed", "resource_type"),
    ),
    "nodes_total_pod_requests": Series(
        "Requests of all pods on the pool's nodes, DaemonSets included.", (POOL, "managed", "resource_type")
    ),
    "nodes_count": Series("Nodes of the pool.", (POOL,)),
    "cluster_cost_dollars_per_hour": Series(
        "Cost of the pool's nodes per hour, without those of unknown price.", (POOL,)
    ),
    "cluster_unpriced_nodes": Series("Nodes of the pool whose price is unknown.", (POOL,)),
    "search_target_price": Series("Cost per hour of the fleet that a global search leads to; NaN without a target."),
    "cluster_price_lower_bound": Series(
        "What no plan can bring the cluster's cost per hour below; NaN until it is known."
    ),
    "voluntary_disruption_eligible_nodes": Series(
        "Nodes that could be disrupted but for budgets, in the last pass that was explained.", ("reason",)
    ),
    "rejections": Series("Nodes that were not disrupted, by reason, in the last pass that was explained.", ("code",)),
    "scheduler_unschedulable_pods_count": Series("Pending pods that fit no node, existing or new."),
    "cluster_state_node_count": Series("Nodes in the cache, with or without a pool."),
    "cluster_state_synced": Series("1 if every kind that decisions need has been listed at least once."),
    "unreadable_objects": Series("Objects that cannot be read; what they bear on is left alone.", ("kind",)),
    "brakes": Series("1 for each brake that stops a pool, or everything where it names none.", ("brake", POOL)),
    "disrupted_last_hour": Series(
        "What rates count: nodes that commands disrupted, and pods that left with them (what: nodes, pods).",
        (POOL, "what"),
    ),
    "pod_deletion_cost_nodes_with_pending_annotation_writes": Series(
        "Nodes with pods whose deletion cost is still to be written.", (POOL,)
    ),
    "harmed_pods": Series("Pods that do not run since commands moved them, in pools that are stopped.", (POOL,)),
    "leading": Series("1 if this process is the leader; a dry run never is."),
    "dry_run": Series("1 if this process is a dry run: it decides and writes nothing."),
}
