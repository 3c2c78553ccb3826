"""A controller whose requests are compared with its rights, and objects that make it use them."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import yaml
from tests.live import audit
from tests.live.audit import AuditedRequest, Right
from tests.live.control_plane import ControlPlane
from tests.live.manifests import Json
from tests.live.scraping import reachable_address, scrape, token_of
from tests.live.service_account import USER, AsServiceAccount
from tests.live.trial import buffer

from karpool.operator.settings import RunSettings

NEWER = frozenset({"list podgroups.scheduling.k8s.io", "list workloads.scheduling.k8s.io"})
"""What pods name only where Kubernetes keeps the fields for it."""


class Watched(AsServiceAccount):
    """A trial in which every request of the controller is written down; `allowed`: what others have applied for it."""

    def __init__(
        self,
        plane: ControlPlane,
        settings: RunSettings,
        roles: tuple[str, ...] = (),
        *,
        kubeconfig: Path | None = None,
        allowed: Sequence[Json] = (),
    ) -> None:
        self.metrics_address = reachable_address()
        super().__init__(plane, replace(settings, metrics_address=self.metrics_address), roles, kubeconfig=kubeconfig)
        self._allowed = [*self.documents, *allowed]
        self._log_begins = (plane.folder / "audit.log").stat().st_size

    def requests(self) -> list[AuditedRequest]:
        """The requests of the controller so far."""
        return list(audit.requests_by(USER, self.plane.folder, self._log_begins))

    def unused(self) -> set[Right]:
        """Rights that no request has needed so far."""
        requests = self.requests()
        return {right for right in audit.rights(self._allowed) if not any(request.needs(right) for request in requests)}

    def refused(self) -> set[str]:
        """What the controller was not allowed to do, also when it tried again.

        A policy sees a taint a moment after it was written, so the first eviction from a node may come too early.
        """
        last = {request[:-1]: request for request in self.requests()}
        return {
            f"{request.verb} {request.resource} {request.namespace}/{request.name}"
            for request in last.values()
            if request.status == 403
        }

    async def runs(self, pods: int) -> None:
        """Wait until so many pods run."""

        async def so_many() -> bool:
            return len(await self.running()) == pods

        await self.until(f"{pods} pods run", so_many)

    async def replaced(self, claims: set[str]) -> None:
        """Wait until none of these NodeClaims is there any more, but others are."""

        async def others() -> bool:
            now = {claim.name for claim in await self.claims()}
            return bool(now) and not now & claims

        await self.until("other NodeClaims are there", others, seconds=60)

    async def claim_names(self) -> set[str]:
        return {claim.name for claim in await self.claims()}

    async def expect_exactly_the_rights_used(
        self, task: asyncio.Task[None], *, but: frozenset[str] = frozenset()
    ) -> None:
        """Stop the controller: it was refused nothing, and it used everything that its roles allow, but some."""
        assert (await scrape(self.metrics_address, None))[0] == 401
        status, text = await scrape(self.metrics_address, await token_of(self.client, "reader", may_read=True))
        assert status == 200, text
        await self.stop(task)
        assert self.refused() == set(), "the roles lack something"
        assert {str(right) for right in self.unused()} <= but, "the roles allow what is never done"


def buffers() -> list[dict[str, object]]:
    """Buffers for pods of each kind that keep no room."""
    kinds = ("Deployment", "StatefulSet", "ReplicaSet", "PodTemplate")
    return [buffer(kind.lower(), kind=kind, replicas=0) for kind in kinds]


def gangs() -> list[dict[str, object]]:
    """Pods of gangs that no node will ever take."""
    marks = ({"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, {"annotations": {"scheduling.k8s.io/group-name": "g"}})
    spec = {"nodeSelector": {"no": "where"}, "containers": [{"name": "c", "image": "i"}]}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"gang-{number}", "namespace": "default", **mark},
            "spec": spec,
        }
        for number, mark in enumerate(marks)
    ]


def large_claim() -> dict[str, object]:
    """What Karpenter made of the pool when there was more to run."""
    return yaml.safe_load("""
        apiVersion: karpenter.sh/v1
        kind: NodeClaim
        metadata:
          name: large
          labels: {karpenter.sh/nodepool: default}
        spec:
          nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
          requirements:
          - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
          - {key: node.kubernetes.io/instance-type, operator: In, values: [c-16x-amd64-linux]}
    """)
