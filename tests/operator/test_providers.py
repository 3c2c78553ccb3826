"""Providers: a file is all that a new one takes."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.factories import node_pool

from karpool.catalog.sources import open_catalog
from karpool.kube.credentials import FixedCredentials
from karpool.kube.target import Target
from karpool.operator import providers
from karpool.operator.operator import Operator
from karpool.operator.providers import default_catalog, provider_maker, provider_names
from karpool.operator.providers.kwok import KWOK_NODE_CLASSES
from karpool.operator.settings import RunSettings
from karpool.wire.problems import InputError

TYPES = open_catalog("kwok")
Drop = Callable[[str], None]
WHOLE = """
from karpool.operator.observed_catalog import ObservedCatalog
from karpool.operator.providers.protocol import Provider, ProviderContext
from karpool.kube.resources import EVENTS
from karpool.kube.store import Store

DEFAULT_CATALOG = "kwok"


def provider(context: ProviderContext) -> Provider:
    context.caches.watch(EVENTS, Store())
    offers = ObservedCatalog(context.caches.store, context.catalog_for)
    return Provider(offers=offers, execution=context.execution, node_class_ready=lambda pool: pool.name == "good")
"""


@pytest.fixture
def drop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Drop:
    """Put a file `mine.py` beside the other providers, for one test."""

    def put(text: str) -> None:
        (tmp_path / "mine.py").write_text(text)
        monkeypatch.setattr(providers, "__path__", [*providers.__path__, str(tmp_path)])
        # Set, so that what is imported meanwhile is forgotten with it.
        monkeypatch.setitem(sys.modules, "karpool.operator.providers.mine", None)
        del sys.modules["karpool.operator.providers.mine"]

    return put


def operator(name: str) -> Operator:
    target = Target(server="http://127.0.0.1:9", credentials=FixedCredentials())
    return Operator(RunSettings(provider=name), target, lambda _nodes, _claims: TYPES)


def test_there_are_two() -> None:
    assert provider_names() == ("karpenter", "kwok")
    assert (default_catalog("karpenter"), default_catalog("kwok")) == (None, "kwok")


def test_a_file_dropped_in_is_found_and_used(drop: Drop) -> None:
    drop(WHOLE)
    assert provider_names() == ("karpenter", "kwok", "mine")
    assert default_catalog("mine") == "kwok"
    made = operator("mine")
    assert made.provider.offers.catalog is TYPES
    assert "events" in made.caches.unsynced()
    assert [made.provider.node_class_ready(node_pool(name)) for name in ("good", "bad")] == [True, False]


def test_a_file_is_not_loaded_before_it_is_asked_for(drop: Drop) -> None:
    drop("raise RuntimeError")
    assert "mine" in provider_names()


@pytest.mark.parametrize("text", ["", "provider = 1\n"])
def test_a_file_without_the_function_is_named(text: str, drop: Drop) -> None:
    drop(text)
    with pytest.raises(InputError, match=r"providers\.mine has no function `provider"):
        provider_maker("mine")


@pytest.mark.parametrize("name", ["protocol", "nobody"])
def test_a_name_without_a_file_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(InputError, match=f"there is no provider '{name}'; there are karpenter, kwok"):
        provider_maker(name)


def test_kwok_follows_its_node_classes_and_karpenter_does_not() -> None:
    assert KWOK_NODE_CLASSES.plural in operator("kwok").caches.unsynced()
    beside = operator("karpenter")
    assert KWOK_NODE_CLASSES.plural not in beside.caches.unsynced()
    assert beside.provider.node_class_ready(node_pool()) is None


def test_a_kwok_pool_needs_its_node_class() -> None:
    assert operator("kwok").provider.node_class_ready(node_pool()) is False
