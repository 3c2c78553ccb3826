"""Search strategies by their names."""

import pytest

from karpool.disruption.methods.search import STRATEGIES, UnknownStrategyError, strategy
from karpool.disruption.settings import GLOBAL, DisruptionSettings


def test_the_default_strategy_is_the_one_that_ends_cheapest() -> None:
    assert DisruptionSettings().search == GLOBAL
    assert strategy(GLOBAL) is STRATEGIES[GLOBAL]


@pytest.mark.parametrize(("name", "hint"), [("nope", ""), ("prefx", "; did you mean prefix?")])
def test_an_unknown_strategy_is_refused_with_those_that_exist(name: str, hint: str) -> None:
    with pytest.raises(UnknownStrategyError) as error:
        strategy(name)
    assert str(error.value) == f"there is no search strategy {name!r}; there are global, prefix{hint}"
