"""What sweeps and fleets take: one local worker, two, and two raylets of a Ray cluster, on the same trials in one run.

    python benchmarks/sweep.py --json
    python benchmarks/sweep.py --hours 6 --scale 1 --settings 6 --rounds 2 --empty 60 --nodes 50 200 1000 --docs docs

The trials are days of `benchmarks/simulation.py`; a place is timed from the start of its workers to its last result,
and the best of the rounds counts. `--empty` is how many trials of one simulated second are timed for what a trial
costs besides. Of fleets, generated clusters are planned from their files, in this process. `--docs` writes the figures
into the pages, between `<!-- sweep-... -->` and `<!-- end -->`.
"""

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
from clusters import NOW, catalog_entries, generate, manifest
from simulation import scenario as day_of
from sweep_figures import LOCAL_1, LOCAL_2, RAY, Figures, Planned, pages

from karpool.catalog.sources import open_catalog
from karpool.cli.fleet import FleetWork, Member, plan_member
from karpool.cli.options.catalog_options import CatalogOpener
from karpool.cli.options.decision_options import Choices
from karpool.cli.options.worker_options import Where, workers_at
from karpool.cluster.node_groups import GroupOptions
from karpool.disruption.settings import DisruptionSettings
from karpool.model.objects import Objects
from karpool.optimization.warmup import warm_up
from karpool.packing.options import Options
from karpool.report.simulations.sweep_document import sweep_document, to_json
from karpool.sweep.dimensions import read_dimension
from karpool.sweep.driver import Sweep
from karpool.sweep.methods import Grid
from karpool.sweep.trial import SweepInput, run_trial
from karpool.virtual.compare import RunInputs
from karpool.virtual.scenario import Policy
from karpool.wire.duration import parse_duration

PLACES: Final = {LOCAL_1: Where("local", 1), LOCAL_2: Where("local", 2), RAY: Where("ray")}
_STORE: Final = 200 * 2**20
"""Bytes of the object store of a raylet."""


def trials_of(scale: float, length: str) -> SweepInput:
    """A day of the simulation benchmark, or its beginning, at the least effort."""
    day = day_of(scale)
    policy = Policy(decisions=msgspec.structs.replace(Policy().decisions, effort=0))
    told = msgspec.structs.replace(day, length=parse_duration(length), policies={"default": policy})
    return SweepInput("day", RunInputs(told, open_catalog("kwok"), Objects()), "default")


def swept(entry: SweepInput, where: Where, settings: int, seeds: int) -> tuple[float, Sweep]:
    """How long a sweep takes, with the start of its workers; and the sweep."""
    minutes = ",".join(f"{number}m" for number in range(1, settings + 1))
    running = Sweep([entry], range(1, seeds + 1), report=lambda *_: None, stops_hopeless=False)
    began = time.perf_counter()
    with workers_at(where, partial(run_trial, (entry,))) as workers:
        running.run(Grid([read_dimension(f"consolidateAfter={minutes}")]), workers)
    return time.perf_counter() - began, running


@contextmanager
def ray_cluster() -> Iterator[None]:
    """Two raylets of one processor each, on this machine; drivers find them by RAY_ADDRESS."""
    # Ray reads these when it is imported: nodes on the loopback are then found there.
    os.environ |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    os.environ["RAY_raylet_start_wait_time_s"] = "180"  # noqa: SIM112 - Ray writes it so
    from ray.cluster_utils import Cluster

    small = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": _STORE}
    cluster = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    try:
        cluster.add_node(**small)
        os.environ["RAY_ADDRESS"] = cluster.address
        yield
    finally:
        os.environ.pop("RAY_ADDRESS", None)
        cluster.shutdown()


def places(names: Sequence[str], entry: SweepInput, given: argparse.Namespace) -> tuple[dict[str, float], Sweep, bool]:
    """By place the best time of all rounds; a sweep; and whether all of them came to the same bytes."""
    best: dict[str, float] = {}
    documents: set[str] = set()
    for _ in range(given.rounds):
        for name in names:
            seconds, running = swept(entry, PLACES[name], given.settings, given.seeds)
            best[name] = min(seconds, best.get(name, seconds))
            documents.add(sha256(to_json(sweep_document(running, "grid", complete=True))).hexdigest())
    return best, running, len(documents) == 1


