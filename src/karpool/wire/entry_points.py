"""Objects that installed packages offer under an entry point group, such as `karpool.providers`.

Nothing is imported before it is asked for by name, and whatever is wrong with an entry is one line for a person.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from karpool.wire.problems import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Plugin(NamedTuple):
    """An object of an installed package, and a description of it for messages."""

    value: Any
    description: str


def plugin_names(group: str) -> tuple[str, ...]:
    """The names in a group, without loading anything."""
    return tuple(sorted({entry.name for entry in _entries(group)}))


def load_plugin(group: str, name: str, option: str) -> Plugin | None:
    """Load the object with a name; None if there is none. `option` is named in errors."""
    entries = [entry for entry in _entries(group) if entry.name == name]
    if not entries:
        return None
    if len(entries) > 1:
        packages = " and ".join(sorted(_package(entry) for entry in entries))
        raise InputError.at(option, f"{name!r} is offered by {packages}; uninstall all but one")
    (entry,) = entries
    description = f"{name!r} of package {_package(entry)} ({entry.value})"
    try:
        return Plugin(entry.load(), description)
    except Exception as error:
        raise InputError.at(option, f"{description} cannot be loaded: {type(error).__name__}: {error}") from error


def _entries(group: str) -> "list[EntryPoint]":
    from importlib.metadata import entry_points

    # A package that is on the path twice is listed twice.
    return list({(_package(entry), entry.name, entry.value): entry for entry in entry_points(group=group)}.values())


def _package(entry: "EntryPoint") -> str:
    return "?" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
