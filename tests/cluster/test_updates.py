"""A snapshot that was changed bit by bit is the same as one made from the objects that are there in the end."""

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed
from tests.examples import examples
from tests.factories import (
    affinity_to,
    default_catalog,
    node,
    node_pool,
    node_term,
    pod,
    pv,
    pvc,
    spread,
    storage_class,
)
from tests.strategies import Cluster, clusters

from karpool.cluster.nodes import StateNode
from karpool.cluster.pairing import join
from karpool.cluster.resources import UNLIMITED
from karpool.cluster.snapshot import Snapshot
from karpool.model.objects import Objects
from karpool.model.pod import ContainerStatus, Pod, Resources
from karpool.packing.engine import Engine
from karpool.packing.kernels import columns as c
from karpool.packing.layout import cluster_columns
from karpool.wire.quantity import parse_quantity


def free(snapshot: Snapshot) -> dict[tuple[str, str], int]:
    """What is free, by node and resource; a resource that nobody has or wants does not matter."""
    names = snapshot.resources.names
    table = {
        (name, resource): int(snapshot.nodes.free[row, column])
        for name, row in snapshot.nodes.rows.items()
        for column, resource in enumerate(names)
    }
    return {key: amount for key, amount in table.items() if amount not in (0, UNLIMITED)}


def counts(snapshot: Snapshot) -> Iterator[tuple[Any, int]]:
    """Every count that is not zero: of groups by domain and host, of things that must not meet on a node."""
    topology, nodes = snapshot.topology, snapshot.nodes.rows
    for number, group in enumerate(topology.groups):
        yield (group, "all"), int(topology.total[number])
        for value, domain in topology.domains.values[topology.domains.keys[group.key]].items():
            yield (group, value), int(topology.by_domain[number, domain])
            seen = topology.nodes_seen[topology.filter[number], topology.key[number], domain]
            yield (group, value, "nodes"), int(seen)
    for item, row in topology.host_rows.items():
        known = topology.groups[item[1]] if isinstance(item, tuple) and item[0] == "group" else item
        for name, at in nodes.items():
            yield (known, name), int(topology.by_host[row, at])


def nonzero(snapshot: Snapshot, groups: set[Any]) -> dict[Any, int]:
    return {key: count for key, count in counts(snapshot) if count and (key[0] in groups or isinstance(key[0], tuple))}


def answers(engine: Engine) -> dict[str, Any]:
    """What would become of each node's pods, and of those that wait."""
    snapshot = engine.snapshot
    waiting = [row for row in snapshot.pods.rows.values() if not snapshot.pods.get(row).bound]
    placements: dict[str, Any] = {}
    for name, node_row in sorted(snapshot.nodes.rows.items()):
        rows = [row for row in snapshot.pods_on(node_row) if snapshot.pods.get(row).reschedulable]
        with engine.what_if() as trial:
            trial.remove([node_row])
            answer = trial.place([*rows, *waiting]).result()
        new = [(n.pool, n.requirements, n.instance_types, frozenset(n.pods)) for n in answer.new_nodes]
        placements[name] = (dict(answer.placed), new, sorted(answer.unplaced))
    return placements


def order(snapshot: Snapshot) -> list[str]:
    """The names of nodes in the order in which they are tried."""
    return [snapshot.nodes.get(row).name for row in snapshot.nodes.order.tolist()]


def queue(snapshot: Snapshot) -> list[str]:
    """The keys of pods in the order in which they are placed."""
    rows = np.array(list(snapshot.pods.rows.values()), dtype=np.int32)
    return [snapshot.pods.get(row).key for row in rows[snapshot.pods.ranking.order(rows)].tolist()]


def assert_alike(updated: Snapshot, made: Snapshot) -> None:
    assert free(updated) == free(made)
    assert order(updated) == order(made)
    assert queue(updated) == queue(made)
    groups = set(made.topology.groups)
    assert nonzero(updated, groups) == nonzero(made, groups)


