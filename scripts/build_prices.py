#!/usr/bin/env python3
"""Turns price lists into the compressed data that ships with Karpool: `scripts/build_prices.py FOLDER DATE [SOURCE]`.

FOLDER holds for each cloud (`aws`, `gcp`, `azure`) three files, plain or packed with xz:

    CLOUD-types.csv      type, vcpus, memory_gib, accelerator, accelerators
    CLOUD-on-demand.csv  region, type, usd_per_hour
    CLOUD-spot.csv       region, zone, type, usd_per_hour

and `aws-details.csv` with what EC2 says of its types. What is written under `src/karpool/catalog/data` is a table of
machines for each cloud, a table of prices for each region, and `sources.json`, which says where they come from. In
tables of prices an empty cell means that a type is not sold there, and `?` that it is and nobody knows for how much.

The lists reckon the machines of Google Cloud by CPUs and memory alone. What that leaves out, GPUs and disks that a
machine always has, makes its price unknown; what it counts wrongly is corrected.
"""

import csv
import io
import json
import lzma
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

DATA = Path(__file__).resolve().parent.parent / "src" / "karpool" / "catalog" / "data"
CLOUDS = ("aws", "gcp", "azure")
LEVEL = 19
MOST_BYTES = 1_000_000
ARGUMENTS = (3, 4)
UNKNOWN = "?"
Rows = list[dict[str, str]]
Cells = dict[str, str]
"""The prices of a type in a region, by zone, and `on-demand`."""

# Machines that have GPUs (a2 to a4, g2, g4) or disks (z3, -lssd) for which the lists do not charge, and old names of m1
# machines, for which they charge as for n1.
UNDERPRICED = re.compile(r"(a[2-4]|g[24]|z3)-.*|.*(?<!no)lssd.*|n1-(mega|ultra)mem-.*")
# The hosts of TPUs, which nobody can order.
NO_MACHINES = re.compile(r".*-tpu")
SHARED_CORES = {"e2-micro": 0.25, "e2-small": 0.5, "e2-medium": 1.0}
"""Machines with two CPUs that are paid for as a part of one or as one."""
TWO_CPUS, TWO_CPUS_GIB, MORE_MEMORY, MORE_MEMORY_GIB = "e2-highcpu-2", 2, "e2-standard-2", 8


def rows(folder: Path, name: str) -> Rows:
    plain, packed = folder / f"{name}.csv", folder / f"{name}.csv.xz"
    text = plain.read_bytes() if plain.exists() else lzma.decompress(packed.read_bytes())
    return list(csv.DictReader(io.StringIO(text.decode())))


def number(text: str) -> str:
    """A number as short as it can be written."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def price(row: dict[str, str]) -> str:
    """A price; nothing costs nothing, so that a zero in a list stands for a price that nobody knew."""
    return number(row["usd_per_hour"]) if float(row["usd_per_hour"]) > 0 else UNKNOWN


def corrected(types: dict[str, Cells]) -> dict[str, Cells]:
    """The prices of a region of Google Cloud, without those that are wrong and with those that can be mended."""
    kept = {name: cells for name, cells in types.items() if not NO_MACHINES.fullmatch(name)}
    return {name: _corrected(name, cells, kept) for name, cells in kept.items()}


def _corrected(name: str, cells: Cells, types: dict[str, Cells]) -> Cells:
    if UNDERPRICED.fullmatch(name):
        return dict.fromkeys(cells, UNKNOWN)
    if name in SHARED_CORES:
        return {place: _shared_core(price, SHARED_CORES[name], place, types) for place, price in cells.items()}
    return cells


def _shared_core(listed: str, cores: float, place: str, types: dict[str, Cells]) -> str:
    """The price of two CPUs less those that are not paid for; what a CPU costs, two other machines tell."""
    small, large = (types.get(name, {}).get(place, UNKNOWN) for name in (TWO_CPUS, MORE_MEMORY))
    if UNKNOWN in (listed, small, large):
        return UNKNOWN
    gib = (float(large) - float(small)) / (MORE_MEMORY_GIB - TWO_CPUS_GIB)
    cpu = (float(small) - TWO_CPUS_GIB * gib) / 2
    return number(f"{float(listed) - (2 - cores) * cpu:.5f}")


def write(path: Path, header: Iterable[str], lines: Iterable[Iterable[str]]) -> int:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    packed = zstd.compress(text.getvalue().encode(), LEVEL)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(packed)
    return len(packed)


def machines(folder: Path, cloud: str) -> Iterator[dict[str, str]]:
    """Every machine: as the cloud describes it where it does, else as the price list does."""
    listed = {row["type"]: row for row in rows(folder, f"{cloud}-types")}
    described = rows(folder, "aws-details") if cloud == "aws" else []
    for row in described:
        if row["type"] in listed:
            yield {key: number(value) if key != "type" else value for key, value in row.items()}
    known = {row["type"] for row in described}
    for name, row in listed.items():
        if name not in known and not NO_MACHINES.fullmatch(name):
            mib = number(str(float(row["memory_gib"]) * 1024))
            short = {"type": name, "vcpus": number(row["vcpus"]), "memory_mib": mib}
            more = {"gpu_name": row["accelerator"], "gpus": number(row["accelerators"])}
            yield {**short, **more}


def prices(folder: Path, cloud: str) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """For each region its zones, and for each type the price on demand and the spot price in each zone."""
    tables: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    zones: dict[str, set[str]] = defaultdict(set)
    for row in rows(folder, f"{cloud}-on-demand"):
        tables[row["region"]][row["type"]]["on-demand"] = price(row)
    for row in rows(folder, f"{cloud}-spot"):
        zone = row["zone"] or "*"
        zones[row["region"]].add(zone)
        tables[row["region"]][row["type"]][zone] = price(row)
    for region, listed in sorted(tables.items()):
        types = corrected(listed) if cloud == "gcp" else listed
        columns = sorted(zones[region])
        lines = [
            [name, *(found.get(column, "") for column in ("on-demand", *columns))] for name, found in types.items()
        ]
        yield region, columns, sorted(lines)


def main(folder: Path, date: str, source: str, data: Path = DATA) -> int:
    sizes: dict[str, int] = {}
    sources = {}
    for cloud in CLOUDS:
        shutil.rmtree(data / cloud, ignore_errors=True)
        known = sorted(machines(folder, cloud), key=lambda row: row["type"])
        header = list(dict.fromkeys(key for row in known for key in row))
        lines = ([row.get(key, "") for key in header] for row in known)
        sizes[cloud] = write(data / cloud / "types.csv.zst", header, lines)
        regions = []
        for region, zones, table in prices(folder, cloud):
            sizes[cloud] += write(data / cloud / f"{region}.csv.zst", ("type", "on-demand", *zones), table)
            regions.append(region)
        sources[cloud] = {"date": date, "source": source, "regions": regions}
        print(f"{cloud}: {len(known)} types, {len(regions)} regions, {sizes[cloud]:,} bytes")
    text = json.dumps(sources, indent=1)
    (data / "sources.json").write_text(f"{text}\n", encoding="utf-8")
    total = sum(sizes.values()) + len(text)
    print(f"in all {total:,} bytes")
    return 0 if total < MOST_BYTES else 1


if __name__ == "__main__":
    if len(sys.argv) not in ARGUMENTS:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], *(sys.argv[3:] or ["public price list"])))
