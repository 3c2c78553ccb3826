"""How large the recording of an hour is, and what it takes of a processor: 1,000 nodes and 20,000 pods by default.

python benchmarks/recording.py --nodes 1000 --hours 3 --json

A generated cluster lives on: each hour a share of its pods is replaced (half of them by Jobs that complete), workloads
roll out, nodes are replaced with their NodeClaims, and every kubelet says every five minutes that it is well. What is
seen goes through the observer, and the file is flushed each minute, as `karpool record` does.
"""

import argparse
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from clusters import generate
from msgspec.structs import replace

from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod, PodStatus
from karpool.recording.observer import Observer
from karpool.recording.writer import RecordingWriter
from karpool.wire.objects import Condition, Object

START: Final = datetime(2026, 11, 16, 8, tzinfo=UTC)
MINUTES: Final = 60
HEARTBEATS: Final = 12
"""How often an hour a kubelet writes its node's status."""
LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
STARTS: Final = timedelta(seconds=4)


class Living:
    """A cluster that changes; `minute` yields what is seen in a minute: kind, key, object (None: it is gone)."""

    def __init__(self, nodes: int, churn: float, seed: int = 1) -> None:
        self.initial = generate(nodes, seed)
        self.random = Random(seed)
        self.churn = churn
        self.pods = {pod.key: pod for pod in self.initial.pods if not pod.is_daemon}
        self.nodes = {node.name: node for node in self.initial.nodes}
        self.claims = {claim.status.node_name: claim for claim in self.initial.node_claims}
        self.daemons = {pod.key: pod for pod in self.initial.pods if pod.is_daemon}
        self.count = len(self.initial.pods)

    def minute(self, now: datetime) -> Iterator[tuple[datetime, str, str, Object | None]]:
        """Everything in the order of time, as watches bring it."""
        events = [*self._pods(now), *self._nodes(now), *self._heartbeats(now)]
        yield from sorted(events, key=lambda event: event[0])

    def _often(self, per_hour: float) -> int:
        """How many times in this minute something happens that happens so often an hour."""
        whole, rest = divmod(per_hour / MINUTES, 1)
        return int(whole) + (self.random.random() < rest)

    def _pods(self, now: datetime) -> Iterator[tuple[datetime, str, str, Object | None]]:
        leave = self.random.sample(list(self.pods.values()), self._often(self.churn * len(self.pods)))
        for pod in leave:
            at = now + timedelta(seconds=self.random.uniform(0, 40))
            del self.pods[pod.key]
            if self.random.random() < 0.5:  # noqa: PLR2004 - the half of Jobs
                yield at, "Pod", pod.key, replace(pod, status=replace(pod.status, phase="Succeeded"))
            else:
                meta = replace(pod.metadata, deletion_timestamp=at)
                yield at, "Pod", pod.key, replace(pod, metadata=meta)
            yield at + timedelta(seconds=3), "Pod", pod.key, None
            yield from self._born(pod, at + timedelta(seconds=1))
        if self.random.random() < self.churn:
            yield from self._rollout(now)

    def _born(self, like: Pod, at: datetime) -> Iterator[tuple[datetime, str, str, Object | None]]:
        """A pod like another: it is created, gets a node, and is ready."""
        name = like.name.rpartition("-")[0] + "-" + "".join(self.random.choices(LETTERS, k=5))
        meta = replace(like.metadata, name=name, creation_timestamp=at.replace(microsecond=0), deletion_timestamp=None)
        new = replace(like, metadata=meta, spec=replace(like.spec, node_name=""), status=PodStatus(phase="Pending"))
        yield at, "Pod", new.key, new
        bound = replace(new, spec=replace(like.spec, node_name=self.random.choice(list(self.nodes))))
        yield at + timedelta(seconds=0.1), "Pod", new.key, bound
        ready = Condition(type="Ready", status="True", last_transition_time=(at + STARTS).replace(microsecond=0))
        runs = replace(bound, status=PodStatus(phase="Running", start_time=at, conditions=(ready,)))
        # The kubelet writes the status of a pod several times until it is ready.
        for part in (0.3, 0.6):
            yield at + part * STARTS, "Pod", new.key, bound
        yield at + STARTS, "Pod", new.key, runs
        self.pods[new.key] = runs

    def _rollout(self, now: datetime) -> Iterator[tuple[datetime, str, str, Object | None]]:
        """All pods of a workload get another label, as with another revision."""
        chosen = self.random.choice(list(self.pods.values()))
        owner = chosen.metadata.owner_references[0].name
        revision = "".join(self.random.choices(LETTERS, k=9))
        for pod in [pod for pod in self.pods.values() if pod.metadata.owner_references[0].name == owner]:
            at = now + timedelta(seconds=self.random.uniform(0, 40))
            labels = {**pod.metadata.labels, "pod-template-hash": revision}
            yield from self._born(replace(pod, metadata=replace(pod.metadata, labels=labels)), at)
            del self.pods[pod.key]
            yield at + STARTS, "Pod", pod.key, replace(pod, metadata=replace(pod.metadata, deletion_timestamp=at))
            yield at + 2 * STARTS, "Pod", pod.key, None

    def _nodes(self, now: datetime) -> Iterator[tuple[datetime, str, str, Object | None]]:
        """Nodes are replaced, at a fifth of the rate of pods."""
        for name in self.random.sample(list(self.nodes), self._often(0.2 * self.churn * len(self.nodes))):
            at = now + timedelta(seconds=self.random.uniform(0, 10))
            yield from self._launched(self.nodes[name], self.claims[name], at)
            node, claim = self.nodes.pop(name), self.claims.pop(name)
            yield at, "Node", name, replace(node, metadata=replace(node.metadata, deletion_timestamp=at))
            for pod in [pod for pod in self.daemons.values() if pod.spec.node_name == name]:
                yield at, "Pod", pod.key, None
                del self.daemons[pod.key]
            yield at + timedelta(seconds=30), "Node", name, None
            yield at + timedelta(seconds=31), "NodeClaim", claim.key, None

    def _launched(
        self, node: Node, claim: NodeClaim, at: datetime
    ) -> Iterator[tuple[datetime, str, str, Object | None]]:
        name = f"ip-10-{self.random.randrange(256)}-{self.random.randrange(256)}-{self.random.randrange(256)}"
        conditions = claim.status.conditions
        fresh = replace(claim, metadata=replace(claim.metadata, name=f"new-{name}", creation_timestamp=at))
        for number in range(len(conditions) + 1):
            status = replace(claim.status, conditions=conditions[:number], node_name=name if number > 1 else "")
            fresh = replace(fresh, status=status)
            yield at + timedelta(seconds=10 * number), "NodeClaim", fresh.key, fresh
        labels = {**node.metadata.labels, "kubernetes.io/hostname": name}
        there = replace(node, metadata=replace(node.metadata, name=name, labels=labels, creation_timestamp=at))
        unready = replace(there, status=replace(there.status, conditions=()))
        yield at + timedelta(seconds=15), "Node", name, unready
        yield at + timedelta(seconds=25), "Node", name, there
        self.nodes[name], self.claims[name] = there, fresh
        for pod in [pod for pod in self.daemons.values() if pod.spec.node_name == node.name]:
            new = replace(pod, metadata=replace(pod.metadata, name=pod.name.replace(node.name, name)))
            new = replace(new, spec=replace(pod.spec, node_name=name))
            self.daemons[new.key] = new
            yield at + timedelta(seconds=16), "Pod", new.key, new

    def _heartbeats(self, now: datetime) -> Iterator[tuple[datetime, str, str, Object | None]]:
        for node in self.random.sample(list(self.nodes.values()), self._often(HEARTBEATS * len(self.nodes))):
            yield now + timedelta(seconds=self.random.uniform(0, 59)), "Node", node.name, node


