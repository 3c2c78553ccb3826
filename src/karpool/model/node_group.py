"""Node groups: alike machines that an autoscaler grows and shrinks, read as pools that supply only their own shape."""

from karpool.model.nodepool import NodeClaim, NodePool


class NodeGroup(NodePool):
    """A group of nodes as a supply of nodes: its template is what its nodes have in common.

    `minimum` and `maximum` are None where nobody says; `sizes_from` tells who does. `fixed`: why no node is added,
    empty if one could be. `local_storage_stays`: whether its autoscaler spares nodes for the data of pods.
    """

    title: str = "node group"
    label: str = ""
    instance_types: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    capacity_types: tuple[str, ...] = ()
    size: int = 0
    minimum: int | None = None
    maximum: int | None = None
    sizes_from: str = ""
    fixed: str = ""
    local_storage_stays: bool = True

    @property
    def subject(self) -> str:
        """What reasons call it that are about it."""
        return f"group {self.name}"

    @property
    def least(self) -> int:
        """How many nodes it keeps in any case; an unknown minimum counts as one, as not every group may be empty."""
        return 1 if self.minimum is None else self.minimum


class GroupMember(NodeClaim):
    """What stands for the place of a node in its group; no such object is in any cluster."""

    group: str = ""