def assert_sees_all(engine: Engine) -> None:
    """The kernels hold the arrays that the snapshot and the tables have now, not some that were replaced."""
    engine.refresh()
    tables = engine.tables.columns() | {"order": engine.snapshot.nodes.order, "host_ok": engine.tables.host_ok}
    made_anew = {"sizes", "domains"}
    for name, array in (cluster_columns(engine.snapshot, engine.tables.pools) | tables).items():
        memory = engine.memory[name]
        assert memory is array or (name in made_anew and memory[1:].tolist() == array[1:].tolist()), name
    assert engine.memory["sizes"][c.NODES] == len(engine.snapshot.nodes.rows)


class Replay:
    """Changes a snapshot at random, and keeps the list of objects that it should now show."""

    def __init__(self, cluster: Cluster, chance: Random) -> None:
        objects = cluster.objects
        self.chance, self.objects = chance, objects
        self.states = {state.name: state for state in join(objects.nodes, objects.node_claims)}
        self.pods = {entry.key: entry for entry in objects.pods}
        self.there = {name for name in self.states if chance.random() < 0.6}
        self.running = {key: entry for key, entry in self.pods.items() if chance.random() < 0.6}
        self.snapshot = Snapshot(self.now)

    @property
    def now(self) -> Objects:
        """The cluster as it should be."""
        names = self.there
        claims = [s.claim for name, s in self.states.items() if name in names and s.claim is not None]
        nodes = [s.node for name, s in self.states.items() if name in names and s.node is not None]
        pods = tuple(self.running[key] for key in self.pods if key in self.running)
        return changed(self.objects, nodes=tuple(nodes), node_claims=tuple(claims), pods=pods)

    def step(self) -> None:
        """One change: a pod comes, moves or goes, or a node comes, changes or goes."""
        chance = self.chance
        if chance.random() < 0.7:
            key = chance.choice(sorted(self.pods)) if self.pods else ""
            if key in self.running and chance.random() < 0.5:
                del self.running[key]
                self.snapshot.remove_pod(key)
            elif key:
                self.running[key] = self._somewhere(self.pods[key])
                self.snapshot.put_pod(self.running[key])
            return
        name = chance.choice(sorted(self.states))
        if name in self.there and chance.random() < 0.5:
            self.there.discard(name)
            self.snapshot.remove_node(name)
        else:
            self.there.add(name)
            self.states[name] = self._changed(self.states[name])
            self.snapshot.put_node(self.states[name])

    def _somewhere(self, entry: Pod) -> Pod:
        if entry.is_daemon or self.chance.random() < 0.5:
            return entry
        node_name = self.chance.choice([*sorted(self.states), ""])
        leaves = entry.metadata.creation_timestamp if self.chance.random() < 0.2 else None
        metadata = changed(entry.metadata, deletion_timestamp=leaves)
        return changed(entry, metadata=metadata, spec=changed(entry.spec, node_name=node_name))

    def _changed(self, state: StateNode) -> StateNode:
        if state.node is None or self.chance.random() < 0.6:
            return state
        cordoned = changed(state.node.spec, unschedulable=self.chance.random() < 0.5)
        return StateNode(changed(state.node, spec=cordoned), state.claim)


@pytest.mark.slow
@examples(60)
@given(clusters(in_motion=True), st.randoms(use_true_random=False), st.integers(1, 25))
def test_updates_end_where_building_anew_would(cluster: Cluster, chance: Random, steps: int) -> None:
    replay = Replay(cluster, chance)
    engine = Engine(replay.snapshot, cluster.catalog)
    for _ in range(steps):
        replay.step()
        if chance.random() < 0.2:
            assert_sees_all(engine)
    made = Snapshot(replay.now)
    assert_alike(replay.snapshot, made)
    assert answers(engine) == answers(Engine(made, cluster.catalog))


