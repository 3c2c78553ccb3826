"""Today's prices of Google Cloud, from services that answer as Compute Engine and Cloud Billing do, and worse."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.catalog.fake_service import Answer, Asked, Service, serving
from tests.tables import row, table

from karpool.catalog.fetch.asking import AskedRegions, FetchError
from karpool.catalog.fetch.gcp import SKUS, fetch
from karpool.catalog.fetch.gcp_prices import PartPrices, machine_price
from karpool.catalog.price_file import ListedPrice, PriceListFile, encode_price_list, read_price_list
from karpool.wire.problems import InputError

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
HERE = "us-central1"


def sku(
    text: str, price: float, *, usage: str = "", unit: str = "", regions: Any = (HERE,), **more: Any
) -> dict[str, Any]:
    """An entry of the price list as the API writes it."""
    nanos = round(price % 1 * 1e9)
    rate = {"startUsageAmount": 0, "unitPrice": {"currencyCode": "USD", "units": str(int(price)), "nanos": nanos}}
    expression = {"usageUnit": unit or ("GiBy.h" if " Ram " in text else "h"), "tieredRates": [rate]}
    return {
        "name": "services/6F81-5844-456A/skus/0000-0000-0000",
        "skuId": "0000-0000-0000",
        "description": text,
        "category": {
            "serviceDisplayName": "Compute Engine",
            "resourceFamily": "Compute",
            "resourceGroup": "CPU",
            "usageType": usage or ("Preemptible" if "Preemptible" in text else "OnDemand"),
        },
        "serviceRegions": list(regions),
        "pricingInfo": [{"summary": "", "pricingExpression": expression, "effectiveTime": "2026-11-18T00:00:00Z"}],
        **more,
    }


def machine(name: str, cpus: int, gib: float, **more: Any) -> dict[str, Any]:
    """A machine type as the API writes it."""
    return {
        "kind": "compute#machineType",
        "name": name,
        "guestCpus": cpus,
        "memoryMb": int(gib * 1024),
        "isSharedCpu": False,
        "architecture": "X86_64",
        **more,
    }


PARTS = [
    sku("N2 Instance Core running in Americas", 0.03),
    sku("N2 Instance Ram running in Americas", 0.004),
    sku("Spot Preemptible N2 Instance Core running in Americas", 0.01),
    sku("Spot Preemptible N2 Instance Ram running in Americas", 0.001),
    sku("N2 Custom Instance Core running in Americas", 0.9),
    sku("N2 Instance Core running in Frankfurt", 0.5, regions=("europe-west3",)),
    sku("Commitment v1: N2 Cpu in Americas for 1 Year", 0.02, usage="Commit1Yr"),
    sku("N2D AMD Instance Core running in Americas", 0.02),
    sku("N2D AMD Instance Ram running in Americas", 0.003),
    sku("E2 Instance Core running in Americas", 0.02),
    sku("E2 Instance Ram running in Americas", 0.003),
    sku("C4A Arm Instance Core running in Americas", 0.03),
    sku("C4A Arm Instance Ram running in Americas", 0.004, unit="GBy.h"),
    sku("Compute optimized Core running in Americas", 0.05),
    sku("Compute optimized Ram running in Americas", 0.005),
    sku("Memory-optimized Instance Core running in Americas", 0.04),
    sku("Memory-optimized Instance Ram running in Americas", 0.006),
    sku("M3 Memory-optimized Instance Core running in Americas", 0.04),
    sku("M3 Memory-optimized Instance Ram running in Americas", 0.006),
    sku("G2 Instance Core running in Americas", 0.02),
    sku("G2 Instance Ram running in Americas", 0.003),
    sku("Spot Preemptible G2 Instance Core running in Americas", 0.01),
    sku("Spot Preemptible G2 Instance Ram running in Americas", 0.001),
    sku("Nvidia L4 GPU running in Americas", 0.5),
    sku("Nvidia L4 GPU attached to Spot Preemptible VMs running in Americas", 0.2),
    sku("C3 Instance Core running in Americas", 0.03),
    sku("C3 Instance Ram running in Americas", 0.004),
    sku("A3 Instance Core running in Americas", 0.03),
    sku("A3 Instance Ram running in Americas", 0.004),
    sku("Nvidia H100 80GB GPU running in Americas", 9.0),
    sku("Micro Instance with burstable CPU running in Americas", 0.0076),
    sku("Small Instance with 1 VCPU running in Americas", 0.0257),
]
N2 = machine("n2-standard-4", 4, 16)


def gpus(kind: str, count: int) -> dict[str, Any]:
    return {"accelerators": [{"guestAcceleratorType": kind, "guestAcceleratorCount": count}]}


def rates(*entries: Any) -> PartPrices:
    made = PartPrices([HERE])
    for entry in entries:
        made.add(entry)
    return made


@table(
    row(of=N2, on_demand=0.184, spot=0.056),
    row(of=machine("n2d-standard-2", 2, 8), on_demand=0.064, spot=None),
    row(of=machine("e2-standard-2", 2, 8), on_demand=0.064, spot=None),
    row(of=machine("e2-micro", 2, 1), on_demand=0.008, spot=None),
    row(of=machine("e2-medium", 2, 4), on_demand=0.032, spot=None),
    row(of=machine("c4a-standard-1", 1, 4), on_demand=0.046, spot=None),
    row(of=machine("c2-standard-4", 4, 16), on_demand=0.28, spot=None),
    row(of=machine("m1-ultramem-40", 40, 961), on_demand=7.366, spot=None),
    row(of=machine("n1-ultramem-40", 40, 961), on_demand=7.366, spot=None),
    row(of=machine("m2-ultramem-208", 208, 5888), on_demand=None, spot=None),
    row(of=machine("m3-ultramem-32", 32, 976), on_demand=7.136, spot=None),
    row(of=machine("g2-standard-24", 24, 96, **gpus("nvidia-l4", 2)), on_demand=1.768, spot=0.736),
    row(of=machine("a3-highgpu-8g", 208, 1872, **gpus("nvidia-h100-80gb", 8)), on_demand=None, spot=None),
    row(of=machine("c3-standard-4", 4, 16), on_demand=0.184, spot=None),
    row(of=machine("c3-standard-4-lssd", 4, 16), on_demand=None, spot=None),
    row(of=machine("c3-odd-4", 4, 16, bundledLocalSsds={"partitionCount": 1}), on_demand=None, spot=None),
    row(of=machine("f1-micro", 1, 0.6), on_demand=0.0076, spot=None),
    row(of=machine("g1-small", 1, 1.7), on_demand=0.0257, spot=None),
    row(of=machine("x9-standard-4", 4, 16), on_demand=None, spot=None),
)
def test_a_machine_costs_what_its_parts_cost(of: dict[str, Any], on_demand: float | None, spot: float | None) -> None:
    prices = [machine_price(of, HERE, rates(*PARTS), spot=kind) for kind in (False, True)]
    assert prices == [pytest.approx(price) if price is not None else None for price in (on_demand, spot)]


@table(
    row("two prices", more=[sku("N2 Instance Core running in Americas", 0.031)], known=True),
    row("a free one", more=[sku("N2 Instance Core running in Americas", 0.0)], known=False),
    row("other units", more=[sku("N2 Instance Core running in Americas", 0.03, unit="mo")], known=False),
    row("no rates", more=[{**sku("N2 Instance Core running in Iowa", 0.03), "pricingInfo": []}], known=False),
    row("no category", more=[{**sku("N2 Instance Core running in Iowa", 0.03), "category": None}], known=False),
    row("no text", more=[{**sku("N2 Instance Core running in Iowa", 0.03), "description": None}], known=False),
    row("no regions", more=[{**sku("N2 Instance Core running in Iowa", 0.03), "serviceRegions": "x"}], known=False),
    row("no entry", more=[None, 7, []], known=False),
)
def test_a_part_of_doubtful_price_makes_the_price_unknown(more: list[Any], *, known: bool) -> None:
    others = (
        PARTS if known else [part for part in PARTS if part["description"] != "N2 Instance Core running in Americas"]
    )
    assert machine_price(N2, HERE, rates(*others, *more), spot=False) is None


# -- the services --------------------------------------------------------------------------------------------------


class Cloud:
    """Compute Engine, Cloud Billing and the service that gives tokens; a test may spoil some answers."""

    def __init__(self) -> None:
        self.skus: list[Any] = list(PARTS)
        self.machines: dict[str, list[Any]] = {"us-central1-a": [N2], "us-central1-b": [machine("e2-micro", 2, 1), N2]}
        self.spoilt: list[tuple[str, Any]] = []
        self.page = 10

    def __call__(self, asked: Asked) -> Any:
        for number, (path, answer) in enumerate(self.spoilt):
            if path in asked.path:
                del self.spoilt[number]
                return answer
        if asked.path == "/token":
            return {"access_token": "a-token", "expires_in": 3600, "token_type": "Bearer"}
        if asked.headers.get("Authorization") != "Bearer a-token":
            return Answer({"error": {"code": 401, "message": "no token"}}, 401)
        if asked.path == f"/{SKUS}":
            start = int(asked.query.get("pageToken") or 0)
            end = start + self.page
            return {"skus": self.skus[start:end], "nextPageToken": str(end) if end < len(self.skus) else ""}
        if asked.path.endswith(f"/regions/{HERE}"):
            return {
                "name": HERE,
                "zones": [f"https://www.googleapis.com/compute/v1/projects/p/zones/{z}" for z in self.machines],
            }
        zone = asked.path.split("/")[-2]
        return {"kind": "compute#machineTypeList", "items": self.machines[zone]}


@pytest.fixture(scope="module")
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption()).decode()


@pytest.fixture
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture
def service(cloud: Cloud, private_key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """The services, and credentials that get their token there."""
    with serving(cloud) as made:
        account = {
            "type": "service_account",
            "project_id": "my-project",
            "private_key_id": "1",
            "private_key": private_key,
            "client_email": "prices@my-project.iam.gserviceaccount.com",
            "client_id": "1",
            "token_uri": f"{made.address}/token",
        }
        file = tmp_path / "account.json"
        file.write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
        yield made


async def at_once(_seconds: float) -> None:
    """Nobody waits in a test."""


def fetched(service: Service, project: str | None = None) -> PriceListFile:
    return fetch(AskedRegions((HERE,), NOW, service.address, project), lambda *_: None, at_once)


def test_machines_zones_and_prices_of_a_region_come_with_the_token_of_the_account(service: Service) -> None:
    listed = fetched(service)
    region = listed.regions[HERE]
    assert region.zones == ("us-central1-a", "us-central1-b")
    assert region.types == {
        "e2-micro": ListedPrice(0.008, {"us-central1-b": None}),
        "n2-standard-4": ListedPrice(0.184, {"us-central1-a": 0.056, "us-central1-b": 0.056}),
    }
    assert (listed.cloud, listed.date, listed.source) == ("gcp", "2026-11-18", "Cloud Billing and Compute Engine")
    machines = read_price_list(encode_price_list(listed), "f").machines()
    assert {name: (entry.vcpus, entry.memory_mib) for name, entry in machines.items()} == {
        "e2-micro": (2, 1024),
        "n2-standard-4": (4, 16384),
    }
    pages = [asked.query for asked in service.asked if asked.path == f"/{SKUS}"]
    assert [query.get("pageToken") for query in pages] == [None, "10", "20", "30"]
    assert all("projects/my-project/" in asked.path for asked in service.asked if "compute" in asked.path)


def test_a_project_can_be_named(service: Service) -> None:
    fetched(service, "another")
    assert all("projects/another/" in asked.path for asked in service.asked if "compute" in asked.path)


def test_arm_and_gpus_of_new_machines_are_those_that_the_service_says(service: Service, cloud: Cloud) -> None:
    new = machine("z9-gpu-8", 8, 32, architecture="ARM64", **gpus("nvidia-z9", 2))
    cloud.machines = {"us-central1-a": [N2, new]}
    found = read_price_list(encode_price_list(fetched(service)), "f").machines()["z9-gpu-8"]
    assert (found.arch, found.devices) == ("arm64", {"nvidia.com/gpu": 2})


def test_what_is_busy_is_asked_again(service: Service, cloud: Cloud) -> None:
    cloud.spoilt = [
        (SKUS, Answer({"error": {"code": 429, "message": "Quota exceeded"}}, 429)),
        ("machineTypes", Answer("", 503)),
        (SKUS, Answer("{", 200)),
    ]
    assert fetched(service).regions[HERE].types["n2-standard-4"].on_demand == 0.184


@table(
    row(
        path="regions/", answer=Answer({"error": {"message": "unknown region"}}, 404), why="answers 404 unknown region"
    ),
    row(path="regions/", answer={"name": HERE}, why="there are no machine types in us-central1"),
    row(path=SKUS, answer={"skus": []}, why="the price list has no prices of machines in us-central1"),
    row(path=SKUS, answer={"skus": "x"}, why="the price list has no prices of machines in us-central1"),
    row(path=SKUS, answer=[], why="answers with a list where an object is expected"),
)
def test_what_cannot_be_answered_is_one_line(service: Service, cloud: Cloud, path: str, answer: Any, why: str) -> None:
    cloud.spoilt = [(path, answer)]
    with pytest.raises(FetchError, match="gcp: ") as error:
        fetched(service)
    assert why in str(error.value)


def test_odd_machines_are_passed_over(service: Service, cloud: Cloud) -> None:
    gone = machine("n1-old-1", 1, 1, deprecated={"state": "OBSOLETE"})
    cloud.machines["us-central1-a"] += [None, {}, {"name": "x"}, machine("y", "many", 1), gone]  # type: ignore[arg-type]
    assert sorted(fetched(service).regions[HERE].types) == ["e2-micro", "n2-standard-4"]


def test_pages_that_come_again_are_given_up(service: Service, cloud: Cloud) -> None:
    cloud.spoilt = [(SKUS, {"skus": [], "nextPageToken": "a"})] * 2
    with pytest.raises(FetchError, match=r"the pages of 127\.0\.0\.1 do not come to an end"):
        fetched(service)


def test_an_api_that_is_not_enabled_is_named(service: Service, cloud: Cloud) -> None:
    message = "Cloud Billing API has not been used in project 1 before or it is disabled."
    cloud.spoilt = [(SKUS, Answer({"error": {"code": 403, "message": message}}, 403))]
    with pytest.raises(InputError, match="refuses to answer: 403 Cloud Billing API has not been used"):
        fetched(service)


def test_a_token_that_is_refused_is_one_line(service: Service, cloud: Cloud) -> None:
    cloud.spoilt = [("/token", Answer({"error": "invalid_grant", "error_description": "Invalid JWT"}, 400))]
    with pytest.raises(InputError, match=r"gcp: the credentials cannot be used: .*Invalid JWT"):
        fetched(service)


def test_without_credentials_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    with pytest.raises(InputError, match="--cloud: gcp: there are no credentials; run `gcloud auth"):
        fetch(AskedRegions((HERE,), NOW), lambda *_: None)
