"""CEL expressions over devices, with the functions that Kubernetes adds for quantities and versions.

The library that evaluates them is optional. What cannot be evaluated matches nothing and says why: a device that
nobody can judge is not to be had.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from karpool.model.devices import Device, DeviceAttribute
from karpool.wire.problems import one_line
from karpool.wire.quantity import NANO, Quantity, parse_quantity

# Kubernetes answers with an empty map for every domain that is asked for.
_DOMAINS: Final = re.compile(r"""\.(?:attributes|capacity)\s*\[\s*(["'])([^"'\\]+)\1\s*\]""")
_VERSION: Final = re.compile(
    r"(?P<major>0|[1-9]\d*)\.(?P<minor>0|[1-9]\d*)\.(?P<patch>0|[1-9]\d*)"
    r"(?:-(?P<pre>[0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?"
)
_POSITION: Final = re.compile(r"ERROR: <input>:\d+:\d+: ")
_LONGEST: Final = 200
"""How much is told of an error, whose expression may be long."""
_QUANTITY: Final = "quantity"
_SEMVER: Final = "semver"
_INSTALL: Final = "selectors of devices need the package common-expression-language: pip install 'karpool[dra]'"


class SelectorError(ValueError):
    """An expression that cannot be evaluated."""


def device_value(driver: str, device: Device) -> dict[str, Any]:
    """A device as expressions see it."""
    attributes: dict[str, dict[str, Any]] = {driver: {}}
    for name, attribute in device.attributes.items():
        domain, local = _qualified(name, driver)
        value = _attribute(attribute)
        if value is not None:
            attributes.setdefault(domain, {})[local] = value
    capacity: dict[str, dict[str, Any]] = {driver: {}}
    for name, amount in device.capacity.items():
        domain, local = _qualified(name, driver)
        capacity.setdefault(domain, {})[local] = _as_quantity(amount.value)
    return {
        "driver": driver,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": device.allow_multiple_allocations,
    }


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, local = name.rpartition("/")
    return (domain, local) if slash else (driver, name)


def _attribute(attribute: DeviceAttribute) -> Any:
    """The value of an attribute; None for a kind that is not known."""
    if attribute.version is not None:
        return {_SEMVER: attribute.version}
    return next((v for v in (attribute.string, attribute.integer, attribute.boolean) if v is not None), None)


def matches(expression: str, device: Mapping[str, Any]) -> bool:
    """Whether an expression is true of a device; raises SelectorError if that cannot be said."""
    program = _compiled(expression)
    if isinstance(program, str):
        raise SelectorError(program)
    device = dict(device)
    for kind in ("attributes", "capacity"):
        device[kind] = {**{domain: {} for domain in _domains(expression)}, **device[kind]}
    answer = _guarded(lambda: program(device))
    if not isinstance(answer, bool):
        raise SelectorError(f"is neither true nor false: {one_line(expression)}")
    return answer


@cache
def _domains(expression: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match[1] for match in _DOMAINS.findall(expression)))


@cache
def _compiled(expression: str) -> Callable[[Mapping[str, Any]], Any] | str:
    """What evaluates an expression, or why nothing can."""
    try:
        import cel
    except ImportError:
        return _INSTALL
    try:
        program = _guarded(lambda: cel.compile(expression))
    except SelectorError as error:
        return str(error)

    def evaluate(device: Mapping[str, Any]) -> Any:
        return program.execute(cel.Context(variables={"device": device}, functions=_FUNCTIONS))

    return evaluate


def _guarded(step: Callable[[], Any]) -> Any:
    """Call the library; whatever goes wrong in it is an expression that cannot be evaluated."""
    try:
        return step()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the library is no Exception
        raise SelectorError(f"cannot be evaluated: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    """What the library says first; it goes on with pictures of where that is, each on lines of its own."""
    # A syntax error speaks for itself; of others the message may be no more than a name.
    text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    first = _POSITION.sub("", text.strip()).partition("\n")[0]
    return one_line(first if len(first) <= _LONGEST else f"{first[:_LONGEST]}...")


# -- functions ----------------------------------------------------------------------------------------------------
# The library has no types of ours: a quantity or a version is a map with one entry, equal if what it says is equal.


def _as_quantity(amount: Quantity) -> dict[str, str]:
    return {_QUANTITY: str(amount.nano)}


def _quantity(text: str) -> dict[str, str]:
    return _as_quantity(parse_quantity(text))


def _nano(value: Mapping[str, str]) -> int:
    return int(value[_QUANTITY])


def _semver(text: str) -> dict[str, str]:
    _version(text)
    return {_SEMVER: text}


def _version(text: str) -> tuple[Any, ...]:
    """A version so that tuples compare as versions do: one before a release comes before it."""
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a version such as 1.2.3")
    numbers = tuple(int(match[part]) for part in ("major", "minor", "patch"))
    if match["pre"] is None:
        return (*numbers, 1, ())
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in match["pre"].split("."))
    return (*numbers, 0, parts)


def _compare(left: Mapping[str, str], right: Mapping[str, str]) -> int:
    if _SEMVER in left:
        first, second = _version(left[_SEMVER]), _version(right[_SEMVER])
        return (first > second) - (first < second)
    return (_nano(left) > _nano(right)) - (_nano(left) < _nano(right))


def _as_integer(value: Mapping[str, str]) -> int:
    whole, rest = divmod(_nano(value), NANO)
    if rest:
        raise ValueError("is not a whole number")
    return whole


def _is(kind: Callable[[str], Any], text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "quantity": _quantity,
    "isQuantity": lambda text: _is(_quantity, text),
    "semver": _semver,
    "isSemver": lambda text: _is(_semver, text),
    "compareTo": _compare,
    "isGreaterThan": lambda left, right: _compare(left, right) > 0,
    "isLessThan": lambda left, right: _compare(left, right) < 0,
    "major": lambda value: _version(value[_SEMVER])[0],
    "minor": lambda value: _version(value[_SEMVER])[1],
    "patch": lambda value: _version(value[_SEMVER])[2],
    "asInteger": _as_integer,
    "isInteger": lambda value: _nano(value) % NANO == 0,
    "asApproximateFloat": lambda value: _nano(value) / NANO,
    "sign": lambda value: (_nano(value) > 0) - (_nano(value) < 0),
    "lowerAscii": lambda text: text.lower() if text.isascii() else _only_ascii(text, str.lower),
    "upperAscii": lambda text: text.upper() if text.isascii() else _only_ascii(text, str.upper),
}


def _only_ascii(text: str, change: Callable[[str], str]) -> str:
    return "".join(change(letter) if letter.isascii() else letter for letter in text)
