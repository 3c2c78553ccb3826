"""The engine's tables: what pools offer, and what every pod class makes of it.

Built from a snapshot and a catalogue; `sync` takes note of classes, groups and domains that came with later updates.
"""

import numpy as np

from karpool.catalog.instance_types import Catalog
from karpool.cluster.arrays import Array, Ragged
from karpool.cluster.constraints import ANY_ADDRESS, Port
from karpool.cluster.groups import Group, hard
from karpool.cluster.pod_classes import Signature
from karpool.cluster.resources import UNLIMITED
from karpool.cluster.snapshot import Snapshot
from karpool.model.labels import HOSTNAME
from karpool.model.requirements import ANY, Requirement, Requirements
from karpool.model.scheduling import untolerated
from karpool.packing.kernels.columns import UNSET
from karpool.packing.limit_usage import LimitUsage
from karpool.packing.options import MinValues, Options
from karpool.packing.requirement_table import RequirementTable
from karpool.packing.templates import NodeTemplate, templates
from karpool.packing.type_table import TypeTable


class PoolTables:
    """What new nodes of each pool would be like, in columns; fixed for a catalogue and a set of pools."""

    def __init__(self, snapshot: Snapshot, catalog: Catalog, options: Options) -> None:
        self.snapshot = snapshot
        self.options = options
        self.types = TypeTable(catalog, reserved=options.reserved_capacity)
        self.templates: list[NodeTemplate] = templates(snapshot.objects.node_pools, catalog, options.seed)
        allocatable, self.capacity = self.types.rooms(snapshot.resources)
        for template in self.templates:
            snapshot.resources.learn({k: v for k, v in template.pool.spec.limits.items() if k != "nodes"})
        snapshot.nodes.widen()
        self.suitable = [self.types.suitable(template.requirements) for template in self.templates]
        self.runs = [self._daemons_on(template) for template in self.templates]
        self.room = self._rooms(allocatable)
        self.usable = Ragged()
        self.widen()
        self._list_minimums()
        for number in range(len(self.templates)):
            self.usable.append(self._usable(number))
        self._find_largest()
        self.limited = np.array([bool(t.pool.spec.limits) for t in self.templates] or [False], dtype=np.uint8)
        self.usage = LimitUsage(snapshot, self.templates)
        ids = {self.types.offerings[o].reservation_id for o in self.types.reserved}
        self.reservation_ids = sorted(name for name in ids if name is not None)

    def _daemons_on(self, template: NodeTemplate) -> Array:
        """Which daemons run on which types of a pool."""
        runs = np.zeros((len(self.snapshot.daemons), len(self.types.types)), dtype=np.bool_)
        free = self.types.catalog.well_known
        for number, daemon in enumerate(self.snapshot.daemons):
            if daemon.tolerates(template.taints):
                for wanted in daemon.alternatives:
                    if template.requirements.conflict(wanted, undefined=free) is None:
                        runs[number] |= self.types.requirements.meet(wanted)
        return runs

    def _rooms(self, allocatable: Array) -> Array:
        """What each type of each pool has left for pods after its daemons."""
        room = np.repeat(allocatable[None], max(1, len(self.templates)), axis=0)
        for number, runs in enumerate(self.runs):
            for daemon, here in zip(self.snapshot.daemons, runs, strict=True):
                for column, amount in self.snapshot.resources.request(daemon.requests).items():
                    room[number, here, column] -= amount
        return room

    def widen(self) -> None:
        """Make columns for resources that are new: no type has any, but each attaches any number of volumes."""
        resources, before = self.snapshot.resources, self.room.shape[2]
        added = len(resources) - before
        if added:
            self.room = np.pad(self.room, ((0, 0), (0, 0), (0, added)))
            self.capacity = np.pad(self.capacity, ((0, 0), (0, added)))
            self.room[:, :, [column for column in resources.attach if column >= before]] = UNLIMITED
            self._find_largest()

    def _find_largest(self) -> None:
        """The most that any usable type of each pool has, of every resource: left for pods, and in all."""
        self.most = np.zeros((self.room.shape[0], self.room.shape[2]), dtype=np.int64)
        self.largest = np.zeros_like(self.most)
        for number in range(self.usable.rows):
            types = self.usable.row(number)
            if types:
                self.most[number] = self.room[number, types].max(axis=0)
                self.largest[number] = self.capacity[types].max(axis=0)

    def _list_minimums(self) -> None:
        """The keys for which pools want several values, and the values that types have for them."""
        self.minimums: list[tuple[str, int]] = []
        self.min_start = np.zeros(max(1, len(self.templates)), dtype=np.int32)
        self.min_length = np.zeros_like(self.min_start)
        for number, template in enumerate(self.templates):
            wanted = [(k, r.min_values) for k, r in template.requirements.items() if r.min_values is not None]
            self.min_start[number], self.min_length[number] = len(self.minimums), len(wanted)
            self.minimums += wanted
        self.values = Ragged()
        numbers: dict[str, int] = {}
        for key, _ in self.minimums:
            for values in self.types.requirements.values(key):
                self.values.append([numbers.setdefault(value, len(numbers)) for value in sorted(values)])
        self.value_count = len(numbers)

    def _usable(self, number: int) -> list[int]:
        """The types that a pool can use at all, if it reaches its minimums with them."""
        fine = self.suitable[number] & (self.room[number] >= 0).all(axis=1)
        types = np.flatnonzero(fine)
        first, count = int(self.min_start[number]), int(self.min_length[number])
        if self.options.min_values is MinValues.STRICT:
            for at, (_, wanted) in enumerate(self.minimums[first : first + count]):
                found: set[int] = set()
                for type_ in types:
                    found |= set(self.values.row((first + at) * len(self.types.types) + int(type_)))
                if len(found) < wanted:
                    return []
        listed: list[int] = types.tolist()
        return listed


