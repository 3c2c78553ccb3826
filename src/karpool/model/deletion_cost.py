"""The deletion cost of a pod, by which a ReplicaSet chooses which pods it loses first, and whose it is.

Karpool writes what it wrote into an annotation of its own as well. A cost that differs from that is somebody else's:
it is neither changed nor removed.
"""

from collections.abc import Mapping

from karpool.model.labels import OWN_DELETION_COST, POD_DELETION_COST

Annotations = Mapping[str, str]


def has_own_cost(annotations: Annotations) -> bool:
    """Whether Karpool wrote the deletion cost that a pod has."""
    own = annotations.get(OWN_DELETION_COST)
    return own is not None and annotations.get(POD_DELETION_COST) == own


def without_own_cost(annotations: Annotations) -> Annotations:
    """What others say of a pod: its annotations without what Karpool wrote."""
    if OWN_DELETION_COST not in annotations:
        return annotations
    own = {OWN_DELETION_COST, POD_DELETION_COST} if has_own_cost(annotations) else {OWN_DELETION_COST}
    return {key: value for key, value in annotations.items() if key not in own}


def cost_edit(annotations: Annotations, cost: int | None) -> dict[str, str | None]:
    """What to change so that a pod has a deletion cost, or Karpool's is gone (None); nothing if all is as it should be.

    A cost of somebody else stays, and only the mark that would claim it goes.
    """
    if POD_DELETION_COST in annotations and not has_own_cost(annotations):
        return {OWN_DELETION_COST: None} if OWN_DELETION_COST in annotations else {}
    wanted = None if cost is None else str(cost)
    keys = (POD_DELETION_COST, OWN_DELETION_COST)
    return {key: wanted for key in keys if annotations.get(key) != wanted}
