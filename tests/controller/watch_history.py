"""Random histories of a watched cluster: objects of all kinds arrive in any order, change and go."""

from collections.abc import Callable
from random import Random
from typing import Any

from msgspec.structs import replace
from tests.controller.restless import APPS, CHANGES, POOLS, SIZES, Restless
from tests.disruption.scenarios import CATALOG, pool_of
from tests.factories import (
    Z1,
    Z2,
    affinity_to,
    claim_for,
    csi_node,
    daemon_set,
    namespace,
    node_of,
    node_term,
    pod,
    pv,
    pvc,
    spread,
    storage_class,
    taints_of,
)
from tests.factories.unreadable import unreadable

from karpool.cluster.volumes import BIND_COMPLETED
from karpool.kube.store import Store
from karpool.model.labels import INSTANCE_TYPE, REGISTERED, ZONE
from karpool.model.pod import ContainerStatus, EphemeralVolume, Pod, Resources, Volume
from karpool.wire.objects import Condition, OwnerReference
from karpool.wire.quantity import parse_quantity

DISKS = ("d1", "d2", "d3")
DRIVERS = ("ebs", "nfs")
DAEMONS = ("agent", "logs")
UNREGISTERED = "karpenter.sh/unregistered:NoExecute"


class WatchHistory(Restless):
    """Everything that `Restless` does, and all other kinds that a snapshot is built from."""

    def __init__(self, chance: Random) -> None:
        super().__init__(chance)
        self._arrivals: list[list[Any]] = []
        self._whole: list[tuple[Store[Any], Any]] = []
        self.store.storage_classes.put(storage_class(provisioner=DRIVERS[0]))
        for disk in DISKS:
            self.store.volumes.put(pv(disk, zones=[Z1], driver=chance.choice(DRIVERS)))
            self.store.volume_claims.put(pvc(disk, volume=disk))
        for _ in range(5):
            self.add_special_pod()

    def step(self) -> None:
        """One change."""
        self.chance.choice(HISTORY)(self)

    # -- pods ----------------------------------------------------------------------------------------------------

    def add_special_pod(self) -> None:
        """A pod with preferences, volumes, selectors of namespaces, or on a node that nobody has seen yet."""
        chance, app = self.chance, self.chance.choice(APPS)
        rules: list[dict[str, Any]] = [
            {"claims": chance.sample(DISKS, chance.randrange(1, 3))},
            {"volumes": [Volume(name="scratch", ephemeral=EphemeralVolume())]},
            {"prefer": [(1, node_term((ZONE, "In", Z1)))]},
            {"prefer_anti": [(1, affinity_to({"app": app}))]},
            {"spread": [spread({"app": app}, when="ScheduleAnyway")]},
            {"spread": [spread({"app": app}, taints_policy="Honor")], "require": [("disk", "Exists")]},
            {"near": [affinity_to({"app": app}, ZONE, namespace_selector={"team": "x"})]},
            {"terms": [node_term(("disk", "In", "ssd")), node_term((ZONE, "In", Z2))]},
            {"tolerations": ["x"]},
            {"requests": {"example.com/gpu": 1}},
        ]
        nodes = [*(node.name for node in self.store.nodes.listed()), "unseen"]
        place = chance.choice([None, *nodes])
        name, home = self._name(), chance.choice(["default", "other"])
        self.store.pods.put(
            pod(name, namespace=home, node=place, pending=not place, labels={"app": app}, **chance.choice(rules))
        )

    def pass_jobs(self, count: int) -> None:
        """Jobs with labels, rules and volumes that no others have come and finish."""
        names = [f"job-{self._name()}" for _ in range(count)]
        nodes = [node.name for node in self.store.nodes.listed()]
        for name in names:
            own = {"job-name": name}
            self.store.volumes.put(pv(name, zones=[Z1], driver=DRIVERS[0]))
            self.store.volume_claims.put(pvc(name, volume=name))
            rules: dict[str, Any] = {"spread": [spread(own)], "anti": [affinity_to(own)], "claims": [name]}
            self.store.pods.put(pod(name, labels=own, node=self.chance.choice(nodes) if nodes else None, **rules))
        for name in names:
            done = self.store.pods.get(f"default/{name}")
            if done is not None:
                self.store.pods.put(self._ended(done))
            self.store.pods.remove(f"default/{name}")
            self.store.volume_claims.remove(f"default/{name}")
            self.store.volumes.remove(name)

    def add_daemon_pod(self) -> None:
        """A pod of a DaemonSet that a LimitRange or a webhook may have given other requests."""
        chance = self.chance
        place = self._any(self.store.nodes)
        made = pod(
            f"{chance.choice(DAEMONS)}-{self._name()}",
            namespace="kube-system",
            owner="DaemonSet",
            cpu=chance.choice([None, "50m", "100m", "400m"]),
            memory=None,
            node=None if place is None else place.name,
            tolerations=chance.choice([(), ["x"]]),
            created=self._moment(),
        )
        self.store.pods.put(made)

    def change_daemon_set(self) -> None:
        """A DaemonSet comes, goes, or asks for something else."""
        chance = self.chance
        name = chance.choice(DAEMONS)
        if chance.random() < 0.3:
            self.store.daemon_sets.remove(f"kube-system/{name}")
            return
        rules: list[dict[str, Any]] = [{}, {"selector": {ZONE: Z1}}, {"selector": {"disk": "ssd"}}, {"ports": [80]}]
        self.store.daemon_sets.put(daemon_set(name, cpu=chance.choice(["50m", "100m"]), **chance.choice(rules)))

    def rewrite_pod(self) -> None:
        """A pod is resized in place, gets other labels or annotations, is adopted, ends, or only has a new version."""
        current, chance = self._any(self.store.pods), self.chance
        if current is None:
            return
        self.store.pods.put(
            chance.choice((self._resized, self._relabelled, self._adopted, self._ended, self._same))(current)
        )

    def _resized(self, current: Pod) -> Pod:
        amount = {"cpu": parse_quantity(self.chance.choice(["50m", "2", "4"]))}
        status = self.chance.choice(
            [
                ContainerStatus(name="main", allocated_resources=amount),
                ContainerStatus(name="main", resources=Resources(requests=amount)),
                ContainerStatus(name="main"),
            ]
        )
        return replace(current, status=replace(current.status, container_statuses=(status,)))

    def _relabelled(self, current: Pod) -> Pod:
        labels = {"app": self.chance.choice(APPS)}
        notes = self.chance.choice([{}, {"karpenter.sh/do-not-disrupt": "true"}])
        return replace(current, metadata=replace(current.metadata, labels=labels, annotations=notes))

    def _adopted(self, current: Pod) -> Pod:
        kind = self.chance.choice(["ReplicaSet", "StatefulSet", "DaemonSet", "Node"])
        return replace(
            current, metadata=replace(current.metadata, owner_references=(OwnerReference(kind=kind, name="agent"),))
        )

    def _ended(self, current: Pod) -> Pod:
        return replace(current, status=replace(current.status, phase="Succeeded"))

    def _same(self, current: Pod) -> Pod:
        return replace(current, metadata=replace(current.metadata, resource_version=self._name()))

    # -- machines ------------------------------------------------------------------------------------------------

    def launch(self) -> None:
        """A claim is made; its provider id, its node's name and its Node become known later, in any order."""
        chance = self.chance
        name, size, pool = self._name(), chance.choice(SIZES), chance.choice(POOLS)
        made = node_of(name, CATALOG.by_name[size], pool=pool, zone=chance.choice([Z1, Z2]))
        claim = claim_for(made, requirements=[(INSTANCE_TYPE, "In", size)])
        node_name = chance.choice([f"ip-{name}", name])
        bare = replace(claim, status=replace(claim.status, node_name="", provider_id=""))
        known = replace(claim, status=replace(claim.status, node_name=node_name))
        if chance.random() < 0.2:
            known = replace(known, status=replace(known.status, provider_id=""))
        node = replace(made, metadata=replace(made.metadata, name=node_name))
        if chance.random() < 0.2:
            node = replace(node, spec=replace(node.spec, provider_id=""))
        early = {key: value for key, value in node.metadata.labels.items() if key != REGISTERED}
        joining = replace(
            node,
            metadata=replace(node.metadata, labels=early),
            spec=replace(node.spec, taints=taints_of([UNREGISTERED])),
        )
        arrivals = chance.choice(
            [
                [bare, replace(claim, status=replace(claim.status, node_name="")), known, node],
                [bare, joining, known, node],
                [joining, bare, known, node],
                [known, node],
                [node, known],
                [bare, known],
            ]
        )
        self._arrivals.append(arrivals)

    def arrive(self) -> None:
        """The next thing that is known of a machine that is on its way."""
        if not self._arrivals:
            self.launch()
        queue = self.chance.choice(self._arrivals)
        entry = queue.pop(0)
        (self.store.nodes if hasattr(entry.spec, "unschedulable") else self.store.claims).put(entry)
        if not queue:
            self._arrivals.remove(queue)

    def confuse_claim(self) -> None:
        """A claim names the node, or the machine, of another."""
        current, chance = self._any(self.store.claims), self.chance
        other = self._any(self.store.claims)
        if current is None or other is None:
            return
        match chance.randrange(3):
            case 0:
                status = replace(current.status, node_name=other.status.node_name)
            case 1:
                status = replace(current.status, provider_id=other.status.provider_id)
            case _:
                status = replace(current.status, node_name=other.name)
        self.store.claims.put(replace(current, status=status))

    def rewrite_node(self) -> None:
        """A node moves to another zone, gets labels, annotations, taints, a cordon, other amounts, or a deletion."""
        current, chance = self._any(self.store.nodes), self.chance
        if current is None:
            return
        meta, spec, status = current.metadata, current.spec, current.status
        match chance.randrange(8):
            case 0:
                meta = replace(meta, labels={**meta.labels, ZONE: chance.choice([Z1, Z2])})
            case 1:
                meta = replace(meta, labels={**meta.labels, "disk": chance.choice(["ssd", "hdd"])})
            case 2:
                meta = replace(meta, annotations=chance.choice([{}, {"karpenter.sh/do-not-disrupt": "true"}]))
            case 3:
                listed = [(), ["y:PreferNoSchedule"], ["x"], ["node.kubernetes.io/not-ready"], [UNREGISTERED]]
                spec = replace(spec, taints=taints_of(chance.choice(listed)))
            case 4:
                spec = replace(spec, unschedulable=not spec.unschedulable)
            case 5:
                amount = {**status.allocatable, "example.com/gpu": parse_quantity(chance.choice([0, 2]))}
                status = replace(status, allocatable=amount)
            case 6:
                labels = dict(meta.labels)
                if labels.pop(REGISTERED, None) is None:
                    labels[REGISTERED] = "true"
                meta = replace(meta, labels=labels)
            case _:
                meta = replace(meta, deletion_timestamp=chance.choice([None, self.now]))
        self.store.nodes.put(replace(current, metadata=meta, spec=spec, status=status))

    def terminate_claim(self) -> None:
        """The machine of a claim is on its way out, or its labels change."""
        current, chance = self._any(self.store.claims), self.chance
        if current is None:
            return
        ends = Condition(type="InstanceTerminating", status=chance.choice(["True", "False"]))
        labels = {**current.metadata.labels, "disk": chance.choice(["ssd", "hdd"])}
        self.store.claims.put(
            chance.choice(
                [
                    replace(current, status=replace(current.status, conditions=(ends,))),
                    replace(current, metadata=replace(current.metadata, labels=labels)),
                ]
            )
        )

    # -- pools, namespaces and volumes ---------------------------------------------------------------------------

    def rewrite_pool(self) -> None:
        """A pool gets other taints or annotations, goes or comes back."""
        chance = self.chance
        name = chance.choice(POOLS)
        current = self.store.pools.get(name)
        if current is None or chance.random() < 0.6:
            self.store.pools.put(pool_of(name, taints=chance.choice([(), ["z:PreferNoSchedule"], ["x"]])))
        elif chance.random() < 0.5:
            self.store.pools.remove(name)
        else:
            notes = {"karpool.sh/budgets": "[]"}
            self.store.pools.put(replace(current, metadata=replace(current.metadata, annotations=notes)))

    def change_namespace(self) -> None:
        """A namespace gets other labels."""
        labels: dict[str, str] = self.chance.choice([{}, {"team": "x"}])
        self.store.namespaces.put(namespace(self.chance.choice(["default", "other"]), **labels))

    def change_volume(self) -> None:
        """A claim, a volume, a storage class or the limits of a node change, or go."""
        chance, disk = self.chance, self.chance.choice(DISKS)
        home = chance.choice(["default", "other"])
        node = self._any(self.store.nodes)
        match chance.randrange(7):
            case 0:
                self.store.volume_claims.put(pvc(disk, namespace=home, storage_class="standard"))
            case 1:
                self.store.volume_claims.put(pvc(disk, namespace=home, volume=chance.choice(DISKS)))
            case 2:
                self.store.volume_claims.remove(f"{home}/{disk}")
            case 3:
                zones, driver = chance.choice([(), (Z1,), (Z1, Z2)]), chance.choice([None, *DRIVERS])
                self.store.volumes.put(pv(disk, zones=zones, driver=driver))
            case 4:
                self.store.volumes.remove(disk)
            case 5:
                self.store.storage_classes.put(storage_class(provisioner=chance.choice(DRIVERS)))
            case _ if node is not None:
                limits = {chance.choice(DRIVERS): chance.randrange(1, 4)}
                self.store.csi_nodes.put(csi_node(node.name, **limits))

    def rewrite_volume(self) -> None:
        """A claim or a volume is being deleted, bound, or written without anything new in it."""
        claim, volume, chance = self._any(self.store.volume_claims), self._any(self.store.volumes), self.chance
        if claim is not None:
            phase = chance.choice(["Bound", "Pending", "Lost"])
            notes = chance.choice([{}, {BIND_COMPLETED: "yes"}])
            ends = chance.choice([None, None, self.now])
            meta = replace(claim.metadata, annotations=notes, deletion_timestamp=ends)
            self.store.volume_claims.put(replace(claim, metadata=meta, status=replace(claim.status, phase=phase)))
        if volume is not None:
            ends = chance.choice([None, None, self.now])
            meta = replace(volume.metadata, deletion_timestamp=ends, resource_version=self._name())
            self.store.volumes.put(replace(volume, metadata=meta))

    # -- what cannot be read -------------------------------------------------------------------------------------

    def spoil(self) -> None:
        """An object of any kind cannot be read any more; rarely not even its name."""
        store, chance = self.store, self.chance
        kinds: list[Store[Any]] = [
            *(store.pods, store.pods, store.nodes, store.claims, store.pools, store.daemon_sets, store.namespaces),
            *(store.volume_claims, store.volumes, store.storage_classes, store.csi_nodes, store.pdbs),
        ]
        kind = chance.choice(kinds)
        current = self._any(kind)
        if current is None or current.unreadable:
            return
        self._whole.append((kind, current))
        kind.put(unreadable(current))
        if kind is store.pods and chance.random() < 0.1:
            kind.put(unreadable(current, spec__nodeName=7))

    def mend(self) -> None:
        """What could not be read is as it was before, if it is still there."""
        if self._whole:
            kind, whole = self._whole.pop(self.chance.randrange(len(self._whole)))
            if whole.key in kind:
                kind.put(whole)


HISTORY: tuple[Callable[[WatchHistory], None], ...] = (
    *CHANGES,
    *(WatchHistory.add_special_pod,) * 3,
    *(WatchHistory.add_daemon_pod,) * 3,
    WatchHistory.change_daemon_set,
    *(WatchHistory.rewrite_pod,) * 4,
    WatchHistory.launch,
    *(WatchHistory.arrive,) * 6,
    WatchHistory.confuse_claim,
    *(WatchHistory.rewrite_node,) * 4,
    WatchHistory.terminate_claim,
    WatchHistory.rewrite_pool,
    WatchHistory.change_namespace,
    *(WatchHistory.change_volume,) * 3,
    WatchHistory.rewrite_volume,
    WatchHistory.spoil,
    *(WatchHistory.mend,) * 2,
)
