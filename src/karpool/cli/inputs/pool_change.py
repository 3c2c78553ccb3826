"""A cluster with other NodePools than it has: what applying a changed manifest would make of it."""

from collections.abc import Collection

from msgspec.structs import replace

from karpool.model.labels import HASH_VERSION, NODEPOOL_HASH, NODEPOOL_HASH_VERSION
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.objects import Objects
from karpool.provisioning.pool_hash import pool_hash


def with_pools(objects: Objects, pools: Collection[NodePool], *, before: Collection[NodePool]) -> Objects:
    """The cluster with these pools instead of those that there were before; other pools of the cluster stay.

    A changed template makes nodes drift, as it would in the cluster: pools get the hash that a controller would write,
    and claims that carry none that can be compared count as made from the pools before.
    """
    gone = {pool.name for pool in (*pools, *before)}
    kept = (pool for pool in objects.node_pools if pool.name not in gone)
    makers = {pool.name: pool for pool in before}
    claims = tuple(_hashed_claim(claim, makers.get(claim.pool)) for claim in objects.node_claims)
    return replace(objects, node_pools=(*kept, *map(_hashed_pool, pools)), node_claims=claims)


def _hashed_pool(pool: NodePool) -> NodePool:
    return replace(pool, metadata=replace(pool.metadata, annotations=pool.metadata.annotations | _annotations(pool)))


def _hashed_claim(claim: NodeClaim, made_from: NodePool | None) -> NodeClaim:
    annotations = claim.metadata.annotations
    known = NODEPOOL_HASH in annotations and annotations.get(NODEPOOL_HASH_VERSION) == HASH_VERSION
    if known or made_from is None:
        return claim
    return replace(claim, metadata=replace(claim.metadata, annotations=annotations | _annotations(made_from)))


def _annotations(pool: NodePool) -> dict[str, str]:
    return {NODEPOOL_HASH: pool_hash(pool), NODEPOOL_HASH_VERSION: HASH_VERSION}
