"""Scratch space of a run: allocated once, enlarged when a run needs more."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.packing.kernels import columns as c
from karpool.packing.kernels.memory import LayoutError, Memory
from karpool.packing.options import MinValues, Options

_EXEMPTIONS: Final = 2
"""A pod is exempt, or it is not."""


class RunSpace:
    """The arrays that runs write to; the journal outlives a run, the rest does not."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._sizes: dict[str, int] = {}
        # Axes that grow while kernels run.
        self._room = {"log": 1 << 14, "candidates": 1 << 16, "queue": 64, "claims": 8}

    def fit(self, sizes: Mapping[str, int], reservations: Array) -> None:
        """Allocate for these sizes, unless they are what they were; the journal must be empty."""
        self.reservations = reservations
        fixed = {"exemptions": _EXEMPTIONS, "batches": c.BATCHES, "state": c.STATE_SIZE}
        axes = {axis for column in c.SCRATCH.values() for axis in column.axes} - self._room.keys()
        sizes = {axis: size for axis, size in {**sizes, **fixed}.items() if axis in axes}
        if sizes != self._sizes:
            self._sizes = sizes
            self.memory.put(**{name: column.fitted(sizes | self._room) for name, column in c.SCRATCH.items()})
            self._all_open = self.memory["closed"]

    def grow(self, axis: str, least: int = 0) -> None:
        """Make room for twice as many along an axis; what the arrays contain stays."""
        self._room[axis] = max(least, 2 * self._room[axis])
        sizes, memory = self._sizes | self._room, self.memory
        longer = {name: column for name, column in c.SCRATCH.items() if axis in column.axes}
        memory.put(**{name: column.fitted(sizes, memory[name]) for name, column in longer.items()})

    def start(self, pods: Array, exempt: Array, closed: Array | None, limits: Array) -> None:
        """Fill the queue of a new run; the journal and the lists of candidates stay."""
        memory, count = self.memory, len(pods)
        self.reset(count, closed, limits)
        memory["pods"][:count] = pods
        memory["queue"][:count] = np.arange(count)
        memory["last_length"][:count] = c.UNSET
        memory["exempt"][:count] = exempt
        memory["target"][:count] = c.UNPLACED
        memory["hint"][:] = 0
        memory["batch_class"][:] = c.UNSET
        state = memory["state"]
        state[c.HEAD], state[c.WAITING], state[c.QUEUED], state[c.CLAIMS] = 0, count, count, 0

    def reset(self, pods: int, closed: Array | None, limits: Array) -> None:
        """Make room for so many pods, and restore limits and reservations, which a run uses up."""
        memory = self.memory
        if closed is not None and len(closed) < len(self._all_open):
            raise LayoutError("closed", "nodes", has=len(closed), needs=len(self._all_open))
        if pods > len(memory["pods"]):
            self.grow("queue", pods)
        memory.put(closed=self._all_open if closed is None else closed)
        memory["limits"][:] = limits
        memory["reservations"][:] = self.reservations

    def set_modes(self, options: Options, *, existing_only: bool, strict_reserved: bool) -> None:
        state = self.memory["state"]
        state[c.EXISTING_ONLY] = existing_only
        state[c.STRICT_RESERVED] = strict_reserved
        state[c.BEST_EFFORT] = options.min_values is MinValues.BEST_EFFORT

    def forget_candidates(self) -> None:
        """List candidates again: the present lists were made while nodes were fuller than they are now."""
        self.memory["candidates_length"][:] = c.UNSET
        self.memory["state"][c.CANDIDATES_USED] = 0
