"""The audit log of a real API server is a recording of what happened there."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.live import audit
from tests.live.control_plane import ControlPlane
from tests.live.trial import Trial, deployment, play, pool
from tests.recording.imports.replays import history_of, imported, records_of, replayed

from karpool.model import labels
from karpool.recording import records as r

pytestmark = pytest.mark.slow
WHOLE = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "resources": [{"group": "coordination.k8s.io"}, {"group": "", "resources": ["events"]}]},
        {"level": "RequestResponse", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
        {"level": "None"},
    ],
}


async def found(trial: Trial) -> dict[str, set[str]]:
    """The pods and the nodes that there are."""
    pods, nodes = await trial.pods(), await trial.nodes()
    return {"pods": {pod.key for pod in pods}, "nodes": {node.name for node in nodes}}


def test_the_log_of_a_real_api_server_is_a_history(kubernetes_programs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "plane"
    folder.mkdir()
    flags = audit.flags(folder)
    (folder / "audit-policy.json").write_text(json.dumps(WHOLE))
    there: dict[str, set[str]] = {}

    async def scenario(trial: Trial) -> None:
        await trial.make(pool(), deployment("web", 3))
        trial.start()
        await trial.until_running(3)
        await trial.scale("web", 6)
        await trial.until_running(6)
        await trial.scale("web", 1)
        await trial.until_running(1)
        await trial.until_nodes(1)

        async def at_rest() -> bool:
            """What there is, and the log of how it came: the last node may be about to be replaced once more."""
            there.update(await found(trial))
            await asyncio.sleep(2)
            # What a test leaves behind is taken away after this; the log is looked at as it is now.
            (tmp_path / "audit.log").write_bytes((folder / "audit.log").read_bytes())
            return there == await found(trial)

        await trial.until("nothing changes", at_rest)

    with ControlPlane(kubernetes_programs, folder, apiserver_flags=flags) as plane:
        plane.start_controller_manager()
        plane.start_scheduler()
        plane.start_kwok()
        play(plane, scenario)

    path = tmp_path / "day.recording"
    imported("audit", path, tmp_path / "audit.log")
    history = history_of(path)
    assert {history.key_of(number) for number in history.pods} == there["pods"]
    assert set(history.kinds["Node"]) == there["nodes"]
    assert {history.pods[number].node for number in history.pods} == there["nodes"]
    assert all(history.pods[number].ready for number in history.pods)
    (node,) = there["nodes"]
    assert history.decoded("Node", node).metadata.labels[labels.NODEPOOL] == "default"
    assert len(history.kinds["NodeClaim"]) == len(history.kinds["NodePool"]) == 1
    assert history.kinds["Deployment"]["default/web"]["spec"]["replicas"] == 1
    records = records_of(path)
    gone = [record for record in records if isinstance(record, r.Died)]
    born = [record for record in records if isinstance(record, r.Born)]
    assert len(born) - len(gone) == 1
    # Whoever was not scaled down was evicted, and came again.
    causes = [record.cause for record in records if isinstance(record, r.Leaving)]
    assert causes.count(r.LeaveCause.DELETED) == 5
    assert len(born) == 6 + causes.count(r.LeaveCause.EVICTED)
    again = replayed(path, "catalog: kwok\npolicies: {as-recorded: {decisions: {search: prefix}}}\n")["as-recorded"]
    assert again["podsAtEnd"] == 1
