"""Results of runs, kept beside the list of what is expected, and the page that shows them."""

import fcntl
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.conformance.expected import Expected
from tests.conformance.performance import OWN_MEMORY, Bounds, Phase, own_bounds, shortfalls, table
from tests.conformance.suites import Outcome, Result, Spec

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "conformance.md"
FOLDER = Path(__file__).parent / "results"
KARPOOL, KARPENTER = "karpool", "karpenter"
SUITE_TITLES = {
    "regression": "Provisioning, claims, buffers, static capacity (`regression`)",
    "disruption": "Drift, expiration, repair, termination (`disruption`)",
    "performance": "Performance (`performance`)",
    "dra": "Dynamic resource allocation (`dra`)",
}


_DRA = """As it is released, the suite cannot create its own DRAConfigs, whoever runs: its scheme has the kinds of the
group `test.karpenter.sh`, but not the options of requests. It and its driver are built with the
[file that adds them](../scripts/kubernetes/karpenter/repairs/dra_options.go), and nothing else is changed."""


@dataclass(frozen=True)
class Kept:
    outcome: Outcome
    seconds: float
    day: str
    phases: tuple[Phase, ...] = ()
    load: float | None = None
    """Processes that wanted a processor, the mean of the last five minutes of a spec that measures."""


def read_kept(controller: str, folder: Path = FOLDER) -> dict[str, Kept]:
    """The last result of each spec, by its name."""
    path = folder / f"{controller}.json"
    data = json.loads((path.read_text(encoding="utf-8") if path.exists() else "") or "{}")
    return {
        name: Kept(
            Outcome(entry["outcome"]),
            float(entry["seconds"]),
            entry["day"],
            tuple(Phase(**phase) for phase in entry.get("phases", ())),
            entry.get("load"),
        )
        for name, entry in data.items()
    }


def keep(
    controller: str, results: Iterable[Result], day: str, folder: Path = FOLDER, *, load: float | None = None
) -> dict[str, Kept]:
    """Puts new results in the place of old ones of the same specs."""
    folder.mkdir(exist_ok=True)
    with (folder / f"{controller}.json").open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # several runs may share the work
        kept = read_kept(controller, folder)
        kept |= {
            result.spec.name: Kept(
                result.outcome, round(result.seconds), day, result.phases, load if result.phases else None
            )
            for result in results
        }
        data = {name: _written(entry) for name, entry in sorted(kept.items())}
        file.truncate(0)
        file.write(json.dumps(data, indent=1) + "\n")
    return kept


def _written(entry: Kept) -> dict[str, object]:
    plain = {"outcome": entry.outcome.value, "seconds": entry.seconds, "day": entry.day}
    if not entry.phases:
        return plain
    load = {} if entry.load is None else {"load": round(entry.load, 1)}
    return {**plain, **load, "phases": [asdict(phase) for phase in entry.phases]}


def page(
    specs: Sequence[Spec],
    kept: Mapping[str, Mapping[str, Kept]],
    expected: Expected,
    versions: str,
    bounds: Mapping[str, Bounds],
    *,
    processors: int,
) -> str:
    """The whole page: how it came about, sums, and a table for each suite."""
    ours, theirs = kept[KARPOOL], kept[KARPENTER]
    parts = [_head(specs, ours, theirs, versions)]
    for suite in dict.fromkeys(spec.suite for spec in specs):
        rows = [_row(spec, ours, theirs, expected, bounds) for spec in specs if spec.suite == suite]
        lines = ["| spec | Karpool | s | Karpenter | s | why not |", "|---|---|---:|---|---:|---|", *rows]
        parts.append(f"## {SUITE_TITLES[suite]}\n\n" + "\n".join(lines))
        if suite == "dra":
            parts.append(_DRA)
        if suite == "performance":
            parts.append(_measured(specs, kept, bounds, processors))
    return "\n\n".join(parts) + "\n"


