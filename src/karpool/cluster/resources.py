"""Resources as whole numbers in columns: cpu in millicores, everything else in whole units."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from karpool.wire.quantity import Quantity

Vector = npt.NDArray[np.int64]
UNLIMITED: Final = 2**62
# Larger than anything a machine has, and small enough that the sum over all pods of a node stays a whole number.
LARGEST_REQUEST: Final = 2**50
CPU: Final = 0
MEMORY: Final = 1
PODS: Final = 2
ATTACH: Final = "attach:"


class ResourceTable:
    """Which column belongs to which resource; new resources get the next column.

    Columns named `attach:DRIVER` count volumes that a node can attach; one that says nothing attaches any number.
    """

    def __init__(self) -> None:
        self.names: list[str] = ["cpu", "memory", "pods", "ephemeral-storage"]
        self.index: dict[str, int] = {name: column for column, name in enumerate(self.names)}
        self.attach: list[int] = []

    def __len__(self) -> int:
        return len(self.names)

    def column(self, name: str) -> int:
        """The column of a resource, made if need be."""
        number = self.index.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
            if name.startswith(ATTACH):
                self.attach.append(number)
        return number

    def learn(self, amounts: Mapping[str, Quantity]) -> None:
        """Make columns for all resources of a map."""
        for name in amounts:
            self.column(name)

    def request(self, amounts: Mapping[str, Quantity]) -> dict[int, int]:
        """What a pod takes, by column, rounded up; every pod takes one place for a pod."""
        taken = {self.column(name): _rounded_up(name, amount) for name, amount in amounts.items()}
        taken[PODS] = 1
        return taken

    def room(self, amounts: Mapping[str, Quantity]) -> Vector:
        """What a node or a type holds, rounded down."""
        self.learn(amounts)
        vector = np.zeros(len(self.names), dtype=np.int64)
        for name, amount in amounts.items():
            vector[self.index[name]] = _rounded_down(name, amount)
        vector[self.attach] = UNLIMITED
        return vector


def counted(room: Vector) -> Vector:
    """What counts against a pool's limits: an amount without end is no amount."""
    return np.where(room == UNLIMITED, 0, room)


def _rounded_up(name: str, amount: Quantity) -> int:
    return min(amount.milli if name == "cpu" else amount.units, LARGEST_REQUEST)


def _rounded_down(name: str, amount: Quantity) -> int:
    return min(amount.nano // (10**6 if name == "cpu" else 10**9), UNLIMITED)