@examples(60)
@given(clusters(in_motion=True), st.randoms(use_true_random=False))
def test_pods_that_move_at_once_are_where_one_by_one_leaves_them(cluster: Cluster, chance: Random) -> None:
    together, apart, untouched = (Snapshot(cluster.objects) for _ in range(3))
    engines = [Engine(snapshot, cluster.catalog) for snapshot in (together, apart, untouched)]
    pods = sorted(together.pods.rows)
    moving = chance.sample(pods, chance.randint(0, len(pods))) if together.nodes.rows else []
    places = {key: chance.choice(sorted(together.nodes.rows)) for key in moving}
    together.move_all(
        [together.pods.rows[key] for key in places], [together.nodes.rows[name] for name in places.values()]
    )
    for key, name in places.items():
        apart.move(apart.pods.rows[key], name)
    assert_alike(together, apart)
    assert answers(engines[0]) == answers(engines[1])
    together.restore_all([together.pods.rows[key] for key in moving])
    for key in moving:
        apart.restore(apart.pods.rows[key])
    for snapshot in (together, apart):
        assert_alike(snapshot, untouched)
    assert answers(engines[0]) == answers(engines[1]) == answers(engines[2])


def test_pods_that_move_at_once_stamp_their_nodes_and_no_others() -> None:
    snapshot = Snapshot(base([pod("b-1"), pod("b-2", node="n1")], [node("n3")]))
    nodes, before = snapshot.nodes, snapshot.nodes.changed.copy()
    seen, version = nodes.changes, snapshot.version
    snapshot.move_all([snapshot.pods.rows["default/b-1"]], [nodes.rows["n3"]])
    assert (snapshot.version, nodes.changed[nodes.rows["n3"]] > seen) == (version + 1, True)
    assert (nodes.changed == before).sum() == len(before) - 1
    snapshot.restore_all([snapshot.pods.rows["default/b-1"], snapshot.pods.rows["default/b-2"]])
    assert nodes.changed[nodes.rows["n2"]] == before[nodes.rows["n2"]]
    assert len({int(nodes.changed[row]) for row in nodes.rows.values()}) == len(nodes.rows)
    assert nodes.changes == nodes.changed.max()


def test_a_pod_whose_node_has_gone_meanwhile_waits_for_it_to_come_back() -> None:
    snapshot = Snapshot(base([pod("b-1", node="n3")], [node("n3")]))
    row = snapshot.pods.rows["default/b-1"]
    snapshot.move_all([row], [snapshot.nodes.rows["n1"]])
    snapshot.remove_node("n3")
    snapshot.restore_all([row])
    assert_alike(snapshot, Snapshot(base([pod("b-1", node="n3")], ())))
    snapshot.put_node(StateNode(node("n3"), None))
    assert snapshot.pods_on(snapshot.nodes.rows["n3"]) == [row]


NEWS: list[tuple[str, Any]] = [
    ("a pod of a new class", pod("b-1", cpu="3", node="n1")),
    ("a resource nobody knew", pod("b-1", requests={"example.com/fpga": 1})),
    ("a label nobody asked for", pod("b-1", selector={"disk": "ssd"})),
    ("a new topology key", pod("b-1", spread=[spread({"app": "b"}, "rack")])),
    ("a new group", pod("b-1", node="n2", anti=[affinity_to({"app": "a"})])),
    ("a rule that looks at some nodes only", pod("b-1", require=[("disk", "Exists")], spread=[spread({"app": "a"})])),
    ("a host port", pod("b-1", node="n1", ports=[80])),
    ("a volume", pod("b-1", node="n1", claims=["data"])),
    ("a node by name", pod("b-1", require=[("kubernetes.io/hostname", "In", "n2")])),
    ("a wish", pod("b-1", prefer=[(1, node_term(("disk", "In", "ssd")))])),
    ("a node of a new shape", node("n3", labels={"disk": "hdd", "rack": "r3"}, taints=["x"])),
    ("a node with a resource nobody knew", node("n3", resources={"example.com/fpga": 1})),
    ("a node in a new zone", node("n3", zone="elsewhere")),
    ("a node that asks pods to stay away", node("n3", cpu=64, memory="64Gi", taints=["x:PreferNoSchedule"])),
]


