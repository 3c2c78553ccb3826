"""Karpenter and Karpool decide on the same clusters in files, in memory and alone, until nothing is left to do.

PYTHONPATH=. python benchmarks/peer_snapshots.py --nodes 100 300 1000

Karpenter's decisions are made by a small program of ours that is linked with Karpenter (benchmarks/karpenter), with its
own simulation, its own state of the cluster, and its KWOK provider. Both carry commands out at once and as planned.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from live_cluster import Json, node_objects, ready_condition
from outcomes import evictions
from peer_cluster import Layout, layout, node_labels, node_pool, pod_spec
from peer_record import commit
from scan import scan

from karpool.catalog.sources import open_catalog
from karpool.cluster.snapshot import Snapshot
from karpool.disruption.plan import Planner, context_of
from karpool.disruption.settings import DisruptionSettings
from karpool.model.reading.loading import load
from karpool.packing.engine import Engine
from karpool.packing.options import Options
from karpool.packing.warmup import warm_up

PROGRAM: Final = Path(__file__).with_name("karpenter")
PODS_PER_NODE: Final = 13
SIZES: Final = (100, 300, 1000)
SAMPLE: Final = 50
"""Candidates that Karpenter looks at one by one."""
LIMIT: Final = 600.0
"""Seconds for the decisions of one controller on one cluster."""
POOL_READY: Final = ("Ready", "ValidationSucceeded", "NodeClassReady")
_ENOUGH: Final = 0.5
"""Seconds for which candidates are looked at again and again, if one round takes less."""


class Decided(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What one controller decided on one cluster."""

    controller: str = ""
    size: int = 0
    pods: int = 0
    candidates: int
    looked: int
    """How many of the candidates the seconds per candidate come from."""
    seconds_per_candidate: float
    before: float
    end: float
    nodes: int
    commands: int
    launched: int
    evictions: int
    decision_seconds: float
    finished: bool
    load: float = 0.0
    """Of the machine, after the decisions."""
    commit: str = ""
    """Of the source that ran; empty: nobody knows."""
    day: str = ""


def objects_of(planned: Layout, budget: str = "100%") -> Iterator[Json]:
    """A cluster as `kubectl get -o json` prints it: everything runs, and every node may be consolidated."""
    catalog = open_catalog("kwok")
    since = f"{datetime.now(UTC) - timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"

    def known(version: str, kind: str, body: Json) -> Json:
        metadata = {"uid": f"{kind}-{body['metadata']['name']}".lower(), "creationTimestamp": since, **body["metadata"]}
        status = dict(body.get("status", {}))
        status["conditions"] = [one | {"lastTransitionTime": since} for one in status.get("conditions", [])]
        return {"apiVersion": version, "kind": kind, **body, "metadata": metadata, "status": status}

    yield known(
        "karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", {"metadata": {"name": "default"}, "status": _ready("Ready")}
    )
    yield known("karpenter.sh/v1", "NodePool", node_pool(budget) | {"status": _ready(*POOL_READY)})
    for number, (name, kind) in enumerate(planned.nodes.items()):
        claim, node = node_objects(name, node_labels(kind, number), catalog.by_name[kind], "nodepool-default")
        claim["status"]["conditions"].append(ready_condition("Consolidatable"))
        yield known("karpenter.sh/v1", "NodeClaim", claim)
        yield known("v1", "Node", node)
    for name, size in planned.sizes.items():
        yield from (known(*made) for made in _workload(name, size, planned))


def _ready(*conditions: str) -> Json:
    return {"conditions": [*map(ready_condition, conditions)]}


def _workload(name: str, size: tuple[int, int], planned: Layout) -> Iterator[tuple[str, str, Json]]:
    """A ReplicaSet and its pods."""
    pods = [pod for pod in planned.pods if pod.owner == name]
    labels, spec = {"app": name}, pod_spec(size)
    template = {"metadata": {"labels": labels}, "spec": spec}
    whole = {"replicas": len(pods), "selector": {"matchLabels": labels}, "template": template}
    yield "apps/v1", "ReplicaSet", {"metadata": {"name": name, "namespace": "default"}, "spec": whole}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": name,
        "uid": f"replicaset-{name}",
        "controller": True,
    }
    status = {"phase": "Running", **_ready("PodScheduled", "Ready")}
    for pod in pods:
        metadata = {
            "name": pod.name,
            "namespace": "default",
            "labels": labels,
            "ownerReferences": [owner | {"controller": True}],
        }
        yield "v1", "Pod", {"metadata": metadata, "spec": spec | {"nodeName": pod.node}, "status": status}


