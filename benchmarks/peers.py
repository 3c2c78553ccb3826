"""Karpool and its peers on the same clusters, in files and live, in one run; writes docs/peers.md.

PYTHONPATH=. python benchmarks/peers.py --nodes 40 100 --budget 10% 100% --snapshots 100 300 1000

Every controller gets a control plane of its own with the same nodes and pods, which kwok plays. With --small, which
ends in about three minutes, the page is printed and not written.
"""

import argparse
import asyncio
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, Generic, TypeVar
from urllib.request import urlopen

import msgspec
from peer_cluster import Layout, PeerCluster, layout, stages
from peer_page import PAGE, Conditions, machine, page
from peer_record import (
    KARPENTER_SECONDS,
    KARPENTER_WAITS,
    KARPOOL_SECONDS,
    Decisions,
    Figures,
    Record,
    commit,
    longest_search,
    series_of,
)
from peer_snapshots import LIMIT, PODS_PER_NODE, SIZES, Decided, compared
from tests.conformance.deployment import Start, karpenter, karpool
from tests.live.control_plane import ControlPlane
from tests.live.pinned import pinned
from tests.live.programs import Program, free_port

import karpool as own
from karpool.catalog.sources import open_catalog
from karpool.kube.client import Client
from karpool.kube.kubeconfig import find_target
from karpool.kube.reflector import Reflector
from karpool.live import resources as r
from karpool.wire.objects import Object

ROOT: Final = Path(__file__).resolve().parents[1]
AUTOSCALER: Final = "k8s.io/autoscaler/cluster-autoscaler"
LARGE: Final = (300, 4000)
LARGE_LIMIT: Final = 1200.0
SETUP: Final = 300.0
"""Seconds in which a cluster has to come up."""
QUIET: Final = 120.0
"""Seconds: after one of 5 s a search for a cheaper fleet rests for 100 s, and has not had its last word before."""
T = TypeVar("T", bound=Object)


@dataclass(frozen=True)
class Peer:
    """A controller, and which of its metrics tell how long decisions take."""

    name: str
    start: Start
    settings: dict[str, str]
    seconds: str
    waits: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trial:
    """What all runs on a cluster have in common."""

    kubernetes: Path
    definitions: Path
    planned: Layout
    limit: float
    quiet: float
    keep: Path


class Seen(Generic[T]):
    """Tells a record of every object that a watch brings."""

    def __init__(self, tell: Callable[..., None]) -> None:
        self._tell = tell
        self._known: dict[str, T] = {}

    def put(self, obj: T) -> None:
        """It is there, or has changed."""
        self._known[obj.metadata.uid] = obj
        self._tell(obj)

    def remove(self, obj: T) -> None:
        """It is gone."""
        self._tell(self._known.pop(obj.metadata.uid, obj), gone=True)

    def replace(self, objects: Sequence[T], _version: str) -> None:
        """These are all there are."""
        there = {obj.metadata.uid for obj in objects}
        for obj in [obj for uid, obj in self._known.items() if uid not in there]:
            self.remove(obj)
        for obj in objects:
            self.put(obj)


async def run(peer: Peer, budget: str, trial: Trial, tell: Callable[[str], None]) -> Figures:
    """One controller on one new cluster."""
    folder = trial.keep / f"{peer.name}-{len(trial.planned.nodes)}-{budget.rstrip('%')}".lower()
    pods = len(trial.planned.pods)
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was cut short
    async with AsyncExitStack() as stack:
        plane = stack.enter_context(ControlPlane(trial.kubernetes, folder))
        client = await stack.enter_async_context(Client(find_target(kubeconfig=plane.kubeconfig())))
        await PeerCluster(client, trial.definitions, trial.planned, budget).make()
        # Nobody waits for the leases of so many nodes: the controllers are to have the processors.
        plane.start_controller_manager("--node-monitor-grace-period=24h")
        plane.start_scheduler()
        plane.start_kwok("--node-lease-duration-seconds=0", stages=stages(folder))
        record = Record(open_catalog("kwok"))
        reflectors = (
            Reflector(client, r.NODES, Seen(record.node)),
            Reflector(client, r.PODS, Seen(record.pod), namespace="default"),
        )
        for reflector in reflectors:
            stack.callback(asyncio.create_task(reflector.run()).cancel)
        await _until_up(record, trial)
        metrics, health = free_port(), free_port()
        program = peer.start(plane.kubeconfig(), peer.settings, metrics, health, folder / "controller.log")
        stack.callback(program.stop, signal.SIGTERM)
        record.begin()
        program.start()
        decisions = Decisions(peer.seconds, peer.waits)
        follower = Follower(program, f"http://127.0.0.1:{metrics}/metrics", record, decisions)
        settled = await follower.watch(trial, tell)
        return Figures(
            controller=peer.name,
            budget=budget,
            size=len(trial.planned.nodes),
            prices=tuple(record.prices),
            nodes=len(record.nodes),
            launched=len(record.launched),
            evictions=len(record.leaving),
            pods=pods,
            fewest=record.fewest,
            cpu=_cpu_seconds(program.pid),
            memory=_memory(program.pid),
            decision=decisions.seconds + longest_search(program.log.read_text()),
            settled=settled,
            seconds=record.changed - record.began,
            limit=trial.limit,
            load=statistics.fmean(follower.loads),
            commit=commit(),
            day=f"{datetime.now(UTC):%Y-%m-%d}",
        )