def _head(specs: Sequence[Spec], ours: Mapping[str, Kept], theirs: Mapping[str, Kept], versions: str) -> str:
    days = sorted({kept.day for kept in ours.values()})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    sums = [
        "| suite | specs | Karpool passed | not passed | Karpenter passed | not passed |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for suite in dict.fromkeys(spec.suite for spec in specs):
        names = [spec.name for spec in specs if spec.suite == suite]
        counts = [f"{_passed(names, kept)} | {_others(names, kept)}" for kept in (ours, theirs)]
        sums.append(f"| {suite} | {len(names)} | {' | '.join(counts)} |")
    return f"""# Conformance

The end-to-end suites of Karpenter, run against `karpool run --act --all-pools --provider kwok` in the place of
Karpenter, each spec alone. `make conformance` runs them and writes this page; `scripts/conformance --peer` runs the
same specs with Karpenter itself. [expected.toml](../tests/conformance/expected.toml) lists every spec that is not
expected to pass, with the reason, and a result that differs from it fails the run. The control plane is real, without
kubelets: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok with the stages of Karpenter's tests.

Versions: {versions}. Run {when}.
Several specs of `regression` and `disruption` run at once, each on a control plane of its own; one that fails beside
others is tried again alone before it counts. Seconds are those of one spec with its cleaning up, on a machine with
other work.

{chr(10).join(sums)}"""


def _measured(
    specs: Sequence[Spec], kept: Mapping[str, Mapping[str, Kept]], bounds: Mapping[str, Bounds], processors: int
) -> str:
    measured = {
        controller: {
            phase.name: (phase, results[spec.name].load)
            for spec in specs
            if spec.name in results
            for phase in results[spec.name].phases
        }
        for controller, results in kept.items()
    }
    return f"""What the suite measured, and what it asks for. A controller's pod is a process of this machine, whose
metrics the suite reads through the API server. The heap is the 95th percentile of Go's live heap; of Karpool, which has
none, it is all anonymous memory of its process, the interpreter and what is free again included. Karpool passes with
less than {OWN_MEMORY:.0f} MiB of it, for which its Deployment asks, or with what Karpenter passes with, if that is
more; what is beyond Karpenter's own thresholds is bold. Seconds include waiting until nothing has changed for three
minutes (consolidation) or two (drift). The load is how many processes of the machine wanted one of its
{processors} processors, on average of the spec's last five minutes: what else ran there makes both slower.

{table(measured, bounds, {KARPOOL: "Karpool", KARPENTER: "Karpenter"})}"""


def _passed(names: Iterable[str], kept: Mapping[str, Kept]) -> int:
    return sum(name in kept and kept[name].outcome is Outcome.PASSED for name in names)


def _others(names: Iterable[str], kept: Mapping[str, Kept]) -> int:
    return sum(name in kept and kept[name].outcome is not Outcome.PASSED for name in names)


def _row(
    spec: Spec,
    ours: Mapping[str, Kept],
    theirs: Mapping[str, Kept],
    expected: Expected,
    bounds: Mapping[str, Bounds],
) -> str:
    cells = [spec.text.replace("|", "\\|")]
    for kept in (ours.get(spec.name), theirs.get(spec.name)):
        cells += ["", ""] if kept is None else [kept.outcome.value, f"{kept.seconds:.0f}"]
    why = _why_not(spec, ours.get(spec.name), expected, bounds)
    if spec.name in theirs and theirs[spec.name].outcome is not Outcome.PASSED:
        why = "; ".join(filter(None, (why, f"Karpenter: {expected.reason_of_peer(spec)}")))
    return f"| {' | '.join([*cells, why])} |"


def _why_not(spec: Spec, ours: Kept | None, expected: Expected, bounds: Mapping[str, Bounds]) -> str:
    """Why a spec has no result, or did not pass: what was measured beyond a threshold, and what the list says."""
    if ours is None:
        return expected.reason_without_result(spec)
    told = expected.reason(spec)
    if ours.outcome is Outcome.PASSED:
        return told
    return "; ".join(filter(None, (*shortfalls(ours.phases, own_bounds(bounds)), told)))
