"""The page that shows how controllers compare; every figure on it is of one run."""

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from peer_cluster import POD_START, REGISTRATION
from peer_record import SHARE, Figures, target

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "peers.md"


CUT_OFF: Final = """
A run that was cut off tells where its controller was by then, not where it would have come to rest: prices at the end
and savings of such columns do not say who ends cheaper, and times to a saving compare with one that may not be final.
"""


@dataclass(frozen=True)
class Conditions:
    """Under which a run was made."""

    versions: str
    machine: str
    day: str
    load: str
    nodes: int
    pods: int
    limit: float
    quiet: float
    autoscaler: str


def machine() -> str:
    """Processors and memory."""
    cpus = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "name" in line]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores ({cpus[0] if cpus else platform.machine()}), {memory:.0f} GiB"


def page(runs: Sequence[Figures], conditions: Conditions) -> str:
    """The page in Markdown."""
    return f"""# Peers

`make bench-peers` runs Karpenter with its KWOK provider and `karpool run --act --all-pools --provider kwok` one after
the other, each with its defaults but without leader election, on new control planes that hold the same cluster, and
writes this page. Nothing here was measured elsewhere or at another time.

- Versions: {conditions.versions}.
- Machine: {conditions.machine}, which also runs etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok.
  {conditions.load}
- Day: {conditions.day}.
- Cluster: {conditions.nodes:,} on-demand nodes of five types, {conditions.pods:,} pods of six sizes in
  ReplicaSets, bound by chance; one NodePool, all amd64 types allowed, `consolidateAfter: 0s`; no PodDisruptionBudgets.
  A node comes {REGISTRATION} s after its launch; a pod runs {POD_START} s after it has a node.

{table(runs, conditions)}
{"" if all(run.settled for run in runs) else CUT_OFF}
How to read it:

- Nothing but the order of the runs differs between the columns of a budget: work of others on the same machine, if the
  load says that there was any, may have slowed one more than another.
- Prices are those of Karpenter's KWOK provider, of all nodes that exist.
- Time to {SHARE:.0%} of the saving: from the start of the process until the nodes cost no more, for good, than where
  {SHARE:.0%} is saved of what the better of the two saved with that budget.
- A run ends when something has changed, all pods run, and no pod or node has come or gone for {conditions.quiet:g} s,
  or after {conditions.limit:g} s. The last change is the time of the last pod or node that came or went.
- Evictions are pods that left their node; some left more than once. Fewest pods running: ready and not told to stop.
- Times begin with the process: start-up and filling caches are in them.
- Processor time and memory are those of the controller's process in `/proc`, from its start to the end of the run.
- Longest decision: of one look over all nodes, from the controller's own metrics. Karpenter's counts the 15 s before
  the second look in; such looks are left out, and the longest looks of its methods are added up.
  Karpool's search for a cheaper fleet runs beside its looks: the longest, from its log, is added.

## Cluster Autoscaler

Not measured. {conditions.autoscaler}
"""


def table(runs: Sequence[Figures], conditions: Conditions) -> str:
    """One column for each run."""
    goals = {run.budget: target([other for other in runs if other.budget == run.budget]) for run in runs}

    def soon(run: Figures) -> str:
        seconds = run.reached(goals[run.budget])
        return f"not in {conditions.limit:g} s" if seconds is None else f"{seconds:.0f} s"

    rows: list[tuple[str, Callable[[Figures], str]]] = [
        ("price before", lambda run: f"{run.before:.2f} $/h"),
        ("price at the end", lambda run: f"{run.end:.2f} $/h"),
        ("saved", lambda run: f"{1 - run.end / run.before:.1%}"),
        ("nodes at the end", lambda run: f"{run.nodes:,}"),
        ("nodes launched", lambda run: f"{run.launched:,}"),
        ("evictions", lambda run: f"{run.evictions:,}"),
        ("fewest pods running", lambda run: f"{run.fewest:,} of {run.pods:,}"),
        (f"time to {SHARE:.0%} of the saving", soon),
        ("last change", lambda run: f"{run.seconds:.0f} s" + ("" if run.settled else ", cut off")),
        ("processor time of the controller", lambda run: f"{run.cpu:.1f} s"),
        ("its memory, at most", lambda run: f"{run.memory:,} MiB"),
        ("longest decision", lambda run: f"{run.decision:.2f} s"),
    ]
    head = [
        "| | " + " | ".join(f"{run.controller}, budget {run.budget}" for run in runs) + " |",
        "|---|" + "---:|" * len(runs),
    ]
    return "\n".join([*head, *(f"| {name} | {' | '.join(map(tell, runs))} |" for name, tell in rows)])
