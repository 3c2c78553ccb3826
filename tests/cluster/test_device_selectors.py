"""CEL over devices: what Kubernetes documents, and what cannot be evaluated."""

import sys

import pytest
from tests.factories.devices import DRIVER, device

from karpool.cluster.devices import selectors
from karpool.cluster.devices.selectors import SelectorError, device_value, matches

GPU = device_value(
    DRIVER,
    device(
        "gpu-0",
        attributes={"model": "a100", "index": 3, "nvlink": True, "driver": "v550.54.15-rc.1", "example.com/rack": "r1"},
        capacity={"memory": "80Gi", "cores": "0.5"},
    ),
)
OWN = f'device.attributes["{DRIVER}"]'
SIZE = f'device.capacity["{DRIVER}"]'


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        (f'device.driver == "{DRIVER}"', True),
        (f'{OWN}.model == "a100"', True),
        (f'{OWN}.model in ["h100", "b200"]', False),
        (f'{OWN}.model.startsWith("a") && {OWN}.model.matches("^a[0-9]+$")', True),
        (f"{OWN}.index >= 3 && {OWN}.nvlink", True),
        (f'{OWN}["model"].lowerAscii() == "a100"', True),
        # An attribute of another domain; a domain that the device knows nothing of is an empty map.
        ('device.attributes["example.com"].rack == "r1"', True),
        ('has(device.attributes["nobody.example.com"].rack)', False),
        ('"model" in device.attributes["nobody.example.com"]', False),
        # Values of different kinds are not equal.
        (f"{OWN}.model == 5", False),
        (f'{SIZE}.memory.compareTo(quantity("40Gi")) > 0', True),
        (f'{SIZE}.memory.isLessThan(quantity("80Gi"))', False),
        (f'{SIZE}.memory == quantity("81920Mi")', True),
        (f"{SIZE}.memory.asInteger() == 85899345920 && !{SIZE}.cores.isInteger()", True),
        (f"{SIZE}.cores.asApproximateFloat() == 0.5 && {SIZE}.cores.sign() == 1", True),
        ('isQuantity("1Gi") && !isQuantity("gigantic")', True),
        # A version before a release comes before it; numbers compare as numbers.
        (f'{OWN}.driver.isLessThan(semver("550.54.15"))', True),
        (f'{OWN}.driver.isGreaterThan(semver("550.54.9"))', True),
        (f'{OWN}.driver.compareTo(semver("550.54.15-rc.1")) == 0', True),
        (f"{OWN}.driver.major() == 550 && {OWN}.driver.minor() == 54 && {OWN}.driver.patch() == 15", True),
        ('isSemver("1.2.3") && !isSemver("1.2")', True),
        ("!device.allowMultipleAllocations", True),
        # What decides needs no look at the rest.
        (f'{OWN}.absent == "x" || true', True),
        (f'device.driver == "other" && {OWN}.absent == "x"', False),
    ],
)
def test_an_expression_is_true_or_false_of_a_device(expression: str, *, answer: bool) -> None:
    assert matches(expression, GPU) is answer


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (f"{OWN}.absent == 1", "KeyError"),
        (
            "device.driver ==",
            r"^cannot be evaluated: Failed to parse expression 'device.driver ==': Syntax error[^\n|]*$",
        ),
        ("", "Failed to parse"),
        (f"{OWN}.model", "neither true nor false"),
        ("cel.bind(x, 1, x == 1)", "x"),
        ('ip("10.0.0.1").family() == 4', "ip"),
        ('quantity("gigantic") == quantity("1")', "gigantic"),
        (f'{OWN}.model.compareTo(quantity("1")) == 0', "cannot be evaluated"),
        ("1 / 0 == 1", "division by zero"),
        ("device.driver.noSuchFunction()", "noSuchFunction"),
    ],
)
def test_what_cannot_be_evaluated_says_why(expression: str, why: str) -> None:
    with pytest.raises(SelectorError, match=why):
        matches(expression, GPU)


def test_without_the_library_nothing_matches_and_the_reason_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    selectors._compiled.cache_clear()
    monkeypatch.setitem(sys.modules, "cel", None)
    with pytest.raises(SelectorError, match=r"pip install 'karpool\[dra\]'"):
        matches("true", GPU)
    selectors._compiled.cache_clear()
