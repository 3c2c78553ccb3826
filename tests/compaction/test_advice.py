"""What experience says of a configuration of the compactor."""

from pathlib import Path

import pytest
from tests.tables import row, table

from karpool.compaction.advice import advice, least_count
from karpool.compaction.config import Config, PoolConfig

PAGE = Path(__file__).parents[2] / "docs" / "compactor.md"


@pytest.mark.parametrize(
    ("limit", "count"), [(0.5, 2), (0.6, 3), (0.75, 4), (0.8, 5), (0.9, 10), (0.0, 2), (1.0, None)]
)
def test_so_many_nodes_at_the_limit_have_room_for_the_pods_of_one(limit: float, count: int | None) -> None:
    assert least_count(limit) == count
    if count is not None and limit:
        assert limit <= (count - 1) * (1 - limit) + 1e-9
        assert count == 2 or limit > (count - 2) * (1 - limit) - 1e-9


@table(
    row("as the document has it", pool=PoolConfig(enabled=True, cpu_limit=0.75, required_count=5), said=None),
    row(
        "where the autoscaler removes",
        pool=PoolConfig(enabled=True, cpu_limit=0.5),
        said="is not above the 0.5 of Cluster",
    ),
    row("few, but with a check", pool=PoolConfig(enabled=True, cpu_limit=0.9, required_count=3), said=None),
    row(
        "few without a check",
        pool=PoolConfig(enabled=True, cpu_limit=0.9, required_count=9, check_fit=False),
        said="write 10 or more",
    ),
    row("enough without", pool=PoolConfig(enabled=True, cpu_limit=0.9, required_count=10, check_fit=False), said=None),
    row("all of a node", pool=PoolConfig(enabled=True, cpu_limit=1.0, check_fit=False), said="write less than 1"),
    row("not enabled", pool=PoolConfig(enabled=False, cpu_limit=0.1), said=None),
)
def test_only_what_will_hardly_do_is_told(pool: PoolConfig, said: str | None) -> None:
    told = list(advice(Config(node_pools={"web": pool})))
    assert [said is not None and said in text and text.startswith("pool web: ") for text in told] == (
        [] if said is None else [True]
    )


@pytest.mark.parametrize("limit", [0.6, 0.75, 0.8, 0.9])
def test_the_page_has_the_counts(limit: float) -> None:
    assert f"| {limit:g} | {least_count(limit)} |" in PAGE.read_text()
