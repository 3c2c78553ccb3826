"""Providers: who starts and terminates instances.

A provider is a module with a function `provider(context: ProviderContext) -> Provider` (see `protocol`) and, if it has
a catalogue of its own, a line `DEFAULT_CATALOG = "kwok"`. The built-in ones are the modules beside this one. Any
installed package can add others: an entry point in the group `karpool.providers` names such a module, or the function.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Final

from karpool.wire.entry_points import Plugin, load_plugin, plugin_names
from karpool.wire.problems import InputError, suggestion

if TYPE_CHECKING:
    from karpool.operator.providers.protocol import Provider, ProviderContext

GROUP: Final = "karpool.providers"
OPTION: Final = "--provider"


def provider_names() -> tuple[str, ...]:
    """The providers that there are; none of them is loaded."""
    return tuple(sorted({*_built_in(), *plugin_names(GROUP)}))


def provider_maker(name: str) -> "Callable[[ProviderContext], Provider]":
    plugin = _load(name)
    function: Any = getattr(plugin.value, "provider", plugin.value)
    if not callable(function):
        raise InputError.at(OPTION, f"{plugin.description} has no function `provider(context) -> Provider`")
    return function  # type: ignore[no-any-return]


def default_catalog(name: str) -> str | None:
    loaded = _load(name).value
    module = sys.modules.get(getattr(loaded, "__module__", ""), loaded)
    return getattr(module, "DEFAULT_CATALOG", None)


def _built_in() -> tuple[str, ...]:
    return tuple(module.name for module in iter_modules(__path__) if module.name != "protocol")


def _load(name: str) -> Plugin:
    if name in _built_in():
        return Plugin(import_module(f"{__name__}.{name}"), f"the built-in provider {name!r}")
    plugin = load_plugin(GROUP, name, OPTION)
    if plugin is None:
        names = provider_names()
        hint = suggestion(name, names)
        raise InputError.at(OPTION, f"there is no provider {name!r}; there are {', '.join(names)}{hint}")
    return plugin
