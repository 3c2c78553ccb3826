"""The simulation's page as a browser shows it. Needs Debian's chromium; nothing is downloaded."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, expect

from karpool.cli.main import cli

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PHONE = 640
CUT = """() => [...document.querySelectorAll('figure text')].filter(text => {
  const box = text.getBoundingClientRect(), frame = text.ownerSVGElement.getBoundingClientRect();
  return box.left < frame.left - .5 || box.right > frame.right + .5;
}).map(text => text.textContent)"""
"""Labels of plots that reach beyond their plot."""

SCENARIO = """
name: "small <img src=x onerror=alert(1)>"
pools: [{metadata: {name: general}, spec: {disruption: {consolidateAfter: 30s}}}]
workloads: [{name: web, cpu: 900m, memory: 1Gi, replicas: {hours: [{at: "00:00", value: 12}, {at: "01:00", value: 3}]}}]
length: 2h
policies: {"<b>nothing</b>": {disruption: false}, karpool: {decisions: {search: prefix}}}
"""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    (folder / "small.yaml").write_text(SCENARIO)
    result = CliRunner().invoke(cli, ["simulate", str(folder / "small.yaml"), "--output", "html"])
    assert result.exit_code == 0, result.stderr
    (folder / "page.html").write_text(result.stdout, encoding="utf-8")
    return folder / "page.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_the_page_fits_and_shows_values_under_the_pointer(
    browser: Browser, page_file: Path, size: tuple[int, int], scheme: str
) -> None:
    width, height = size
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
    )
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    page.goto(page_file.as_uri())
    expect(page.locator("figure svg")).to_have_count(6)
    expect(page.locator(".totals .card")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CUT) == []
    table = page.locator(".numbers")
    assert table.evaluate("place => place.scrollWidth <= place.clientWidth")
    if width < PHONE:
        named = table.locator("tbody td").first.evaluate("cell => getComputedStyle(cell, '::before').content")
        assert named == '"<b>nothing</b>"'
    page.locator("figure svg").first.hover()
    expect(page.locator("#tip")).to_contain_text("<b>nothing</b>")
    assert faults == []
    page.close()
