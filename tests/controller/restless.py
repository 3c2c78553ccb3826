"""A store that changes at random, in every way that decisions may have to take note of."""

from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import TypeVar

from msgspec.structs import replace
from tests.disruption.scenarios import NOW, node, pool_of
from tests.factories import affinity_to, daemon_set, pdb, pod, spread

from karpool.controller.store import ClusterStore
from karpool.execution.tickets import COMMAND, Ticket
from karpool.kube.store import Store
from karpool.model.labels import DO_NOT_DISRUPT, HOSTNAME, INITIALIZED
from karpool.model.pod import Pod
from karpool.model.scheduling import Taint
from karpool.wire.objects import Condition, Object

T = TypeVar("T", bound=Object)
SIZES = ("small", "medium", "large")
POOLS = ("first", "second")
APPS = ("a", "b", "c")


class Restless:
    """Puts, changes and removes objects; `step` does one of these."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.store = ClusterStore()
        self.now = NOW
        self._count = 0
        limits = chance.choice([None, {"cpu": "60"}])
        policy = chance.choice(["WhenEmptyOrUnderutilized", "Balanced"])
        self.store.pools.put(pool_of(POOLS[0], policy=policy, limits=limits, budgets=["50%"], **self._windows()))
        self.store.pools.put(pool_of(POOLS[1], consolidate_after="1m", budgets=["2"]))
        self.store.daemon_sets.put(daemon_set("agent", cpu="100m"))
        for _ in range(8):
            self.add_node()

    def _windows(self) -> dict[str, str | None]:
        after, period = self.chance.choice(["0s", "30s", "5m"]), self.chance.choice([None, "2m"])
        return {"consolidate_after": after, "grace_period": period}

    def _name(self) -> str:
        self._count += 1
        return f"n{self._count}"

    def _moment(self) -> datetime:
        return self.now - timedelta(seconds=self.chance.randrange(600))

    def _any(self, store: Store[T]) -> T | None:
        return self.chance.choice(store.listed()) if len(store) else None

    def step(self) -> None:
        """One change."""
        self.chance.choice(CHANGES)(self)

    # -- pods ----------------------------------------------------------------------------------------------------

    def add_pod(self) -> None:
        """A pod comes, on a node or not, perhaps with rules."""
        if len(self.store.pods) < 40:
            self.store.pods.put(self._pod())

    def _pod(self) -> Pod:
        chance, app = self.chance, self.chance.choice(APPS)
        nodes = [node.name for node in self.store.nodes.listed()]
        rules: list[dict[str, object]] = [
            {},
            {"ports": [chance.choice([80, 81])]},
            {"spread": [spread({"app": app})]},
            {"anti": [affinity_to({"app": app})]},
            {"annotations": {DO_NOT_DISRUPT: chance.choice(["true", "2m", "10m"])}, "started": self._moment()},
        ]
        place = chance.choice(nodes) if nodes and chance.random() < 0.7 else None
        return pod(
            self._name(),
            node=place,
            pending=place is None,
            cpu=chance.choice(["100m", "300m", "700m", "1"]),
            labels={"app": app},
            ready=chance.random() < 0.8,
            **chance.choice(rules * 2 + [{}] * 6),
        )

    def change_pod(self) -> None:
        """A pod gets a node, begins to go, is gone, is guarded or not, or fares differently."""
        current = self._any(self.store.pods)
        if current is None:
            return
        meta, node = current.metadata, self._any(self.store.nodes)
        match self.chance.randrange(5):
            case 0:
                self.store.pods.remove(current.key)
            case 1 if node is not None and not current.spec.node_name:
                self.store.pods.put(replace(current, spec=replace(current.spec, node_name=node.name)))
            case 1 | 2:
                self.store.pods.put(replace(current, metadata=replace(meta, deletion_timestamp=self.now)))
            case 3:
                pdb_source = {} if meta.annotations else {DO_NOT_DISRUPT: "5m"}
                status = replace(current.status, start_time=self.now)
                self.store.pods.put(replace(current, metadata=replace(meta, annotations=pdb_source), status=status))
            case _:
                self.store.pods.put(replace(current, status=replace(current.status, conditions=(self._ready(),))))

    def _ready(self) -> Condition:
        return Condition(type="Ready", status=self.chance.choice(["True", "False"]))

    # -- machines ------------------------------------------------------------------------------------------------

    def add_node(self) -> None:
        """A node comes, or its claim first, or no claim at all."""
        chance = self.chance
        claim_fields = {"last_pod_event": self._moment(), "termination_grace_period": chance.choice([None, None, "1h"])}
        size, managed = chance.choice(SIZES), chance.random() < 0.9
        made = node(self._name(), size, pool=chance.choice(POOLS), managed=managed, claim=claim_fields)
        parts = [(self.store.nodes, made.node), (self.store.claims, made.claim)]
        for store, part in chance.sample(parts, len(parts)):
            if part is not None:
                store.put(part)  # type: ignore[arg-type]

    def change_node(self) -> None:
        """A node gets or loses a taint, its label, its readiness or its name, or is gone."""
        current = self._any(self.store.nodes)
        if current is None:
            return
        labels = dict(current.metadata.labels)
        match self.chance.randrange(4):
            case 0:
                taint = Taint(key="x", effect=self.chance.choice(["NoSchedule", "PreferNoSchedule"]))
                self.store.nodes.put(
                    replace(current, spec=replace(current.spec, taints=() if current.spec.taints else (taint,)))
                )
            case 1:
                if labels.pop(INITIALIZED, None) is None:
                    labels[INITIALIZED] = "true"
                self.store.nodes.put(replace(current, metadata=replace(current.metadata, labels=labels)))
            case 2:
                self.store.nodes.put(replace(current, status=replace(current.status, conditions=(self._ready(),))))
            case _ if self.chance.random() < 0.4:
                self.store.nodes.remove(current.name)
                if self.chance.random() < 0.5:
                    name = self._name()
                    meta = replace(current.metadata, name=name, labels={**labels, HOSTNAME: name})
                    self.store.nodes.put(replace(current, metadata=meta))

    def change_claim(self) -> None:
        """A claim has a pod event, drifts, is in a command or no more, is deleted or gone."""
        current, chance = self._any(self.store.claims), self.chance
        if current is None:
            return
        status, meta = current.status, current.metadata
        match chance.randrange(6):
            case 0 | 1:
                self.store.claims.put(replace(current, status=replace(status, last_pod_event_time=self.now)))
            case 2:
                others = tuple(entry for entry in status.conditions if entry.type != "Drifted")
                drifted = Condition(type="Drifted", status="True", last_transition_time=self.now)
                both = (*others, drifted) if others == status.conditions else others
                self.store.claims.put(replace(current, status=replace(status, conditions=both)))
            case 3:
                notes = {} if COMMAND in meta.annotations else {COMMAND: self._ticket(status.node_name)}
                self.store.claims.put(replace(current, metadata=replace(meta, annotations=notes)))
            case 4 if chance.random() < 0.3:
                self.store.claims.put(replace(current, metadata=replace(meta, deletion_timestamp=self.now)))
            case 5 if chance.random() < 0.3:
                self.store.claims.remove(current.name)

    def _ticket(self, node: str) -> str:
        """A command that may name nodes whose claims do not know of it."""
        nodes = [entry.name for entry in self.store.nodes.listed()]
        named = {node or "gone", *self.chance.sample(nodes, min(2, len(nodes)))}
        made = Ticket(id=self._name(), created=self.now, method="m", cause="Underutilized", nodes=tuple(sorted(named)))
        return made.on(node).value or ""

    # -- rules ---------------------------------------------------------------------------------------------------

    def change_budget(self) -> None:
        """A budget comes or goes, opens or shuts."""
        current, chance = self._any(self.store.pdbs), self.chance
        if current is not None and chance.random() < 0.6:
            healthy = chance.randrange(3)
            status = replace(
                current.status, disruptions_allowed=chance.randrange(2), current_healthy=healthy, desired_healthy=1
            )
            self.store.pdbs.put(replace(current, status=status))
        elif current is not None and chance.random() < 0.4:
            self.store.pdbs.remove(current.key)
        else:
            most, policy = chance.choice([0, 1, 1]), chance.choice(["", "AlwaysAllow"])
            covered = {"app": chance.choice(APPS)}
            name = f"b{chance.randrange(4)}"
            self.store.pdbs.put(
                pdb(name, covered, allowed=chance.randrange(2), max_unavailable=most, unhealthy_policy=policy)
            )

    def change_pool(self) -> None:
        """A pool becomes ready or not, or gets other windows and budgets; or the daemons ask for something else."""
        current, chance = self._any(self.store.pools), self.chance
        match chance.randrange(3):
            case 0 if current is not None:
                self.store.pools.put(replace(current, status=replace(current.status, conditions=(self._ready(),))))
            case 1 if current is not None:
                other = pool_of("other", budgets=[chance.choice(["1", "50%"])], **self._windows()).spec.disruption
                self.store.pools.put(replace(current, spec=replace(current.spec, disruption=other)))
            case _ if chance.random() < 0.3:
                self.store.daemon_sets.put(daemon_set("agent", cpu=chance.choice(["50m", "100m"])))


CHANGES: tuple[Callable[[Restless], None], ...] = (
    *(Restless.add_pod,) * 4,
    *(Restless.change_pod,) * 5,
    Restless.add_node,
    *(Restless.change_node,) * 4,
    *(Restless.change_claim,) * 6,
    *(Restless.change_budget,) * 4,
    Restless.change_pool,
)
