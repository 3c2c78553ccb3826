"""A few random schedules on virtual clusters; `make robustness` runs thousands."""

from collections import Counter

import pytest
from tests.robustness.checker.check import check
from tests.robustness.checker.records import decoded, encoded
from tests.robustness.fault_plan import KINDS
from tests.robustness.schedule import run_schedule
from tests.robustness.timelines import Kind

pytestmark = pytest.mark.slow

SCHEDULES, MOST_SCHEDULES = 25, 100
"""So many, and as many more as it takes to have every kind of fault and of story; `make test` runs 200 afterwards."""


def test_no_rule_is_broken_whatever_the_faults() -> None:
    injected: Counter[str] = Counter()
    told: set[Kind] = set()
    for seed in range(MOST_SCHEDULES):
        if seed >= SCHEDULES and set(KINDS) == injected.keys() and set(Kind) == told:
            break
        outcome = run_schedule(seed)
        injected += outcome.injected
        if outcome.violations:
            again = f"make robustness SEED={seed} COUNT=1"
            pytest.fail(f"{again}\n" + "\n".join(map(str, outcome.violations)))
        told.add(outcome.kind)
    assert set(KINDS) == injected.keys()
    assert set(Kind) == told


def test_a_seed_gives_the_same_history_every_time() -> None:
    assert encoded(run_schedule(3).records) == encoded(run_schedule(3).records)


def test_a_history_that_was_written_and_read_is_judged_alike() -> None:
    outcome = run_schedule(5)
    again = decoded(encoded(outcome.records))
    assert encoded(again) == encoded(outcome.records)
    assert check(again) == outcome.violations


@pytest.mark.parametrize("seed", [580, 985])
def test_schedules_that_once_broke_a_rule_break_none(seed: int) -> None:
    """A command all of whose nodes were let go stayed in a ledger; a watch that two faults kept silent was trusted."""
    assert run_schedule(seed).violations == []
