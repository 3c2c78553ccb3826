"""Every package that Karpool needs has a wheel for every machine and Python that it supports, as the index says."""

import itertools
import os
import re
import runpy
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from packaging import tags

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PYTHONS = ((3, 11), (3, 12), (3, 13), (3, 14))
MACHINES = (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "x86_64"), ("darwin", "arm64"))
# numba has stopped to build for them before it began to build for Python 3.14; docs/dependencies.md says so.
LACKING = {("llvmlite", "darwin x86_64 3.14"), ("numba", "darwin x86_64 3.14")}
INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")


def test_every_package_has_a_wheel_for_every_machine() -> None:
    needed = runpy.run_path(str(ROOT / "scripts" / "sbom"))["closure"]("karpool", ()) - {"karpool"}
    pinned = [pin for pin in pins() if pin[0] in needed]
    assert {name for name, *_ in pinned} == needed
    lacking = set()
    for name, versions in itertools.groupby(pinned, key=lambda pin: pin[0]):
        files = wheels(name)
        for _, version, marker, hashes in versions:
            offered = {tag for file, digest in files if digest in hashes for tag in tags_of(file, version)}
            for python, (system, processor) in itertools.product(PYTHONS, MACHINES):
                here = f"{system} {processor} {'.'.join(map(str, python))}"
                if applies(marker, python, system, processor) and not offered & accepted(python, system, processor):
                    lacking.add((name, here))
    assert lacking == LACKING


def pins() -> Iterator[tuple[str, str, str, set[str]]]:
    """Name, version, marker and hashes of what the lock file names, in its order."""
    text = (ROOT / "requirements.lock").read_text().replace("\\\n", " ")
    for line in text.splitlines():
        found = re.match(r"([\w.-]+)==([^\s;]+)(?: ; (.+?))?\s+--hash", line)
        assert found, line
        yield canonicalize_name(found[1]), found[2], found[3] or "", set(re.findall(r"sha256:(\w+)", line))


def applies(marker: str, python: tuple[int, int], system: str, processor: str) -> bool:
    version = ".".join(map(str, python))
    machine = {"python_version": version, "python_full_version": f"{version}.0", "platform_machine": processor}
    return not marker or Marker(marker).evaluate(machine | {"sys_platform": system})


def wheels(name: str) -> list[tuple[str, str]]:
    """File names and SHA-256 of a package at the index."""
    try:
        with urllib.request.urlopen(f"{INDEX}/{name}/", timeout=60) as page:  # noqa: S310 - the index of pip
            text = page.read().decode()
    except (urllib.error.URLError, TimeoutError) as error:
        pytest.skip(f"NOT TESTED: wheels of other machines. The index of packages does not answer: {error}")
    return [(file, digest) for file, digest in re.findall(r"([^/\"<>]+\.whl)#sha256=(\w+)", text)]


def tags_of(file: str, version: str) -> frozenset[tags.Tag]:
    try:
        _, its_version, _, found = parse_wheel_filename(file)
    except InvalidWheelFilename:  # of another time
        return frozenset()
    return found if str(its_version) == version else frozenset()


def accepted(python: tuple[int, int], system: str, processor: str) -> set[tags.Tag]:
    """What pip would install on a machine with glibc 2.28, as of Debian 10, or macOS 13."""
    if system == "linux":
        platforms = [f"manylinux_2_{minor}_{processor}" for minor in range(28, 4, -1)]
        platforms += [f"manylinux{year}_{processor}" for year in ("2014", "2010", "1")]
    else:
        platforms = list(tags.mac_platforms((13, 0), processor))
    interpreter = f"cp{python[0]}{python[1]}"
    return {*tags.cpython_tags(python, platforms=platforms), *tags.compatible_tags(python, interpreter, platforms)}
