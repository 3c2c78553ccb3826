"""What the console needs for a large cluster, and what fifty open pages cost the controller beside it.

PYTHONPATH=. python benchmarks/console.py --nodes 10000 --pods 200000 --json

Without `--beside`: the store of a cluster in memory, which changes 200 times a second, behind the same pages that
`karpool ui` serves, in a headless Chromium. One pod carries the time as a label; how far the page is behind is how old
that time is when the page knows of it. With `--beside`: `karpool run` on a real control plane that kwok
plays, without and with fifty readers of its console in turn: how long its passes take, and whether it keeps its lease.
"""

import argparse
import asyncio
import itertools
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
from aiohttp import ClientSession, ClientTimeout, TCPConnector
from clusters import catalog, generate
from live_cluster import LiveCluster
from msgspec.structs import replace
from playwright.async_api import Page, async_playwright
from playwright.async_api import TimeoutError as TooLong
from tests.live.control_plane import ControlPlane
from tests.live.https import Client as Https
from tests.live.programs import free_port

from karpool.cli.console_decider import ConsoleDecider
from karpool.cli.options.catalog_options import CatalogOpener
from karpool.cli.options.decision_options import Choices
from karpool.cluster.node_groups import GroupOptions
from karpool.controller.store import ClusterStore
from karpool.disruption.settings import PREFIX, DisruptionSettings
from karpool.kube.client import Client
from karpool.kube.kubeconfig import find_target
from karpool.live import resources as r
from karpool.model.objects import Objects
from karpool.observability.serving import Address, serving
from karpool.packing.options import Options
from karpool.web.console import Console, OpenedCluster
from karpool.web.file_source import filled_store
from karpool.web.pages import console_pages
from live import Running, until

MB: Final = 2**20
DECISIONS: Final = "karpool_decision_seconds"
SETTLING_SECONDS: Final = 20.0
PLAN_SECONDS: Final = 15.0
"""How often a page that shows the plan of a cluster that changes asks for it."""
LABELS_PER_SECOND: Final = 20.0
STAMP: Final = "written-at"
STAMP_SECONDS: Final = 0.5
WATCH_STAMPS: Final = """key => {
    window.stamps = [];
    setInterval(() => {
        const pod = window.karpool.live.fleet.podsByName.get(key);
        const stamp = pod && Number(pod.labels["written-at"]);
        const last = window.stamps.at(-1);
        if (stamp && !(last && last[0] === stamp)) window.stamps.push([stamp, Date.now() - stamp]);
    }, 20);
}"""
"""Notes in the page when it first knows of each time that was written on a pod: the time, and how long ago that is."""
Figures = dict[str, Any]


class GrownSource:
    """A cluster of any size, whose store the benchmark changes."""

    name = "benchmark"

    def __init__(self, store: ClusterStore, prices: Any) -> None:
        self._store, self._prices = store, prices

    async def open(self) -> OpenedCluster:
        choices = Choices(settings=DisruptionSettings(search=PREFIX), options=Options(), now=datetime.now(UTC))
        decider = ConsoleDecider(CatalogOpener("sample"), choices, GroupOptions(), moves=False)
        about = {"name": self.name, "source": "a benchmark", "kind": "live"}
        return OpenedCluster(self._store, lambda: self._prices, decider, living=True, about=about)

    async def close(self) -> None:
        """Nothing is held open."""


def cluster_of(nodes: int, pods: int) -> Objects:
    """A cluster of the benchmarks, with copies of its pods until there are as many as asked for."""
    objects = generate(nodes, 1)
    listed, copies = list(objects.pods), 0
    while len(listed) < pods:
        copies += 1
        more = objects.pods[: pods - len(listed)]
        listed += [replace(pod, metadata=replace(pod.metadata, name=f"{pod.name}-{copies}")) for pod in more]
    return replace(objects, pods=tuple(listed[:pods]))


