"""Numbers that stand for an order say the same as the keys they stand for."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from karpool.cluster.ranking import Ranking

Key = tuple[int, str]


def assert_ranked(ranking: Ranking[Key], keys: dict[int, Key]) -> None:
    rows = np.array(list(keys), dtype=np.int32)
    assert rows[ranking.order(rows)].tolist() == sorted(keys, key=keys.__getitem__)


@given(st.randoms(use_true_random=False), st.integers(0, 20), st.integers(1, 60))
def test_rows_that_come_and_go_are_in_the_order_of_their_keys(chance: Random, known: int, steps: int) -> None:
    keys: dict[int, Key] = {row: (chance.randrange(5), str(row)) for row in range(known)}
    ranking: Ranking[Key] = Ranking()
    ranking.fill((key, row) for row, key in keys.items())
    for step in range(steps):
        if keys and chance.random() < 0.4:
            ranking.drop(keys.pop(chance.choice(list(keys))))
        else:
            row = next(row for row in range(known + steps) if row not in keys)
            keys[row] = (chance.randrange(5), f"{chance.random()}-{step}")
            ranking.add(keys[row], row)
        assert_ranked(ranking, keys)


def test_rows_that_always_come_to_the_same_place_are_numbered_anew() -> None:
    """Each one before the last, behind the first: the gap between the two is soon used up."""
    keys: dict[int, Key] = {0: (0, "")}
    ranking: Ranking[Key] = Ranking()
    ranking.fill((key, row) for row, key in keys.items())
    for row in range(1, 200):
        keys[row] = (1000 - row, "")
        ranking.add(keys[row], row)
    assert_ranked(ranking, keys)
