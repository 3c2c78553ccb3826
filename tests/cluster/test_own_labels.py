"""Labels of one's own that name pools: which one was meant, and which one a cluster seems to have."""

from typing import Any

import msgspec
import pytest
from tests.factories.clouds import node as plain_node

from karpool.cluster.own_labels import label_notice, likely_label
from karpool.model.node import Node
from karpool.wire.objects import decode_value


def nodes(*labels: dict[str, Any]) -> list[Node]:
    made = [plain_node(f"srv-{number}", own) for number, own in enumerate(labels)]
    return [msgspec.convert(manifest, Node, dec_hook=decode_value) for manifest in made]


TWO_POOLS = nodes({"acme.io/pool": "web"}, {"acme.io/pool": "web"}, {"acme.io/pool": "batch"})


def test_a_misspelt_label_is_told_with_the_one_that_was_meant() -> None:
    told = label_notice("acme.io/poool", TWO_POOLS)
    assert told == "--pool-label acme.io/poool: no node has it; did you mean acme.io/pool?"
    assert label_notice("team", TWO_POOLS) == "--pool-label team: no node has it"


@pytest.mark.parametrize("some", [TWO_POOLS, nodes({}, {"acme.io/pool": "web"})])
def test_a_label_that_some_node_has_is_right(some: list[Node]) -> None:
    assert label_notice("acme.io/pool", some) == ""


def test_without_nodes_no_label_is_wrong() -> None:
    assert label_notice("acme.io/pool", []) == ""


@pytest.mark.parametrize(
    ("some", "likely"),
    [
        (TWO_POOLS, "acme.io/pool"),
        (nodes({"workerGroup": "a"}, {"workerGroup": "a"}), "workerGroup"),
        (nodes({"acme.io/pool": "web"}, {}), ""),  # not all have it
        (nodes({"acme.io/pool": "a"}, {"acme.io/pool": "b"}), ""),  # each a value of its own
        (nodes(*[{"acme.io/pool": "a", "acme.io/node-group": "b"}] * 2), ""),  # which of them?
        (nodes(*[{"node.kubernetes.io/pool": "a"}] * 2), ""),  # not one's own
        (nodes(*[{"team": "a"}] * 2), ""),
        ([], ""),
    ],
)
def test_a_label_is_likely_if_it_is_the_only_one_that_names_pools_of_several_nodes(
    some: list[Node], likely: str
) -> None:
    assert likely_label(some) == likely
