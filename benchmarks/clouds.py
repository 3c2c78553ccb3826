"""What a plan makes of clusters as the clouds make them, and of a real cluster whose trace is at hand.

    PYTHONPATH=. python benchmarks/clouds.py --nodes 30        # every cloud, small
    PYTHONPATH=. python benchmarks/clouds.py --nodes 1000 3000 --cloud aks gke-standard
    PYTHONPATH=. python benchmarks/clouds.py --data DATA       # with the trace in DATA/openb

Each plan is made by `karpool plan`, from a file to JSON; seconds are processor time. `gap` is how far the price after
the plan may be above the least possible; `unpriced` is the share of nodes whose price nobody knows. At the end of a
line: how many nodes stay for which reason.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import openb
from cloud_clusters import generate
from cloud_fleets import CLOUDS
from cluster_nodes import NOW
from clusters import manifest

Figures = dict[str, Any]
KARPOOL: Final = Path(sys.executable).with_name("karpool")
DATA: Final = Path(__file__).resolve().parents[1] / "../shared/data"


def measure(cluster: Path, options: Sequence[str] = ()) -> Figures:
    """Plan a file as a user would, and take the figures from the plan."""
    output = cluster.with_suffix(".plan")
    started = time.perf_counter()
    at = NOW.isoformat()
    command = [str(KARPOOL), "plan", "-f", str(cluster), "--at", at, *options, "--output", "json"]
    with output.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=subprocess.PIPE) as process:  # noqa: S603 - ourselves
        said = process.stderr.read().decode() if process.stderr is not None else ""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(said)
    return {
        **_figures(msgspec.json.decode(output.read_bytes())),
        "planSeconds": round(time.perf_counter() - started, 2),
        "processorSeconds": round(used.ru_utime + used.ru_stime, 2),
        "peakMemoryMB": round(used.ru_maxrss / 1024),
    }


def _figures(plan: Figures) -> Figures:
    before, after, bound = plan["before"], plan["after"], plan["lowerBound"]
    stays = Counter(reason["code"] for node in plan["nodes"] for reason in node["reasons"] if node["verdict"] == "keep")
    placements = [move for command in plan["commands"] for move in command["placements"]]
    return {
        "nodes": before["nodes"],
        "nodesAfter": after["nodes"],
        "pods": before["pods"],
        "pending": len(plan["unschedulable"]),
        "priceBefore": before["pricePerHour"],
        "priceAfter": after["pricePerHour"],
        "gapPercent": None if bound is None else bound["distancePercent"],
        "evictions": sum(move["from"] is not None for move in placements),
        "steps": len(plan["commands"]),
        "unpriced": round(before["unpricedNodes"] / before["nodes"], 3),
        "stays": dict(stays.most_common()),
        "warnings": plan["warnings"],
    }


def results(given: argparse.Namespace, folder: Path) -> Iterator[Figures]:
    """Every cloud at every size, and the trace where there is one."""
    for name in given.cloud:
        for nodes in given.nodes:
            file = folder / f"{name}-{nodes}.json"
            file.write_bytes(manifest(generate(name, nodes, given.seed)))
            yield {"cloud": name, "title": CLOUDS[name].name, **measure(file, given.options)}
            file.unlink()
    found = openb.trace_in(given.data)
    if found is None:
        print(f"no traces in {given.data}; --data names the folder that holds openb/", file=sys.stderr)
        return
    files = openb.write(found, folder)
    options = ("--catalog", str(files.catalog), "--groups", str(files.sizes), *given.options)
    yield {"cloud": "openb", "title": "trace openb", **measure(files.cluster, options)}


COLUMNS: Final = (
    ("cluster", 36), ("nodes", 15), ("$/h", 24), ("gap", 7), ("evictions", 10), ("seconds", 8), ("MB", 6),
    ("unpriced", 9), ("stays because", 0),
)  # fmt: skip


def line(found: Figures) -> tuple[str, ...]:
    """A result as a row of the table."""
    before, after, gap = found["priceBefore"], found["priceAfter"], found["gapPercent"]
    reasons = ", ".join(f"{code} {count}" for code, count in list(found["stays"].items())[:4])
    return (
        found["title"],
        f"{found['nodes']:,} -> {found['nodesAfter']:,}",
        "?" if before is None else f"{before:,.2f} -> {after:,.2f}",
        "?" if gap is None else f"{gap:.1f} %",
        f"{found['evictions']:,}",
        f"{found['processorSeconds']:.1f}",
        str(found["peakMemoryMB"]),
        f"{found['unpriced']:.0%}",
        reasons,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[30])
    parser.add_argument("--cloud", nargs="+", choices=list(CLOUDS), default=list(CLOUDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, default=DATA, metavar="FOLDER", help="where the trace openb/ is")
    parser.add_argument("--effort", type=int, help="as of `karpool plan`")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each cluster")
    given = parser.parse_args()
    given.options = () if given.effort is None else ("--effort", str(given.effort))
    if not given.json:
        print("".join(title.ljust(width) for title, width in COLUMNS))
    with tempfile.TemporaryDirectory() as folder:
        for found in results(given, Path(folder)):
            cells = zip(line(found), COLUMNS, strict=True)
            told = "".join(cell.ljust(width) for cell, (_, width) in cells)
            print(msgspec.json.encode(found).decode() if given.json else told, flush=True)


if __name__ == "__main__":
    main()
