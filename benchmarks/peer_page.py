"""The page that shows how controllers compare; every figure on it is of one run."""

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from peer_cluster import POD_START, REGISTRATION
from peer_record import SHARE, Figures, target
from peer_snapshots import SAMPLE, Decided

T = TypeVar("T")
PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "peers.md"


ALIKE: Final = 0.1
"""Loads of the machine that differ by no larger part, or by no more than one, count as the same."""
CUT_OFF: Final = """
A run that was cut off tells where its controller was by then, not where it would have come to rest: prices at the end
and savings of such columns do not say who ends cheaper, and times to a saving compare with one that may not be final.
"""


@dataclass(frozen=True)
class Conditions:
    """Under which everything was measured."""

    versions: str
    machine: str
    quiet: float
    autoscaler: str


def machine() -> str:
    """Processors and memory."""
    cpus = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "name" in line]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores ({cpus[0] if cpus else platform.machine()}), {memory:.0f} GiB"


def page(runs: Sequence[Figures], decided: Sequence[Decided], conditions: Conditions) -> str:
    """The page in Markdown."""
    live = "\n\n".join(_live([run for run in runs if run.size == size]) for size in sorted({run.size for run in runs}))
    return f"""# Peers

`make bench-peers` compares Karpenter, with its KWOK provider, and Karpool on the same clusters, in files and live, and
writes this page. Nothing here was measured elsewhere.

- Versions: {conditions.versions}.
- Commit and day of each run: in the tables.
- Machine: {conditions.machine}. Others used it, too: the tables tell the load, of which more than two is waiting.
- Clusters: on-demand nodes of five types, pods of six sizes in ReplicaSets, bound by chance; one NodePool, all amd64
  types allowed, `consolidateAfter: 0s`; no PodDisruptionBudgets. The larger has the same mixture as the smaller.

## Live

`karpenter` and `karpool run --act --all-pools --provider kwok`, one after the other, each with its defaults but without
leader election, on new control planes of the same machine: etcd, kube-apiserver, kube-controller-manager,
kube-scheduler and kwok. A node comes {REGISTRATION} s after its launch; a pod runs {POD_START} s after it has a node.

{live}
{"" if all(run.settled for run in runs) else CUT_OFF}
How to read it:

- Nothing but the order of the runs differs between the columns of a budget, and the work of others on the machine.
- Prices are those of Karpenter's KWOK provider, of all nodes that exist.
- Time to {SHARE:.0%} of the saving: from the start of the process until the nodes cost no more, for good, than where
  {SHARE:.0%} is saved of what the better of the two saved with that budget.
- A run ends when something has changed, all pods run, and no pod or node has come or gone for {conditions.quiet:g} s,
  or after as many seconds as its table says. The last change is the time of the last pod or node that came or went.
- Evictions are pods that left their node; some left more than once. Fewest pods running: ready and not told to stop.
- Times begin with the process: start-up and filling caches are in them.
- Processor time and memory are those of the controller's process in `/proc`, from its start to the end of the run.
- Longest decision: of one look over all nodes, from the controller's own metrics. Karpenter's counts the 15 s before
  the second look in; such looks are left out, and the longest looks of its methods are added up.
  Karpool's search for a cheaper fleet runs beside its looks: the longest, from its log, is added.

## On the same snapshots

The same clusters as files, decided on in memory and without waiting, with budgets of 100%, until nothing is left to do.
For Karpenter this is a program of ours (`benchmarks/karpenter`) that links Karpenter's state of a cluster, its
simulation, its methods of consolidation and its KWOK provider, and reads objects from memory as Karpenter does from its
caches. For Karpool it is the plan of `karpool plan`.

{snapshots(decided)}
{_other_loads({f"{size:,} nodes": [one.load for one in decided if one.size == size] for size in _sizes(decided)})}
- Time for a candidate: one node is taken away, and places are found for its pods. Karpenter's is the mean of up to
  {SAMPLE} candidates, Karpool's of all of them.
- A command is carried out at once and as it was planned: pods go where the simulation had them, and a new node is the
  cheapest that was allowed. A scheduler may choose otherwise, see the live clusters.
- Decisions until the end: all looks together, the second looks left out. Karpenter has up to 60 s for a look at several
  nodes and 180 s for one at single nodes, and Karpool's searches have limits, too.

## Cluster Autoscaler

Not measured. {conditions.autoscaler}
"""


