"""Kubernetes quantities, exactly: `100m`, `1.5Gi`, `12e6` as whole numbers of billionths."""

import re
from functools import lru_cache
from typing import Final

NANO: Final = 10**9
_PATTERN: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]{1,3}))?"
)
_SUFFIXES: Final = {
    "": NANO,
    "n": 1,
    "u": 10**3,
    "m": 10**6,
    **{letter: NANO * 1000**power for power, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": NANO * 1024**power for power, letter in enumerate("KMGTPE", start=1)},
}
_LARGEST: Final = (2**63 - 1) * NANO
_LONGEST: Final = 100


class Quantity:
    """An exact amount of a resource; immutable, ordered, hashable."""

    __slots__ = ("nano",)
    nano: int

    def __init__(self, nano: int) -> None:
        object.__setattr__(self, "nano", nano)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name}")

    def __reduce__(self) -> tuple[type["Quantity"], tuple[int]]:
        return Quantity, (self.nano,)

    @property
    def milli(self) -> int:
        """Thousandths, rounded up as Kubernetes does."""
        return -(-self.nano // 10**6)

    @property
    def units(self) -> int:
        """Whole units, rounded up as Kubernetes does."""
        return -(-self.nano // NANO)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __lt__(self, other: "Quantity") -> bool:
        return self.nano < other.nano

    def __le__(self, other: "Quantity") -> bool:
        return self.nano <= other.nano

    def __add__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nano + other.nano)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nano - other.nano)

    def __hash__(self) -> int:
        return hash(self.nano)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __str__(self) -> str:
        for suffix in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki", "", "m", "u"):
            if self.nano and self.nano % _SUFFIXES[suffix] == 0:
                return f"{self.nano // _SUFFIXES[suffix]}{suffix}"
        return f"{self.nano}n" if self.nano else "0"


ZERO: Final = Quantity(0)


def parse_quantity(text: str | float) -> Quantity:
    """Read a quantity of any suffix; numbers as YAML and JSON give them are taken as written."""
    return _parse(text if isinstance(text, str) else repr(text))


@lru_cache(maxsize=65536)
def _parse(text: str) -> Quantity:
    match = _PATTERN.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None or not (match["whole"] or match["fraction"]):
        message = f"{text[:40]!r} is not a quantity; write a number with an optional suffix, such as 500m, 1.5 or 2Gi"
        raise ValueError(message)
    whole, fraction = match["whole"] or "0", match["fraction"] or ""
    digits = int(whole + fraction)
    exponent = int(match["exponent"] or 0) - len(fraction)
    scaled = digits * _SUFFIXES[match["suffix"] or ""]
    nano = scaled * 10**exponent if exponent >= 0 else -(-scaled // 10**-exponent)
    if nano > _LARGEST:
        raise ValueError(f"{text[:40]!r} is larger than any quantity may be (2^63 - 1)")
    return Quantity(-nano if match["sign"] == "-" else nano)
