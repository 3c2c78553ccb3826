"""Spot prices that follow a history: what instances cost over time, and when they are interrupted."""

import lzma
import math
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from tests.tables import row, table
from tests.virtual.worlds import BY_PREFIXES, CATALOG, HOUR, POOL

from karpool.catalog.kwok import kwok_types
from karpool.catalog.spot_history import MarketHistory, SpotHistory, read_spot_history
from karpool.cli.main import cli
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.compare import ScenarioSource
from karpool.virtual.market import spot_prices, zone_names
from karpool.virtual.scenario import Scenario, SpotHistorySettings, read_scenario
from karpool.wire.problems import InputError

START = datetime(2025, 1, 6, tzinfo=UTC)
SPOT_POOL = POOL.replace("[on-demand]", "[spot]")
STORY = """
length: 4h
workloads: [{name: web, cpu: 3, memory: 2Gi, replicas: 6}]
spotHistory: {file: history.csv, zones: {test-zone-a: z1}}
"""
TYPES = sorted(entry.name for entry in CATALOG.types)
EVERY_TYPE = sorted(entry.name for entry in kwok_types())
HEADER = "time,zone,type,usd_per_hour\n"


def history(*changes: tuple[float, float], zones: tuple[str, ...] = ("z1", "z2", "z3", "z4")) -> SpotHistory:
    """All types in all zones cost the same, from hours after the start on."""
    times = tuple(START.timestamp() + at * HOUR for at, _ in changes)
    prices = tuple(price for _, price in changes)
    markets = {(kind, zone): MarketHistory(times, prices) for kind in TYPES for zone in zones}
    return SpotHistory(markets, times[0], times[-1])


def run(scenario: Scenario, found: SpotHistory, *, seed: int = 0, hours: float = 4) -> VirtualCluster:
    spot = spot_prices(found, scenario, CATALOG)
    cluster = VirtualCluster(scenario, CATALOG, policy=BY_PREFIXES, seed=seed, spot=spot)
    cluster.run(hours * HOUR)
    return cluster


@pytest.fixture
def scenario() -> Scenario:
    return read_scenario(SPOT_POOL + STORY)


def quiet(scenario: Scenario, **fields: float) -> Scenario:
    settings = scenario.spot_history
    assert settings is not None
    return replace(scenario, spot_history=replace(settings, interruptions_per_jump=fields.get("per_jump", 0.0)))


def test_running_instances_cost_what_their_market_costs(scenario: Scenario) -> None:
    steady = run(quiet(scenario), history((-1, 0.1)))
    summary = steady.recorder.summary()
    assert summary.cost == pytest.approx(0.1 * summary.node_hours)
    dearer = run(quiet(scenario), history((-1, 0.1), (2, 0.3)))
    summary = dearer.recorder.summary()
    hours = summary.node_hours
    assert summary.nodes_launched == steady.recorder.summary().nodes_launched
    assert summary.cost == pytest.approx(0.1 * hours / 2 + 0.3 * hours / 2, rel=0.03)
    assert {instance.price for instance in dearer.cloud.instances.values()} == {0.3}
    assert summary.interruptions == 0
    (pool,) = dearer.recorder.pools().values()
    assert pool.cost == pytest.approx(summary.cost)


def test_what_is_decided_knows_the_price_of_the_moment(scenario: Scenario) -> None:
    cluster = run(quiet(scenario), history((-1, 0.1), (2, 0.3)))
    prices = {
        offering.price
        for entry in cluster.cloud.catalog.types
        for offering in entry.offerings
        if offering.capacity_type == "spot"
    }
    assert prices == {0.3}


@pytest.mark.slow
def test_instances_are_interrupted_with_the_hazard_that_is_stated() -> None:
    many = read_scenario(SPOT_POOL + STORY.replace("replicas: 6", "replicas: 300").replace("cpu: 3", "cpu: 7"))
    share = 0.5
    cluster = run(many, history((-1, 0.1), (1, 0.1 * (1 + share))), hours=1)
    there = len(cluster.cloud.instances)
    assert there >= 290
    cluster.run(2.1 * HOUR)
    gone = cluster.cloud.interrupted
    # New instances in the hour after a jump are interrupted with the same hazard; they are few.
    expected = there * (1 - math.exp(-share))
    assert gone == pytest.approx(expected, rel=0.25)
    cluster.run(4 * HOUR)
    assert cluster.cloud.interrupted == gone
    assert cluster.recorder.summary().pods_at_end == 300


def test_falling_prices_interrupt_nobody(scenario: Scenario) -> None:
    assert run(quiet(scenario, per_jump=1000), history((-1, 0.3), (1, 0.1))).cloud.interrupted == 0


def test_a_seed_gives_the_same_interruptions(scenario: Scenario) -> None:
    found = history((-1, 0.1), (1, 0.2), (2, 0.3))
    first, again, other = (run(scenario, found, seed=seed).recorder.summary() for seed in (1, 1, 2))
    assert first == again
    assert (first.interruptions, first.pending_pod_seconds) != (other.interruptions, other.pending_pod_seconds)


@table(
    row("the scenario's own time", start=None, first=-2.0, opening=0.1, changes=[(1.0, 0.2), (3.0, 0.4)]),
    row(
        "a time that is named", start=datetime(2025, 1, 6, 2, tzinfo=UTC), first=-2.0, opening=0.2, changes=[(1.0, 0.4)]
    ),
    row("the beginning of a later history", start=None, first=0.5, opening=0.1, changes=[(0.5, 0.2), (2.5, 0.4)]),
)
def test_a_history_begins_at(
    scenario: Scenario, start: datetime | None, first: float, opening: float, changes: list[tuple[float, float]]
) -> None:
    settings = SpotHistorySettings(file="", start=start)
    found = spot_prices(history((first, 0.1), (1, 0.2), (3, 0.4)), replace(scenario, spot_history=settings), CATALOG)
    assert found is not None
    assert set(found.opening.values()) == {opening}
    assert sorted({(change.at / HOUR, change.price) for change in found.changes}) == changes