async def _until_up(record: Record, trial: Trial) -> None:
    began = time.monotonic()
    while len(record.ready) < len(trial.planned.pods) or len(record.untainted) < len(trial.planned.nodes):
        if time.monotonic() - began > SETUP:
            raise TimeoutError(f"after {SETUP:g} s only {len(record.ready)} pods run on {len(record.untainted)} nodes")
        await asyncio.sleep(0.2)


@dataclass(frozen=True)
class Follower:
    """Follows a controller at work."""

    program: Program
    metrics: str
    record: Record
    decisions: Decisions
    loads: list[float] = field(default_factory=list)

    async def watch(self, trial: Trial, tell: Callable[[str], None]) -> bool:
        """Wait until nothing changes any more, or for as long as is allowed; whether it came to rest."""
        record = self.record
        while (elapsed := time.monotonic() - record.began) < trial.limit:
            await asyncio.sleep(1)
            self.loads.append(os.getloadavg()[0])
            if not self.program.running:
                raise RuntimeError(f"{self.program.name} ended by itself, see {self.program.log}")
            with suppress(OSError):  # it does not answer until it is up
                self.decisions.read(series_of(await asyncio.to_thread(_get, self.metrics)), time.monotonic())
            running, cost = len(record.ready), sum(record.nodes.values())
            tell(f"{elapsed:4.0f} s  {len(record.nodes):4} nodes  {cost:8.2f} $/h  {running:5} pods run")
            changed = record.changed > record.began
            at_rest = changed and running == len(trial.planned.pods) and len(record.untainted) == len(record.nodes)
            if at_rest and time.monotonic() - record.changed > trial.quiet:
                return True
        return False


def _get(url: str) -> str:
    with urlopen(url, timeout=5) as response:  # noqa: S310 - a port of our own
        return str(response.read().decode())


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> int:
    """The most that was resident, in MiB."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) // 1024


# -- around the runs ---------------------------------------------------------------------------------------------------


def ensured(script: str, *names: str) -> Path:
    """The folder of programs that a script of ours builds once."""
    command = [str(ROOT / "scripts" / script), *names]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603 - our own script
    if found.returncode:
        raise SystemExit(found.returncode)
    return Path(found.stdout.splitlines()[-1])


def versions() -> str:
    """Of everything that takes part."""
    known = pinned()
    python = ".".join(map(str, sys.version_info[:3]))
    return (
        f"Karpenter {known['karpenter']}, Karpool v{own.__version__} (Python {python}), "
        f"Kubernetes {known['kubernetes']}, kwok {known['kwok']}"
    )


def autoscaler() -> str:
    """Whether Cluster Autoscaler can be had, asked at the time of the run."""
    command = ["go", "list", "-m", "-versions", AUTOSCALER]
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"GOFLAGS": "-mod=mod", "GOWORK": "off"}
        try:
            asked = subprocess.run(  # noqa: S603 - as written here
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"The Go module proxy could not be asked for `{AUTOSCALER}`: {error}."
    if asked.returncode:
        today = f"{datetime.now(UTC):%Y-%m-%d}"
        answer = re.sub(r"reading \S+ ", "", " ".join(line.strip() for line in asked.stderr.strip().splitlines()))
        return f"It cannot be built from the Go module proxy: on {today} `{' '.join(command)}` answered\n`{answer}`."
    known = asked.stdout.split()[1:]
    if not known:
        return f"The Go module proxy lists no version of `{AUTOSCALER}`, so that none can be pinned."
    return f"The Go module proxy has `{AUTOSCALER}` (last: {known[-1]}); this benchmark does not run it yet."


def read_options() -> argparse.Namespace:
    """What was asked for; --small changes the defaults."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", help="of live clusters; default: 40 100; with --small 12")
    parser.add_argument(
        "--large", action="store_true", help=f"a live cluster of {LARGE[0]} nodes and {LARGE[1]} pods, too"
    )
    parser.add_argument("--budget", nargs="+", help="of the NodePool; default: 10%% 100%%; with --small 100%%")
    parser.add_argument(
        "--snapshots", type=int, nargs="*", help="nodes in files; default: 100 300 1000; with --small 50"
    )
    parser.add_argument("--limit", type=float, help="seconds for each live run; default: 600; with --small 60")
    parser.add_argument(
        "--quiet", type=float, help="seconds without a change that end a run; default: 120; with --small 30"
    )
    parser.add_argument("--small", action="store_true", help="a trial; the page is printed")
    parser.add_argument("--keep", type=Path, help="a folder for logs and figures; what it has is not measured again")
    given = parser.parse_args()
    usual = (
        ([12], ["100%"], [50], 60.0, 30.0) if given.small else ([40, 100], ["10%", "100%"], list(SIZES), 600.0, QUIET)
    )
    for name, value in zip(("nodes", "budget", "snapshots", "limit", "quiet"), usual, strict=True):
        if getattr(given, name) is None:
            setattr(given, name, value)
    return given


