"""Pods of a live cluster get the scheduler's constraints, in whatever order objects come."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.model.test_default_spread import DEFAULTS, owned, replica_set, service

from karpool.kube.cache import CacheFeed
from karpool.kube.client import Client
from karpool.kube.credentials import FixedCredentials
from karpool.kube.resources import Resource
from karpool.kube.store import Store
from karpool.kube.target import Target
from karpool.live.caches import ClusterCaches
from karpool.live.default_spread import LiveDefaultSpread
from karpool.model.pod import Pod
from karpool.model.selectors import LabelSelector, SelectorExpression

OWN = SelectorExpression("app", "In", ("web",))


class Feeds(ClusterCaches):
    """Caches that nothing but the test fills."""

    def __init__(self) -> None:
        self.stores: dict[str, Store[Any]] = {}
        super().__init__(
            Client(Target(server="https://127.0.0.1:1", credentials=FixedCredentials())), lambda _plural: None
        )
        self.spread = LiveDefaultSpread(self, DEFAULTS)

    def watch(self, resource: Resource[Any], store: Store[Any], **options: str) -> CacheFeed[Any]:
        self.stores[resource.kind] = store
        return super().watch(resource, store, **options)

    @property
    def selectors(self) -> list[LabelSelector | None]:
        """Whom the constraints of the pod select."""
        found = self.store.pods.get("default/web-1")
        assert found is not None
        return [constraint.label_selector for constraint in found.spec.topology_spread_constraints]


@pytest.fixture
def feeds() -> Feeds:
    return Feeds()


def versioned(pod: Pod, version: str) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, resource_version=version))


@pytest.mark.parametrize("order", [("pod", "owner"), ("owner", "pod")])
def test_it_does_not_matter_whether_the_pod_or_its_controller_comes_first(feeds: Feeds, order: tuple[str, str]) -> None:
    for what in order:
        if what == "pod":
            feeds.store.pods.put(owned("ReplicaSet"))
        else:
            feeds.stores["ReplicaSet"].put(replica_set())
    assert feeds.selectors == [LabelSelector({}, (OWN,))] * 2


def test_a_service_that_comes_changes_and_goes_changes_what_pods_select(feeds: Feeds) -> None:
    services = feeds.stores["Service"]
    feeds.store.pods.put(owned(None))
    assert feeds.selectors == []
    services.put(service("a", {"app": "web"}))
    assert feeds.selectors == [LabelSelector({"app": "web"})] * 2
    services.put(service("a", {"tier": "front"}))
    assert feeds.selectors == [LabelSelector({"tier": "front"})] * 2
    services.put(service("a", {"tier": "back"}))
    assert feeds.selectors == []
    services.put(service("a", {"app": "web"}))
    services.remove("default/a")
    assert feeds.selectors == []


def test_a_pod_that_changes_is_spread_anew(feeds: Feeds) -> None:
    feeds.stores["Service"].put(service("a", {"app": "web"}))
    feeds.store.pods.put(versioned(owned(None), "1"))
    feeds.store.pods.put(versioned(owned(None, labels={"app": "other"}), "2"))
    assert feeds.selectors == []


def test_a_pod_is_put_again_only_if_its_constraints_change(feeds: Feeds) -> None:
    feeds.stores["ReplicaSet"].put(replica_set())
    feeds.store.pods.put(owned("ReplicaSet"))
    changes: list[object] = []
    feeds.store.pods.watch(lambda old, new: changes.append((old, new)))
    feeds.stores["ReplicaSet"].put(replace(replica_set(), spec=replace(replica_set().spec, replicas=3)))
    feeds.stores["Service"].put(service("a", {"app": "other"}))
    assert changes == []


def test_a_constraint_of_its_own_survives_a_service_that_goes(feeds: Feeds) -> None:
    own = DEFAULTS[:1]
    one = owned(None)
    feeds.store.pods.put(replace(one, spec=replace(one.spec, topology_spread_constraints=own)))
    feeds.stores["Service"].put(service("a", {"app": "web"}))
    feeds.stores["Service"].remove("default/a")
    assert feeds.selectors == [None]
