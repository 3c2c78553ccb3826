"""The shipped role of the compactor is enough for everything it does, and allows nothing that it never does."""

import json
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from tests.live import audit, manifests
from tests.live.compactor.trial import ENABLED, QUICK, CompactorTrial, node, play
from tests.live.control_plane import ControlPlane
from tests.live.scraping import reachable_address, scrape, token_of
from tests.live.trial import deployment

from karpool.compaction.config import CONFIG_MAP, KEY
from karpool.compactor.compactor import Compactor
from karpool.compactor.config_source import read_compactor_config
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.kube.client import Client
from karpool.kube.kubeconfig import find_target
from karpool.live.reading import COMPACTED, read_cluster
from karpool.live.resources import PLAIN_CONFIG_MAPS

NAME, NAMESPACE = "estafette-k8s-node-compactor", "estafette"
USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"
COMPACTOR = manifests.DEPLOY / "compactor"
VARIABLES = {
    "IMAGE_REGISTRY": "",
    "VERSION": "1.0.5",
    "APP_NAME": NAME,
    "NAMESPACE": NAMESPACE,
    "TEAM_NAME": "myteam",
    "ESTAFETTE_K8S_NODE_COMPACTOR_CONFIG": "{}",
    "CPU_REQUEST": "10m",
    "MEMORY_REQUEST": "15Mi",
    "CPU_LIMIT": "50m",
    "MEMORY_LIMIT": "128Mi",
}


async def applied(trial: CompactorTrial) -> list[manifests.Json]:
    fixed = [document for name in ("rbac.yaml", "policy.yaml") for document in manifests.read(COMPACTOR / name)]
    documents = [*fixed, *manifests.read(COMPACTOR / "kubernetes.yaml", VARIABLES)]
    return [await manifests.apply(trial.client, document) for document in documents]


async def deleted(trial: CompactorTrial, documents: list[manifests.Json]) -> None:
    for document in documents:
        if document["kind"] != "Namespace":
            await trial.client.raw("DELETE", manifests.path_of(document))


async def write(trial: CompactorTrial, text: str) -> None:
    await trial.client.merge_patch(PLAIN_CONFIG_MAPS, CONFIG_MAP, {"data": {KEY: text}}, namespace=NAMESPACE)


async def read(compactor: Compactor, *, valid: bool) -> bool:
    """Whether the compactor has read what its ConfigMap says now."""
    return compactor.config.problem != "was not read yet" and (compactor.config.problem is None) == valid


async def repeated(plane: ControlPlane, begins: int) -> bool:
    """Whether an Event was changed."""
    return any(request.verb == "patch" and request.resource == "events" for request in requests_of(plane, begins))


def requests_of(plane: ControlPlane, begins: int) -> list[audit.AuditedRequest]:
    return list(audit.requests_by(USER, plane.folder, begins))


def test_every_right_is_needed_and_none_is_missing(
    audited_cluster: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A repetition is written in another way; it is told again at once, not after two minutes.
    monkeypatch.setattr("karpool.observability.events.SILENT_SECONDS", 0.0)
    monkeypatch.setattr("karpool.compaction.rates.RENEWED", timedelta(0))
    begins = (audited_cluster.folder / "audit.log").stat().st_size
    own = find_target(kubeconfig=audited_cluster.user_kubeconfig(USER))

    async def scenario(trial: CompactorTrial) -> None:
        documents = await applied(trial)
        address = reachable_address()
        # Under a rate, what is drained is noted.
        rated = replace(QUICK, brakes=BrakeSettings(most_nodes_per_hour=9))
        task = trial.start(
            target=own, compaction=rated, config_map=CONFIG_MAP, namespace=NAMESPACE, metrics_address=address
        )
        compactor = trial.compactor(task)
        for text in ("{", "{}", "{"):
            await write(trial, text)
            await trial.until(f"{text} is read", partial(read, compactor, valid=text == "{}"))
        # What is wrong again is told by a change of the Event that told it first.
        await trial.until("events are written", partial(repeated, audited_cluster, begins))
        await trial.make(node("spare", "small"), deployment("web", 2, cpu="500m"))
        await trial.until_running(2)
        await trial.make(node("big", "large"))
        await write(trial, json.dumps({"nodePools": {"small": ENABLED}}))
        await trial.expect_drained("spare")
        assert (await scrape(address, None))[0] == 401
        assert (await scrape(address, None, "/healthz"))[0] == 200
        assert (await scrape(address, await token_of(trial.client, "reader", may_read=True)))[0] == 200
        await trial.stop(task)
        async with Client(own) as client:  # what `compact --plan` does
            await read_compactor_config(client, name=CONFIG_MAP, namespace=NAMESPACE)
            assert list((await read_cluster(client, resources=COMPACTED)).notes()) == []
        requests = requests_of(audited_cluster, begins)
        rights = audit.rights(manifests.read(COMPACTOR / "rbac.yaml"))
        assert [request for request in requests if request.status == 403] == []
        assert {str(right) for right in rights if not any(request.needs(right) for request in requests)} == set()
        await deleted(trial, documents)

    play(audited_cluster, scenario)