# -- Karpenter ---------------------------------------------------------------------------------------------------------


def built(folder: Path) -> Path:
    """Our program with Karpenter in it; Go keeps what it has compiled before."""
    program = folder / "decisions"
    environment = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "auto", "GOWORK": "off"}
    command = ["go", "build", "-mod=readonly", "-trimpath", "-o", str(program), "."]
    subprocess.run(command, cwd=PROGRAM, env=environment, check=True)  # noqa: S603 - our own module
    return program


def karpenter(program: Path, cluster: Path, limit: float) -> Decided:
    """Karpenter's decisions, in a process of their own."""
    command = [str(program), f"-cluster={cluster}", f"-sample={SAMPLE}", f"-limit={limit:.0f}s"]
    run = subprocess.run(command, stdout=subprocess.PIPE, check=True)  # noqa: S603 - our own program
    return msgspec.convert(msgspec.json.decode(run.stdout), Decided)


# -- Karpool -----------------------------------------------------------------------------------------------------------


def karpool(cluster: Path) -> Decided:
    """Karpool's decisions, in a process of their own."""
    command = [sys.executable, __file__, "--alone", str(cluster)]
    run = subprocess.run(command, stdout=subprocess.PIPE, check=True)  # noqa: S603 - this file
    return msgspec.convert(msgspec.json.decode(run.stdout), Decided)


def decided(cluster: Path) -> Decided:
    """Look at every candidate alone, then plan to the end with the defaults of the command line."""
    warm_up()
    objects, catalog = load([str(cluster)], stdin=sys.stdin.buffer).objects, open_catalog("kwok")
    engine = Engine(Snapshot(objects), catalog)
    looked, began = 0, time.perf_counter()
    while (spent := time.perf_counter() - began) < _ENOUGH or not looked:
        looked += sum(scan(engine).values())
    settings = DisruptionSettings(complete_catalog=True)
    now = datetime.now(UTC)
    start = time.perf_counter()
    plan = Planner(
        context_of(objects, catalog, now=now, settings=settings, options=Options()),
        lambda *_: None,
        afresh=lambda: context_of(objects, catalog, now=now, settings=settings, options=Options()),
    ).plan(None)
    return Decided(
        candidates=len(objects.nodes),
        looked=len(objects.nodes),
        seconds_per_candidate=spent / looked,
        before=plan.before.price,
        end=plan.after.price,
        nodes=plan.after.nodes,
        commands=len(plan.steps),
        launched=sum(len(step.replacement_names) for step in plan.steps),
        evictions=evictions(plan),
        decision_seconds=time.perf_counter() - start,
        finished=True,
    )


# -- both --------------------------------------------------------------------------------------------------------------


def compared(size: int, limit: float, tell: Callable[[str], None]) -> list[Decided]:
    """Both controllers on a cluster of this many nodes."""
    found: list[Decided] = []
    planned = layout(size, PODS_PER_NODE * size)
    with tempfile.TemporaryDirectory() as temporary:
        cluster = Path(temporary) / "cluster.json"
        document = {"apiVersion": "v1", "kind": "List", "items": list(objects_of(planned))}
        cluster.write_bytes(msgspec.json.encode(document))
        theirs, ours = partial(karpenter, built(Path(temporary)), cluster, limit), partial(karpool, cluster)
        for name, decide in {"Karpenter": theirs, "Karpool": ours}.items():
            tell(f"{name} decides on {size} nodes in memory")
            one, load = decide(), os.getloadavg()[0]
            found.append(
                msgspec.structs.replace(
                    one,
                    controller=name,
                    size=size,
                    pods=len(planned.pods),
                    load=round(load, 1),
                    commit=commit(),
                    day=f"{datetime.now(UTC):%Y-%m-%d}",
                )
            )
    return found


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help="seconds for the decisions of Karpenter on one cluster"
    )
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        print(msgspec.json.encode(decided(given.alone)).decode())
        return
    for size in given.nodes:
        for one in compared(size, given.limit, lambda line: print(line, file=sys.stderr)):
            print(msgspec.json.encode(one).decode(), flush=True)


if __name__ == "__main__":
    main()
