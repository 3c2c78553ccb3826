"""What all clouds have in common when they are asked: what to ask for, how to report, and how to fail."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from karpool.wire.problems import InputError

Report = Callable[[str, int, int | None], None]
"""Takes what is being done, how many steps are done, and how many there are, if known."""
_LONGEST: Final = 300


class FetchError(ConnectionError):
    """A cloud does not answer, or with something that is not an answer; the text is one line for a person."""


@dataclass(frozen=True, slots=True)
class AskedRegions:
    """The regions to ask for, and where to ask; the account's own region and the cloud's own address by default."""

    regions: tuple[str, ...]
    now: datetime
    endpoint: str | None = None
    project: str | None = None

    @property
    def day(self) -> str:
        return self.now.date().isoformat()


def missing_extra(cloud: str) -> InputError:
    """A library that is an optional extra is not there."""
    return InputError.at("--cloud", f"{cloud} needs an extra that is not installed: pip install 'karpool[{cloud}]'")


def short(message: object) -> str:
    return " ".join(str(message).split())[:_LONGEST]


def at(entry: Any, *path: str | int) -> Any:
    """What is at a path of an answer; None where something on the way is missing or of another kind."""
    for step in path:
        if isinstance(step, int):
            entry = entry[step] if isinstance(entry, list) and len(entry) > step else None
        else:
            entry = entry.get(step) if isinstance(entry, dict) else None
    return entry


def row(**facts: object) -> dict[str, str]:
    """A row of a table of machines, without what is not known."""
    return {key: _text(value) for key, value in facts.items() if value not in (None, "")}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def only(prices: Iterable[float]) -> float | None:
    """The price on which all agree; None if there is none, or if they contradict each other."""
    found = set(prices)
    return found.pop() if len(found) == 1 else None


def positive(value: object) -> float | None:
    """A price as an answer writes it; nothing costs nothing, so that zero is a price that nobody knows."""
    try:
        price = float(value) if isinstance(value, (int, float, str)) else 0.0
    except ValueError:
        return None
    return price if 0 < price < float("inf") else None