def fleet(nodes: int, clusters: int) -> Planned:
    """What the plan of a cluster takes, from its file to its row in a fleet, on the average of some."""
    choices = Choices(settings=DisruptionSettings(), options=Options(), now=NOW)
    work = FleetWork(CatalogOpener(None), GroupOptions(), choices, None, bound=True)
    taken, pods = 0.0, 0
    with TemporaryDirectory() as folder:
        machines = Path(folder) / "catalog.json"
        machines.write_bytes(msgspec.json.encode(catalog_entries()))
        for seed in range(1, clusters + 1):
            objects, file = generate(nodes, seed), Path(folder) / f"cluster-{seed}.json"
            file.write_bytes(manifest(objects))
            pods += len(objects.pods)
            began = time.process_time()
            row = plan_member(work, Member(file.stem, (str(file),), str(machines)), None)
            taken += time.process_time() - began
            if row.error:
                raise SystemExit(row.error)
    return Planned(nodes, round(pods / clusters), taken / clusters)


def measure(given: argparse.Namespace) -> Figures:
    """Everything, one after the other."""
    warm_up()
    entry = trials_of(given.scale, f"{given.hours}h")
    names = [LOCAL_1, LOCAL_2]
    if given.ray and find_spec("ray") is not None:
        with ray_cluster():
            best, running, same = places([*names, RAY], entry, given)
    else:
        best, running, same = places(names, entry, given)
    empty, _ = swept(trials_of(given.scale, "1s"), PLACES[LOCAL_1], given.empty, 1)
    hours = sum(timed.result.seconds for timed in running.results.values()) / 3600
    node_hours = sum(timed.result.node_hours for timed in running.results.values())
    return Figures(
        trials=len(running.results),
        hours=given.hours,
        nodes=node_hours / hours,
        seconds=best,
        same=same,
        overhead=empty / given.empty,
        empty=given.empty,
        per_hour=median(timed.cpu_seconds for timed in running.results.values()) / given.hours,
        fleet=tuple(fleet(nodes, given.clusters) for nodes in given.nodes),
        on=datetime.now(UTC).date(),
    )


def write(folder: Path, blocks: Mapping[str, Mapping[str, str]]) -> None:
    """Put the blocks of each page between their marks."""
    for page, marked in blocks.items():
        file = folder / page
        text = file.read_text()
        for mark, made in marked.items():
            pattern = rf"(<!-- {mark} -->\n).*?(?=<!-- end -->)"
            text, count = re.subn(pattern, lambda at, made=made: f"{at[1]}{made}\n", text, flags=re.DOTALL)
            if count != 1:
                raise SystemExit(f"{file} has no place for {mark}")
        file.write_text(text)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add: Any = parser.add_argument
    add("--hours", type=int, default=1, help="simulated hours of a trial")
    add("--scale", type=float, default=0.25, help="how large the simulated cluster is; 1: up to 400 nodes")
    add("--settings", type=int, default=3)
    add("--seeds", type=int, default=2)
    add("--rounds", type=int, default=1, help="how often each place is timed")
    add("--empty", type=int, default=20, help="how many trials of one simulated second are timed")
    add("--nodes", type=int, nargs="+", default=[30], help="sizes of clusters that are planned as a fleet")
    add("--clusters", type=int, default=1, help="how many of each size")
    add("--no-ray", dest="ray", action="store_false", help="leave Ray out, as where it is not installed")
    add("--docs", type=Path, help="the folder of the documentation, to write the figures there")
    add("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    found = measure(given)
    if given.json:
        sys.stdout.write(f"{json.dumps(found.plain())}\n")
    else:
        for marked in pages(found).values():
            sys.stdout.write("\n".join([*marked.values(), ""]))
    if given.docs is not None:
        write(given.docs, pages(found))


if __name__ == "__main__":
    main()
