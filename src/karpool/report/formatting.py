"""Numbers as people read them, with units and `?` for what is not known; and reasons as sentences."""

from collections.abc import Iterable, Sequence
from typing import Final

from karpool.model.reasons import Reason
from karpool.wire.quantity import Quantity

UNKNOWN: Final = "?"
HOURS_PER_MONTH: Final = 730
_NAMES_SHOWN: Final = 3
_KIBI: Final = 1024
_BINARY: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def amount(price: float | None) -> str:
    """A price without its unit: cents from one dollar on, up to four decimals below."""
    if price is None:
        return UNKNOWN
    if abs(price) >= 1:
        return f"{price:,.2f}"
    text = f"{price:.4f}"
    shortest = len("0.00") + (price < 0)
    while len(text) > shortest and text.endswith("0"):
        text = text[:-1]
    return text


def amounts(prices: Iterable[float | None]) -> list[str]:
    """The prices of one column, all with as many decimals as one of them needs."""
    listed = list(prices)
    decimals = max((len(amount(price).partition(".")[2]) for price in listed), default=0)
    return [UNKNOWN if price is None else f"{price:,.{decimals}f}" for price in listed]


def evenly(values: Iterable[float], decimals: int) -> list[str]:
    """The numbers of one column, all with as many decimals as one of them needs, but no more than so many."""
    listed = list(values)
    shown = max((len(f"{value:.{decimals}f}".rstrip("0").partition(".")[2]) for value in listed), default=0)
    return [f"{value:,.{shown}f}" for value in listed]


def gibibytes(quantities: Iterable[Quantity]) -> list[str]:
    """The amounts of memory of one column."""
    return [f"{text} GiB" for text in evenly((quantity.units / _KIBI**3 for quantity in quantities), 2)]


def per_hour(price: float | None) -> str:
    return f"{amount(price)} $/h"


def per_month(price: float | None) -> str:
    """The same price for a month of 730 hours."""
    return f"{UNKNOWN if price is None else f'{price * HOURS_PER_MONTH:,.0f}'} $/month"


def percent(value: float | None) -> str:
    """A percentage that is already times a hundred."""
    return f"{UNKNOWN if value is None else f'{value:.1f}'} %"


def ratio(value: float | None, digits: int = 0) -> str:
    return UNKNOWN if value is None else f"{value:.{digits}%}"


def count(number: int, noun: str) -> str:
    """`1 node`, `1,200 nodes`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def names_of(names: Sequence[str]) -> str:
    """All names when they are few, else the first ones and how many more."""
    if len(names) <= _NAMES_SHOWN + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMES_SHOWN])} and {len(names) - _NAMES_SHOWN:,} more"


def joined(parts: Sequence[str]) -> str:
    """Parts of a sentence: `a, b and c`."""
    *most, last = parts or [""]
    return f"{', '.join(most)} and {last}" if most else last


def age(seconds: float | None) -> str:
    """An age in its two largest units: `3d 4h`."""
    if seconds is None:
        return UNKNOWN
    days, rest = divmod(int(seconds), 86400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    parts = [f"{value}{unit}" for value, unit in ((days, "d"), (hours, "h"), (minutes, "m"), (left, "s")) if value]
    return " ".join(parts[:2]) or "0s"


def resource(name: str, quantity: Quantity) -> str:
    """An amount of a resource: cores for cpu, binary units for memory and storage, a number for the rest."""
    if name == "cpu":
        return f"{quantity.nano / 1e9:.4g} cores"
    if name == "memory" or name.endswith("storage") or name.startswith("hugepages-"):
        return _bytes(quantity.units)
    return f"{quantity.units:,}"


def _bytes(value: float) -> str:
    unit = 0
    while abs(value) >= _KIBI and unit < len(_BINARY) - 1:
        value, unit = value / _KIBI, unit + 1
    return f"{value:.4g} {_BINARY[unit]}"


def sentence(reason: Reason, node: str = "") -> str:
    """The reason's message, led by the object it is about unless that is the node, named already or the cluster."""
    kind, _, name = reason.object.rpartition(" ")
    named = not kind or name in reason.message or reason.object == f"Node {node}"
    return reason.message if named else f"{reason.object}: {reason.message}"
