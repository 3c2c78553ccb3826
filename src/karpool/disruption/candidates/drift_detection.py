"""Whether a node is still what its pool asks for."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.disruption.reasons import ReasonCode
from karpool.model.labels import (
    ALIASES,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
    ON_DEMAND,
    RESERVATION_ID,
    RESERVED,
)
from karpool.model.nodepool import NodeClaim, NodePool, PoolRequirement, as_requirements
from karpool.model.reasons import Reason
from karpool.model.requirements import Requirements, one_of
from karpool.wire.objects import condition

FORMER_HASH: Final = "karpool-"
"""What hashes of earlier versions of Karpool begin with, which counted something else."""
TYPE_CHECKED_AFTER: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Drift:
    """Why a node has drifted from its pool, and since when that is known."""

    reason: Reason
    since: datetime


def with_node_labels(claim: NodeClaim, labels: Mapping[str, str]) -> NodeClaim:
    """A claim that also has the labels of its node: a label that one of them has is not missing."""
    merged = {**labels, **claim.metadata.labels}
    return replace(claim, metadata=replace(claim.metadata, labels=merged))


def drift_of(claim: NodeClaim, pool: NodePool | None, catalog: Catalog | None, now: datetime) -> Drift | None:
    """How a node has drifted, if it has: as its facts show, or else as its own condition says.

    Pass a catalogue only if it lists every type of the provider: a type that it lacks counts as gone.
    """
    launched = condition(claim.status.conditions, "Launched")
    if pool is None or pool.unreadable or claim.unreadable:
        return None
    if claim.metadata.deletion_timestamp or (launched is not None and launched.status != "True"):
        return None
    stored = condition(claim.status.conditions, "Drifted")
    known = stored is not None and stored.status == "True"
    since = (stored.last_transition_time if stored is not None and known else None) or now
    reason = _template(claim, pool) or _requirements(claim, pool) or _instance_type(claim, catalog, now)
    if reason is None and stored is not None and known:
        message = stored.message or f"its NodeClaim says that it has drifted ({stored.reason or 'no reason given'})"
        reason = _reason(stored.reason or ReasonCode.DRIFTED, message, claim)
    return None if reason is None else Drift(reason, since)


def _template(claim: NodeClaim, pool: NodePool) -> Reason | None:
    """The template has changed: only stored hashes of one version can be compared."""
    ours, theirs = claim.metadata.annotations, pool.metadata.annotations
    hashed, wanted = ours.get(NODEPOOL_HASH), theirs.get(NODEPOOL_HASH)
    version = hash_version(ours)
    if None in (hashed, wanted, version) or hashed == wanted or version != hash_version(theirs):
        return None
    return _reason(ReasonCode.NODE_POOL_DRIFTED, f"the template of NodePool {pool.name} has changed since", claim)


def hash_version(annotations: Mapping[str, str]) -> str | None:
    """The version of a hash; those that an earlier Karpool wrote are of a version of their own."""
    former = annotations.get(NODEPOOL_HASH, "").startswith(FORMER_HASH)
    return FORMER_HASH if former else annotations.get(NODEPOOL_HASH_VERSION)


def _requirements(claim: NodeClaim, pool: NodePool) -> Reason | None:
    """The pool has come to ask for labels that the node does not have."""
    wanted = _wanted(pool.spec.template.spec.requirements)
    actual = claim.metadata.labels
    # Few nodes differ in the labels that their pool asks for.
    key = _conflict(wanted, tuple([(name, actual[name]) for name in _names(wanted) if name in actual]))
    if key is None:
        return None
    labels = Requirements.of_labels(actual)
    value = f"is {next(iter(labels[key].values))}" if key in labels else "is missing"
    message = f"NodePool {pool.name} wants {key} {wanted[key]}, and the node's {value}"
    return _reason(ReasonCode.REQUIREMENTS_DRIFTED, message, claim)


@lru_cache(maxsize=256)
def _wanted(listed: tuple[PoolRequirement, ...]) -> Requirements:
    return as_requirements(listed)


@lru_cache(maxsize=256)
def _names(wanted: Requirements) -> tuple[str, ...]:
    """The keys of requirements, their former names included."""
    return (*wanted, *(name for name, current in ALIASES.items() if current in wanted))


@lru_cache(maxsize=4096)
def _conflict(wanted: Requirements, labels: tuple[tuple[str, str], ...]) -> str | None:
    """The first key on which labels are not what is wanted."""
    return Requirements.of_labels(dict(labels)).conflict(wanted)


def _instance_type(claim: NodeClaim, catalog: Catalog | None, now: datetime) -> Reason | None:
    """The node's type can no longer be had, available or not, in its zone and capacity type."""
    created = claim.metadata.creation_timestamp
    if catalog is None or not catalog.types or created is None or now - created <= TYPE_CHECKED_AFTER:
        return None
    name = claim.metadata.labels.get(INSTANCE_TYPE)
    if name is None:
        # Nobody knows what it is, so nobody knows that it is gone.
        return None
    entry = catalog.by_name.get(name)
    if entry is None or entry.observed:
        message = f"its type {name} is no longer known"
    elif not _sold(claim, entry, catalog):
        message = f"its type {name} is no longer offered in its zone and capacity type"
    else:
        return None
    return _reason(ReasonCode.INSTANCE_TYPE_NOT_FOUND, message, claim)


def _sold(claim: NodeClaim, entry: InstanceType, catalog: Catalog) -> bool:
    labels = Requirements.of_labels(claim.metadata.labels)
    if claim.metadata.labels.get(CAPACITY_TYPE) == RESERVED:
        # A reservation may run out or be exchanged: the machine goes on-demand.
        labels = labels.without(RESERVATION_ID, CAPACITY_TYPE).with_key(CAPACITY_TYPE, one_of(RESERVED, ON_DEMAND))
    known = catalog.well_known
    return any(labels.conflict(offering.requirements, undefined=known) is None for offering in entry.offerings)


def _reason(code: str, message: str, claim: NodeClaim) -> Reason:
    node = claim.status.node_name
    return Reason(code, message, f"Node {node}" if node else f"NodeClaim {claim.name}")
