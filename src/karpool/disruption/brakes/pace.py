"""When steps that follow each other could begin, as far as rates are concerned."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from karpool.disruption.brakes.rates import Left, Rates


class Pace:
    """Takes step after step as early as rates allow; none begins before the one before it."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._at = rates.now

    def begin(self, nodes: int, pods: Mapping[str, int]) -> datetime | None:
        """When so many nodes with so many pods, by namespace, can go at the earliest; None without rates."""
        if self._at is None or not self._rates:
            return None
        moments = [left.room_at(amount, self._at) for left, amount in self._used_by(nodes, pods)]
        if None in moments:
            return None
        self._at = max([self._at, *(moment for moment in moments if moment is not None)])
        self._rates = replace(self._rates, now=self._at).after(nodes, pods)
        return self._at

    def _used_by(self, nodes: int, pods: Mapping[str, int]) -> list[tuple[Left, int]]:
        rates = self._rates
        of_all = ((rates.nodes, nodes), (rates.evictions, sum(pods.values())))
        of_spaces = [(left, pods[name]) for name, left in rates.namespaces.items() if name in pods]
        return [(left, amount) for left, amount in of_all if left is not None] + of_spaces
