"""Providers: two are built in, and any installed package may add others."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.factories import node_pool
from tests.installed_packages import install

from karpool.catalog.sources import open_catalog
from karpool.cli.main import cli
from karpool.disruption.settings import DisruptionSettings
from karpool.kube.credentials import FixedCredentials
from karpool.kube.target import Target
from karpool.operator.kwok_node_class import KWOK_NODE_CLASSES
from karpool.operator.operator import Operator
from karpool.operator.providers import GROUP, default_catalog, provider_maker, provider_names
from karpool.operator.providers.kwok import REPAIR_POLICIES
from karpool.operator.settings import RunSettings
from karpool.wire.objects import Condition
from karpool.wire.problems import InputError

TYPES = open_catalog("kwok")
Install = Callable[..., None]
WHOLE = """
from karpool.operator.observed_catalog import ObservedCatalog
from karpool.operator.providers.protocol import Provider, ProviderContext
from karpool.kube.resources import EVENTS
from karpool.kube.store import Store

DEFAULT_CATALOG = "kwok"


def provider(context: ProviderContext) -> Provider:
    context.caches.watch(EVENTS, Store())
    source = ObservedCatalog(context.caches.store, context.catalog_for)
    return Provider(catalog_source=source, node_class_ready=lambda pool: pool.name == "good")
"""


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Install:
    """Install a package `racks` with the provider `mine`: its module, or what follows the colon."""

    def put(code: str, entry: str = "racks") -> None:
        install(monkeypatch, tmp_path, "racks", code=code, group=GROUP, entries={"mine": entry})

    return put


def operator(name: str) -> Operator:
    target = Target(server="http://127.0.0.1:9", credentials=FixedCredentials())
    return Operator(RunSettings(provider=name), target, lambda _nodes, _claims, _pools: TYPES)


def test_there_are_two() -> None:
    assert provider_names() == ("karpenter", "kwok")
    assert (default_catalog("karpenter"), default_catalog("kwok")) == (None, "kwok")


@pytest.mark.parametrize("entry", ["racks", "racks:provider"])
def test_a_provider_of_an_installed_package_is_found_and_used(entry: str, installed: Install) -> None:
    installed(WHOLE, entry)
    assert provider_names() == ("karpenter", "kwok", "mine")
    assert default_catalog("mine") == "kwok"
    made = operator("mine")
    assert made.provider.catalog_source.catalog is TYPES
    assert "events" in made.caches.unsynced()
    assert [made.provider.node_class_ready(node_pool(name)) for name in ("good", "bad")] == [True, False]


def test_a_package_is_not_loaded_before_it_is_asked_for(installed: Install) -> None:
    installed("raise RuntimeError")
    assert "mine" in provider_names()


@pytest.mark.parametrize(
    ("code", "entry", "message"),
    [
        ("", "racks", "has no function `provider(context) -> Provider`"),
        ("provider = 1", "racks", "has no function `provider(context) -> Provider`"),
        ("provider = 1", "racks:provider", "has no function `provider(context) -> Provider`"),
        ("", "racks:provider", "cannot be loaded: AttributeError: module 'racks' has no attribute 'provider'"),
        ("import nowhere_at_all", "racks", "cannot be loaded: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("raise RuntimeError('no')", "racks", "cannot be loaded: RuntimeError: no"),
    ],
)
def test_a_broken_package_is_named_in_one_line(code: str, entry: str, message: str, installed: Install) -> None:
    installed(code, entry)
    with pytest.raises(InputError) as error:
        provider_maker("mine")
    assert str(error.value) == f"--provider: 'mine' of package racks 1.0 ({entry}) {message}"


@pytest.mark.parametrize("name", ["protocol", "nobody"])
def test_an_unknown_provider_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(InputError, match=f"there is no provider '{name}'; there are karpenter, kwok"):
        provider_maker(name)


def test_a_provider_that_was_probably_meant_is_named() -> None:
    result = CliRunner().invoke(cli, ["run", "--provider", "kwork"])
    assert result.exit_code == 2
    assert "--provider: there is no provider 'kwork'; there are karpenter, kwok; did you mean kwok?" in result.output


def test_kwok_follows_its_node_classes_and_karpenter_does_not() -> None:
    assert KWOK_NODE_CLASSES.plural in operator("kwok").caches.unsynced()
    beside = operator("karpenter")
    assert KWOK_NODE_CLASSES.plural not in beside.caches.unsynced()
    assert beside.provider.node_class_ready(node_pool()) is None


def test_a_kwok_pool_needs_its_node_class() -> None:
    ready = operator("kwok").provider.node_class_ready(node_pool())
    assert isinstance(ready, Condition)
    assert (ready.status, ready.reason) == ("False", "NodeClassNotFound")


def test_policies_that_reboot_are_refused_where_nobody_can() -> None:
    target = Target(server="https://nowhere.invalid", credentials=FixedCredentials())
    decisions = DisruptionSettings(repair=REPAIR_POLICIES)
    settings = RunSettings(provider="karpenter", decisions=decisions, own_repair_policies=True)
    with pytest.raises(InputError, match="the provider karpenter cannot reboot nodes"):
        Operator(settings, target, lambda _nodes, _claims, _pools: TYPES)
    Operator(replace(settings, provider="kwok"), target, lambda _nodes, _claims, _pools: TYPES)
