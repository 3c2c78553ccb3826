#!/usr/bin/env python3
"""Turns price lists into the compressed data that ships with Karpool: `scripts/build_prices.py FOLDER DATE [SOURCE]`.

FOLDER holds for each cloud (`aws`, `gcp`, `azure`) three files, plain or packed with xz:

    CLOUD-types.csv      type, vcpus, memory_gib, accelerator, accelerators
    CLOUD-on-demand.csv  region, type, usd_per_hour
    CLOUD-spot.csv       region, zone, type, usd_per_hour

and `aws-details.csv` with what EC2 says of its types. What is written under `src/karpool/catalog/data` is a table of
machines for each cloud, a table of prices for each region, and `sources.json`, which says where they come from.
"""

import csv
import io
import json
import lzma
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
Rows = list[dict[str, str]]


def rows(folder: Path, name: str) -> Rows:
    plain, packed = folder / f"{name}.csv", folder / f"{name}.csv.xz"
    text = plain.read_bytes() if plain.exists() else lzma.decompress(packed.read_bytes())
    return list(csv.DictReader(io.StringIO(text.decode())))


def number(text: str) -> str:
    """A number as short as it can be written."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def price(row: dict[str, str]) -> str:
    """A price; nothing costs nothing, so that a zero in a list stands for a price that nobody knew."""
    return number(row["usd_per_hour"]) if float(row["usd_per_hour"]) > 0 else ""


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
        if name not in known:
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
    for region, types in sorted(tables.items()):
        columns = sorted(zones[region])
        lines = [
            [name, *(found.get(column, "") for column in ("on-demand", *columns))] for name, found in types.items()
        ]
        yield region, columns, sorted(lines)


def main(folder: Path, date: str, source: str) -> int:
    sizes: dict[str, int] = {}
    sources = {}
    for cloud in CLOUDS:
        shutil.rmtree(DATA / cloud, ignore_errors=True)
        known = sorted(machines(folder, cloud), key=lambda row: row["type"])
        header = list(dict.fromkeys(key for row in known for key in row))
        lines = ([row.get(key, "") for key in header] for row in known)
        sizes[cloud] = write(DATA / cloud / "types.csv.zst", header, lines)
        regions = []
        for region, zones, table in prices(folder, cloud):
            sizes[cloud] += write(DATA / cloud / f"{region}.csv.zst", ("type", "on-demand", *zones), table)
            regions.append(region)
        sources[cloud] = {"date": date, "source": source, "regions": regions}
        print(f"{cloud}: {len(known)} types, {len(regions)} regions, {sizes[cloud]:,} bytes")
    text = json.dumps(sources, indent=1)
    (DATA / "sources.json").write_text(f"{text}\n", encoding="utf-8")
    total = sum(sizes.values()) + len(text)
    print(f"in all {total:,} bytes")
    return 0 if total < MOST_BYTES else 1


if __name__ == "__main__":
    if len(sys.argv) not in ARGUMENTS:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], *(sys.argv[3:] or ["public price list"])))