def _live(runs: Sequence[Figures]) -> str:
    limits = ", ".join(f"{limit:g} s" for limit in sorted({run.limit for run in runs}))
    budgets = dict.fromkeys(run.budget for run in runs)
    loads = {f"budget {budget}": [run.load for run in runs if run.budget == budget] for budget in budgets}
    head = f"### {runs[0].size:,} nodes, {runs[0].pods:,} pods; cut off after {limits}"
    return f"{head}\n\n{table(runs)}\n{_other_loads(loads)}".rstrip("\n")


def _sizes(decided: Sequence[Decided]) -> list[int]:
    return list(dict.fromkeys(one.size for one in decided))


def _other_loads(compared: Mapping[str, Sequence[float]]) -> str:
    """A paragraph about columns that were to be compared, and were measured beside more work than one another."""
    unlike = [
        f"{name} ({' and '.join(f'{load:.1f}' for load in loads)})"
        for name, loads in compared.items()
        if max(loads) - min(loads) > max(1.0, ALIKE * max(loads))
    ]
    if not unlike:
        return ""
    return f"""
The load differed by more than {ALIKE:.0%} between the columns of {", ".join(unlike)}.
Seconds of these columns do not compare.
"""


def table(runs: Sequence[Figures]) -> str:
    """One column for each run."""
    goals = {run.budget: target([other for other in runs if other.budget == run.budget]) for run in runs}

    def soon(run: Figures) -> str:
        seconds = run.reached(goals[run.budget])
        return f"not in {run.limit:g} s" if seconds is None else f"{seconds:.0f} s"

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
        ("load of the machine, mean", lambda run: f"{run.load:.1f}"),
        ("commit", lambda run: run.commit or "?"),
        ("day", lambda run: run.day or "?"),
    ]
    return _table([f"{run.controller}, budget {run.budget}" for run in runs], runs, rows)


def snapshots(decided: Sequence[Decided]) -> str:
    """One column for each controller and size."""

    def cut(one: Decided) -> str:
        return "" if one.finished else ", cut off"

    rows: list[tuple[str, Callable[[Decided], str]]] = [
        ("pods", lambda one: f"{one.pods:,}"),
        ("time for a candidate", lambda one: f"{one.seconds_per_candidate * 1000:.3g} ms"),
        ("price before", lambda one: f"{one.before:.2f} $/h"),
        ("price at the end", lambda one: f"{one.end:.2f} $/h{cut(one)}"),
        ("saved", lambda one: f"{1 - one.end / one.before:.1%}"),
        ("nodes at the end", lambda one: f"{one.nodes:,}"),
        ("nodes launched", lambda one: f"{one.launched:,}"),
        ("commands", lambda one: f"{one.commands:,}"),
        ("evictions", lambda one: f"{one.evictions:,}"),
        (
            "decisions until the end",
            lambda one: f"{one.decision_seconds:.1f} s" + ("" if one.finished else ", cut off"),
        ),
        ("load of the machine", lambda one: f"{one.load:.1f}"),
        ("commit", lambda one: one.commit or "?"),
        ("day", lambda one: one.day or "?"),
    ]
    return _table([f"{one.controller}, {one.size:,} nodes" for one in decided], decided, rows)


def _table(heads: Sequence[str], columns: Sequence[T], rows: Sequence[tuple[str, Callable[[T], str]]]) -> str:
    lines = [f"| | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(map(tell, columns))} |" for name, tell in rows)])
