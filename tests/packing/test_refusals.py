"""A pod without a place is told why: one small cluster per rule."""

import numpy as np
import pytest
from tests.factories import (
    affinity_to,
    anti_affinity,
    incremental_types,
    instance_type,
    node_pool,
    pod,
)
from tests.packing.refusal_cases import BIG, N1, N2, TYPES, Case, explained, in_pool
from tests.packing.refusal_cases_nodes import NODE_CASES
from tests.packing.refusal_cases_pools import MIXED_CASES, POOL_CASES

from karpool.catalog.instance_types import Catalog
from karpool.cluster.snapshot import Snapshot
from karpool.model.labels import ZONE
from karpool.model.objects import Objects
from karpool.packing.engine import Engine
from karpool.packing.refusal_messages import NODES, Refusal, RefusalRule, sentence
from karpool.packing.refusals import refusals


@pytest.mark.parametrize("case", [*NODE_CASES, *POOL_CASES, *MIXED_CASES], ids=lambda case: case.name)
def test_a_pod_without_a_place_is_told_which_rule_refused_it(case: Case) -> None:
    refusals = case.ask()
    assert [(entry.count, entry.what, entry.rule) for entry in refusals] == list(case.expect)
    assert sentence(refusals) == case.says


def test_limits_that_this_run_used_up_are_named() -> None:
    wanted = [pod(f"web-{i}", cpu=3) for i in range(3)]
    objects = Objects(pods=tuple(wanted), node_pools=(node_pool(limits={"cpu": 8}),))
    engine = Engine(Snapshot(objects), Catalog((instance_type("small", 4, "16Gi"),)))
    (refusals,) = explained(engine, [pod.key for pod in wanted]).values()
    assert sentence(refusals) == "pool default: limit cpu 8 reached (0 left, the smallest type that fits has 4)"


def test_pods_that_moved_in_during_the_run_count() -> None:
    wanted = [pod(f"web-{i}", cpu=3) for i in range(2)]
    engine = Engine(Snapshot(Objects(pods=tuple(wanted), nodes=(N1,))), TYPES)
    (refusals,) = explained(engine, [pod.key for pod in wanted], existing_only=True).values()
    assert sentence(refusals) == "1 node: not enough cpu (3 wanted, at most 1 free)"


def test_rules_that_only_together_leave_no_zone_are_named_together() -> None:
    near, far = affinity_to({"app": "db"}, ZONE), anti_affinity({"app": "cache"}, ZONE)
    bound = [pod("db-1", node="n1"), pod("cache-1", node="n1")]
    case = in_pool(
        "",
        pod=pod(near=[near], anti=[far], cpu=10),
        pool=node_pool(),
        rule=RefusalRule.AFFINITY,
        says="",
        bound=bound,
        nodes=[N1],
    )
    assert case.ask()[-1] == Refusal(
        1, "pool default", RefusalRule.AFFINITY, "zone affinity and zone anti-affinity together leave no place"
    )


def test_a_long_sentence_counts_what_it_leaves_out() -> None:
    many = [Refusal(9 - i, NODES, RefusalRule.TAINT, f"taint {i}") for i in range(5)]
    pools = [Refusal(1, f"pool {i}", RefusalRule.TAINT, "taint") for i in range(3)]
    assert sentence([*many, *pools]) == (
        "9 nodes: taint 0; 8: taint 1; 7: taint 2; pool 0: taint; pool 1: taint; and 3 other reasons"
    )
    assert sentence([*many, pools[0], pools[0]]).endswith("pool 0: taint; pool 0: taint; and 2 other reasons")
    assert sentence(many[:1]) == "9 nodes: taint 0"
    assert sentence([]) == ""


def test_asking_why_changes_nothing() -> None:
    objects = Objects(pods=(BIG,), nodes=(N1, N2), node_pools=(node_pool(limits={"cpu": 1}),))
    engine = Engine(Snapshot(objects), incremental_types(3))
    rows = [engine.snapshot.pods.rows[BIG.key]]
    with engine.what_if() as trial:
        trial.place(rows)
        scratch = {"codes", "keys", "cap_row", "cap_most", "need_row", "need_boot", "pinned", "pin_group", "state"}
        before = {name: array.copy() for name, array in engine.memory.arrays.items() if name not in scratch}
        first = refusals(engine, rows[0])
        assert refusals(engine, rows[0]) == first
        assert all(np.array_equal(engine.memory[name], array) for name, array in before.items())
