"""The cluster that a controller in this process works on: its own caches, catalogue and settings."""

from collections.abc import Mapping
from typing import Any, Final

from karpool.operator.operator import Operator
from karpool.web.console import NotReadyError, OpenedCluster
from karpool.web.questions import Decider

_NICE: Final = 10


class ControllerSource:
    """`follow` names the controller, which is made after the pages that it serves."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._following: tuple[Operator, Decider] | None = None

    def follow(self, operator: Operator, decider: Decider) -> None:
        """Show the cluster of this controller; `decider` decides by its settings."""
        self._following = (operator, decider)

    async def open(self) -> OpenedCluster:
        if self._following is None:
            raise NotReadyError("the controller is being started")
        operator, decider = self._following
        if operator.caches.unsynced():
            raise NotReadyError("the controller is still reading the cluster")
        provider = operator.settings.provider
        about = {"name": self.name, "source": f"karpool run --provider {provider}", "kind": "controller"}

        def status() -> Mapping[str, Any]:
            return {
                "stale": operator.caches.stale(),
                "leading": operator.leading,
                "dryRun": operator.settings.dry_run,
                "paused": bool(len(operator.caches.store.pauses)),
                "warnings": [],
            }

        return OpenedCluster(
            operator.caches.store,
            lambda: operator.provider.catalog_source.catalog,
            decider,
            living=True,
            about=about,
            status=status,
            nice=_NICE,
            journal=operator.settings.journal.path,
        )

    async def close(self) -> None:
        """The controller goes on."""