def test_an_engine_takes_note_of_everything_that_can_be_new() -> None:
    """Every piece of news alone, and all of them one after the other."""
    for news in [[entry] for entry in NEWS] + [NEWS]:
        updated, pods, nodes = Snapshot(base((), ())), [], []
        engine = Engine(updated, default_catalog())
        answers(engine)
        for number, (_, item) in enumerate(news):
            if isinstance(item, Pod):
                named = changed(item, metadata=changed(item.metadata, name=f"b-{number}", uid=f"b-{number}"))
                pods.append(named)
                updated.put_pod(named)
            else:
                named = changed(item, metadata=changed(item.metadata, name=f"n{number + 3}"))
                nodes.append(named)
                updated.put_node(StateNode(named, None))
            assert_sees_all(engine)
            made = Snapshot(base(pods, nodes))
            assert_alike(updated, made)
            assert answers(engine) == answers(Engine(made, default_catalog())), news[number][0]


def base(pods: Any, nodes: Any) -> Objects:
    return Objects(
        nodes=(
            node("n1", labels={"disk": "ssd", "rack": "r1"}, zone="test-zone-1"),
            node("n2", labels={"rack": "r2"}, zone="test-zone-2"),
            *nodes,
        ),
        node_pools=(node_pool(labels={"disk": "ssd"}),),
        persistent_volume_claims=(pvc("data", volume="data"),),
        persistent_volumes=(pv("data", zones=["test-zone-1"], driver="csi.example.com"),),
        storage_classes=(storage_class(),),
        pods=(
            pod("a-1", node="n1"),
            pod("a-2", node="n2", spread=[spread({"app": "a"})]),
            *pods,
        ),
    )


def test_a_pod_that_is_bound_keeps_its_row_and_one_that_is_resized_takes_more() -> None:
    snapshot = Snapshot(base([pod("web", cpu="1")], ()))
    row = snapshot.pods.rows["default/web"]
    bound = pod("web", cpu="1", node="n1")
    resized = ContainerStatus(name=bound.spec.containers[0].name, allocated_resources={"cpu": parse_quantity(2)})
    amount = {"cpu": parse_quantity(3)}
    whole = changed(bound, spec=changed(bound.spec, resources=Resources(requests=amount)))
    grown = changed(whole, status=changed(whole.status, allocated_resources={"cpu": parse_quantity(4)}))
    by_container = changed(bound, status=changed(bound.status, container_statuses=(resized,)))
    for entry in (bound, by_container, whole, grown):
        snapshot.put_pod(entry)
        assert snapshot.pods.rows["default/web"] == row
        assert snapshot.pods.get(row) is entry
        assert_alike(snapshot, Snapshot(base([entry], ())))


def test_a_node_that_changes_keeps_its_pods_and_their_counts_follow_it() -> None:
    shared = [pod(f"db-{number}", node="n3", claims=["data"], spread=[spread({"app": "db"})]) for number in (1, 2)]
    snapshot = Snapshot(base(shared, [node("n3", zone="test-zone-1")]))
    row = snapshot.nodes.rows["n3"]
    pods = snapshot.pods_on(row)
    for new in (node("n3", zone="test-zone-2"), node("n3", zone="test-zone-2", taints=["x"], cpu=2)):
        snapshot.put_node(StateNode(new, None))
        assert snapshot.nodes.rows["n3"] == row
        assert snapshot.pods_on(row) == pods
        assert_alike(snapshot, Snapshot(base(shared, [new])))


def test_a_change_of_a_pod_that_was_not_known_is_no_change() -> None:
    snapshot = Snapshot(base((), ()))
    before = free(snapshot)
    snapshot.remove_pod("default/nobody")
    snapshot.remove_node("nowhere")
    snapshot.put_pod(pod("done-1", node="n1", phase="Succeeded"))
    assert free(snapshot) == before
