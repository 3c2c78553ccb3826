"""The chart on a real API server: it installs, upgrades and goes, and its accounts may do what is done, and no more."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.chart.helm import Json, render
from tests.live import audit
from tests.live.compactor.trial import ENABLED, QUICK, CompactorTrial, node, play
from tests.live.control_plane import ControlPlane
from tests.live.fake_karpenter import karpenter
from tests.live.https import Client
from tests.live.release import Release, released
from tests.live.scraping import reachable_address, scrape, token_of
from tests.live.trial import SETTINGS, deployment, journal, pool, with_journal
from tests.live.watched import NEWER, Watched, buffers, gangs, large_claim
from tests.tables import row, table

from karpool.kube.kubeconfig import find_target

OPTED_IN = {"karpool.sh/budgets": '[{"nodes": "100%"}]'}
BESIDE_KARPENTER = replace(SETTINGS, provider="karpenter")


def controller(*, act: bool) -> Json:
    """Values without pods, which nothing would run here."""
    return {"controller": {"act": act, "replicas": 0}}


def compactor(*, act: bool) -> Json:
    pools = {"small": ENABLED}
    return {
        "controller": {"enabled": False},
        "compactor": {"enabled": True, "act": act, "config": {"nodePools": pools}},
    }


@table(
    row("a dry run", values={}, says="--reuse-values --set controller.act=true", unsaid="karpool-pause"),
    row(
        "the log of every pod",
        values={},
        says="-l app.kubernetes.io/instance=karpool,app.kubernetes.io/component=controller --tail=-1 --prefix |",
        unsaid="logs -n notes deployment",
    ),
    row("for real", values=controller(act=True), says="create configmap karpool-pause", unsaid="act=true"),
    row(
        "no pools",
        values={"controller": {"enabled": False}, "compactor": {"enabled": True}},
        says="karpool compact --plan",
        unsaid="The controller",
    ),
    row("nothing", values={"controller": {"enabled": False}}, says="Nothing runs", unsaid="metrics"),
)
def test_notes_say_what_to_do_next(control_plane: ControlPlane, values: Json, says: str, unsaid: str) -> None:
    notes = Release(control_plane, "notes").apply(values, "--dry-run=server")
    assert says in notes
    assert unsaid not in notes


def test_the_api_server_takes_everything_and_an_upgrade_and_what_is_left_are_definitions(
    control_plane: ControlPlane,
) -> None:
    values: Json = {
        "controller": {"act": True, "provider": "kwok"},
        "compactor": {"enabled": True, "act": True, "config": {"nodePools": {"small": ENABLED}}},
        "metrics": {"readers": [{"name": "prometheus", "namespace": "monitoring"}]},
        "priorityClass": {"create": True},
    }
    api = Client(control_plane.kubeconfig())
    with released(control_plane, controller(act=False), namespace="everything") as release:
        role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/karpool"
        assert api.get(role).status == 404
        release.apply(values)
        assert api.get(role).status == 200
        assert api.get(f"{role}-dry-run").status == 404
    assert api.get(role).status == 404


@pytest.mark.usefixtures("talkative")
def test_a_controller_that_acts_needs_each_right_of_its_account_and_no_other(audited_cluster: ControlPlane) -> None:
    values = controller(act=True)

    async def scenario(release: Release) -> None:
        account = release.kubeconfig("karpool")
        watched = Watched(audited_cluster, BESIDE_KARPENTER, kubeconfig=account, allowed=render(values))
        async with watched as trial, karpenter(trial):
            await trial.make(opted_in(), deployment("web", 1), large_claim(), *buffers(), *gangs())
            await trial.runs(1)
            task = trial.start()
            await trial.replaced({"large"})
            await trial.runs(1)
            await trial.expect_exactly_the_rights_used(task, but=NEWER)

    with released(audited_cluster, values) as release:
        asyncio.run(scenario(release))


def test_a_dry_run_decides_with_an_account_that_only_reads(audited_cluster: ControlPlane, tmp_path: Path) -> None:
    values = controller(act=False)
    settings = with_journal(tmp_path / "journal", replace(BESIDE_KARPENTER, dry_run=True))

    async def scenario(release: Release) -> None:
        account = release.kubeconfig("karpool")
        watched = Watched(audited_cluster, settings, kubeconfig=account, allowed=render(values))
        async with watched as trial, karpenter(trial):
            await trial.make(opted_in(), deployment("web", 1), large_claim(), *buffers(), *gangs())
            await trial.runs(1)
            task = trial.start()

            async def decided() -> bool:
                return bool(journal(tmp_path / "journal", "Decision"))

            async def read_again() -> bool:
                """Also at the second look, when a command would start."""
                return "get nodes" not in {str(right) for right in trial.unused()}

            await trial.until("it is decided", decided)
            await trial.until("its node has been read again", read_again)
            assert not journal(tmp_path / "journal", "Dropped")
            await trial.expect_exactly_the_rights_used(task, but=NEWER)
            assert await trial.claim_names() == {"large"}

    with released(audited_cluster, values) as release:
        asyncio.run(scenario(release))


@table(row(act=True), row(act=False))
def test_the_compactor_works_with_its_account(audited_cluster: ControlPlane, *, act: bool) -> None:
    values = compactor(act=act)
    values["compactor"]["nodeSelector"] = {"no": "where"}
    begins = (audited_cluster.folder / "audit.log").stat().st_size

    async def scenario(trial: CompactorTrial) -> None:
        own = find_target(kubeconfig=release.kubeconfig("karpool-compactor"))
        await trial.make(node("spare", "small"), deployment("web", 2, cpu="500m"))
        await trial.until_running(2)
        await trial.make(node("big", "large"))
        address = reachable_address()

        async def would_cordon() -> bool:
            return any(line.get("action") == "cordon" for line in logs)

        task = trial.start(
            target=own, compaction=QUICK, config_map="karpool-compactor-config", namespace="karpool", dry_run=not act,
            metrics_address=address,
        )  # fmt: skip
        if act:
            await trial.expect_drained("spare")
        else:
            await trial.until("a node would be cordoned", would_cordon)
        assert (await scrape(address, await token_of(trial.client, "reader", may_read=True)))[0] == 200
        await trial.stop(task)
        user = "system:serviceaccount:karpool:karpool-compactor"
        requests = list(audit.requests_by(user, audited_cluster.folder, begins))
        assert [request for request in requests if request.status == 403] == []
        if not act:
            rights = audit.rights(render(values))
            assert {str(right) for right in rights if not any(request.needs(right) for request in requests)} == set()
            assert not (await trial.node("spare")).spec.unschedulable

    with released(audited_cluster, values) as release, capture_logs() as logs:
        play(audited_cluster, scenario)


def opted_in() -> Json:
    made = pool(disruption={"consolidateAfter": "1s", "budgets": [{"nodes": "0"}]})
    made["metadata"]["annotations"] = OPTED_IN
    return made