class TableCache:
    """Keeps the kernels' tables in step with the snapshot."""

    def __init__(self, snapshot: Snapshot, catalog: Catalog, options: Options) -> None:
        self.snapshot = snapshot
        self.pools = PoolTables(snapshot, catalog, options)
        self.free_keys = catalog.well_known
        self._learn_domains()
        self.requirements = RequirementTable(self.pools.types, snapshot.topology.domains, self.free_keys)
        self.template_requirements = np.array(
            [self.requirements.number(t.requirements) for t in self.pools.templates] or [0], dtype=np.int32
        )
        self._known: tuple[int, ...] = ()
        self._fixed: dict[str, Array] = {}
        self.host_ok = np.zeros((1, 1), dtype=np.uint8)
        self.sync()

    def _learn_domains(self) -> None:
        """Make the domains known that pools offer, for every topology key."""
        topology = self.snapshot.topology
        self._offered: list[dict[int, set[int]]] = []
        for number, template in enumerate(self.pools.templates):
            usable = np.zeros(len(self.pools.types.types), dtype=np.bool_)
            usable[self.pools.usable.row(number)] = True
            offered: dict[int, set[int]] = {}
            for name, key in topology.domains.keys.items():
                if name != HOSTNAME:
                    values = self.pools.types.offered_values(template.requirements, usable, name)
                    offered[key] = {topology.domain(key, value) for value in sorted(values)}
            self._offered.append(offered)

    def sync(self) -> None:
        """Bring all tables up to date with the snapshot."""
        snapshot = self.snapshot
        known = (
            snapshot.classes.size,
            len(snapshot.classes.signatures),
            len(snapshot.topology.groups),
            len(snapshot.topology.filters),
            len(snapshot.topology.domains.keys),
            sum(len(values) for values in snapshot.topology.domains.values),
            len(snapshot.classes.port_sets),
            len(snapshot.resources),
        )
        if known != self._known:
            if not self._known or known[4] != self._known[4]:
                self._learn_domains()
            self._known = known
            self.pools.widen()
            self.requirements.locate_all(len(snapshot.topology.filters))
            self._judge_signatures(snapshot.classes.signatures)
            self._judge_classes()
            self._judge_groups(snapshot.topology.groups)
            self._judge_ports()
            self._fixed = self._tables()

    def judge_hosts(self) -> None:
        """Find out which nodes are hosts that pods ask for by name."""
        nodes, asked = self.snapshot.nodes, self._asked_hosts
        if not asked:
            return
        self.host_ok = np.zeros((len(asked), max(1, len(nodes.states))), dtype=np.uint8)
        rows = [(nodes.get(row).labels[HOSTNAME], row) for row in nodes.rows.values()]
        by_host: dict[str, list[int]] = {}
        for host, row in rows:
            by_host.setdefault(host, []).append(row)
        for number, wanted in enumerate(asked):
            if wanted.complement:
                self.host_ok[number, [row for host, row in rows if wanted.has(host)]] = 1
            else:
                self.host_ok[number, [row for host in wanted.values for row in by_host.get(host, ())]] = 1

    def _judge_signatures(self, signatures: list[Signature]) -> None:
        pools, size = self.pools.templates, max(1, len(signatures))
        self.incoming = np.zeros(size, dtype=np.int32)
        self.host = np.full(size, UNSET, dtype=np.int32)
        self.new_host = np.ones(size, dtype=np.uint8)
        self.tolerates = np.zeros((size, max(1, len(pools))), dtype=np.uint8)
        self.volumes = Ragged()
        self._asked_hosts: list[Requirement] = []
        for number, signature in enumerate(signatures):
            self.incoming[number] = self.requirements.incoming_number(signature.requirements.without(HOSTNAME))
            self.volumes.append([self.requirements.incoming_number(alternative) for alternative in signature.volumes])
            wanted = signature.requirements.get(HOSTNAME)
            if wanted is not None:
                self.host[number] = len(self._asked_hosts)
                self.new_host[number] = wanted.complement and not wanted.bounded
                self._asked_hosts.append(wanted)
            for pool, template in enumerate(pools):
                self.tolerates[number, pool] = untolerated(template.taints, signature.tolerations) is None

    def _judge_classes(self) -> None:
        domains = self.snapshot.topology.domains
        keys, most = domains.size
        stricts: dict[Requirements, int] = {}
        levels = self.snapshot.classes.levels
        self.class_strict = np.array(
            [stricts.setdefault(x.strict, len(stricts)) for x in levels] or [0], dtype=np.int32
        )
        self.strict_mask = np.ones((max(1, len(stricts)), keys, most), dtype=np.uint8)
        for wanted, number in stricts.items():
            for name, allowed in wanted.items():
                key = domains.keys.get(name)
                if key is not None:
                    for value, domain in domains.values[key].items():
                        self.strict_mask[number, key, domain] = allowed.has(value)

    def _judge_groups(self, groups: list[Group]) -> None:
        topology, pools = self.snapshot.topology, self.pools.templates
        self.pool_known = np.zeros((max(1, len(groups)), topology.domains.size[1]), dtype=np.uint8)
        self.group_admits = np.ones_like(self.pool_known)
        self.template_seen = np.ones((len(topology.filters), max(1, len(pools))), dtype=np.uint8)
        for number, nodes in enumerate(topology.filters):
            for pool, template in enumerate(pools):
                if nodes.tolerations is not None:
                    seen = untolerated(hard(template.taints), nodes.tolerations) is None
                    self.template_seen[number, pool] = seen
        for number, group in enumerate(groups):
            if group.by_host:
                continue
            for pool, offered in enumerate(self._offered):
                if self.template_seen[topology.filter[number], pool]:
                    self.pool_known[number, list(offered[int(topology.key[number])])] = 1
            if group.nodes.alternatives:
                admitted = [wanted.get(group.key, ANY) for wanted in group.nodes.alternatives]
                for value, domain in topology.domains.values[int(topology.key[number])].items():
                    self.group_admits[number, domain] = any(allowed.has(value) for allowed in admitted)

    def _judge_ports(self) -> None:
        sets = self.snapshot.classes.port_sets
        pools, daemons = self.pools, self.snapshot.daemons
        self.clash = np.zeros((len(sets), max(1, len(pools.templates)), max(1, len(pools.types.types))), dtype=np.uint8)
        for ports, number in sets.items():
            for at, daemon in enumerate(daemons):
                if any(_conflict(one, other) for one in ports for other in daemon.ports):
                    for pool, runs in enumerate(pools.runs):
                        self.clash[number, pool, : runs.shape[1]] |= runs[at].astype(np.uint8)

    def columns(self) -> dict[str, Array]:
        """The tables as the kernels take them, but for the one of hosts."""
        return self._fixed | self.growing()

    def _tables(self) -> dict[str, Array]:
        """The tables that are worked out anew only when rules or domains are new."""
        pools = self.pools
        types = max(1, len(pools.types.types))
        rows = max(1, len(pools.minimums))
        ids = {name: number for number, name in enumerate(pools.reservation_ids)}
        reserved = pools.types.reserved
        return dict(  # noqa: C408 - names of columns, not keys
            signature_incoming=self.incoming,
            signature_host=self.host,
            signature_new_host=self.new_host,
            volumes_start=self.volumes.start,
            volumes_length=self.volumes.length,
            volumes=self.volumes.items,
            tolerates=self.tolerates,
            class_strict=self.class_strict,
            strict_mask=self.strict_mask,
            pool_known=self.pool_known,
            group_admits=self.group_admits,
            template_seen=self.template_seen,
            type_room=pools.room,
            type_capacity=pools.capacity,
            template_requirement=self.template_requirements,
            template_start=pools.usable.start,
            template_length=pools.usable.length,
            template_types=pools.usable.items,
            template_limited=pools.limited,
            template_most=pools.most,
            template_largest=pools.largest,
            clash=self.clash,
            min_start=pools.min_start,
            min_length=pools.min_length,
            min_wanted=np.array([wanted for _, wanted in pools.minimums] or [0], dtype=np.int32),
            value_start=_square(pools.values.start, rows, types),
            value_length=_square(pools.values.length, rows, types),
            values=pools.values.items,
            reserved_type=np.array([pools.types.type_of[o] for o in reserved] or [0], dtype=np.int32),
            reserved_id=np.array(
                [ids[pools.types.offerings[o].reservation_id or ""] for o in reserved] or [0], dtype=np.int32
            ),
        )

    def growing(self) -> dict[str, Array]:
        """The tables that grow while kernels run."""
        names = (
            "narrow",
            "types_of",
            "mask_of",
            "concrete",
            "single",
            "domain_head",
            "domain_next",
            "domain_key",
            "domain_mask",
            "domain_result",
            "claim_seen",
            "reserved_ok",
            "priced",
            "worst_price",
        )
        return {name: getattr(self.requirements, name) for name in names}


def _square(flat: Array, rows: int, columns: int) -> Array:
    padded = np.zeros(rows * columns, dtype=np.int32)
    count = min(len(flat), len(padded))
    padded[:count] = flat[:count]
    return padded.reshape(rows, columns)


def _conflict(one: Port, other: Port) -> bool:
    return one[1:] == other[1:] and (one[0] == other[0] or ANY_ADDRESS in (one[0], other[0]))
