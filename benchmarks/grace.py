"""What a consolidation grace period does to a recorded day: the claims of its design, with intervals over seeds.

    python benchmarks/grace.py --seeds 5 --json
    python benchmarks/grace.py --seeds 5 --page docs/grace-period.md

The built-in recording, or another one, is replayed under `consolidateAfter: 30s` and each period on the same seeds.
With --page, the table between `<!-- grace -->` and `<!-- end -->` is made anew.
"""

import argparse
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner

from karpool.cli.main import cli
from karpool.report.formatting import age
from karpool.virtual.statistics import Estimate, estimate, paired

NONE: Final = "Never"
PERIODS: Final = (NONE, "10m", "30m", "1h")
MEASURES: Final = ("evictions", "nodesLaunched", "pendingPodSeconds", "cost")
HEAD: Final = (
    "| grace period | evictions | of those without | nodes launched | time pods waited, in sum | cost |\n"
    "|---|---:|---:|---:|---:|---:|"
)


def measure(recording: str, seeds: int, length: str | None, results: str | None) -> dict[str, Any]:
    """By period: the results of all seeds."""
    asked = ["sweep", recording, "--set", "consolidateAfter=30s", "--set", f"gracePeriod={','.join(PERIODS)}"]
    asked += ["--seeds", str(seeds), "--run-all", "--search", "prefix", "--output", "json"]
    asked += [] if length is None else ["--length", length]
    asked += [] if results is None else ["--results", results]
    result = CliRunner().invoke(cli, asked, catch_exceptions=False)
    if result.exit_code:
        raise SystemExit(result.stderr)
    document = json.loads(result.stdout)
    found: defaultdict[str, dict[str, list[float]]] = defaultdict(lambda: {name: [] for name in MEASURES})
    for trial in document["trials"]:
        for name in MEASURES:
            found[trial["setting"]["gracePeriod"]][name].append(trial["result"][name])
    return {"recording": recording, "hours": document["inputs"][0]["lengthSeconds"] / 3600, "periods": dict(found)}


def reach(found: Estimate) -> float:
    """Half of an interval; of one seed nobody knows it."""
    return float("nan") if found.high is None else found.high - found.mean


def known(values: list[float]) -> Estimate:
    found = estimate(values)
    if found is None:
        raise SystemExit("nothing was measured")
    return found


def table(periods: dict[str, dict[str, list[float]]]) -> str:
    """Means with 95% intervals; evictions also as a share of those on the same seeds without a grace period."""
    lines = [HEAD]
    for period, values in periods.items():
        found = {name: known(values[name]) for name in MEASURES}
        base = periods[NONE]["evictions"]
        share = known([mine / none for mine, none in zip(values["evictions"], base, strict=True)])
        cells = [
            "none" if period == NONE else f"`{period}`",
            *(f"{found[name].mean:,.0f} ± {reach(found[name]):,.0f}" for name in ("evictions",)),
            "" if period == NONE else f"{share.mean:.0%} ± {reach(share):.0%}",
            f"{found['nodesLaunched'].mean:,.0f} ± {reach(found['nodesLaunched']):,.0f}",
            f"{age(found['pendingPodSeconds'].mean)} ± {age(reach(found['pendingPodSeconds']))}",
            f"{found['cost'].mean:,.2f} ± {reach(found['cost']):,.2f} $",
        ]
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    return "\n".join(lines)


def differences(periods: dict[str, dict[str, list[float]]]) -> dict[str, dict[str, list[float | None]]]:
    """What each period changes: mean and interval of the difference on the same seeds."""
    changes: dict[str, dict[str, list[float | None]]] = {}
    for period in PERIODS[1:]:
        changes[period] = {}
        for name in MEASURES:
            found = paired(periods[period][name], periods[NONE][name])
            if found is not None:
                ends = (found.mean, found.low, found.high)
                changes[period][name] = [None if end is None else round(end, 4) for end in ends]
    return changes


def main() -> None:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recording", default="workday", help="a recording, or a scenario with one")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--length", help="replay only so much of it")
    parser.add_argument("--results", help="keep each result in this file, and do not repeat those that are there")
    parser.add_argument("--page", type=Path, help="the page to write the table into")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    found = measure(given.recording, given.seeds, given.length, given.results)
    if given.page is not None:
        text = given.page.read_text()
        made = table(found["periods"])
        text = re.sub(r"(<!-- grace -->\n).*?(?=<!-- end -->)", lambda at: f"{at[1]}{made}\n", text, flags=re.DOTALL)
        given.page.write_text(text)
    if given.json:
        print(json.dumps({"benchmark": "grace", **found, "differences": differences(found["periods"])}))
    else:
        print(table(found["periods"]))


if __name__ == "__main__":
    main()
