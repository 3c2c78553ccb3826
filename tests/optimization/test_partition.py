"""Parts of fleets: nothing is lost, nothing is shared, and what is best for each is best for all."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from tests.optimization.tiny import Kind, Node, Pod, Tiny, tiny_fleets

from karpool.optimization.bound import lower_bound
from karpool.optimization.partition import parts_of
from karpool.optimization.problem import Lists, Pools

APART = ((1, 0), (0, 1))
"""Pods of signature 0 suit machines of shape 0 only, those of signature 1 machines of shape 1."""


def _tenants() -> Tiny:
    nodes = (Node(2.0, (1,), (0, 0)), Node(3.0, (1,), (1,), shape=1), Node(1.0, (0,), (2,)))
    return Tiny((Pod((2,)), Pod((3,), 1), Pod((1,))), nodes, (Kind(1.0, (4,)), Kind(0.5, (4,), 1)), APART)


def test_tenants_that_share_no_machine_are_parts() -> None:
    parts = parts_of(_tenants().problem())
    assert [part.groups.tolist() for part in parts] == [[0, 2], [1]]
    assert [part.nodes.tolist() for part in parts] == [[0, 2], [1]]
    assert [part.kinds.tolist() for part in parts] == [[0], [1]]
    assert parts[1].problem.nodes.pods.items.tolist() == [0]


def test_a_rule_about_hosts_joins_the_pods_that_count_in_it() -> None:
    problem = replace(_tenants(), caps={0: 1}).problem()
    assert len(parts_of(problem)) == 2
    both = Lists(np.array([0, 1, 2, 2]), np.array([0, 0], dtype=np.int32))
    assert len(parts_of(replace(problem, hosts=replace(problem.hosts, counts=both)))) == 1


def test_limits_of_a_pool_join_what_it_launches() -> None:
    problem = _tenants().problem()
    limited = Pools(problem.pools.allowance, np.array([[10.0]]))
    assert len(parts_of(replace(problem, pools=limited))) == 1


def test_nodes_that_concern_no_pod_come_with_the_first_part() -> None:
    fleet = _tenants()
    full = replace(fleet, nodes=(*fleet.nodes, Node(7.0, (0,), movable=False)))
    parts = parts_of(full.problem())
    assert parts[0].nodes.tolist() == [0, 2, 3]


@given(tiny_fleets())
def test_parts_have_every_group_and_node_once_and_their_bounds_add_up(fleet: Tiny) -> None:
    problem = fleet.problem()
    parts = parts_of(problem)
    assert sorted(np.concatenate([part.groups for part in parts]).tolist()) == list(range(len(fleet.groups)))
    assert sorted(np.concatenate([part.nodes for part in parts]).tolist()) == list(range(len(fleet.nodes)))
    kinds = np.concatenate([part.kinds for part in parts]).tolist()
    assert len(set(kinds)) == len(kinds)
    for part in parts:
        assert part.problem.nodes.price.tolist() == problem.nodes.price[part.nodes].tolist()
        pods = [part.groups[part.problem.nodes.pods.row(row)].tolist() for row in range(len(part.nodes))]
        assert pods == [problem.nodes.pods.row(node).tolist() for node in part.nodes.tolist()]
    together = sum(lower_bound(part.problem, branches=0).price for part in parts)
    assert together == pytest.approx(lower_bound(problem, branches=0).price, abs=1e-6)
