"""Commands as a scheduler carries them out: pods that it would leave without a node get one, or nothing happens."""

from dataclasses import replace

import pytest
from tests.disruption.scenarios import ZONES, NodeWithPods, Scenario, node, pool_of
from tests.disruption.test_revalidate import context
from tests.factories import instance_type

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.disruption.command import Command
from karpool.disruption.methods.evaluate import Evaluator
from karpool.disruption.revalidate import revalidate
from karpool.disruption.settings import GLOBAL, DisruptionSettings, Scoring
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.reasons import Reason
from karpool.model.requirements import Requirements
from karpool.packing.directions import DirectedNode, Directions

SIZES = Catalog(
    tuple(instance_type(f"c{cpu}", cpu, f"{4 * cpu}Gi", price=0.05 * cpu, zones=ZONES) for cpu in (2, 4, 8))
)


def fixed(name: str, cpu: int) -> NodeWithPods:
    """A node of eight CPUs that stays, with so many of them taken."""
    return node(name, "c8", pods=[{"cpu": cpu}], catalog=SIZES, annotations={DO_NOT_DISRUPT: "true"})


# There is a place for each of its two pods: nearly three CPUs on b, nearly two on c. But a scheduler that likes empty
# nodes puts the first, which is the smaller one, on b as well.
NODES = [
    node("goes", "c8", pods=[{"cpu": "1500m"}, {"cpu": "2500m"}], catalog=SIZES),
    fixed("b", 5),
    fixed("c", 6),
]


def scenario(scheduler: Scoring, catalog: Catalog = SIZES) -> Scenario:
    settings = DisruptionSettings(search=GLOBAL, scheduler=scheduler)
    return Scenario("", nodes=NODES, pools=[pool_of()], catalog=catalog, settings=settings)


def judged(
    scheduler: Scoring, most_new_nodes: int = 1, avoided: str = "", catalog: Catalog = SIZES
) -> Command | Reason:
    held = context(scenario(scheduler, catalog))
    rows = held.snapshot.nodes.rows
    candidates = [held.candidate(rows["goes"])]
    outcome = Evaluator(held).consolidate(candidates, most_new_nodes, avoided=[rows[name] for name in avoided])
    found = outcome.command or outcome.reason
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("scheduler", "avoided"), [(Scoring.ANY, ""), (Scoring.MOST_ALLOCATED, ""), (Scoring.LEAST_ALLOCATED, "b")]
)
def test_where_the_scheduler_finds_room_for_all_nothing_is_launched(scheduler: Scoring, avoided: str) -> None:
    command = judged(scheduler, avoided=avoided)
    assert isinstance(command, Command)
    assert not command.replacements
    assert sorted(str(move.target) for move in command.places) == ["b", "c"]


def test_a_pod_that_the_scheduler_would_leave_gets_a_node_from_the_start() -> None:
    command = judged(Scoring.LEAST_ALLOCATED)
    assert isinstance(command, Command)
    assert command.launched == "c4"
    assert command.savings == pytest.approx(0.2)
    assert {move.pod for move in command.places} == {move.pod for move in command.moves}
    assert 0 in {move.target for move in command.places}


def test_a_command_with_a_node_more_is_carried_out_as_it_was_decided() -> None:
    command = judged(Scoring.LEAST_ALLOCATED)
    assert isinstance(command, Command)
    again = revalidate(command, context(scenario(Scoring.LEAST_ALLOCATED)))
    assert again == command


def test_a_command_that_may_launch_nothing_is_refused() -> None:
    refused = judged(Scoring.LEAST_ALLOCATED, most_new_nodes=0)
    assert isinstance(refused, Reason)
    assert refused.code == "SchedulerScatters"
    assert refused.message.startswith("the scheduler would leave a pod without a node")


def test_what_is_needed_on_top_must_not_cost_what_is_saved() -> None:
    dear = Catalog(tuple(replace(entry, offerings=_dearer(entry)) for entry in SIZES.types if entry.name != "c8"))
    refused = judged(Scoring.LEAST_ALLOCATED, catalog=Catalog((*dear.types, SIZES.by_name["c8"])))
    assert isinstance(refused, Reason)
    assert refused.code == "SchedulerScatters"


@pytest.mark.parametrize(("scheduler", "launched"), [(Scoring.ANY, "2 c2"), (Scoring.MOST_ALLOCATED, "c2")])
def test_a_new_node_to_which_the_scheduler_brings_nobody_is_not_launched(scheduler: Scoring, launched: str) -> None:
    settings = DisruptionSettings(search=GLOBAL, scheduler=scheduler)
    full = node("goes", "c8", pods=[{"cpu": "500m", "owner": "Job"}, {"cpu": 1, "owner": "Job"}], catalog=SIZES)
    held = context(Scenario("", nodes=[full], pools=[pool_of()], catalog=SIZES, settings=settings))
    small, large = (held.snapshot.pods.rows[pod.key] for pod in full.pods)
    new = DirectedNode("default", Requirements(), ("c2",))
    apart = Directions((new, new), {large: -2, small: -3})
    outcome = Evaluator(held).consolidate([held.candidate(held.snapshot.nodes.rows["goes"])], 2, directions=apart)
    assert outcome.command is not None
    assert outcome.command.launched == launched
    assert sorted({move.target for move in outcome.command.places}) == sorted({*outcome.directed} - {-1})
    assert revalidate(outcome.command, held) == outcome.command


def _dearer(entry: InstanceType) -> tuple[Offering, ...]:
    return tuple(replace(offering, price=3 * offering.price) for offering in entry.offerings)
