"""A trial in which the controller may do what the shipped manifests allow, and nothing else."""

from pathlib import Path
from typing import Self

from tests.live import manifests
from tests.live.control_plane import ControlPlane
from tests.live.trial import Trial

from karpool.kube.kubeconfig import find_target
from karpool.operator.settings import RunSettings

USER = "system:serviceaccount:karpool:karpool"
CONTROLLER = manifests.DEPLOY / "controller"


class AsServiceAccount(Trial):
    """The controller is the service account of the manifests, with some of its roles and policies."""

    def __init__(
        self,
        plane: ControlPlane,
        settings: RunSettings,
        roles: tuple[str, ...] = (),
        *,
        kubeconfig: Path | None = None,
    ) -> None:
        super().__init__(plane, settings)
        self.target = find_target(kubeconfig=kubeconfig or plane.user_kubeconfig(USER))
        self.documents = [document for name in roles for document in manifests.read(CONTROLLER / name)]

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        for document in self.documents:
            await manifests.apply(self.client, document)
        return self

    async def __aexit__(self, *failure: object) -> None:
        for document in self.documents:
            if document["kind"] != "Namespace":
                await self.client.raw("DELETE", manifests.path_of(document))
        await super().__aexit__(*failure)
