"""Items that a linear programme takes together, so that it stays small."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.optimization.items import Items

_MOST_CLASSES: Final = 500
_STEPS: Final = (1.1, 1.3, 1.6, 2.2, 4.0)


@dataclass(frozen=True, slots=True)
class Classes:
    """Items that the programme does not tell apart: the same needs, and about the same size."""

    of_item: Array
    requests: Array
    count: Array
    key: Array
    """(classes,) the topology key by which their pods are spread; -1 if they are not."""
    least: Array
    """(classes, domains) the fewest pods that end in each domain."""
    most: Array
    """(classes, domains) the most."""

    @classmethod
    def of(cls, items: Items) -> "Classes":
        """Items as they are if there are not too many; else those that differ the least are taken together."""
        demanded = items.count > 0
        of_item = np.zeros(len(items.count), dtype=np.int64)
        spread, capped = items.rule >= 0, items.cap < items.count
        by = np.where(spread, items.spreading.key[items.rule] if spread.any() else -1, -1)
        rough = np.column_stack((items.signature, items.exempt, capped, by))
        keys = [np.column_stack((rough, items.requests, np.arange(len(rough)) * (spread | capped)))]
        keys.append(np.column_stack((rough, items.requests)))
        sizes = np.log1p(items.requests)
        keys += [np.column_stack((rough, np.floor(sizes / np.log(step)))).astype(np.int64) for step in _STEPS]
        for key in keys:
            distinct, found = np.unique(key[demanded], axis=0, return_inverse=True)
            of_item[demanded] = found.reshape(-1)
            if len(distinct) <= _MOST_CLASSES:
                break
        count = np.bincount(of_item, items.count).astype(np.int64)
        requests = np.column_stack(
            [np.bincount(of_item, items.count * asked) / np.maximum(1, count) for asked in items.requests.T]
        )
        key = np.full(len(count), -1)
        key[of_item[spread]] = by[spread]
        least, most = np.zeros((2, len(count), items.spreading.least.shape[1]), dtype=np.int64)
        np.add.at(least, of_item[spread], items.spreading.least[items.rule[spread]])
        np.add.at(most, of_item[spread], items.spreading.most[items.rule[spread]])
        return cls(of_item, requests, count, key, least, most)

    def exact(self, items: Items) -> bool:
        """Whether pods of a class are all of the same size."""
        demanded = items.count > 0
        return bool((self.requests[self.of_item] == items.requests)[demanded].all())

    def together(self, by_item: Array) -> Array:
        """(machines, classes) the sums of (machines, items)."""
        summed = np.zeros((len(self.count), len(by_item)), dtype=np.int64)
        np.add.at(summed, self.of_item, by_item.T)
        return summed.T

    def domains(self, domain: Array) -> Array:
        """(machines, classes) the domain in which pods of a class count on machines; -1 if they count nowhere."""
        if not domain.shape[1]:
            return np.full((len(domain), len(self.key)), -1)
        return np.where(self.key >= 0, domain[:, self.key], -1)
