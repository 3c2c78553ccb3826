"""The hash of a NodePool's template: nodes made from another template have drifted.

The hash of another tool is never compared or changed; Karpool's own has a prefix.
"""

import hashlib
from typing import Final

import msgspec

from karpool.model.labels import NODEPOOL_HASH, NODEPOOL_HASH_VERSION
from karpool.model.nodepool import NodePool
from karpool.model.scheduling import Taint
from karpool.wire.objects import encode_value

HASH_VERSION: Final = "v3"
_OURS: Final = "karpool-"


def pool_hash(pool: NodePool) -> str:
    """A hash of everything in the template that nodes get once: labels, annotations, taints, class, life span."""
    template = pool.spec.template
    spec, ref = template.spec, template.spec.node_class_ref
    hashed = {
        "labels": sorted(template.metadata.labels.items()),
        "annotations": sorted(template.metadata.annotations.items()),
        "taints": _sorted(spec.taints),
        "startupTaints": _sorted(spec.startup_taints),
        "nodeClassRef": [ref.group, ref.kind, ref.name],
        "expireAfter": spec.expire_after,
        "terminationGracePeriod": spec.termination_grace_period,
    }
    text = msgspec.json.encode({key: value for key, value in hashed.items() if value}, enc_hook=encode_value)
    return _OURS + hashlib.blake2b(text, digest_size=8).hexdigest()


def _sorted(taints: tuple[Taint, ...]) -> list[tuple[str, str, str]]:
    return sorted((taint.key, taint.value, taint.effect) for taint in taints)


def hash_annotations(pool: NodePool) -> dict[str, str]:
    """The annotations that a pool should get now; none if it carries them already or they are another tool's."""
    current = pool.metadata.annotations.get(NODEPOOL_HASH)
    if current is not None and not current.startswith(_OURS):
        return {}
    wanted = {NODEPOOL_HASH: pool_hash(pool), NODEPOOL_HASH_VERSION: HASH_VERSION}
    return {key: value for key, value in wanted.items() if pool.metadata.annotations.get(key) != value}
