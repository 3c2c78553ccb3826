"""How faithful a replay is: what was seen counts, and what was not is not known."""

import pytest
from msgspec.structs import replace

from karpool.report.simulations.fidelity import fidelities, fidelity_words
from karpool.report.simulations.simulation_document import simulation_document
from karpool.report.simulations.simulation_page import simulation_page
from karpool.report.simulations.simulation_plots import NODES, deviation_lines, lines
from karpool.virtual.compare import Comparison
from karpool.virtual.recorder import ClusterSample, Run, RunSummary
from karpool.virtual.scenario import RECORDED, Policy, Scenario
from karpool.wire.duration import parse_duration

_ZEROS = dict.fromkeys(RunSummary.__struct_fields__, 0)


def run_of(nodes: list[int], evictions: int | None = 0, *, nodes_known: bool = True) -> Run:
    """A sample each minute."""
    numbers = {**_ZEROS, "evictions": evictions, "cost": 1.0, "node_hours": 1.0}
    samples = (
        ClusterSample(
            time=60.0 * minute,
            nodes=count,
            pods=1,
            pending=0,
            price_per_hour=float(count),
            cpu_utilization=0.5,
            memory_utilization=0.5,
            evictions=evictions,
        )
        for minute, count in enumerate(nodes)
    )
    return Run(RunSummary(**numbers), tuple(samples), {}, nodes_known)


def compared(recorded: Run, *replays: Run, gaps: tuple[tuple[float, float], ...] = ()) -> Comparison:
    scenario = Scenario(length=parse_duration("5m"), policies={"same": Policy()})
    seeds = tuple(range(len(replays)))
    runs = {RECORDED: (recorded,) * len(seeds), "same": replays}
    return Comparison(scenario, seeds, runs, gaps=gaps)


def test_the_deviation_is_that_of_the_mean_of_all_seeds() -> None:
    part = fidelities(compared(run_of([4, 4, 4], 5), run_of([4, 5, 8], 6), run_of([4, 5, 6], 10)))["same"]
    assert part.nodes_mean == pytest.approx(4 / 3, abs=1e-6)
    assert (part.nodes_most, part.nodes_most_after_seconds) == (3, 120.0)
    assert part.series["nodes"] == [0, 1, 3]
    assert part.evictions == 3


def test_what_was_in_a_gap_nobody_knows() -> None:
    recorded, replay = run_of([4, 4, 4, 4, 6]), run_of([4, 9, 9, 9, 7])
    comparison = compared(recorded, replay, gaps=((0.0, 240.0),))
    part = fidelities(comparison)["same"]
    assert part.series["nodes"] == [0, None, None, None, 1]
    assert part.series["evictions"] == [0, None, None, None, 0]
    assert (part.nodes_mean, part.nodes_most) == (0.5, 1)
    document = simulation_document(comparison)
    assert document.policies[RECORDED]["series"]["nodes"] == [4, None, None, None, 6]
    assert document.policies["same"]["series"]["nodes"] == [4, 9, 9, 9, 7]
    assert [line.mean for line in lines(comparison, NODES)] == [[4, None, None, None, 6], [4, 9, 9, 9, 7]]
    page = simulation_page(document, comparison)
    assert page.count('<rect class="gap"') == 7
    assert "Shaded: nothing was recorded." in page


def test_a_page_shows_how_many_nodes_a_faithful_replay_has_more_or_fewer() -> None:
    comparison = compared(run_of([4, 4, 4]), run_of([4, 2, 5]))
    shown = deviation_lines(comparison, {"same"})
    assert [line.mean for line in shown] == [[None] * 3, [0, -2, 1]]
    assert [line.mean for line in deviation_lines(comparison, ())] == [[None] * 3] * 2
    page = simulation_page(simulation_document(comparison), comparison)
    assert "Nodes more or fewer than recorded" in page
    assert ">-2</text>" in page


def test_unknown_numbers_have_no_deviation() -> None:
    part = fidelities(compared(run_of([0, 0], None, nodes_known=False), run_of([3, 3], 7)))["same"]
    assert (part.evictions, part.nodes_mean, part.nodes_most) == (None, None, None)
    assert part.series["nodes"] == part.series["evictions"] == [None, None]
    words = fidelity_words("same", part, seeds=1)
    assert "evictions ?; by how many nodes they differ is not known" in words


@pytest.mark.parametrize(
    ("cost", "seeds", "hinted"), [(0.2, 1, True), (-0.2, 1, True), (0.05, 1, False), (0.2, 3, False), (None, 1, False)]
)
def test_one_seed_that_is_far_off_is_told_that_more_would_tell_more(
    *, cost: float | None, seeds: int, hinted: bool
) -> None:
    part = replace(fidelities(compared(run_of([4, 4]), run_of([4, 4])))["same"], cost=cost)
    assert fidelity_words("same", part, seeds).endswith("; one seed; --seeds 5 tells more.") is hinted
