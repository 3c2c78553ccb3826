"""Labels that a catalogue lacks: those of machines that a cloud describes under their name, and those that nodes prove.

A requirement on a label of a provider that nobody knows of a type is not met by it. Before it comes to that, the
price lists are asked, and the nodes of the pool that requires it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from karpool.catalog.builtin import labels_by_name
from karpool.catalog.instance_types import Catalog, InstanceType, unknown_labels
from karpool.catalog.machines import values
from karpool.catalog.pricing import label_of
from karpool.model.labels import INSTANCE_TYPE, NODEPOOL, of_provider
from karpool.model.node import Node
from karpool.model.nodepool import NodePool
from karpool.model.requirements import NO_REQUIREMENTS, Requirement, Requirements

_Labels = dict[str, dict[str, set[str]]]
"""By type and label the values that were seen."""


def with_learned_labels(catalog: Catalog, nodes: Iterable[Node], pools: Sequence[NodePool]) -> Catalog:
    """The catalogue with the labels of providers that price lists and nodes know, and it does not."""
    wanted = {pool.name: pool.requirements for pool in pools}
    seen = _seen(catalog, nodes, wanted)
    types = tuple(_completed(entry, seen.get(entry.name, {}), list(wanted.values())) for entry in catalog.types)
    return catalog if all(a is b for a, b in zip(types, catalog.types, strict=True)) else replace(catalog, types=types)


def _seen(catalog: Catalog, nodes: Iterable[Node], wanted: dict[str, Requirements]) -> _Labels:
    """What nodes have that their type is not known to have: other values, and labels that their pool requires."""
    seen: _Labels = {}
    for node in nodes:
        labels = node.metadata.labels
        entry = catalog.by_name.get(label_of(labels, INSTANCE_TYPE))
        if entry is None or entry.observed:
            continue
        required = wanted.get(labels.get(NODEPOOL, ""), NO_REQUIREMENTS)
        for key, value in labels.items():
            if of_provider(key):
                known = entry.requirements.get(key)
                if key in required if known is None else not known.has(value):
                    seen.setdefault(entry.name, {}).setdefault(key, set()).add(value)
    return seen


def _completed(entry: InstanceType, seen: dict[str, set[str]], wanted: Sequence[Requirements]) -> InstanceType:
    added: dict[str, Requirement] = {}
    if not entry.observed and any(next(unknown_labels(rules, entry), None) for rules in wanted):
        described = labels_by_name(entry.name)
        added = {key: values(*allowed) for key, allowed in described.items() if key not in entry.requirements}
    for key, found in seen.items():
        known = entry.requirements.get(key) or added.get(key)
        more = frozenset(found) if known is None else known.values | found
        # Some nodes have it; whether all have it, nobody knows.
        added[key] = Requirement(complement=False, values=more, absent=known is None or known.absent)
    if not added:
        return entry
    return replace(entry, requirements=Requirements([*entry.requirements.without(*added).items(), *added.items()]))
