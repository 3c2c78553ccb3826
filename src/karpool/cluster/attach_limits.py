"""How many volumes nodes can attach, by CSI driver, and what that tells of new nodes of their types."""

from collections.abc import Callable, Mapping

Limits = Mapping[str, int]


class AttachLimits:
    """What CSINodes say; of a driver that one does not count, its node attaches any number."""

    def __init__(self, by_node: Mapping[str, Limits]) -> None:
        self._by_node = dict(by_node)
        self._by_type: Mapping[str, Limits] = {}
        self._stale = True

    def of(self, node: str) -> Limits:
        """How many volumes a node can attach, by driver."""
        return self._by_node.get(node, {})

    def put(self, node: str, limits: Limits) -> None:
        """Take note of what a node says; nothing, if its CSINode is gone."""
        if limits:
            self._by_node[node] = limits
        else:
            self._by_node.pop(node, None)
        self._stale = True

    def forget_types(self, node: str) -> None:
        """Take note that a node has come, has changed or is gone."""
        self._stale = self._stale or node in self._by_node

    def of_types(self, type_of: Callable[[str], str]) -> Mapping[str, Limits]:
        """By instance type: the least that a node of it says; the same object until that changes.

        Zero is left out: it says that the driver does not work there, not what the type could do.
        """
        if self._stale:
            self._stale = False
            found: dict[str, dict[str, int]] = {}
            for node, limits in self._by_node.items():
                known = found.setdefault(type_of(node), {})
                for driver, count in limits.items():
                    if count > 0:
                        known[driver] = min(count, known.get(driver, count))
            found.pop("", None)
            if found != self._by_type:
                self._by_type = found
        return self._by_type
