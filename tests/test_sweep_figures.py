"""What is told of sweeps and fleets follows from what was measured, and stands where pages have a place for it."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")


def figures(**changed: Any) -> Any:
    from sweep_figures import LOCAL_1, LOCAL_2, RAY, Figures, Planned

    seconds = {LOCAL_1: 90.0, LOCAL_2: 47.5, RAY: 50.0}
    measured: dict[str, Any] = {"trials": 12, "hours": 6, "nodes": 197.4, "same": True, "overhead": 0.1, "empty": 60}
    fleet = (Planned(50, 900, 3.6), Planned(1000, 18_000, 72.0))
    told = {"seconds": seconds, "per_hour": 1.0, "fleet": fleet, "on": date(2026, 11, 19), **measured, **changed}
    return Figures(**told)


def test_ratios_are_those_of_one_run() -> None:
    found = figures()
    assert found.speed_up == pytest.approx(90 / 47.5)
    assert found.ray_over_local == pytest.approx(50 / 47.5)
    assert found.efficiency == pytest.approx(0.9)
    without = figures(seconds={name: value for name, value in found.seconds.items() if "Ray" not in name})
    assert (without.ray_over_local, without.efficiency) == (None, pytest.approx(90 / 95))
    assert without.plain()["rayOverLocal"] is None


def test_large_work_on_paper_follows_from_a_plan_and_a_trial() -> None:
    from sweep_figures import machines

    found = figures()
    assert found.fleet_core_hours(found.fleet[0]) == pytest.approx(10_000 * 3.6 / 3600 / 0.9)
    assert found.sweep_core_hours == pytest.approx(200 * 10 * 3 * (168 + 0.1) / 3600 / 0.9)
    assert [machines(hours) for hours in (0.5, 96, 97, 960)] == [1, 1, 2, 10]


def test_every_figure_has_its_place_in_a_page_and_can_be_written_there(tmp_path: Path) -> None:
    from sweep_figures import pages

    from sweep import write

    for page in pages(figures()):
        (tmp_path / page).write_text((ROOT / "docs" / page).read_text())
    write(tmp_path, pages(figures()))
    text = (tmp_path / "performance.md").read_text()
    assert "| two local workers | 47.5 | 1.89 |" in text
    assert "all places gave the same bytes. Ray took 1.05 times as long as local workers." in text
    assert "| plan 10,000 clusters of 1,000 nodes and 18,000 pods | 72.0 s | 222 | 3 |" in text
    assert "311 core-hours" in (tmp_path / "sweep.md").read_text()
    assert "1,000 nodes each 222 core-hours, a Ray cluster of 3 nodes" in (tmp_path / "fleet.md").read_text()
    write(tmp_path, pages(None))
    assert "| two local workers | ? | ? |" in (tmp_path / "performance.md").read_text()
