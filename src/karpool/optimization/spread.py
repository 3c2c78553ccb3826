"""Rules about domains that a bound can rely on: how many pods each has in the end, whatever commands came before.

Spread: a pod may only go to a domain that then has at most `skew` more than the least. With a skew of 1 this keeps
itself up: if all counts are within 1 of each other, they are again after pods were taken away and each found a place,
in any order. So where no pod is lost and the domains stay the same, every domain ends with the average, rounded down
or up. From other counts, or with a larger skew, a domain ends with what it has today at most, or with as many as the
last pod found there that was allowed to come: at most `skew` above a least that is no more than the average.

Affinity: a pod may only go where such pods are. As long as some of them never move, that is nowhere but where some are
today.
"""

from dataclasses import dataclass

import numpy as np

from karpool.cluster.arrays import Array
from karpool.optimization.problem import SPREAD, TOGETHER, FleetProblem


@dataclass(frozen=True, slots=True)
class Spreading:
    """The rules that are used, each with one group of its own, and what they say of pods that may move."""

    rules: Array
    """(used,) their numbers in the problem."""
    key: Array
    """(used,) the topology key."""
    of_group: Array
    """(groups,) the place of a group's rule among those used; -1 if it has none."""
    least: Array
    """(used, domains) the fewest pods that end in each domain."""
    most: Array
    """(used, domains) the most."""

    @classmethod
    def of(cls, problem: FleetProblem, demanded: Array) -> "Spreading":
        """The rules of a problem that can be relied on; `demanded`: pods of each group that may move."""
        spreads, counts = problem.spreads, problem.spreads.counts
        of_group = np.full(len(demanded), -1, dtype=np.int64)
        lengths = np.diff(counts.start)
        group_of_entry = np.repeat(np.arange(len(lengths)), lengths)
        vague: Array = np.asarray((problem.kinds.domain < 0).any(axis=0))
        used: list[tuple[int, Array, Array]] = []
        known = (spreads.mode == SPREAD) | (spreads.mode == TOGETHER)
        for rule in np.flatnonzero(known & spreads.steady).tolist():
            groups = group_of_entry[counts.items == rule]
            groups = groups[demanded[groups] > 0]
            # A kind that may be in any domain would need a column for each; rules of several groups are rare.
            if len(groups) != 1 or of_group[groups[0]] >= 0 or vague[spreads.key[rule]]:
                continue
            ends = _ends(problem, rule, int(groups[0]))
            if ends is not None:
                of_group[groups] = len(used)
                used.append((rule, *ends))
        rules = np.array([rule for rule, _, _ in used], dtype=np.int64)
        empty = np.zeros((0, spreads.present.shape[1]), dtype=np.int64)
        return cls(
            rules=rules,
            key=spreads.key[rules].astype(np.int64),
            of_group=of_group,
            least=np.stack([least for _, least, _ in used]) if used else empty,
            most=np.stack([most for _, _, most in used]) if used else empty,
        )


def _ends(problem: FleetProblem, rule: int, group: int) -> tuple[Array, Array] | None:
    """(domains,) the fewest and the most pods of a group that end in each; None if that is not certain."""
    spreads, nodes = problem.spreads, problem.nodes
    present, eligible = spreads.present[rule].astype(np.int64), spreads.eligible[rule]
    entries = np.flatnonzero(nodes.pods.items == group)
    of_entry = np.searchsorted(nodes.pods.start, entries, side="right") - 1
    moving = nodes.movable[of_entry]
    here = nodes.domain[of_entry[moving], spreads.key[rule]]
    if (here < 0).any():
        return None
    held = np.bincount(here, nodes.pod_count[entries[moving]], minlength=len(present)).astype(np.int64)
    stay, pods = present - held, int(held.sum())
    if spreads.mode[rule] == TOGETHER:
        homes = present > 0
        alone = homes & (homes.sum() == 1)
        return (np.where(alone, pods, 0), np.where(homes, pods, 0)) if stay.any() else None
    domains, skew, total = int(eligible.sum()), int(spreads.skew[rule]), int(present[eligible].sum())
    if not domains or not eligible[here].all():
        return None
    least = np.zeros(len(present), dtype=np.int64)
    if skew == 1 and domains >= spreads.least_domains[rule] and np.ptp(present[eligible]) <= 1:
        least = np.where(eligible, np.maximum(0, total // domains - stay), 0)
    reached = np.maximum(present, (total - skew) // domains + skew)
    return least, np.where(eligible, np.maximum(0, reached - stay), 0)
