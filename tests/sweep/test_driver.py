"""Sweeps with workers that know the results: which trials are done, in which order, and what is left out."""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from tests.sweep.worlds import NOWHERE, Workers, result_of

from karpool.sweep.dimensions import Dimension, read_dimension
from karpool.sweep.driver import Sweep
from karpool.sweep.methods import Bayesian, Grid, RandomSettings
from karpool.sweep.results_file import results_file
from karpool.sweep.trial import Timed, Trial
from karpool.wire.problems import InputError

AFTER = read_dimension("consolidateAfter=30s,5m,30m")
"""In the world of these tests each minute costs a dollar, and saves as much disturbance."""
FEE = read_dimension("nodeFee=0,1")
"""It only costs, and saves nothing."""
SEEDS = range(1, 13)


def swept(*dimensions: Dimension, workers: Workers, **options: bool) -> Sweep:
    sweep = Sweep([NOWHERE], SEEDS, report=lambda *_: None, **options)
    sweep.run(Grid(dimensions), workers)
    return sweep


def test_a_grid_tries_every_combination_on_every_seed() -> None:
    workers = Workers()
    sweep = swept(AFTER, FEE, workers=workers, stops_hopeless=False)
    assert len(sweep.settings) == 6
    assert sorted(workers.done) == sorted(
        Trial((("consolidateAfter", after), ("nodeFee", fee)), 0, seed)
        for after in AFTER.values
        for fee in FEE.values
        for seed in SEEDS
    )
    assert [(point.seeds, point.stopped) for point in sweep.points()] == [(12, False)] * 6


def test_hopeless_settings_get_no_further_seeds() -> None:
    workers = Workers()
    sweep = swept(AFTER, FEE, workers=workers)
    stopped = [point for point in sweep.points() if point.stopped]
    assert {dict(point.setting)["nodeFee"] for point in stopped} == {"1"}
    assert {point.seeds for point in stopped} == {3}
    assert len(workers.done) == 3 * 12 + 3 * 3
    assert [dict(point.setting)["consolidateAfter"] for point in sweep.points() if point.on_front] == list(AFTER.values)


def test_the_order_in_which_trials_end_changes_nothing() -> None:
    first = swept(AFTER, FEE, workers=Workers())
    for seed in range(5):
        assert swept(AFTER, FEE, workers=Workers(shuffled=Random(seed))).points() == first.points()


@pytest.mark.parametrize("most", [0, 1, 7, 20, 100])
def test_a_sweep_goes_on_from_a_file_and_ends_as_if_it_had_never_stopped(most: int, tmp_path: Path) -> None:
    path, whole = tmp_path / "results.jsonl", Workers()
    wanted = swept(AFTER, FEE, workers=whole).points()
    first, second = Workers(most=most), Workers()
    for workers in (first, second):
        with results_file(path, ["here"]) as file:
            sweep = Sweep([NOWHERE], SEEDS, report=lambda *_: None, file=file)
            try:
                sweep.run(Grid([AFTER, FEE]), workers)
            except KeyboardInterrupt:
                assert workers is first
    assert sweep.points() == wanted
    assert sorted(first.done + second.done) == sorted(whole.done)


def test_a_line_that_a_crash_has_cut_off_is_done_again(tmp_path: Path) -> None:
    path, trial = tmp_path / "results.jsonl", Trial((("nodeFee", "0"),), 0, 1)
    timed = Timed(result_of(trial), 1.5)
    with results_file(path, ["here"]) as file:
        file.add(trial, timed)
        file.add(trial._replace(seed=2), timed)
    os.truncate(path, path.stat().st_size - 5)
    with results_file(path, ["here"]) as file:
        assert file.known == {trial: timed}
        file.add(trial._replace(seed=3), timed)
    with results_file(path, ["here"]) as file:
        assert [known.seed for known in file.known] == [1, 3]


def test_results_of_another_input_are_not_taken(tmp_path: Path) -> None:
    path, trial = tmp_path / "results.jsonl", Trial((("nodeFee", "0"),), 0, 1)
    with results_file(path, ["here"]) as file:
        file.add(trial, Timed(result_of(trial), 1.0))
    with results_file(path, ["there"]) as file:
        assert file.known == {}
    with results_file(path, ["there", "here"]) as file:
        assert list(file.known) == [trial._replace(input=1)]


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("do not\nlose this\n")
    with pytest.raises(InputError, match="line 1 is no result of a sweep"), results_file(path, []):
        pass
    assert path.read_text() == "do not\nlose this\n"


def test_two_sweeps_do_not_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with results_file(path, []), pytest.raises(InputError, match="another sweep"), results_file(path, []):
        pass


def test_chance_depends_on_the_seed_only_and_repeats_nothing() -> None:
    span = read_dimension("consolidateAfter=30s..2h")
    first = RandomSettings([span, FEE], 20, 7).ask()
    assert list(first) == list(RandomSettings([span, FEE], 20, 7).ask())
    assert list(first) != list(RandomSettings([span, FEE], 20, 8).ask())
    assert len(set(first)) == 20
    assert len(RandomSettings([FEE], 20, 7).ask()) == 2


def test_a_grid_of_a_range_is_refused() -> None:
    with pytest.raises(InputError, match="is a range, of which no grid can try all"):
        Grid([read_dimension("consolidateAfter=30s..2h")])


def test_a_grid_that_never_ends_is_refused() -> None:
    many = Dimension("weight", tuple(map(str, range(1000))))
    with pytest.raises(InputError, match="1,000,000 combinations"):
        Grid([many, many])


def test_bayes_finds_better_settings_than_chance_and_the_same_ones_in_any_order() -> None:
    pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'karpool[optuna]'")
    dimensions = [read_dimension("consolidateAfter=0s..2h"), read_dimension("nodeFee=0..10")]

    def settings(method: Callable[[], Bayesian | RandomSettings], shuffled: Random | None) -> Sweep:
        sweep = Sweep([NOWHERE], range(1, 3), report=lambda *_: None)
        sweep.run(method(), Workers(shuffled=shuffled))
        return sweep

    learned = settings(lambda: Bayesian(dimensions, 64, 1), None)
    again = settings(lambda: Bayesian(dimensions, 64, 1), Random(3))
    assert list(learned.settings) == list(again.settings)
    by_chance = settings(lambda: RandomSettings(dimensions, 64, 1), None)
    assert _mean_fee(learned) < _mean_fee(by_chance)


def _mean_fee(sweep: Sweep) -> float:
    fees = [float(dict(setting)["nodeFee"]) for setting in list(sweep.settings)[32:]]
    return sum(fees) / len(fees)


def test_progress_counts_all_trials_of_a_round() -> None:
    told: list[tuple[int, int | None]] = []
    sweep = Sweep([NOWHERE], range(1, 3), report=lambda _, done, most: told.append((done, most)))
    sweep.run(Grid([FEE]), Workers())
    assert told == [(500 * number, 2000) for number in range(1, 5)]
