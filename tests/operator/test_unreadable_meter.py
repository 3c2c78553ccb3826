from tests.factories import node, pod
from tests.factories.unreadable import unreadable

from karpool.controller.store import ClusterStore
from karpool.operator.meters.unreadable_meter import UnreadableMeter


def test_objects_that_cannot_be_read_are_counted_until_they_can_be_or_are_gone() -> None:
    store = ClusterStore()
    meter = UnreadableMeter(store)
    store.nodes.put(node("a"))
    store.pods.put(unreadable(pod("web-1", node="a")))
    store.pods.put(unreadable(pod("web-2", node="a")))
    store.pods.put(unreadable(pod("web-2", node="a"), spec__volumes="none"))
    store.nodes.put(unreadable(node("a")))
    assert meter.by_kind() == {"Pod": 2, "Node": 1}
    store.nodes.put(node("a"))
    store.pods.remove("default/web-1")
    store.pods.put(pod("web-2", node="a"))
    assert meter.by_kind() == {}
