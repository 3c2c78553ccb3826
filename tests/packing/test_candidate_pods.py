"""The pods that would move from nodes, all in one array, are what was written for each node last."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpool.cluster.arrays import Array
from karpool.packing.candidate_pods import CandidatePods, CandidateSets

Written = dict[int, tuple[list[int], list[int], float]]


def read(sets: CandidateSets, number: int) -> tuple[list[int], list[int], list[int], int, float]:
    """The nodes, pods and flags of one set, how many new nodes may replace it, and what they may cost."""
    first, count = int(sets.pod_start[number]), int(sets.pod_count[number])
    nodes = sets.nodes[sets.node_start[number] : sets.node_start[number + 1]].tolist()
    pods, flags = (column[first : first + count].tolist() for column in (sets.pods, sets.flags))
    return nodes, pods, flags, int(sets.most_new_nodes[number]), float(sets.below[number])


def by_number(pods: Array) -> Array:
    """The order of pods in these tests: the largest number first."""
    return np.argsort(-pods)


def written(chance: Random) -> tuple[CandidatePods, Written]:
    """Nodes that were written in any order, some of them several times."""
    candidate_pods = CandidatePods()
    by_node: Written = {}
    for _ in range(chance.randint(1, 60)):
        node, count = chance.randrange(20), chance.choice([0, 1, 5, 16, 17, 40])
        pods = sorted(chance.sample(range(1000 * node, 1000 * node + 100), count), reverse=True)
        by_node[node] = (pods, [pod % 4 for pod in pods], chance.random())
        candidate_pods.put(node, np.array(pods, dtype=np.int32), by_node[node][1], by_node[node][2])
    return candidate_pods, by_node


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
def test_nodes_are_read_as_they_were_written_last(chance: Random) -> None:
    candidate_pods, by_node = written(chance)
    nodes = chance.sample(sorted(by_node), len(by_node))
    alone = candidate_pods.alone(nodes)
    for number, node in enumerate(nodes):
        pods, flags, below = by_node[node]
        assert read(alone, number) == ([node], pods, flags, 1, below)


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
def test_sets_contain_the_pods_of_all_their_nodes_in_order(chance: Random) -> None:
    candidate_pods, by_node = written(chance)
    groups = [chance.sample(sorted(by_node), chance.randint(0, len(by_node))) for _ in range(chance.randint(0, 5))]
    below, most = [chance.random() for _ in groups], [chance.randint(1, 4) for _ in groups]
    sets = candidate_pods.sets(groups, below, most, by_number)
    for number, group in enumerate(groups):
        pods = sorted((pod for node in group for pod in by_node[node][0]), reverse=True)
        assert read(sets, number) == (group, pods, [pod % 4 for pod in pods], most[number], below[number])