def memory_mb(pid: int, what: str = "VmRSS") -> float:
    """What a process holds of its own and shares, in megabytes; `VmHWM`: at most so far."""
    found = re.search(rf"^{what}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 / MB if found else 0.0


def renderers() -> list[int]:
    """The processes that draw pages."""
    return _started(b"--type=renderer")


def answering() -> list[int]:
    """The processes that work answers out."""
    return _started(b"karpool.web.answering_process")


def _started(word: bytes) -> list[int]:
    """The processes with a word on their command line that descend from this one."""
    parents: dict[int, int] = {}
    drawing: list[int] = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            pid = int(entry.name)
            parents[pid] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if word in (entry / "cmdline").read_bytes():
                drawing.append(pid)
    return [pid for pid in drawing if os.getpid() in _ancestors(pid, parents)]


def _ancestors(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while pid in parents:
        pid = parents[pid]
        yield pid


def load_of_machine() -> Figures:
    """How many processors there are, and how many processes wanted one in the last minutes."""
    return {"processors": os.cpu_count(), "load": round(os.getloadavg()[1], 1)}


async def change(store: ClusterStore, rate: float, seconds: float, stamped: str) -> tuple[int, int]:
    """Move pods from node to node, so many a second, and write the time on one of them; how many, and the last time."""
    random = Random(1)
    pods = [pod for pod in store.pods.listed() if pod.spec.node_name and pod.key != stamped]
    nodes = [node.name for node in store.nodes.listed()]
    began, done, stamps, stamp = time.monotonic(), 0, 0, 0
    while (passed := time.monotonic() - began) < seconds:
        while done < passed * rate:
            pod = random.choice(pods)
            now = store.pods.get(pod.key) or pod
            store.pods.put(replace(now, spec=replace(now.spec, node_name=random.choice(nodes))))
            done += 1
        if passed >= stamps * STAMP_SECONDS:
            stamps, stamp = stamps + 1, round(time.time() * 1000)
            marked = store.pods.get(stamped)
            if marked is None:
                raise SystemExit(f"pod {stamped} is gone")
            labels = {**marked.metadata.labels, STAMP: str(stamp)}
            store.pods.put(replace(marked, metadata=replace(marked.metadata, labels=labels)))
        await asyncio.sleep(0.01)
    return done, stamp


@asynccontextmanager
async def browser_page() -> AsyncIterator[Page]:
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("this needs chromium; scripts/ensure-chromium installs it")
    async with async_playwright() as playwright:
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"]
        browser = await playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = await browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(300_000)
        yield page
        await browser.close()


async def load(nodes: int, pods: int, rate: float, seconds: float, patience: float) -> Figures:
    """First paint, memory, and how far a page is behind while the cluster changes."""
    store = filled_store(cluster_of(nodes, pods))
    console = Console([GrownSource(store, catalog())])
    async with browser_page() as page, serving(console_pages(console, Address("127.0.0.1", 0))) as bound:
        # From the first request on, of a server that has made no row yet.
        began = time.monotonic()
        await page.goto(f"http://{bound['/']}/")
        await page.wait_for_selector(".pool canvas, .pool .bar")
        painted = time.monotonic() - began
        await page.wait_for_function("() => window.karpool && window.karpool.live.complete")
        complete = time.monotonic() - began
        stamped = next(pod.key for pod in store.pods.listed() if pod.spec.node_name)
        await page.evaluate(WATCH_STAMPS, stamped)
        changing = asyncio.create_task(change(store, rate, seconds, stamped))
        changes, last = await changing
        began_settling = time.monotonic()
        await page.wait_for_function("last => window.stamps.at(-1)[0] >= last", arg=last)
        settled = time.monotonic() - began_settling
        lags = [lag / 1000 for _, lag in await page.evaluate("window.stamps")]
        heap = await page.evaluate("performance.memory.usedJSHeapSize")
        drawn = round(max(map(memory_mb, renderers())))
        # The page has asked for the plan by itself, which is made beside all that.
        planned = await _planned(page, began, patience)
        figures = {
            "nodes": nodes,
            "pods": pods,
            "first_paint_seconds": round(painted, 2),
            "all_pods_seconds": round(complete, 2),
            "plan_seconds": planned,
            "page_heap_mb": round(heap / MB),
            "page_process_mb": drawn,
            "server_process_mb": round(memory_mb(os.getpid())),
            "answering_process_mb": round(max((memory_mb(pid, "VmHWM") for pid in answering()), default=0)),
            "changes": changes,
            "changes_per_second": rate,
            "stamps_seen": len(lags),
            "behind_seconds_median": round(statistics.median(lags), 2),
            "behind_seconds_most": round(max(lags), 2),
            "caught_up_after_seconds": round(settled, 2),
            **load_of_machine(),
        }
    await console.close()
    return figures


async def _planned(page: Page, began: float, patience: float) -> float | None:
    """When the page had the plan; None if that takes too long."""
    try:
        arrived = "() => window.karpool.planned.answer !== null && window.karpool.planned.at"
        found = await page.wait_for_function(arrived, timeout=patience * 1000)
        at = await found.json_value()
    except TooLong:
        return None
    return round(at / 1000 - time.time() + time.monotonic() - began, 2)


# -- beside a controller -------------------------------------------------------------------------------------------


async def beside(nodes: int, pods: int, pages: int, seconds: float, rounds: int) -> Figures:
    """Decisions of a controller with and without open pages, one after the other on the same control plane."""
    run = await asyncio.create_subprocess_exec("scripts/ensure-kubernetes", stdout=asyncio.subprocess.PIPE)
    said, _ = await run.communicate()
    programs = Path(said.decode().splitlines()[-1])
    with tempfile.TemporaryDirectory() as folder, ControlPlane(programs, Path(folder)) as plane:
        async with Client(find_target(kubeconfig=plane.kubeconfig())) as client:
            cluster = LiveCluster(client, nodes, pods // nodes)
            tell(f"making {nodes:,} nodes and {pods:,} pods")
            await cluster.make()
            plane.start_controller_manager("--node-monitor-grace-period=24h")
            plane.start_scheduler()
            plane.start_kwok("--node-lease-duration-seconds=0")
            await until(cluster.settled, "all pods run")
            heartbeats = asyncio.create_task(cluster.heartbeats())
            changes = asyncio.create_task(label_pods(client, LABELS_PER_SECOND))
            figures = await watched(plane, pages, seconds, rounds)
            for task in (heartbeats, changes):
                task.cancel()
    return {"nodes": nodes, "pods": pods, **figures, **load_of_machine()}


def tell(progress: str) -> None:
    """Say how far the run has come, apart from its figures."""
    print(progress, file=sys.stderr, flush=True)


async def label_pods(client: Client, rate: float) -> None:
    """Write another label on some pod, so many times a second: pages are told, and nothing is to be decided."""
    pods = (await client.list(r.PODS)).items
    for number in itertools.count():
        pod = pods[number % len(pods)]
        patch = {"metadata": {"labels": {"benchmark": str(number)}}}
        await client.merge_patch(r.PODS, pod.name, patch, namespace=pod.metadata.namespace)
        await asyncio.sleep(1 / rate)


async def watched(plane: ControlPlane, pages: int, seconds: float, rounds: int) -> Figures:
    """One controller, without and with open pages in turn, so that what else the machine does counts for both."""
    port = free_port()
    running = Running.start(plane.kubeconfig(), plane.folder, f"--ui=127.0.0.1:{port}", "--poll-interval=1s")

    async def decided() -> bool:
        return await asyncio.to_thread(running.ready) and await asyncio.to_thread(running.passes) > 0

    alone, beside, read = list[Figures](), list[Figures](), list[Figures]()
    try:
        tell("waiting for the first decision")
        await until(decided, "the first decision")
        for number in range(1, rounds + 1):
            tell(f"round {number} of {rounds}: {seconds:g} s without pages")
            alone.append(await passes_of(running, seconds))
            tell(f"round {number} of {rounds}: {seconds:g} s beside {pages} pages")
            async with reading(f"http://127.0.0.1:{port}/", pages) as figures:
                # What opening pages costs is paid once; what counts is how it is to have them open.
                await asyncio.sleep(SETTLING_SECONDS)
                beside.append(await passes_of(running, seconds))
            read.append(figures)
        lost = (plane.folder / "karpool.log").read_text().count("no longer leading")
        transitions = await asyncio.to_thread(lease_transitions, plane.kubeconfig())
        memory = running.memory()["now"]
    finally:
        running.stop()
    before, after = (statistics.median(part["decision_seconds"] for part in parts) for parts in (alone, beside))
    return {
        "alone": alone,
        "beside": beside,
        "slower_percent": round(100 * (after / before - 1), 1),
        "lease_lost": lost,
        "lease_transitions": transitions,
        "memory_mb": memory,
        "pages": pages,
        "pages_failed": sum(part["pages_failed"] for part in read),
        "events_read": sum(part["events_read"] for part in read),
        "plans_read": sum(part["plans_read"] for part in read),
    }


def lease_transitions(kubeconfig: Path) -> int:
    """How often the lease has gone to another holder."""
    lease = Https(kubeconfig).get("/apis/coordination.k8s.io/v1/namespaces/karpool/leases/karpool").body
    return int(lease["spec"].get("leaseTransitions") or 0)


async def passes_of(running: Running, seconds: float) -> Figures:
    """How long the decisions of a while took."""
    before, used = await asyncio.to_thread(running.series), running.cpu_seconds()
    await asyncio.sleep(seconds)
    after, used = await asyncio.to_thread(running.series), running.cpu_seconds() - used
    count, took = (after[f"{DECISIONS}_{part}"] - before[f"{DECISIONS}_{part}"] for part in ("count", "sum"))
    return {
        "decisions": int(count),
        "decision_seconds": round(took / count, 4) if count else float("nan"),
        "cpu_seconds_per_second": round(used / seconds, 3),
    }


@asynccontextmanager
async def reading(address: str, count: int) -> AsyncIterator[Figures]:
    """So many pages, each of which reads everything and follows all changes; every fifth looks at the plan, too."""
    figures: Figures = {"pages_failed": 0, "events_read": 0, "plans_read": 0}

    async def plans(session: ClientSession) -> None:
        while True:
            async with session.get(f"{address}data/ask/plan") as answer:
                await answer.read()
                figures["plans_read"] += answer.ok
            await asyncio.sleep(PLAN_SECONDS)

    async def page(session: ClientSession) -> None:
        async with session.get(f"{address}data/fleet") as answer:
            document = await answer.json()
        async with session.get(f"{address}data/pods") as answer:
            await answer.read()
        query = {"epoch": document["epoch"], "after": str(document["number"])}
        async with session.get(f"{address}data/events", params=query) as answer:
            async for line in answer.content:
                figures["events_read"] += line.startswith(b"id: ")

    # Readers are browsers elsewhere: as far as possible they leave the controller a processor of its own.
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(processors)})
    connector = TCPConnector(limit=0)
    async with ClientSession(connector=connector, timeout=ClientTimeout(total=None, sock_read=60)) as session:
        tasks = [asyncio.create_task(page(session)) for _ in range(count)]
        tasks += [asyncio.create_task(plans(session)) for _ in range(count // 5)]
        yield figures
        figures["pages_failed"] = sum(task.done() for task in tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    os.sched_setaffinity(0, processors)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--pods", type=int, default=6000)
    parser.add_argument("--rate", type=float, default=200.0, help="changes a second")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--beside", action="store_true", help="measure a controller with open pages")
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3, help="how often to measure without and with open pages")
    parser.add_argument("--plan-seconds", type=float, default=900.0, help="how long to wait for the plan")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    if given.beside:
        figures = asyncio.run(beside(given.nodes, given.pods, given.pages, given.seconds, given.rounds))
    else:
        figures = asyncio.run(load(given.nodes, given.pods, given.rate, given.seconds, given.plan_seconds))
    if given.json:
        print(msgspec.json.encode(figures).decode())
    else:
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
