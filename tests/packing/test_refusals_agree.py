"""On random clusters every node has its reason, the same as a walk over objects finds."""

from collections import Counter
from collections.abc import Collection
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.examples import examples
from tests.packing import twin
from tests.packing.twin_claims import clash
from tests.strategies import Cluster, clusters

from karpool.catalog.instance_types import Catalog
from karpool.cluster.codes import GroupKind
from karpool.cluster.constraints import Constraints, Level
from karpool.cluster.groups import labels_satisfy
from karpool.cluster.pairing import join
from karpool.cluster.snapshot import Snapshot
from karpool.model.labels import HOSTNAME
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.scheduling import untolerated
from karpool.packing.engine import Engine
from karpool.packing.kernels.refusals import FITS, STEP
from karpool.packing.options import Options
from karpool.packing.refusal_messages import NODES, RefusalRule
from karpool.packing.refusals import essential_levels, node_codes, refusals

KINDS = {GroupKind.SPREAD: RefusalRule.SPREAD, GroupKind.AFFINITY: RefusalRule.AFFINITY}


def twin_levels(rules: Constraints) -> list[Level]:
    last = rules.levels[-1]
    return [
        level
        for level in rules.levels
        if level.requirements == level.strict and (level.groups, level.tolerations) == (last.groups, last.tolerations)
    ]


def twin_rules(node: Any, rider: Any, level: Level, topology: Any, *, shut: bool) -> list[tuple[bool, RefusalRule]]:
    """Every check of a node in order, with whether it passes."""
    labels, rules = node.state.labels, rider.constraints
    checks = [
        (untolerated(node.state.taints, level.tolerations) is None, RefusalRule.TAINT),
        (labels_satisfy(labels, level.requirements.without(HOSTNAME)), RefusalRule.LABEL),
        (not rules.volumes or any(labels_satisfy(labels, wanted) for wanted in rules.volumes), RefusalRule.VOLUME),
        (node._attaches(rules.attached), RefusalRule.ATTACH_LIMIT),
        (not clash(rules.ports, node.ports), RefusalRule.PORT),
        (min(node.free.values()) >= 0, RefusalRule.NOT_ENOUGH),
        (all(amount <= node.free[name] for name, amount in rider.requests.items()), RefusalRule.NOT_ENOUGH),
        (labels_satisfy(labels, level.requirements), RefusalRule.LABEL),
    ]
    for group in topology.constraining(rider.pod, level):
        passes = group.key in labels and topology._allows(group, rider.pod, level, labels[group.key])
        checks.append((passes, KINDS.get(group.kind, RefusalRule.ANTI_AFFINITY)))
    return [*checks, (not shut, RefusalRule.CLOSED)]


def twin_refusals(objects: Objects, catalog: Catalog, pod: Pod, gone: Collection[str], closed: Collection[str]) -> Any:
    """How many nodes refuse a pod by which rule, found out by walking objects."""
    scene = twin._Scene(objects, catalog, [pod], gone, Options())
    (rider,), topology = scene.riders(), scene.topology()
    counts: Counter[RefusalRule] = Counter()
    for node in scene.destinations():
        failed = []
        for level in twin_levels(rider.constraints):
            checks = twin_rules(node, rider, level, topology, shut=node.state.name in closed)
            failed.append(next(at for at, (passes, _) in enumerate(checks) if not passes))
        counts[checks[max(failed)][1]] += 1
    return counts


def either(counts: Counter[RefusalRule]) -> Counter[RefusalRule]:
    """With volumes, a node that the pod's labels and its volumes both rule out may be told with either.

    Which it is depends on whether nodes are told apart by their host, as they are where any volume belongs to one.
    """
    told = Counter(counts)
    told[RefusalRule.LABEL] += told.pop(RefusalRule.VOLUME, 0)
    return +told


@pytest.mark.slow
@examples(60)
@given(data=st.data(), cluster=clusters())
def test_the_kernel_blames_the_same_rules_as_a_walk_over_objects(data: st.DataObject, cluster: Cluster) -> None:
    objects, catalog = cluster.objects, cluster.catalog
    names = sorted(state.name for state in join(objects.nodes, objects.node_claims))
    gone = data.draw(st.sets(st.sampled_from(names), max_size=3), label="gone")
    closed = data.draw(st.sets(st.sampled_from(names), max_size=3), label="closed")
    engine = Engine(Snapshot(objects), catalog)
    nodes, pods = engine.snapshot.nodes, engine.snapshot.pods
    moving = [pod for pod in objects.pods if pod.reschedulable and (not pod.bound or pod.spec.node_name in gone)]
    shut = np.zeros(len(nodes.live), dtype=np.uint8)
    shut[[nodes.rows[name] for name in closed]] = 1
    with engine.what_if() as trial:
        trial.remove([nodes.rows[name] for name in sorted(gone)])
        placement = trial.place([pods.rows[pod.key] for pod in moving], closed=shut, existing_only=True)
        refused = {row: refusals(engine, row) for row in placement.unplaced}
        placed = {
            pods.get(row).key: nodes.get(target).name
            for row, target in zip(placement.pods, placement.targets, strict=True)
            if target >= 0
        }
    after = replace(
        objects,
        pods=tuple(
            replace(pod, spec=replace(pod.spec, node_name=placed[pod.key])) if pod.key in placed else pod
            for pod in objects.pods
        ),
    )
    for row, listed in refused.items():
        if listed[:1] and listed[0].rule is RefusalRule.REFUSED:
            continue
        counts: Counter[RefusalRule] = Counter()
        for entry in listed:
            counts[entry.rule] += entry.count
        found = twin_refusals(after, catalog, pods.get(row), gone, closed)
        if engine.snapshot.classes.constraints[int(pods.class_of[row])].volumes:
            counts, found = either(counts), either(found)
        assert counts == found


@examples(60)
@given(cluster=clusters())
def test_every_live_node_and_every_pool_has_exactly_one_reason(cluster: Cluster) -> None:
    engine = Engine(Snapshot(cluster.objects), cluster.catalog)
    nodes, pods = engine.snapshot.nodes, engine.snapshot.pods
    gone = [nodes.rows[node.name] for node in cluster.objects.nodes[:2]]
    moving = [row for row in pods.rows.values() if pods.get(row).reschedulable and pods.node_of[row] in (-1, *gone)]
    with engine.what_if() as trial:
        trial.remove(gone)
        placement = trial.place(moving)
        for row in placement.unplaced:
            listed = refusals(engine, row)
            if listed[0].rule is RefusalRule.REFUSED:
                continue
            live = np.flatnonzero(engine.memory["live"][: len(nodes.states)])
            levels = essential_levels(engine, int(pods.class_of[row]))
            codes = node_codes(engine, levels, int(pods.labels_of[row]), exempt=False)
            assert np.flatnonzero(codes).tolist() == live.tolist()
            assert (codes < FITS * STEP).all()
            assert sum(entry.count for entry in listed if entry.what == NODES) == len(live)
            by_pools = [entry for entry in listed if entry.what != NODES]
            assert sorted(entry.what for entry in by_pools) == sorted(
                f"pool {pool.name}" for pool in cluster.objects.node_pools
            )
            assert {entry.rule for entry in by_pools}.isdisjoint({RefusalRule.REFUSED, RefusalRule.RESERVED})
