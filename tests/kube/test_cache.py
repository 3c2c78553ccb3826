"""Caches: events of a watch and responses to own writes, in any order."""

from karpool.kube.cache import CacheFeed, ChangeQueue
from karpool.kube.store import Store, Versions
from karpool.model.node import Node
from karpool.wire.objects import Metadata


def node(name: str, version: int, *, uid: str = "", **metadata: object) -> Node:
    return Node(metadata=Metadata(name=name, uid=uid or f"uid-{name}", resource_version=str(version), **metadata))  # type: ignore[arg-type]


class Cached:
    def __init__(self) -> None:
        self.changes = ChangeQueue()
        self.store: Store[Node] = Store(Versions())
        self.kept = CacheFeed(self.store, self.changes)

    def versions(self) -> dict[str, str]:
        """What is cached, after everything that arrived was taken in."""
        self.changes.apply()
        return {node.name: node.metadata.resource_version for node in self.store}


def test_changes_wait_until_they_are_applied() -> None:
    cached = Cached()
    cached.kept.put(node("a", 1))
    assert len(cached.store) == 0
    assert cached.versions() == {"a": "1"}


def test_an_older_state_than_the_answer_to_an_own_write_is_ignored() -> None:
    cached = Cached()
    cached.kept.put(node("a", 1))
    cached.kept.record_write(node("a", 5))
    cached.kept.put(node("a", 3))
    assert cached.versions() == {"a": "5"}


def test_an_own_write_to_an_object_that_has_gone_since_does_not_bring_it_back() -> None:
    cached = Cached()
    cached.kept.put(node("a", 1))
    cached.kept.remove(node("a", 7))
    cached.kept.record_write(node("a", 5))
    assert cached.versions() == {}


def test_an_own_creation_is_there_before_the_watch_tells_of_it() -> None:
    cached = Cached()
    cached.kept.put(node("a", 1))
    cached.kept.record_write(node("b", 9))
    assert cached.versions() == {"a": "1", "b": "9"}


def test_the_removal_of_an_older_object_of_the_same_name_leaves_the_new_one() -> None:
    cached = Cached()
    cached.kept.put(node("a", 9, uid="new"))
    cached.kept.remove(node("a", 8, uid="old"))
    assert cached.versions() == {"a": "9"}


def test_a_list_makes_up_deletions_that_nobody_told_of() -> None:
    cached = Cached()
    cached.kept.replace([node("a", 1), node("b", 2)], "2")
    cached.kept.replace([node("b", 2), node("c", 4)], "5")
    assert cached.versions() == {"b": "2", "c": "4"}


def test_a_list_that_is_older_than_an_own_creation_does_not_remove_it() -> None:
    cached = Cached()
    cached.kept.record_write(node("mine", 9))
    cached.kept.replace([node("a", 1)], "5")
    assert cached.versions() == {"a": "1", "mine": "9"}
    cached.kept.replace([node("a", 1)], "12")
    assert cached.versions() == {"a": "1"}


def test_the_answer_to_the_removal_of_the_last_finalizer_brings_nothing_back() -> None:
    cached = Cached()
    cached.kept.put(node("a", 1))
    cached.kept.remove(node("a", 2))
    from datetime import UTC, datetime

    cached.kept.record_write(node("a", 3, deletion_timestamp=datetime(2026, 11, 15, tzinfo=UTC)))
    assert cached.versions() == {}
