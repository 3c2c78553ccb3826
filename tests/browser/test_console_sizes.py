"""The console of clusters of many nodes, on a phone and on a wide screen, with the keyboard alone.

Needs Debian's chromium; nothing is downloaded.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, Page, expect
from tests.browser.looks import faults_of_looks
from tests.web.processes import console

from karpool.cli.main import cli
from karpool.live.snapshot_file import encode_snapshot
from karpool.wire.output_files import write_whole

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PATIENCE = 240_000
"""How long an answer may take on a machine that does other things, too, in milliseconds."""
WINDOWS = {"phone": (390, 844), "wide": (1920, 1080)}
MOST_TABS = 400
SCENARIO = """
name: morning
pools: [{metadata: {name: general}, spec: {disruption: {consolidateAfter: 30s}}}]
workloads:
- {name: web, cpu: 1500m, memory: 1Gi, replicas: {hours: [
    {at: "00:00", value: 20}, {at: "01:00", value: 60}, {at: "02:00", value: 10}]}}
length: 3h
policies: {karpool: {decisions: {search: prefix}}}
"""


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a controller of a simulation has done."""
    folder = tmp_path_factory.mktemp("journal")
    (folder / "morning.yaml").write_text(SCENARIO)
    written = folder / "decisions.jsonl"
    simulated = CliRunner().invoke(cli, ["simulate", str(folder / "morning.yaml"), "--journal", str(written)])
    assert simulated.exit_code == 0, simulated.stderr
    return written


@pytest.fixture
def shown(request: pytest.FixtureRequest, generated: Any, journal: Path, tmp_path: Path) -> Iterator[str]:
    """A console over a cluster of so many nodes."""
    write_whole(tmp_path / "cluster.json.zst", encode_snapshot(generated(request.param, 1).objects))
    with console("-f", tmp_path / "cluster.json.zst", "--catalog=sample", f"--journal={journal}") as address:
        yield address


class Keyboard:
    """Somebody who has no pointer."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def go_to(self, selector: str) -> None:
        """Press Tab until what is meant has the focus."""
        for _ in range(MOST_TABS):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("wanted => document.activeElement.matches(wanted)", selector):
                return
        raise AssertionError(f"Tab does not come to {selector}")

    def press(self, selector: str, *keys: str) -> None:
        self.go_to(selector)
        for key in keys or ("Enter",):
            self.page.keyboard.press(key)

    def view(self, key: str) -> None:
        self.press(f'.views a[href="#{key}"]')
        expect(self.page.locator(f'.views a[href="#{key}"]')).to_have_attribute("aria-current", "page")


def look_at_every_view(page: Page, size: int) -> None:
    """Open and use each view, and look whether anything is cut."""
    keys = Keyboard(page)
    sheet = page.locator("#sheet")

    def looks_well() -> None:
        assert faults_of_looks(page) == []

    looks_well()
    keys.press(".pool [role=listbox]", "ArrowRight", "ArrowRight", "Enter")
    expect(sheet.locator(".verdict")).to_be_visible()
    looks_well()
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    keys.press('input[aria-label^="Zoom"]', "End")
    keys.press(".pool [role=listbox]", "ArrowRight")
    expect(page.locator(".bar").first).to_be_visible()
    looks_well()

    keys.view("plan")
    expect(page.locator(".scrubber")).to_be_visible()
    keys.press('input[aria-label="Step of the plan"]', "ArrowRight")
    expect(page.locator(".where")).to_contain_text("After step 1 of")
    looks_well()

    keys.view("what-if")
    keys.press(".presets button")
    expect(page.locator(".outcome .words")).to_contain_text("lift the budgets")
    expect(page.locator(".outcome tbody tr").first).to_contain_text("$/h")
    looks_well()

    keys.view("blockers")
    expect(page.get_by_role("heading", name="What lifting each alone is worth")).to_be_visible()
    if size <= 300:
        expect(page.locator("#view .working")).to_have_count(0)
        expect(page.get_by_role("button", name="Save as CSV")).to_be_visible()
    looks_well()

    keys.view("costs")
    expect(page.locator("#view table.list tbody tr").last).to_contain_text("in total")
    looks_well()
    keys.press('.choice button[value="workload"]')
    expect(page.locator("#view table.list tbody tr").first).to_contain_text("Deployment")
    looks_well()

    keys.view("timeline")
    expect(page.locator("figure svg").first).to_be_visible()
    keys.press("#view table.list button.link")
    expect(page.locator(".moment h3")).to_contain_text("At 20")
    looks_well()


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    expect.set_options(timeout=PATIENCE)
    yield
    expect.set_options(timeout=5_000)


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(
    "shown",
    [30, *(pytest.param(size, marks=pytest.mark.long) for size in (300, 3000))],
    indirect=True,
    ids="{} nodes".format,
)
def test_every_view_of_a_large_cluster_can_be_read_and_used(
    browser: Browser, shown: str, window: str, request: pytest.FixtureRequest
) -> None:
    width, height = WINDOWS[window]
    page = browser.new_page(viewport={"width": width, "height": height})
    page.set_default_timeout(PATIENCE)
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(shown)
    expect(page.locator(".totals")).to_contain_text("The plan saves")
    look_at_every_view(page, request.node.callspec.params["shown"])
    assert faults == []
    page.close()


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("shown", [10_000], indirect=True, ids="{} nodes".format)
def test_the_fleet_of_a_very_large_cluster_can_be_searched_and_zoomed(browser: Browser, shown: str) -> None:
    """Without the answers of the engine, which take minutes there."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(PATIENCE)
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(shown)
    showing = page.locator(".showing")
    expect(showing).to_contain_text("10,000 nodes")
    expect(page.locator(".totals")).not_to_contain_text("still being read")
    page.get_by_role("searchbox").fill("pool:general zone:us-east-1a")
    expect(showing).to_contain_text("of 10,000 nodes")
    page.get_by_label("Zoom, from small cells to bars").fill("4")
    expect(page.locator(".bar").first).to_be_visible()
    assert page.locator(".bar").count() < 3_000
    assert faults_of_looks(page) == []
    page.locator(".bar").first.click()
    expect(page.locator("#sheet h2")).to_be_visible()
    assert faults == []
    page.close()
