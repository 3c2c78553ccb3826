"""A snapshot by the names of nodes, pods and resources, so that two of them can be compared column by column.

Row numbers and the numbers of classes, groups and shapes may differ, and what is dead may still be there.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.constraints import TOLERATE_PREFER_NO_SCHEDULE, Constraints, Level
from karpool.cluster.pod_classes import NO_CLASS
from karpool.cluster.resources import UNLIMITED
from karpool.cluster.snapshot import Snapshot


def semantics(snapshot: Snapshot, live: Snapshot) -> dict[str, Any]:
    """Everything that a snapshot says about what `live` holds."""
    sealed = {snapshot.nodes.get(row).name: reason for row, reason in snapshot.seals.items()}
    return {
        "sealed": sealed,
        "withheld pools": snapshot.withheld_pools,
        "nodes": {name: _node(snapshot, row, live) for name, row in snapshot.nodes.rows.items()},
        "pods": {key: _pod(snapshot, row) for key, row in snapshot.pods.rows.items()},
        "suits": {key: _suits(snapshot, row) for key, row in snapshot.pods.rows.items()},
        "counts": {key: count for key, count in _counts(snapshot, live) if count},
        "daemons": {daemon.key: daemon for daemon in snapshot.daemons},
        "node order": [snapshot.nodes.get(row).name for row in snapshot.nodes.order.tolist()],
        "pod order": _pod_order(snapshot),
    }


def _amounts(snapshot: Snapshot, row: Array) -> dict[str, int]:
    """Amounts by resource; a resource that nobody has or wants does not matter."""
    amounts = zip(snapshot.resources.names, row.tolist(), strict=False)
    return {name: amount for name, amount in amounts if amount not in (0, UNLIMITED)}


def _node(snapshot: Snapshot, row: int, live: Snapshot) -> dict[str, Any]:
    nodes, domains = snapshot.nodes, snapshot.topology.domains
    names = {key: {number: value for value, number in domains.values[at].items()} for key, at in domains.keys.items()}
    linked, at = [], int(nodes.head[row])
    while at >= 0:
        linked.append(at)
        at = int(snapshot.pods.next[at])
    assert linked == snapshot.pods_on(row)
    state = nodes.get(row)
    return {
        "objects": (state.node, state.claim),
        "live": int(nodes.live[row]),
        "room": _amounts(snapshot, nodes.room[row]),
        "taken": _amounts(snapshot, nodes.taken[row]),
        "daemon taken": _amounts(snapshot, nodes.daemon_taken[row]),
        "free": _amounts(snapshot, nodes.free[row]),
        "overhead": _amounts(snapshot, nodes.overhead[nodes.shape[row]]),
        "domains": {
            key: names[key].get(int(nodes.domain[row, domains.keys[key]])) for key in live.topology.domains.keys
        },
        "pods": {snapshot.pods.get(pod).key for pod in linked},
    }


def _pod(snapshot: Snapshot, row: int) -> dict[str, Any]:
    pods, classes = snapshot.pods, snapshot.classes
    node = int(pods.node_of[row])
    number = int(pods.class_of[row])
    return {
        "object": pods.get(row),
        "node": snapshot.nodes.get(node).name if node >= 0 else None,
        "counted": bool(pods.counted[row]),
        "daemon": bool(pods.daemon[row]),
        "labels": snapshot.topology.label_sets[int(pods.labels_of[row])],
        "requests": _amounts(snapshot, classes.requests[number]),
        "shared": {snapshot.resources.names[column] for column in classes.shared_columns.row(number)},
        "refused": bool(classes.refused[number]),
        "rules": _rules(classes.constraints[number]),
        "levels": list(dict.fromkeys(_hard(classes.levels[level]) for level in _chain(snapshot, number))),
    }


def _chain(snapshot: Snapshot, number: int) -> Iterator[int]:
    while number != NO_CLASS:
        yield number
        number = int(snapshot.classes.next[number])


def _hard(level: Level) -> tuple[Any, ...]:
    """A level but for tolerating PreferNoSchedule: pods go on to do so after the last taint of this kind went."""
    tolerations = tuple(entry for entry in level.tolerations if entry != TOLERATE_PREFER_NO_SCHEDULE)
    return level.requirements, level.strict, tolerations, level.groups


def _rules(rules: Constraints) -> tuple[Any, ...]:
    return rules.inverse, rules.volumes, rules.ports, rules.attached, rules.refusal


def _suits(snapshot: Snapshot, row: int) -> dict[str, bool]:
    """Which nodes a pod may use by labels, taints and volumes, at any level of its preferences."""
    levels = list(_chain(snapshot, int(snapshot.pods.class_of[row])))
    suits = snapshot.shapes.suits[snapshot.classes.signature[levels]].any(axis=0)
    return {name: bool(suits[snapshot.nodes.shape[at]]) for name, at in snapshot.nodes.rows.items()}


def _counts(snapshot: Snapshot, live: Snapshot) -> Iterator[tuple[Any, int]]:
    """Counts of groups by domain and host, and of ports and shared volumes by host."""
    topology, nodes = snapshot.topology, snapshot.nodes.rows
    for number, group in enumerate(topology.groups):
        if group not in live.topology.group_ids:
            continue
        yield (group, "all"), int(topology.total[number])
        for value, domain in topology.domains.values[topology.domains.keys[group.key]].items():
            yield (group, value), int(topology.by_domain[number, domain])
            seen = topology.nodes_seen[topology.filter[number], topology.key[number], domain]
            yield (group, value, "nodes"), int(seen)
        for name, at in nodes.items():
            yield (group, name, "seen"), int(snapshot.shapes.seen_by[topology.filter[number], snapshot.nodes.shape[at]])
    for item, row in topology.host_rows.items():
        is_group = isinstance(item, tuple) and item[0] == "group"
        known = topology.groups[item[1]] if is_group else item  # type: ignore[index]
        if not is_group or known in live.topology.group_ids:
            for name, at in nodes.items():
                yield (known, name), int(topology.by_host[row, at])


def _pod_order(snapshot: Snapshot) -> list[str]:
    rows = np.array(list(snapshot.pods.rows.values()), dtype=np.int32)
    return [snapshot.pods.get(row).key for row in rows[snapshot.pods.ranking.order(rows)].tolist()]
