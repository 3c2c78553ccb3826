"""Who would move from nodes, kept in one array, is what was written for each node last."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from karpool.cluster.arrays import Array
from karpool.packing.candidate_pods import CandidatePods, CandidateSets


def read(sets: CandidateSets, number: int) -> tuple[list[int], list[int], list[int], float]:
    """The nodes, pods and flags of one set, and what a new node may cost."""
    first, count = int(sets.pod_start[number]), int(sets.pod_count[number])
    nodes = sets.nodes[sets.node_start[number] : sets.node_start[number + 1]].tolist()
    pods, flags = (column[first : first + count].tolist() for column in (sets.pods, sets.flags))
    return nodes, pods, flags, float(sets.below[number])


def by_number(pods: Array) -> Array:
    """The order of pods in these tests: the largest number first."""
    return np.argsort(-pods)


@given(st.randoms(use_true_random=False))
def test_nodes_are_read_as_they_were_written_last(chance: Random) -> None:
    candidate_pods = CandidatePods()
    held: dict[int, tuple[list[int], list[int], float]] = {}
    for _ in range(chance.randint(1, 60)):
        node, count = chance.randrange(20), chance.choice([0, 1, 5, 16, 17, 40])
        pods = sorted(chance.sample(range(1000 * node, 1000 * node + 100), count), reverse=True)
        held[node] = (pods, [pod % 4 for pod in pods], chance.random())
        candidate_pods.put(node, np.array(pods, dtype=np.int32), held[node][1], held[node][2])
    nodes = chance.sample(sorted(held), len(held))
    alone = candidate_pods.alone(nodes)
    assert [read(alone, at) for at in range(len(nodes))] == [([node], *held[node]) for node in nodes]

    lengths = sorted({chance.randint(1, len(nodes)) for _ in range(3)}, reverse=True)
    below = [float(length) for length in lengths]
    together = candidate_pods.prefixes(nodes, lengths, below, by_number)
    for at, length in enumerate(lengths):
        pods = sorted((pod for node in nodes[:length] for pod in held[node][0]), reverse=True)
        assert read(together, at) == (nodes[:length], pods, [pod % 4 for pod in pods], below[at])
