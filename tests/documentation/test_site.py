"""The documentation as a site: built without a warning, every link leads somewhere, and it needs no network."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser
from tests.browser.conftest import browser  # noqa: F401 - a fixture
from tests.documentation.commands import ROOT

PLACES = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=\"?([^\" >]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="NOT TESTED: the documentation as a site; install requirements-docs.lock")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def in_menu(entries: object) -> Iterator[str]:
    if isinstance(entries, str):
        yield entries
    for entry in entries.values() if isinstance(entries, dict) else entries if isinstance(entries, list) else ():
        yield from in_menu(entry)


def test_every_page_is_in_the_menu_once() -> None:
    pages = sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))
    assert sorted(in_menu(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])) == pages


@pytest.mark.slow
def test_nothing_on_a_page_comes_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        assert [place for place in PLACES.findall(page.read_text()) if "//" in place] == [], page.name


@pytest.mark.slow
def test_every_link_between_pages_leads_to_a_file(site: Path) -> None:
    for page in site.rglob("*.html"):
        for link in re.findall(r"<a\b[^>]*\bhref=\"([^\"#?]+)", page.read_text()):
            if "//" not in link and page.name != "404.html":
                assert (page.parent / link).exists(), f"{page.name}: {link}"


@pytest.mark.slow
@pytest.mark.browser
def test_the_site_is_read_and_searched_from_the_disk(site: Path, browser: Browser) -> None:  # noqa: F811
    asked: list[str] = []
    page = browser.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "reference" / "reasons.html").as_uri())
    # Key by key, as a person types: one change before the page listens would be lost for good.
    page.get_by_role("textbox", name="Search").press_sequentially("SpotToSpotTooFewTypes", delay=50)
    page.locator(".md-search-result__item").first.wait_for(timeout=60_000)
    page.close()
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
