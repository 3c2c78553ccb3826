"""The engine's tables: what pools offer, and what every pod class makes of it.

Built from a snapshot and a catalogue; `sync` adds classes, groups and domains that came with later updates.
"""

from itertools import product

import numpy as np

from karpool.catalog.instance_types import Catalog
from karpool.cluster.arrays import Array, Ragged
from karpool.cluster.constraints import ANY_ADDRESS, Port
from karpool.cluster.groups import Group, hard
from karpool.cluster.pod_classes import Signature
from karpool.cluster.snapshot import Snapshot
from karpool.model.labels import HOSTNAME
from karpool.model.operating_systems import needs_windows
from karpool.model.requirements import ANY, Requirement, Requirements
from karpool.model.scheduling import untolerated
from karpool.packing.host_table import HostTable
from karpool.packing.kernels.columns import UNSET
from karpool.packing.kernels.memory import ragged_arrays
from karpool.packing.options import Options
from karpool.packing.pool_tables import PoolTables
from karpool.packing.requirement_table import RequirementTable


class TableCache:
    def __init__(self, snapshot: Snapshot, catalog: Catalog, options: Options) -> None:
        self.snapshot = snapshot
        self.pools = PoolTables(snapshot, catalog, options)
        self.free_keys = catalog.well_known
        self._learn_domains()
        self.requirements = RequirementTable(
            self.pools.types, snapshot.topology.domains, self.free_keys, self.pools.counted_values
        )
        self.template_requirements = np.array(
            [self.requirements.number(t.requirements) for t in self.pools.templates] or [0], dtype=np.int32
        )
        self._known: tuple[int, ...] = ()
        self._fixed: dict[str, Array] = {}
        self.host_ok = np.zeros((1, 1), dtype=np.uint8)
        self.sync()

    def _learn_domains(self) -> None:
        """Number the domains that pools offer, for every topology key."""
        topology = self.snapshot.topology
        self._offered: list[dict[int, set[int]]] = []
        for number, template in enumerate(self.pools.templates):
            usable = self.pools.usable_mask(number)
            offered: dict[int, set[int]] = {}
            for name, key in topology.domains.keys.items():
                if name != HOSTNAME:
                    values = self.pools.types.offered_values(template.requirements, usable, name)
                    offered[key] = {topology.domain(key, value) for value in sorted(values)}
            self._offered.append(offered)

    def sync(self) -> None:
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
        """Mark the nodes that pods ask for by host name."""
        if self._host_requirements:
            self.host_ok = self._hosts.marked(self.snapshot.nodes)

    def _judge_signatures(self, signatures: list[Signature]) -> None:
        pools, size = self.pools.templates, max(1, len(signatures))
        self.incoming = np.zeros(size, dtype=np.int32)
        self.host = np.full(size, UNSET, dtype=np.int32)
        self.new_host = np.ones(size, dtype=np.uint8)
        self.tolerates = np.zeros((size, max(1, len(pools))), dtype=np.uint8)
        self.volumes = Ragged()
        self._host_requirements: list[Requirement] = []
        windows = [needs_windows(template.requirements) for template in pools]
        for number, signature in enumerate(signatures):
            self.incoming[number] = self.requirements.incoming_number(signature.requirements.without(HOSTNAME))
            self.volumes.append([self.requirements.incoming_number(alternative) for alternative in signature.volumes])
            host = signature.requirements.get(HOSTNAME)
            if host is not None:
                self.host[number] = len(self._host_requirements)
                self.new_host[number] = host.complement and not host.bounded
                self._host_requirements.append(host)
            for pool, template in enumerate(pools):
                self.tolerates[number, pool] = untolerated(template.taints, signature.tolerations) is None and (
                    needs_windows(signature.requirements) or not windows[pool]
                )
        self._hosts = HostTable(self._host_requirements)

    def _judge_classes(self) -> None:
        domains = self.snapshot.topology.domains
        keys, most = domains.size
        stricts: dict[Requirements, int] = {}
        levels = self.snapshot.classes.levels
        self.class_strict = np.array(
            [stricts.setdefault(level.strict, len(stricts)) for level in levels] or [0], dtype=np.int32
        )
        self.strict_mask = np.ones((max(1, len(stricts)), keys, most), dtype=np.uint8)
        for requirements, number in stricts.items():
            for name, allowed in requirements.items():
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
                admitted = [rules.get(group.key, ANY) for rules in group.nodes.alternatives]
                for value, domain in topology.domains.values[int(topology.key[number])].items():
                    self.group_admits[number, domain] = any(allowed.has(value) for allowed in admitted)

    def _judge_ports(self) -> None:
        sets = self.snapshot.classes.port_sets
        pools, daemons = self.pools, self.snapshot.daemons
        self.clash = np.zeros((len(sets), max(1, len(pools.templates)), max(1, len(pools.types.types))), dtype=np.uint8)
        for ports, number in sets.items():
            for at, daemon in enumerate(daemons):
                if any(_conflict(port, taken) for port, taken in product(ports, daemon.ports)):
                    for pool, runs in enumerate(pools.runs):
                        self.clash[number, pool, : runs.shape[1]] |= runs[at].astype(np.uint8)

    def columns(self) -> dict[str, Array]:
        """The tables as the kernels take them, but for the one of hosts."""
        return self._fixed | self.requirements.columns

    def _tables(self) -> dict[str, Array]:
        """The tables that change only when rules or domains are new."""
        pools = self.pools
        types = max(1, len(pools.types.types))
        rows = max(1, len(pools.minimums))
        ids = {name: number for number, name in enumerate(pools.reservation_ids)}
        reserved = pools.types.reserved
        return dict(
            signature_incoming=self.incoming,
            signature_host=self.host,
            signature_new_host=self.new_host,
            tolerates=self.tolerates,
            class_strict=self.class_strict,
            strict_mask=self.strict_mask,
            pool_known=self.pool_known,
            group_admits=self.group_admits,
            template_seen=self.template_seen,
            type_room=pools.room,
            type_capacity=pools.capacity,
            template_requirement=self.template_requirements,
            **ragged_arrays(volumes=self.volumes, template_types=pools.usable),
            template_limited=pools.limited,
            template_most=pools.most,
            template_largest=pools.largest,
            clash=self.clash,
            min_start=pools.min_start,
            min_length=pools.min_length,
            min_wanted=np.array([minimum for _, minimum in pools.minimums] or [0], dtype=np.int32),
            value_start=_square(pools.values.start, rows, types),
            value_length=_square(pools.values.length, rows, types),
            values=pools.values.items,
            reserved_type=np.array([pools.types.type_of[o] for o in reserved] or [0], dtype=np.int32),
            reserved_id=np.array(
                [ids[pools.types.offerings[o].reservation_id or ""] for o in reserved] or [0], dtype=np.int32
            ),
        )


def _square(flat: Array, rows: int, columns: int) -> Array:
    padded = np.zeros(rows * columns, dtype=np.int32)
    count = min(len(flat), len(padded))
    padded[:count] = flat[:count]
    return padded.reshape(rows, columns)


def _conflict(port: Port, taken: Port) -> bool:
    return port[1:] == taken[1:] and (port[0] == taken[0] or ANY_ADDRESS in (port[0], taken[0]))
