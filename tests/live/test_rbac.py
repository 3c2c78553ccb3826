"""Shipped roles and policies let pass everything the controller does; roles allow nothing that it never does."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
import yaml
from tests.live import audit, manifests
from tests.live.audit import AuditedRequest, Right
from tests.live.control_plane import ControlPlane
from tests.live.fake_karpenter import karpenter
from tests.live.scraping import reachable_address, scrape, token_of
from tests.live.service_account import CONTROLLER, USER, AsServiceAccount
from tests.live.trial import SETTINGS, budget, buffer, deployment, pool

from karpool.operator.settings import RunSettings


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes on is told again at once, not after two minutes: a repetition is written in another way."""
    monkeypatch.setattr("karpool.observability.events.SILENT_SECONDS", 0.0)
    monkeypatch.setattr("karpool.execution.reconcile_context.EVENT_INTERVAL", timedelta(0))


class Watched(AsServiceAccount):
    """A trial in which every request of the controller is written down."""

    def __init__(self, plane: ControlPlane, settings: RunSettings, roles: tuple[str, ...]) -> None:
        self.metrics_address = reachable_address()
        super().__init__(plane, replace(settings, metrics_address=self.metrics_address), roles)
        self._log_begins = (plane.folder / "audit.log").stat().st_size

    def requests(self) -> list[AuditedRequest]:
        """The requests of the controller so far."""
        return list(audit.requests_by(USER, self.plane.folder, self._log_begins))

    def unused(self) -> set[Right]:
        """Rights that no request has needed so far."""
        requests = self.requests()
        return {
            right for right in audit.rights(self.documents) if not any(request.needs(right) for request in requests)
        }

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


SELDOM = frozenset({"patch nodes/status", "get kwoknodeclasses.karpenter.kwok.sh"})
"""What reboots need, which `test_repair` shows, and who writes the status of a node class that has none yet."""
NEWER = frozenset({"list podgroups.scheduling.k8s.io", "list workloads.scheduling.k8s.io"})
"""What pods name only where Kubernetes keeps the fields for it."""


@pytest.mark.usefixtures("talkative")
def test_with_kwok_every_right_is_needed_and_none_is_missing(audited_cluster: ControlPlane) -> None:
    async def scenario() -> None:
        roles = ("rbac.yaml", "rbac-kwok.yaml", "policy-kwok.yaml")
        async with Watched(audited_cluster, SETTINGS, roles) as trial:
            task = trial.start()
            await trial.make(
                pool(template={"spec": {"terminationGracePeriod": "4s"}}), deployment("web", 6), *_buffers(), *_gangs()
            )
            await trial.runs(6)
            # Room for six is more than one needs: its pod is evicted to a smaller node.
            large = await trial.claim_names()
            await trial.scale("web", 1)
            await trial.replaced(large)
            await trial.runs(1)
            # A pod that may not be evicted is deleted when the grace period of its node ends.
            await trial.make(budget("web", maxUnavailable=0))
            (small,) = await trial.claim_names()
            await trial.delete("NodeClaim", small)
            await trial.replaced({small})
            await trial.runs(1)
            await trial.expect_exactly_the_rights_used(task, but=SELDOM | NEWER)

    asyncio.run(scenario())


@pytest.mark.usefixtures("talkative")
def test_with_karpenter_every_right_is_needed_and_none_is_missing(audited_cluster: ControlPlane) -> None:
    settings = replace(SETTINGS, provider="karpenter")

    async def scenario() -> None:
        async with Watched(audited_cluster, settings, ("rbac.yaml", "policy.yaml")) as trial, karpenter(trial):
            karpenters = pool(disruption={"consolidateAfter": "1s", "budgets": [{"nodes": "0"}]})
            karpenters["metadata"]["annotations"] = {"karpool.sh/budgets": '[{"nodes": "100%"}]'}
            await trial.make(karpenters, deployment("web", 1), _large_claim(), *_buffers(), *_gangs())
            await trial.runs(1)
            task = trial.start()
            await trial.replaced({"large"})
            await trial.runs(1)
            await trial.expect_exactly_the_rights_used(task, but=NEWER)

    asyncio.run(scenario())


def test_no_role_of_the_controller_reaches_secrets_configmaps_or_everything() -> None:
    documents = [document for name in ("rbac.yaml", "rbac-kwok.yaml") for document in manifests.read(CONTROLLER / name)]
    for right in audit.rights(documents):
        assert "*" not in (right.verb, right.resource)
        assert right.resource.partition("/")[0] not in {"secrets", "serviceaccounts"}
        assert right.resource != "configmaps" or right.name == "karpool-pause"


def _buffers() -> list[dict[str, object]]:
    """Buffers for pods of each kind that keep no room."""
    kinds = ("Deployment", "StatefulSet", "ReplicaSet", "PodTemplate")
    return [buffer(kind.lower(), kind=kind, replicas=0) for kind in kinds]


def _gangs() -> list[dict[str, object]]:
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


def _large_claim() -> dict[str, object]:
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
