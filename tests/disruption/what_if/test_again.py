"""What-ifs about large clusters: the steps of today's plan are judged again, and planning ends when time is up."""

import pytest
from hypothesis import given
from tests.disruption.scenarios import NOW
from tests.examples import examples
from tests.strategies import Cluster, clusters

from karpool.disruption.plan import Planner
from karpool.disruption.settings import GLOBAL, PREFIX, DisruptionSettings
from karpool.disruption.what_if import answer as answers
from karpool.disruption.what_if.again import take_again
from karpool.disruption.what_if.answer import WhatIf, walk
from karpool.disruption.what_if.knob import Knob
from karpool.disruption.what_if.pool_knobs import BudgetsOff, MinimumSavingsKnob
from karpool.disruption.what_if.question import Question
from karpool.disruption.what_if.setting_knobs import EvictionPriceKnob, NodeFee
from karpool.packing.options import Options
from karpool.report.what_if.what_if_document import what_if_document


@pytest.fixture(autouse=True)
def every_cluster_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "SOON", 0)


def hasty(made: Cluster, seconds: float | None = None) -> WhatIf:
    question = Question(made.objects, made.catalog, DisruptionSettings(search=GLOBAL), Options(), NOW)
    return WhatIf(question, global_up_to=0, seconds=seconds)


@given(clusters())
@examples(25)
def test_steps_that_nothing_speaks_against_are_taken_again(made: Cluster) -> None:
    """A pool that asks for no savings wants what it wanted: the plan is the one of today, step by step."""
    asked = hasty(made)
    steps = asked.today.steps
    again = Planner(asked.question.context())
    checked = take_again(again, steps, directed=False)
    again.walk()
    assert (checked.dropped, checked.unchecked) == (0, 0)
    assert [step.command.nodes for step in again.steps] == [step.command.nodes for step in steps]
    assert again.totals() == asked.today.end.after


@given(clusters())
@examples(25)
def test_a_plan_of_a_global_search_is_taken_again_where_it_sent_its_pods(made: Cluster) -> None:
    """Turned to what it is anyway, a knob changes nothing; evictions that cost too much make nothing dearer."""
    asked = hasty(made)
    question = Question(made.objects, made.catalog, DisruptionSettings(search=GLOBAL, effort=0), Options(), NOW)
    asked.planned = walk(question)
    answer = asked.ask([NodeFee(value=0.0)])
    assert answer.checked is not None
    assert (answer.checked.dropped, what_if_document(answer).today_search) == (0, "global, effort 2")
    assert answer.then.after.price <= answer.today.after.price + 1e-9
    dear = asked.ask([EvictionPriceKnob(value=1000.0)])
    assert dear.checked is not None
    assert dear.then.evictions == 0 or dear.then.after.price <= dear.then.before.price


KNOBS: tuple[Knob, ...] = (NodeFee(value=0.01), MinimumSavingsKnob(value="50%"))


@given(clusters())
@examples(25)
def test_a_plan_that_begins_with_steps_of_today_ends_where_nothing_more_is_to_be_done(made: Cluster) -> None:
    asked = hasty(made)
    for knob in KNOBS:
        answer = asked.ask([knob])
        assert answer.checked is not None
        assert (answer.checked.unchecked, answer.stopped, answer.first) == (0, False, True)
        assert walk(answer.there).end.after.price == pytest.approx(answer.then.after.price)


@given(clusters())
@examples(10)
def test_when_time_is_up_the_answer_is_what_was_found_so_far(made: Cluster) -> None:
    asked = hasty(made, seconds=-1.0)
    asked.today  # noqa: B018 - it is there before a knob is turned
    answer = asked.ask([NodeFee(value=0.0)])
    assert (answer.stopped, answer.then.steps, answer.then.after) == (True, 0, answer.then.before)
    assert answer.checked is not None
    assert answer.checked.held == answer.checked.dropped == 0
    patient = asked.ask([NodeFee(value=0.0)], patient=True)
    assert (patient.stopped, patient.checked is not None and patient.checked.unchecked) == (False, 0)
    onwards = asked.ask([BudgetsOff()])
    assert (onwards.stopped, onwards.onwards, onwards.then.after) == (True, True, onwards.today.after)


@given(clusters())
@examples(10)
def test_somebody_who_waits_has_a_first_answer_with_any_search(made: Cluster) -> None:
    question = Question(made.objects, made.catalog, DisruptionSettings(search=PREFIX), Options(), NOW)
    for knob, onwards in ((NodeFee(value=0.01), False), (BudgetsOff(), True)):
        answer = WhatIf(question, seconds=60.0).ask([knob])
        assert (answer.first, answer.stopped, answer.onwards) == (True, False, onwards)
        whole = WhatIf(question, thorough=True, global_up_to=None).ask([knob])
        assert (whole.first, whole.checked) == (False, None)
