"""What the script makes of price lists, and what of that ships: a wrong price is worse than none."""

import importlib.util
import lzma
from pathlib import Path
from types import ModuleType

import pytest
from tests.tables import row, table

from karpool.catalog.price_data import origins, region_prices
from karpool.catalog.pricing import node_price
from karpool.catalog.sources import open_catalog
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT, ZONE
from karpool.wire.quantity import parse_quantity

SCRIPT = Path(__file__).parents[2] / "scripts" / "build_prices.py"
MACHINES = ("e2-micro", "e2-highcpu-2", "e2-standard-2", "a2-highgpu-1g", "n2d-48-24-v5lite-tpu", "n2-standard-2")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_prices", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lists(folder: Path) -> None:
    """Lists of three clouds with few machines; a CPU of e2 costs 0.02 and a GiB 0.003, as spot half of that."""
    prices = {"e2-micro": 0.043, "e2-highcpu-2": 0.046, "e2-standard-2": 0.064}
    for cloud, types in (("aws", ["m5.large"]), ("gcp", MACHINES), ("azure", ["Standard_D2s_v5"])):
        on_demand = [f"r1,{name},{prices.get(name, 0.1)}" for name in types]
        spot = [f"r1,{zone},{name},{prices.get(name, 0.1) / 2:.5f}" for name in types for zone in ("r1-a", "r1-b")]
        for name, lines in (
            ("types", ["type,vcpus,memory_gib,accelerator,accelerators", *(f"{name},2,8,," for name in types)]),
            ("on-demand", ["region,type,usd_per_hour", *on_demand]),
            ("spot", ["region,zone,type,usd_per_hour", *spot]),
        ):
            (folder / f"{cloud}-{name}.csv.xz").write_bytes(lzma.compress("\n".join(lines).encode()))
    (folder / "aws-details.csv").write_text("type,vcpus\nm5.large,2\n")


def test_prices_that_leave_something_out_are_unknown_and_shared_cores_cost_their_share(
    script: ModuleType, tmp_path: Path
) -> None:
    lists(tmp_path)
    assert script.main(tmp_path, "2026-01-01", "a list", tmp_path / "data") == 0
    packed = (tmp_path / "data" / "gcp" / "r1.csv.zst").read_bytes()
    assert script.zstd.decompress(packed).decode().splitlines() == [
        "type,on-demand,r1-a,r1-b",
        "a2-highgpu-1g,?,?,?",
        "e2-highcpu-2,0.046,0.023,0.023",
        "e2-micro,0.008,0.004,0.004",
        "e2-standard-2,0.064,0.032,0.032",
        "n2-standard-2,0.1,0.05,0.05",
    ]


def test_no_shipped_price_of_google_cloud_leaves_gpus_or_disks_out() -> None:
    wrong = ("a2-", "a3-", "a4-", "g2-", "g4-", "z3-", "n1-megamem-", "n1-ultramem-")
    for region in origins()["gcp"].regions:
        listed = region_prices("gcp", region)
        assert listed is not None
        for name, sold in listed.types.items():
            assert not name.endswith("-tpu")
            if name.startswith(wrong) or "-lssd" in name:
                assert {sold.on_demand, *sold.spot.values()} == {None}, name


@table(
    row(name="e2-micro", on_demand=0.008376),
    row(name="e2-small", on_demand=0.016751),
    row(name="e2-medium", on_demand=0.033503),
)
def test_shared_cores_cost_what_google_cloud_says(name: str, on_demand: float) -> None:
    catalog = open_catalog("gcp:us-central1")
    assert node_price(catalog, {INSTANCE_TYPE: name, ZONE: "us-central1-a"}) == pytest.approx(on_demand, abs=2e-5)


def test_what_is_sold_at_an_unknown_price_is_offered_at_none() -> None:
    entry = open_catalog("gcp:us-central1").by_name["a2-highgpu-1g"]
    for kind in (ON_DEMAND, SPOT):
        offered = [o for o in entry.offerings if o.requirements[CAPACITY_TYPE].has(kind)]
        assert offered
        assert all(o.price is None and o.available for o in offered)


def test_gke_reserves_most_of_a_shared_core() -> None:
    allocatable = open_catalog("gcp").by_name["e2-medium"].allocatable
    assert allocatable["cpu"] == parse_quantity("940m")
