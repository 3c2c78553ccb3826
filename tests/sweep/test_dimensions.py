"""What `--set` reads: knobs, their values, and ranges."""

from random import Random

import pytest
from tests.tables import row, table

from karpool.disruption.what_if.pool_knobs import Budgets, ConsolidateAfter, PoolWeight
from karpool.disruption.what_if.setting_knobs import SpotToSpot
from karpool.disruption.what_if.type_knobs import ForbidTypes
from karpool.sweep.dimensions import NAMES, knobs_of, read_dimension
from karpool.wire.duration import parse_duration
from karpool.wire.problems import InputError


def test_a_list_of_values_is_kept_as_it_is_written_and_each_once() -> None:
    dimension = read_dimension("consolidateAfter=30s, 5m,30s")
    assert (dimension.name, dimension.values, dimension.span) == ("consolidateAfter", ("30s", "5m"), None)


def test_settings_become_the_knobs_of_a_what_if() -> None:
    setting = (
        ("consolidateAfter", "5m"),
        ("weight@spot", "10"),
        ("spotToSpot", "true"),
        ("forbidTypes", "t3.*+m5.large"),
        ("budgets", "20%"),
        ("gracePeriod", "today"),
    )
    assert knobs_of(setting) == (
        ConsolidateAfter(value=parse_duration("5m")),
        PoolWeight(node_pool="spot", value=10),
        SpotToSpot(value=True),
        ForbidTypes(instance_types=("t3.*", "m5.large")),
        Budgets(value="20%"),
    )


@table(
    row("durations", text="consolidateAfter=30s..2h", ends=("30s", "2h")),
    row("percentages", text="budgets=5%..50%", ends=("5%", "50%")),
    row("numbers", text="evictionPrice=0..0.05", ends=("0", "0.05")),
    row("from nothing", text="gracePeriod=0s..1h", ends=("0s", "1h")),
)
def test_a_range_draws_values_between_its_ends(text: str, ends: tuple[str, str]) -> None:
    span = read_dimension(text).span
    assert span is not None
    assert (span.write(span.low), span.write(span.high)) == ends
    random = Random(1)
    drawn = {span.drawn(random) for _ in range(50)}
    assert len(drawn) > 10
    assert [span.drawn(Random(2)) for _ in range(2)] == [span.drawn(Random(2))] * 2


@table(
    row(
        text="consolidateafter=5m", message="there is no setting 'consolidateafter'; there are .*mean consolidateAfter"
    ),
    row(text="consolidateAfter", message="should be NAME=V1,V2"),
    row(text="consolidateAfter=", message="should be NAME=V1,V2"),
    row(text="consolidateAfter=5x", message="consolidateAfter=5x: .*is not a duration"),
    row(text="consolidateAfter=2h..30s", message="is not a range"),
    row(text="consolidateAfter=30s..Never", message="is not a range"),
    row(text="weight=101", message="weight=101: Expected `int` <= 100"),
    row(text="evictionPrice=nan", message="evictionPrice=nan"),
    row(text="partition@general=pool", message="partition is not a NodePool's; leave @general out"),
    row(text="consolidationPolicy=Sometimes", message="consolidationPolicy=Sometimes: Invalid enum value"),
)
def test_what_cannot_be_set_is_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^--set: .*{message}"):
        read_dimension(text)


def test_every_name_is_that_of_a_knob_and_none_is_there_twice() -> None:
    assert {"consolidateAfter", "budgets", "balancedK", "nodeFee", "onlyTypes"} <= NAMES.keys()
    assert all(kind.__struct_config__.tag == name for name, kind in NAMES.items())
