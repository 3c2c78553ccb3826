"""What `--set` reads: knobs, their values, and ranges."""

from random import Random

import pytest
from tests.tables import row, table

from karpool.disruption.what_if.pool_knobs import Budgets, ConsolidateAfter, PoolWeight
from karpool.disruption.what_if.setting_knobs import SpotToSpot
from karpool.disruption.what_if.type_knobs import ForbidTypes
from karpool.sweep.dimensions import knobs_of, read_dimension
from karpool.sweep.values import NAMES
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
    row("tiny numbers", text="minimumSavings=.00001..0.0002", ends=("0.00001", "0.0002")),
    row("large numbers", text="minimumSavings=100..5000", ends=("100", "5000")),
    row("from nothing", text="gracePeriod=0s..1h", ends=("0s", "1h")),
    row("from nothing, without a unit", text="budgets=0..100%", ends=("0%", "100%")),
    row("whole numbers", text="weight=0..100", ends=("0", "100")),
)
def test_a_range_draws_values_between_its_ends(text: str, ends: tuple[str, str]) -> None:
    span = read_dimension(text).span
    assert span is not None
    assert (span.write(span.low), span.write(span.high)) == ends
    random = Random(1)
    drawn = {span.drawn(random) for _ in range(50)}
    assert all(knobs_of(((text.partition("=")[0], value),)) for value in drawn)
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
    row(text="weight=101", message="weight=101: '101' is not allowed; write a whole number from 0 to 100$"),
    row(text="weight=1.5", message="'1.5' is not allowed; write a whole number from 0 to 100$"),
    row(text="weight=0.5..3", message="weight: '0.5..3' is not a range .*; write one such as 1..20$"),
    row(
        text="evictionPrice=nan", message="evictionPrice=nan: 'nan' is not allowed; write a number from 0 to 1,000,000"
    ),
    row(text="consolidateAfter=30s,-5m", message="=-5m: '-5m' is not allowed; write whole h, m and s such as 30s or"),
    row(text="gracePeriod=-5m", message="=-5m: '-5m' is not allowed; write whole h, m and s such as 30s or 1h30m"),
    row(text="consolidateAfter=5ms", message="'5ms' is not allowed; write whole h, m and s"),
    row(text="consolidateAfter=5m,,1h", message="'consolidateAfter=5m,,1h' has no value between two commas"),
    row(text="budgets=10%,150%", message="budgets=150%: '150%' is not a number of nodes; write 0 or more, or 0% to"),
    row(text="budgets@spot=many", message="budgets@spot=many: 'many' is not a number of nodes"),
    row(text="budgets=5%..20", message="'5%..20' is not a range .*; write one such as 1..20 or 5%..50%$"),
    row(text="minimumSavings=0.5%..2%", message="'0.5%..2%' is not a range"),
    row(text="balancedK=0..3", message="balancedK=0: '0' is not allowed; write a number above 0 such as 2"),
    row(text="minimumSavings=150%", message="'150%' is not allowed; write dollars an hour such as 0.05, or"),
    row(text="spotToSpot=maybe", message="'maybe' is not allowed; write true or false"),
    row(text="spotToSpot=0..1", message="spotToSpot has no ranges, as '0..1' is one"),
    row(text="onlyTypes=m5.*+", message="join at most 100 names or patterns by [+], such as"),
    row(text="partition@general=pool", message="partition is not a NodePool's; leave @general out"),
    row(
        text="consolidationPolicy=Sometimes",
        message="consolidationPolicy=Sometimes: 'Sometimes' is not allowed; use one of Balanced",
    ),
)
def test_what_cannot_be_set_is_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^--set: .*{message}"):
        read_dimension(text)


def test_every_name_is_that_of_a_knob_and_none_is_there_twice() -> None:
    assert {"consolidateAfter", "budgets", "balancedK", "nodeFee", "onlyTypes"} <= NAMES.keys()
    assert all(kind.__struct_config__.tag == name for name, kind in NAMES.items())