def measure(nodes: int, hours: float, churn: float) -> dict[str, float]:
    """Record a cluster for some hours, and say what that took."""
    living, now, events = Living(nodes, churn), START, 0
    with TemporaryDirectory() as folder:
        path = Path(folder, "cluster.recording")
        with RecordingWriter(path, START) as writer:
            observer = Observer(writer.history, writer.write)
            began = time.process_time()
            observer.listed(living.initial, now)
            writer.flush()
            first, list_seconds = writer.size, time.process_time() - began
            seconds = 0.0
            for _ in range(round(hours * MINUTES)):
                seen = list(living.minute(now))
                events += len(seen)
                began = time.process_time()
                for at, kind, key, obj in seen:
                    if obj is None:
                        observer.lost(kind, key, at)
                    else:
                        observer.saw(kind, obj, at)
                now += timedelta(minutes=1)
                observer.alive(now)
                writer.flush()
                seconds += time.process_time() - began
            size = writer.size
    return {
        "nodes": len(living.initial.nodes),
        "pods": living.count,
        "eventsPerHour": round(events / hours),
        "firstListMB": round(first / 1e6, 3),
        "firstListSeconds": round(list_seconds, 2),
        "mbPerHour": round((size - first) / 1e6 / hours, 3),
        "cpuSecondsPerHour": round(seconds / hours, 2),
    }


def main() -> None:
    """Measure once and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--churn", type=float, default=0.25, help="the share of pods that are replaced in an hour")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    result = measure(arguments.nodes, arguments.hours, arguments.churn)
    if arguments.json:
        print(json.dumps({"benchmark": "recording", **result}))
    else:
        print("  ".join(f"{name} {value}" for name, value in result.items()))


if __name__ == "__main__":
    main()
