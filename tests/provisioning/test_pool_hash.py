from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.factories import node_pool

from karpool.live.resources import NODE_POOLS
from karpool.model.labels import NODEPOOL_HASH, NODEPOOL_HASH_VERSION
from karpool.model.nodepool import Disruption, NodeClassRef, NodePool
from karpool.provisioning.pool_hash import hash_annotations, pool_hash
from karpool.wire.objects import encode_value

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


CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
OTHER_CLASS = {"group": "g", "kind": "K", "name": "n"}
TAINTS = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "value": "c", "effect": "NoExecute"}]
STARTUP_TAINTS = [{"key": "s", "effect": "NoSchedule", "value": "é"}]


# What `NodePool.Hash()` of sigs.k8s.io/karpenter v1.15.0 says of these templates.
@pytest.mark.parametrize(
    ("spec", "metadata", "expected"),
    [
        ({"nodeClassRef": CLASS, "expireAfter": "720h"}, {}, "12745407319442031341"),
        ({"nodeClassRef": CLASS, "expireAfter": "Never"}, {}, "7428780003907761376"),
        ({"nodeClassRef": CLASS, "expireAfter": "0s"}, {}, "13546070544088512816"),
        (
            {"nodeClassRef": CLASS, "expireAfter": "1h30m10s", "terminationGracePeriod": "30s"},
            {},
            "2494718810002992054",
        ),
        ({"nodeClassRef": CLASS, "expireAfter": "720h", "terminationGracePeriod": "0s"}, {}, "16848824146983765585"),
        (
            {"nodeClassRef": CLASS, "expireAfter": "720h"},
            {"labels": {"team": "a", "tier": "web", "emp": ""}, "annotations": {"note": "x y"}},
            "10486745094530891549",
        ),
        (
            {"taints": TAINTS, "startupTaints": STARTUP_TAINTS, "nodeClassRef": OTHER_CLASS, "expireAfter": "720h"},
            {"labels": {"team": "a"}},
            "7510780968428802565",
        ),
        ({"taints": [TAINTS[0], TAINTS[0]], "expireAfter": "720h"}, {}, "2251796471377694400"),
        ({"taints": [], "expireAfter": "720h"}, {}, "2251796471377694400"),
        ({"expireAfter": "720h"}, {}, "14193706301438959238"),
        ({"expireAfter": "720h"}, {"labels": {}}, "17923232244478515236"),
        ({"expireAfter": "720h"}, {"labels": {}, "annotations": {}}, "11935815012535734840"),
        ({"expireAfter": "720h"}, {"labels": {"a": "b"}, "annotations": {}}, "10729397104545170561"),
    ],
)
def test_hashes_are_those_of_karpenter(spec: dict[str, Any], metadata: dict[str, Any], expected: str) -> None:
    written = {"metadata": {"name": "p"}, "spec": {"template": {"metadata": metadata, "spec": spec}}}
    pool = NODE_POOLS.read(msgspec.Raw(msgspec.json.encode(written)))
    assert isinstance(pool, NodePool)
    assert pool_hash(pool) == expected
    again = NODE_POOLS.read(msgspec.Raw(msgspec.json.encode(pool, enc_hook=encode_value)))
    assert isinstance(again, NodePool)
    assert pool_hash(again) == expected


def test_a_hash_of_another_version_is_replaced() -> None:
    theirs = replace(
        BASE, metadata=replace(BASE.metadata, annotations={NODEPOOL_HASH: "1", NODEPOOL_HASH_VERSION: "v2"})
    )
    assert hash_annotations(theirs) == {NODEPOOL_HASH: pool_hash(BASE), NODEPOOL_HASH_VERSION: "v3"}