def main() -> None:
    """Measure, and write or print the page."""
    given = read_options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started ends, too
    with tempfile.TemporaryDirectory() as temporary:
        keep = given.keep or Path(temporary)
        keep.mkdir(parents=True, exist_ok=True)
        decided = [one for size in given.snapshots for one in _decided(size, keep)]
        runs = _live(given, keep)
    conditions = Conditions(
        versions=versions(),
        machine=machine(),
        quiet=given.quiet,
        autoscaler=autoscaler(),
    )
    if given.small:
        print(page(runs, decided, conditions))
    else:
        PAGE.write_text(page(runs, decided, conditions), encoding="utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")


def _decided(size: int, keep: Path) -> list[Decided]:
    """Decisions on a cluster in a file."""
    kept = keep / f"decided-{size}.json"
    if not kept.exists():
        kept.write_bytes(msgspec.json.encode(compared(size, LIMIT, lambda line: print(line, file=sys.stderr))))
    return msgspec.json.decode(kept.read_bytes(), type=list[Decided])


def _live(given: argparse.Namespace, keep: Path) -> list[Figures]:
    """All runs on live clusters."""
    kubernetes, others = ensured("ensure-kubernetes"), ensured("ensure-karpenter", "karpenter")
    # Alone as they are, neither should end because a busy machine answered late to the renewal of a lease.
    alone = {"DISABLE_LEADER_ELECTION": "true"}, {"LEADER_ELECT": "false"}
    ours = karpool(str(Path(sys.executable).with_name("karpool")))
    peers = (
        Peer("Karpenter", karpenter(others / "karpenter"), alone[0], KARPENTER_SECONDS, KARPENTER_WAITS),
        Peer("Karpool", ours, alone[1], KARPOOL_SECONDS),
    )
    clusters = [(nodes, PODS_PER_NODE * nodes, given.limit) for nodes in given.nodes]
    clusters += [(*LARGE, max(given.limit, LARGE_LIMIT))] if given.large else []
    runs: list[Figures] = []
    for nodes, pods, limit in clusters:
        trial = Trial(kubernetes, others / "definitions", layout(nodes, pods), limit, given.quiet, keep)
        for budget in given.budget:
            for peer in peers:
                kept = keep / f"live-{nodes}-{budget.rstrip('%')}-{peer.name.lower()}.json"
                if not kept.exists():
                    head = f"{peer.name}, {nodes} nodes, budget {budget}: "
                    found = asyncio.run(run(peer, budget, trial, partial(_progress, head)))
                    print(file=sys.stderr)
                    kept.write_bytes(msgspec.json.encode(found))
                runs.append(msgspec.json.decode(kept.read_bytes(), type=Figures))
    return runs


def _progress(head: str, line: str) -> None:
    """One line that changes on a terminal, many in a log."""
    print(head + line, end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
