import pytest
from msgspec.structs import replace
from tests.factories import node_pool

from karpool.model.labels import NODEPOOL_HASH, NODEPOOL_HASH_VERSION
from karpool.model.nodepool import Disruption, NodeClassRef, NodePool
from karpool.provisioning.pool_hash import hash_annotations, pool_hash

BASE = node_pool(labels={"a": "1", "b": "2"}, taints=["x=1", "y=2"], startup_taints=["s"], expire_after="24h")


def with_template_annotation(pool: NodePool) -> NodePool:
    template = pool.spec.template
    metadata = replace(template.metadata, annotations={"note": "1"})
    return replace(pool, spec=replace(pool.spec, template=replace(template, metadata=metadata)))


@pytest.mark.parametrize(
    "other",
    [
        node_pool(labels={"a": "1"}, taints=["x=1", "y=2"], startup_taints=["s"], expire_after="24h"),
        node_pool(labels={"a": "1", "b": "2"}, taints=["x=1"], startup_taints=["s"], expire_after="24h"),
        node_pool(labels={"a": "1", "b": "2"}, taints=["x=1", "y=2"], expire_after="24h"),
        node_pool(labels={"a": "1", "b": "2"}, taints=["x=1", "y=2"], startup_taints=["s"], expire_after="25h"),
        node_pool(
            labels={"a": "1", "b": "2"},
            taints=["x=1", "y=2"],
            startup_taints=["s"],
            expire_after="24h",
            termination_grace_period="1h",
        ),
        node_pool(
            labels={"a": "1", "b": "2"},
            taints=["x=1", "y=2"],
            startup_taints=["s"],
            expire_after="24h",
            node_class=NodeClassRef("g", "K", "other"),
        ),
        with_template_annotation(BASE),
    ],
)
def test_what_nodes_get_from_the_template_changes_the_hash(other: NodePool) -> None:
    assert pool_hash(other) != pool_hash(BASE)


@pytest.mark.parametrize(
    "same",
    [
        node_pool(labels={"b": "2", "a": "1"}, taints=["y=2", "x=1"], startup_taints=["s"], expire_after="24h"),
        replace(BASE, spec=replace(BASE.spec, disruption=Disruption(), weight=9)),
        node_pool(
            "another",
            labels={"a": "1", "b": "2"},
            taints=["x=1", "y=2"],
            startup_taints=["s"],
            expire_after="24h",
            requirements=[("zone", "In", "z")],
            limits={"cpu": 5},
        ),
    ],
)
def test_order_requirements_and_policy_do_not_change_the_hash(same: NodePool) -> None:
    assert pool_hash(same) == pool_hash(BASE)


def test_our_own_pools_are_stamped_and_stamped_again_when_they_change() -> None:
    stamps = hash_annotations(BASE)
    assert stamps == {NODEPOOL_HASH: pool_hash(BASE), NODEPOOL_HASH_VERSION: "v3"}
    stamped = replace(BASE, metadata=replace(BASE.metadata, annotations=stamps))
    assert hash_annotations(stamped) == {}
    changed = with_template_annotation(stamped)
    assert hash_annotations(changed) == {NODEPOOL_HASH: pool_hash(changed)}


def test_another_tools_hash_is_never_touched() -> None:
    theirs = replace(BASE, metadata=replace(BASE.metadata, annotations={NODEPOOL_HASH: "1234567"}))
    assert hash_annotations(theirs) == {}
