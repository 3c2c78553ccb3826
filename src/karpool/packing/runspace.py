"""Scratch space of a run: allocated once, enlarged when a run asks for more."""

from typing import TYPE_CHECKING, Final

import numpy as np

from karpool.cluster.arrays import Array, grown
from karpool.packing.kernels import columns as c
from karpool.packing.kernels.memory import LayoutError, Memory
from karpool.packing.options import MinValues, Options

if TYPE_CHECKING:
    from karpool.packing.engine import Engine

_PER_POD: Final = ("pods", "queue", "last_length", "exempt", "target", "level")
_PER_CLAIM: Final = (
    "claim_requirement",
    "claim_template",
    "claim_pods",
    "claim_used",
    "claim_most",
    "claim_least",
    "claim_charged",
    "claim_types",
    "claim_type_count",
    "claim_host",
    "claim_order",
    "claim_held",
    "claim_minimum",
    "claim_relaxed",
)


class RunSpace:
    """The arrays that runs write to; the journal outlives a run, the rest does not."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.ready = False
        self._sizes: tuple[int, ...] = ()

    def fit(self, engine: "Engine") -> None:
        """Allocate for an engine's sizes, unless they are what they were; the journal must be empty."""
        memory, pools = self.memory, engine.tables.pools
        keys, domains = engine.snapshot.topology.domains.size
        types, width = max(1, len(pools.types.types)), len(engine.snapshot.resources)
        classes, nodes = max(1, engine.snapshot.classes.size), len(engine.snapshot.nodes.live)
        ids, minimums = max(1, len(pools.reservation_ids)), max(1, int(pools.min_length.max()))
        longest = int(memory["owned_length"].max() + memory["kept_off_length"].max()) + 1
        sizes = (keys, domains, types, width, classes, nodes, ids, minimums, longest, len(memory["by_host"]))
        if sizes == self._sizes:
            return
        self._sizes = sizes
        if not self.ready:
            memory.put(
                log_array=np.zeros(1 << 14, dtype=np.int8), candidates=_ints(1 << 16), state=_longs(c.STATE_SIZE)
            )
            memory.put(log_index=_longs(1 << 14), log_old=_longs(1 << 14))
            memory.put(pods=_ints(64), queue=_ints(64), last_length=_ints(64), target=_ints(64), level=_ints(64))
            memory.put(exempt=_bytes(64))
        self._fit_claims(8 if not self.ready else len(memory["claim_pods"]), width, types, ids, minimums)
        memory.put(
            miss_mask=_bytes(domains),
            closed=_bytes(nodes),
            codes=_ints(nodes),
            hint=_ints(2, classes),
            batch_class=_ints(c.BATCHES),
            batch_labels=_ints(c.BATCHES),
            batch_exempt=_ints(c.BATCHES),
            batch_stamp=_longs(c.BATCHES),
            batch_place=_ints(c.BATCHES),
            batch_nodes=_bytes(c.BATCHES, keys, domains),
            batch_claims=_bytes(c.BATCHES, keys, domains),
            candidates_start=_ints(classes),
            candidates_resume=_ints(classes),
            candidates_length=np.full(classes, c.UNSET, dtype=np.int32),
            keys=_ints(keys),
            allow_node=_bytes(keys, domains),
            allow_claim=_bytes(keys, domains),
            pinned=_bytes(keys),
            pin_group=_ints(keys),
            pins=_ints(keys, domains),
            pin_count=_ints(keys),
            pin_at=_ints(keys),
            cap_row=_ints(longest),
            cap_most=_ints(longest),
            need_row=_ints(longest),
            need_boot=_bytes(longest),
            fitting=_ints(types),
            type_mark=_longs(types),
            value_mark=_longs(max(1, pools.value_count)),
            new_minimum=_ints(minimums),
            new_held=_bytes(ids),
        )
        self.open = _bytes(nodes)
        self.reservations = self._reservations(engine)
        memory.put(reservations=self.reservations.copy())
        memory["state"][:] = 0
        self.ready = True

    def _fit_claims(self, claims: int, width: int, types: int, ids: int, minimums: int) -> None:
        self.memory.put(
            claim_requirement=_ints(claims),
            claim_template=_ints(claims),
            claim_pods=_ints(claims),
            claim_used=_longs(claims, width),
            claim_most=_longs(claims, width),
            claim_least=_longs(claims, width),
            claim_charged=_longs(claims, width),
            claim_types=_ints(claims, types),
            claim_type_count=_ints(claims),
            claim_host=_ints(claims, max(1, self.memory["by_host"].shape[0])),
            claim_mark=_longs(c.BATCHES, claims),
            claim_order=_ints(claims),
            claim_held=_bytes(claims, ids),
            claim_minimum=_ints(claims, minimums),
            claim_relaxed=_bytes(claims),
        )

    @staticmethod
    def _reservations(engine: "Engine") -> Array:
        pools = engine.tables.pools
        least: dict[str, int] = {}
        for entry in pools.types.types:
            for offering in entry.offerings:
                if offering.reserved and offering.reservation_id is not None:
                    name, count = offering.reservation_id, offering.reservation_capacity
                    least[name] = min(count, least.get(name, count))
        return np.array([least[name] for name in pools.reservation_ids] or [0], dtype=np.int32)

    def begin(self, pods: Array, exempt: Array, closed: Array | None, limits: Array) -> None:
        """Set up the queue of a new run; the journal and the lists of candidates stay."""
        memory, count = self.memory, len(pods)
        self.lend(count, closed, limits)
        memory["pods"][:count] = pods
        memory["queue"][:count] = np.arange(count)
        memory["last_length"][:count] = c.UNSET
        memory["exempt"][:count] = exempt
        memory["target"][:count] = c.UNPLACED
        memory["level"][:count] = c.UNSET
        memory["hint"][:] = 0
        memory["batch_class"][:] = c.UNSET
        state = memory["state"]
        state[c.HEAD], state[c.WAITING], state[c.QUEUED], state[c.CLAIMS] = 0, count, count, 0

    def lend(self, pods: int, closed: Array | None, limits: Array) -> None:
        """Make room for so many pods, and list what a run uses up."""
        memory = self.memory
        if closed is not None and len(closed) < len(self.open):
            raise LayoutError("closed", "nodes", has=len(closed), needs=len(self.open))
        if pods > len(memory["pods"]):
            memory.put(**{name: grown(memory[name], (pods,)) for name in _PER_POD})
        memory.put(closed=self.open if closed is None else closed)
        memory["limits"][:] = limits
        memory["reservations"][:] = self.reservations

    def set_modes(self, options: Options, *, existing_only: bool, strict_reserved: bool) -> None:
        """Tell the kernels how to run."""
        state = self.memory["state"]
        state[c.EXISTING_ONLY] = existing_only
        state[c.STRICT_RESERVED] = strict_reserved
        state[c.BEST_EFFORT] = options.min_values is MinValues.BEST_EFFORT

    def grow_log(self) -> None:
        """Double the journal."""
        size = (len(self.memory["log_array"]) * 2,)
        names = ("log_array", "log_index", "log_old")
        self.memory.put(**{name: grown(self.memory[name], size) for name in names})

    def grow_claims(self) -> None:
        """Make room for more open claims."""
        memory = self.memory
        size = len(memory["claim_pods"]) * 4
        memory.put(**{name: grown(memory[name], (size, *memory[name].shape[1:])) for name in _PER_CLAIM})
        memory.put(claim_mark=grown(memory["claim_mark"], (c.BATCHES, size)))

    def grow_candidates(self) -> None:
        """Make room for more lists of candidates."""
        held = self.memory["candidates"]
        self.memory.put(candidates=grown(held, (len(held) * 2,)))

    def forget_candidates(self) -> None:
        """List candidates anew: those that are listed were found while nodes were fuller than they are now."""
        self.memory["candidates_length"][:] = c.UNSET
        self.memory["state"][c.CANDIDATES_USED] = 0


def _ints(*shape: int) -> Array:
    return np.zeros(shape, dtype=np.int32)


def _longs(*shape: int) -> Array:
    return np.zeros(shape, dtype=np.int64)


def _bytes(*shape: int) -> Array:
    return np.zeros(shape, dtype=np.uint8)
