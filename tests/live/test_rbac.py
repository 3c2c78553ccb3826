"""Shipped roles and policies let pass everything the controller does; roles allow nothing that it never does."""

import asyncio
from dataclasses import replace

import pytest
from tests.live import audit, manifests
from tests.live.control_plane import ControlPlane
from tests.live.fake_karpenter import karpenter
from tests.live.service_account import CONTROLLER
from tests.live.trial import SETTINGS, budget, deployment, pool
from tests.live.watched import NEWER, Watched, buffers, gangs, large_claim
from tests.tables import row, table

SELDOM = frozenset({"patch nodes/status", "get kwoknodeclasses.karpenter.kwok.sh"})
"""What reboots need, which `test_repair` shows, and who writes the status of a node class that has none yet."""


@pytest.mark.usefixtures("talkative")
def test_with_kwok_every_right_is_needed_and_none_is_missing(audited_cluster: ControlPlane) -> None:
    async def scenario() -> None:
        roles = ("rbac.yaml", "rbac-kwok.yaml", "policy-kwok.yaml")
        async with Watched(audited_cluster, SETTINGS, roles) as trial:
            task = trial.start()
            await trial.make(
                pool(template={"spec": {"terminationGracePeriod": "4s"}}), deployment("web", 6), *buffers(), *gangs()
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
            await trial.make(karpenters, deployment("web", 1), large_claim(), *buffers(), *gangs())
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


@table(row(folder="controller"), row(folder="compactor"))
def test_roles_of_a_dry_run_only_read_and_allow_nothing_that_the_others_do_not(folder: str) -> None:
    def rights(*patterns: str) -> set[audit.Right]:
        files = [path for pattern in patterns for path in sorted((manifests.DEPLOY / folder).glob(pattern))]
        return audit.rights(document for path in files for document in manifests.read(path))

    reads = rights("rbac-*dry-run.yaml")
    assert reads < rights("rbac.yaml", "rbac-kwok.yaml")
    reviews = {"create tokenreviews.authentication.k8s.io", "create subjectaccessreviews.authorization.k8s.io"}
    assert {str(right) for right in reads if right.verb not in {"get", "list", "watch"}} == reviews
