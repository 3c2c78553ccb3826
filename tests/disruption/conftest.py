"""Clusters of the size and unevenness that benchmarks use."""

from pathlib import Path
from typing import Any

import pytest
from tests.strategies import Cluster


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes clusters of the size and unevenness that benchmarks use."""
    monkeypatch.syspath_prepend(Path(__file__).parent.parent.parent / "benchmarks")
    from clusters import catalog, generate

    return lambda nodes, seed: Cluster(generate(nodes, seed), catalog())
