"""The picture and the table of docs/find-your-policy.md, from what `karpool sweep` prints.

    karpool sweep workday ... --output json > sweep.json
    python benchmarks/pareto.py sweep.json docs

`pareto.svg`: cost against evictions of all settings, as on the page of a sweep. The table stands between
`<!-- pareto -->` and `<!-- end -->`.
"""

import argparse
import re
from pathlib import Path
from typing import Final

import msgspec

from karpool.report.simulations.sweep_document import SettingPart, SweepDocument
from karpool.report.simulations.sweep_plot import sweep_plot
from karpool.report.simulations.sweep_table import ranked

STYLE: Final = (
    "<style>text{font:12px sans-serif;fill:#444}.grid{stroke:#ddd}.front{fill:none;stroke:#0072b2;stroke-width:1.5}"
    ".whisker{stroke:#0072b2}.beaten{fill:#999}.chosen{fill:#0072b2}.mark{font-weight:bold}</style>"
    '<rect width="100%" height="100%" fill="#fff"/>'
)
NAMES: Final = {"evictions": "{:,.0f}", "cost": "{:,.2f}"}


def picture(document: SweepDocument) -> str:
    """The plot of a sweep's page as a file of its own."""
    begin, rest = sweep_plot(document).split(">", 1)
    return (
        f"{begin.replace('<svg', '<svg xmlns=' + chr(34) + 'http://www.w3.org/2000/svg' + chr(34), 1)}>{STYLE}{rest}\n"
    )


def cell(part: SettingPart, name: str) -> str:
    measure = part.measures[name]
    write = NAMES[name].format
    reach = "" if measure.high is None else f" ± {write(measure.high - measure.mean)}"
    return write(measure.mean) + reach


def table(document: SweepDocument) -> str:
    """All settings, those of the front first."""
    names = list(document.settings[0].setting)
    lines = [
        f"| no | {' | '.join(f'`{name}`' for name in names)} | cost, $ | evictions | |",
        f"|---:|{'---|' * len(names)}---:|---:|---|",
    ]
    for part in ranked(document):
        values = " | ".join(part.setting.values())
        state = "front" if part.on_front else "stopped" if part.stopped else ""
        line = f"| {part.number} | {values} | {cell(part, 'cost')} | {cell(part, 'evictions')} | {state} |"
        lines.append(line.replace("|  |", "| |"))
    return "\n".join(lines)


def main() -> None:
    """Draw, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", type=Path, help="what karpool sweep --output json printed")
    parser.add_argument("folder", type=Path, help="of the documentation")
    given = parser.parse_args()
    document = msgspec.json.decode(given.sweep.read_bytes(), type=SweepDocument)
    (given.folder / "images" / "pareto.svg").write_text(picture(document))
    page = given.folder / "find-your-policy.md"
    made = table(document)
    pattern = r"(<!-- pareto -->\n).*?(?=<!-- end -->)"
    page.write_text(re.sub(pattern, lambda at: f"{at[1]}{made}\n", page.read_text(), flags=re.DOTALL))


if __name__ == "__main__":
    main()