def test_zones_are_found_by_name_and_those_left_are_paired() -> None:
    found = history((0, 0.1), zones=("test-zone-b", "use1-az1", "use1-az2", "use1-atl2-az1"))
    names = zone_names(found, {"test-zone-d": "use1-az1"}, CATALOG)
    assert names == {"test-zone-a": "use1-az2", "test-zone-b": "test-zone-b", "test-zone-d": "use1-az1"}


# -- files -----------------------------------------------------------------------------------------------------------


def table_of(*lines: str) -> bytes:
    return (HEADER + "".join(f"{line}\n" for line in lines)).encode()


def test_a_table_is_read_plain_and_packed(tmp_path: Path) -> None:
    data = table_of("2026-05-01T12:00Z,z1,m5.large,0.05", "2026-05-01T10:00Z,z1,m5.large,0.04")
    for name, content in (("a.csv", data), ("a.csv.xz", lzma.compress(data))):
        (tmp_path / name).write_bytes(content)
        market = read_spot_history(tmp_path / name).markets["m5.large", "z1"]
        assert market.prices == (0.04, 0.05)
        assert [market.at(market.times[0] + after) for after in (-1, 0, 7199, 7200, 1e9)] == [0.04] * 3 + [0.05] * 2


@table(
    row("another table", data=b"a,b\n", said="is no history of prices"),
    row("no prices", data=table_of(), said="has no prices in it"),
    row("no time", data=table_of("soon,z,t,1"), said="line 2: 'soon' is no time"),
    row("no zone of time", data=table_of("2026-05-01T12:00,z,t,1"), said="line 2"),
    row("no price", data=table_of("2026-05-01T12:00Z,z,t,cheap"), said="line 2: 'cheap' is no price"),
    row("nothing", data=table_of("2026-05-01T12:00Z,z,t,0"), said="is no price"),
    row("no number", data=table_of("2026-05-01T12:00Z,z,t,nan"), said="is no price"),
    row("a short line", data=table_of("2026-05-01T12:00Z,z"), said="line 2 has 2 columns"),
    row("no text", data=b"\xff\xfe\xfa", said="is not UTF-8 text"),
    row("a torn file", data=lzma.compress(table_of("2026-05-01T12:00Z,z,t,1"))[:-20], said="cannot be unpacked"),
    row("a bomb", data=lzma.compress(b"0" * 2**27), said="unpacks to more than 200 times its size"),
)
def test_a_table_that_is_none_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "a.csv").write_bytes(data)
    with pytest.raises(InputError, match=said):
        read_spot_history(tmp_path / "a.csv")


# -- the command -----------------------------------------------------------------------------------------------------


def written(folder: Path) -> Path:
    markets = [(zone, kind) for zone in ("z1", "z2", "z3", "z4") for kind in EVERY_TYPE]
    prices = [f"2025-01-06T0{at}:00Z,{zone},{kind},{0.02 * 3**at:.2f}" for at in range(4) for zone, kind in markets]
    (folder / "history.csv.xz").write_bytes(lzma.compress(table_of(*prices)))
    file = folder / "spot.yaml"
    file.write_text("catalog: kwok\n" + SPOT_POOL + STORY.replace("history.csv", "history.csv.xz"))
    return file


def test_a_scenario_names_its_history(tmp_path: Path) -> None:
    file = written(tmp_path)
    result = CliRunner().invoke(cli, ["simulate", str(file), "--search", "prefix"])
    assert result.exit_code == 0, result.stderr
    assert "spot interruptions" in result.stdout
    text = file.read_text()
    file.write_text(text.replace("history.csv.xz", "none.csv"))
    result = CliRunner().invoke(cli, ["simulate", str(file)])
    assert (result.exit_code, "spotHistory.file: there is no file" in result.stderr) == (2, True)
    file.write_text(text.replace("{file:", "{start: 2020-01-01T00:00:00Z, file:"))
    result = CliRunner().invoke(cli, ["simulate", str(file)])
    assert (result.exit_code, "is from 2025-01-06 to 2025-01-06, and spotHistory.start" in result.stderr) == (2, True)


def test_a_history_goes_with_any_scenario(tmp_path: Path) -> None:
    file = written(tmp_path)
    plain = tmp_path / "plain.yaml"
    plain.write_text(file.read_text().partition("spotHistory")[0])
    named = ["--spot-history", str(tmp_path / "history.csv.xz"), "--search", "prefix"]
    with_it, without = (
        CliRunner().invoke(cli, ["simulate", str(plain), "-o", "json", *more]) for more in (named, named[2:])
    )
    assert with_it.exit_code == without.exit_code == 0
    assert with_it.stdout != without.stdout


def test_a_source_gives_every_worker_the_same_prices(tmp_path: Path) -> None:
    text = (SPOT_POOL + STORY).encode()
    written(tmp_path)
    history_file = str(tmp_path / "history.csv.xz")
    source = ScenarioSource(text, lambda: CATALOG, spot_history=history_file, decisions=(("search", "prefix"),))
    inputs = source.inputs()
    assert inputs.spot is not None
    assert inputs.run(("default", 0), lambda _: None) == source.inputs().run(("default", 0), lambda _: None)
