"""Providers: who makes and ends machines. A new one is one file beside these, with a function `provider`.

The file's name is the provider's; `protocol` says what the function gets and returns. A line `DEFAULT_CATALOG = "kwok"`
names the catalogue that is used unless the command line asks for another one than `aws`.
"""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING

from karpool.wire.problems import InputError

if TYPE_CHECKING:
    from karpool.operator.providers.protocol import Provider, ProviderContext


def provider_names() -> tuple[str, ...]:
    """The providers that there are; none of them is loaded for that."""
    return tuple(sorted(one.name for one in iter_modules(__path__) if one.name != "protocol"))


def provider_maker(name: str) -> "Callable[[ProviderContext], Provider]":
    """The function that makes a provider."""
    module = _module(name)
    made: object = getattr(module, "provider", None)
    if not callable(made):
        raise InputError.at("--provider", f"{module.__name__} has no function `provider(ground: Ground) -> Provider`")
    return made


def default_catalog(name: str) -> str | None:
    """The catalogue of a provider that has one of its own."""
    return getattr(_module(name), "DEFAULT_CATALOG", None)


def _module(name: str) -> ModuleType:
    names = provider_names()
    if name not in names:
        raise InputError.at("--provider", f"there is no provider {name!r}; there are {', '.join(names)}")
    return import_module(f"{__name__}.{name}")
