"""Which settings are tried: all, some by chance, or those that a model of the results so far thinks best.

A method gives settings batch by batch, and hears of each batch before it gives the next one. What it gives depends on
its seed and on results only, not on how many workers there are or which is quicker.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from random import Random
from typing import Any, Final, Protocol

from karpool.sweep.dimensions import Dimension, Setting
from karpool.wire.problems import InputError

MOST_SETTINGS: Final = 100_000
_BATCH: Final = 8
"""Few enough to learn from, and enough for some workers."""
_DRAWS: Final = 20
"""How often another value is drawn instead of one that there was."""


class SearchMethod(Protocol):
    def ask(self) -> Sequence[Setting]:
        """The next settings; empty at the end."""

    def tell(self, results: Mapping[Setting, tuple[float, float]]) -> None:
        """What the last settings cost, and how many pods they disturbed."""


class Grid:
    """Every combination of values."""

    def __init__(self, dimensions: Sequence[Dimension]) -> None:
        for dimension in dimensions:
            if dimension.span is not None:
                message = (
                    f"{dimension.name} is a range, of which no grid can try all; list values, or add --method random"
                )
                raise InputError.at("--set", message)
        combinations = math.prod(len(dimension.values) for dimension in dimensions)
        if combinations > MOST_SETTINGS:
            message = (
                f"these are {combinations:,} combinations; a grid tries at most {MOST_SETTINGS:,}: use --method random"
            )
            raise InputError.at("--set", message)
        named = ([(dimension.name, value) for value in dimension.values] for dimension in dimensions)
        self._left: list[Setting] = list(product(*named))

    def ask(self) -> Sequence[Setting]:
        batch, self._left = self._left, []
        return batch

    def tell(self, results: Mapping[Setting, tuple[float, float]]) -> None:
        """A grid learns nothing."""


class RandomSettings:
    """So many combinations by chance, each once."""

    def __init__(self, dimensions: Sequence[Dimension], count: int, seed: int) -> None:
        random, chosen = Random(seed), dict[Setting, None]()
        for _ in range(count * _DRAWS):
            if len(chosen) == count:
                break
            chosen[tuple((dimension.name, dimension.drawn(random)) for dimension in dimensions)] = None
        self._left: list[Setting] = list(chosen)

    def ask(self) -> Sequence[Setting]:
        batch, self._left = self._left, []
        return batch

    def tell(self, results: Mapping[Setting, tuple[float, float]]) -> None:
        """Chance learns nothing."""


class Bayesian:
    """Optuna's estimator of two objectives, asked for a few settings at a time."""

    def __init__(self, dimensions: Sequence[Dimension], count: int, seed: int) -> None:
        try:
            import optuna
        except ImportError:
            raise InputError.at("--method", "bayes needs Optuna: pip install 'karpool[optuna]'") from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=seed % 2**32)
        self._study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
        self._dimensions = dimensions
        self._asked: list[tuple[Any, Setting]] = []
        self._count = count

    def ask(self) -> Sequence[Setting]:
        number = min(_BATCH, self._count)
        self._count -= number
        trials = [self._study.ask() for _ in range(number)]
        self._asked = [
            (trial, tuple((one.name, _suggested(trial, one)) for one in self._dimensions)) for trial in trials
        ]
        return list(dict.fromkeys(setting for _, setting in self._asked))

    def tell(self, results: Mapping[Setting, tuple[float, float]]) -> None:
        for trial, setting in self._asked:
            self._study.tell(trial, results[setting])


def _suggested(trial: Any, dimension: Dimension) -> str:
    if dimension.span is None:
        return str(trial.suggest_categorical(dimension.name, dimension.values))
    span = dimension.span
    return span.write(trial.suggest_float(dimension.name, span.low, span.high, log=span.logarithmic))
