"""A scan says that a set has to stay only if placing its pods says so, whatever the number of new nodes it may use."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.factories import LONG_AGO, affinity_to, instance_type, node, node_pool, pod
from tests.packing.scenarios import Scenario
from tests.strategies import Cluster, clusters

from karpool.catalog.instance_types import Catalog
from karpool.cluster.snapshot import Snapshot
from karpool.packing.candidate_pods import CandidatePods, CandidateSets
from karpool.packing.engine import Engine
from karpool.packing.scan import Scan

MOST_NEW_NODES = 4


def candidate_pods(engine: Engine) -> CandidatePods:
    """The pods that would move from each node."""
    snapshot, listed = engine.snapshot, CandidatePods()
    for row in snapshot.nodes.rows.values():
        pods = np.array(movers(engine, [row]), dtype=np.int32)
        listed.put(row, pods[snapshot.pods.ranking.order(pods)], [0] * len(pods), np.inf)
    return listed


def movers(engine: Engine, nodes: list[int]) -> list[int]:
    snapshot = engine.snapshot
    return [row for node in nodes for row in snapshot.pods_on(node) if snapshot.pods.get(row).reschedulable]


def promising(engine: Engine, sets: CandidateSets) -> set[int]:
    open_ = np.zeros(len(engine.snapshot.nodes.live), dtype=np.uint8)
    return set(Scan(engine, sets, closed=open_, unready=open_).promising())


def new_nodes(engine: Engine, nodes: list[int]) -> tuple[int, float, bool] | None:
    """How many new nodes replace some, what they cost at least, and whether that is exact; None if pods do not fit."""
    with engine.what_if() as trial:
        trial.remove(nodes)
        placement = trial.place(movers(engine, nodes))
        if placement.unplaced:
            return None
        price, exact = 0.0, True
        for claim in range(placement.claims):
            exact = exact and not placement.reservations(claim) and not engine.memory["claim_relaxed"][claim]
            prices = engine.worst_prices(placement.claim_requirements(claim))
            price += float(prices[placement.claim_types(claim)].min())
        return placement.claims, price, exact


@pytest.mark.slow
@examples(60)
@given(clusters(in_motion=True, choosy=True), st.randoms(use_true_random=False))
def test_a_scan_accepts_every_set_whose_new_nodes_are_few_and_cheap_enough(cluster: Cluster, chance: Random) -> None:
    engine = Engine(Snapshot(cluster.objects), cluster.catalog)
    rows = sorted(engine.snapshot.nodes.rows.values())
    groups = [chance.sample(rows, min(len(rows), chance.randint(1, 5))) for _ in range(12)]
    outcomes = [new_nodes(engine, group) for group in groups]
    prices = sorted({outcome[1] for outcome in outcomes if outcome} | {0.0, np.inf})
    below = [chance.choice(prices) + chance.choice((-1e-6, 0.0, 1e-6)) for _ in groups]
    most = [chance.randint(1, MOST_NEW_NODES) for _ in groups]
    order = engine.snapshot.pods.ranking.order
    accepted = promising(engine, candidate_pods(engine).sets(groups, below, most, order))
    for number, outcome in enumerate(outcomes):
        if outcome is None or outcome[0] > most[number]:
            assert number not in accepted
        elif outcome[0] == 0 or outcome[1] < below[number] or below[number] == np.inf:
            assert number in accepted
        elif outcome[2]:
            assert number not in accepted


def test_the_ceiling_is_for_all_new_nodes_together() -> None:
    apart = [affinity_to({"app": "web"})]
    large = [node("n1", cpu="16", created=LONG_AGO), node("n2", cpu="16", created=LONG_AGO)]
    web = [pod(f"web-{number}", node=f"n{number}", cpu="1", labels={"app": "web"}, anti=apart) for number in (1, 2)]
    catalog = Catalog((instance_type("small", 2, "8Gi", price=0.5),))
    scenario = Scenario(name="", pods=web, nodes=large, pools=[node_pool()], catalog=catalog)
    engine = Engine(Snapshot(scenario.objects), scenario.catalog)
    both, order = sorted(engine.snapshot.nodes.rows.values()), engine.snapshot.pods.ranking.order
    cases = [(1, 9.0, False), (2, 1.0, False), (2, 1.01, True), (3, 9.0, True)]
    sets = candidate_pods(engine).sets(
        [both] * len(cases), [below for _, below, _ in cases], [most for most, _, _ in cases], order
    )
    assert promising(engine, sets) == {number for number, (_, _, goes) in enumerate(cases) if goes}
