"""Bins of candidates that multi-node consolidation may combine: nodes whose pods have a chance to share a node."""

from collections import defaultdict
from collections.abc import Hashable, Sequence

from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.settings import Partition
from karpool.model.nodepool import NodePool, as_requirements


def bins(
    candidates: Sequence[Candidate], partition: Partition, *, kept: Sequence[Candidate] | None = None
) -> list[list[Candidate]]:
    """Candidates split into bins, the one with most nodes first; inside a bin their order stays.

    `kept`: those of them that budgets let go, if not all. They are what bins hold; how large a bin is does not depend
    on what is left of a budget just now.
    """
    alike = {(candidate.pool_name, candidate.arch) for candidate in candidates}
    if len(alike) == 1 and kept is not None:
        return [list(kept)]
    members_of: dict[Hashable, list[Candidate]] = defaultdict(list)
    pools = {candidate.pool_name: candidate.pool for candidate in candidates if candidate.pool is not None}
    # Kinds are large values: each has a number, so that nobody compares them for every node.
    numbers: dict[Hashable, int] = {}
    kinds = {name: numbers.setdefault(_kind_of(pool, partition), len(numbers)) for name, pool in pools.items()}
    for candidate in candidates:
        whole = partition is Partition.NONE or candidate.pool is None
        bin_ = () if whole else (candidate.arch, kinds[candidate.pool_name])
        members_of[bin_].append(candidate)
    ordered = sorted(members_of.values(), key=lambda members: -len(members))
    if kept is None:
        return ordered
    left = {candidate.row for candidate in kept}
    return [[candidate for candidate in members if candidate.row in left] for members in ordered]


def _kind_of(pool: NodePool, partition: Partition) -> Hashable:
    return likeness(pool) if partition is Partition.AUTO else pool.name


def likeness(pool: NodePool) -> Hashable:
    """What two pools must have in common to share a bin: requirements, taints, template labels and node class."""
    spec = pool.spec.template.spec
    return (
        as_requirements(spec.requirements),
        frozenset(spec.taints),
        frozenset(pool.spec.template.metadata.labels.items()),
        spec.node_class_ref,
    )
