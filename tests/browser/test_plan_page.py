"""The plan's page as a browser shows it. Needs Debian's chromium; nothing is downloaded."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, expect
from tests.browser.looks import faults_of_looks
from tests.report import samples
from tests.report.test_plan_page import HOSTILE, hostile

from karpool.report.plans.document import Drawing, PlanDocument
from karpool.report.plans.plan_page import plan_page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SIZES = {"laptop": (1280, 800), "phone": (390, 844)}


class Opened:
    """A page in a window, with everything that went wrong in it."""

    def __init__(self, browser: Browser, size: str, file: Path, document: tuple[PlanDocument, Drawing]) -> None:
        file.write_text(plan_page(*document), encoding="utf-8")
        width, height = SIZES[size]
        self.page: Page = browser.new_page(viewport={"width": width, "height": height})
        self.faults: list[str] = []
        self.page.on("console", lambda message: self.faults.append(message.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", lambda request: request.url == file.as_uri() or self.faults.append(request.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector(".row")


@pytest.fixture(params=SIZES)
def small(request: pytest.FixtureRequest, browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    opened = Opened(browser, request.param, tmp_path / "plan.html", samples.small())
    yield opened
    assert opened.faults == []
    opened.page.close()


def test_nodes_are_bars_filled_by_their_pods(small: Opened) -> None:
    row = small.page.locator(".row", has_text="ip-10-0-1-24")
    track = row.locator(".lane.after .track")
    assert small.page.locator(".row").count() == 13
    assert track.locator(".slice").count() == 8
    filled = track.evaluate(
        "bar => [...bar.children].reduce((sum, slice) => sum + slice.offsetWidth, 0) / bar.offsetWidth"
    )
    assert filled == pytest.approx(0.63, abs=0.06)


def test_totals_stand_at_the_top(small: Opened) -> None:
    totals = small.page.locator("#totals").inner_text()
    assert "0.64 $/h" in totals
    assert "26.0 %" in totals
    assert "1 node of unknown price" in totals


def test_the_bar_beside_the_savings_fills_with_what_is_saved(small: Opened) -> None:
    filled = small.page.locator(".compare i").evaluate("bar => bar.offsetWidth / bar.parentNode.offsetWidth")
    assert filled == pytest.approx(0.26, abs=0.01)


CUT = """() => [...document.querySelectorAll('svg[role=img]')].flatMap(svg => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(text => {
    const box = text.getBoundingClientRect();
    return box.left < frame.left - .5 || box.right > frame.right + .5;
  }).map(text => text.textContent);
})"""
"""Labels of plots that reach beyond their plot."""


def test_no_label_of_a_plot_is_cut(small: Opened) -> None:
    assert small.page.evaluate(CUT) == []


HIDDEN = """() => [...document.querySelectorAll('table')].filter(table => {
  const frame = table.parentNode;
  return frame.scrollWidth > frame.clientWidth + 1;
}).length"""
"""How many tables are wider than their place."""


def test_tables_are_not_cut(browser: Browser, tmp_path: Path) -> None:
    plan, drawing = samples.small()
    for size in SIZES:
        opened = Opened(browser, size, tmp_path / "plan.html", (samples.grouped(plan), drawing))
        assert opened.page.locator("table").count() == 2
        assert opened.page.evaluate(HIDDEN) == 0
        assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert opened.faults == []
        opened.page.close()


def test_nothing_is_wider_than_the_window(small: Opened) -> None:
    assert small.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_slice_has_a_tooltip(small: Opened) -> None:
    small.page.locator(".row", has_text="ip-10-0-1-11").locator(".lane.after .slice").nth(3).hover()
    tip = small.page.locator("#tip")
    expect(tip).to_be_visible()
    assert "shop/search-7c9f-0001" in tip.inner_text()
    assert "1 core (13 % of the node)" in tip.inner_text()


def test_a_step_lights_up_its_nodes_and_pods(small: Opened) -> None:
    steps = small.page.locator("#steps > li > button")
    assert steps.count() == 3
    steps.nth(1).click()
    lit = small.page.locator(".row.lit .name").all_inner_texts()
    assert lit == ["ip-10-0-1-37", "ip-10-0-2-18", "ip-10-0-2-52", "new-1", "ip-10-0-1-11", "ip-10-0-3-09"]
    assert small.page.locator(".lane.after .slice.moving").count() == 7
    assert "ip-10-0-1-37 → new-1" in small.page.locator(".moves").inner_text()
    small.page.keyboard.press("Escape")
    expect(small.page.locator(".row.lit")).to_have_count(0)


def test_reasons_open_into_their_nodes(small: Opened) -> None:
    group = small.page.locator("details.reason", has_text="PdbBlocks")
    group.locator("summary").click()
    expect(group.locator(".facts .link")).to_have_text(["ip-10-0-3-41", "ip-10-0-3-66"])
    group.locator(".facts .link").first.click()
    assert "PodDisruptionBudget data/postgres allows no disruption" in small.page.locator("#sheet").inner_text()


def test_the_keyboard_walks_nodes_and_pods(small: Opened) -> None:
    page = small.page
    page.locator(".row .name").first.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".name:focus")).to_have_text("ip-10-0-4-12")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tip")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("#sheet")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#sheet")).to_be_hidden()


def test_a_node_that_goes_says_where_its_pods_go(small: Opened) -> None:
    small.page.locator(".row .name", has_text="ip-10-0-1-37").click()
    text = small.page.locator("#sheet").inner_text()
    assert "→ new-1 in step 2" in text
    assert "null" not in text


def test_the_filter_finds_the_node_of_a_pod(small: Opened) -> None:
    small.page.locator("#filter").fill("data/postgres-1")
    expect(small.page.locator(".row .name")).to_have_text(["ip-10-0-3-66"])


def test_before_shows_what_will_be_gone(small: Opened) -> None:
    small.page.locator("#view button", has_text="Before").click()
    row = small.page.locator(".row", has_text="ip-10-0-1-37")
    assert row.locator(".lane.before .slice").count() == 5
    assert row.locator(".lane.after").is_hidden()


@pytest.mark.parametrize("size", SIZES)
def test_several_replacements_and_the_price_against_evictions_are_shown(
    browser: Browser, tmp_path: Path, size: str
) -> None:
    opened = Opened(browser, size, tmp_path / "plan.html", samples.several())
    page = opened.page
    page.locator("#steps > li > button").first.click()
    details = page.locator(".details").inner_text()
    assert "Replace 3 nodes with 2" in page.locator("#steps").inner_text()
    assert "new-1: c6i.xlarge or 1 other type" in details
    assert "new-2: m6i.large" in details
    assert "Within 2.1 % of the least possible" in page.locator(".curve").inner_text()
    expect(page.locator(".curve svg")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert opened.faults == []
    page.close()


@pytest.mark.parametrize("size", SIZES)
def test_thousands_of_nodes_scroll(browser: Browser, tmp_path: Path, size: str) -> None:
    opened = Opened(browser, size, tmp_path / "plan.html", samples.large(2000))
    page = opened.page
    assert page.locator(".row").count() < 60
    page.locator(".row .name").first.focus()
    page.keyboard.press("End")
    expect(page.locator(".row:focus-within")).to_have_attribute("aria-posinset", "2000")
    assert page.locator("#steps > li").count() == 100
    page.locator("#steps > li > button").nth(9).click()
    expect(page.locator(".row.lit")).to_have_count(2)
    assert opened.faults == []
    page.close()


def test_all_nodes_are_printed_also_those_out_of_sight(browser: Browser, tmp_path: Path) -> None:
    opened = Opened(browser, "laptop", tmp_path / "plan.html", samples.large(200))
    rows = opened.page.locator(".row")
    assert rows.count() < 60
    opened.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    expect(rows).to_have_count(200)
    expect(rows.last).to_have_attribute("aria-posinset", "200")
    assert opened.faults == []
    opened.page.close()


@pytest.mark.parametrize("size", SIZES)
def test_a_bar_is_as_long_as_that_of_a_larger_node_and_names_are_not_cut(
    browser: Browser, tmp_path: Path, size: str
) -> None:
    plan, drawing = samples.small()
    names = [f"ip-10-0-{number}-103.eu-west-1.compute.internal" for number in range(len(drawing.before))]
    drawn = [replace(node, name=name) for node, name in zip(drawing.before, names, strict=True)]
    drawn[0] = replace(drawn[0], cpu=96.0)
    kept = [replace(node, name=name, verdict="keep", step=None) for node, name in zip(plan.nodes, names, strict=False)]
    shown = replace(plan, nodes=tuple(kept), commands=()), Drawing(before=tuple(drawn), after=tuple(drawn))
    opened = Opened(browser, size, tmp_path / "plan.html", shown)
    widths = opened.page.locator(".lane.after .track").evaluate_all("tracks => tracks.map(track => track.offsetWidth)")
    assert len(widths) == len(kept)
    assert max(widths) - min(widths) <= 1
    assert "longest bar" not in opened.page.locator("#showing").inner_text()
    assert opened.page.locator(".name").all_text_contents() == [f"ip-10-0-{number}-103" for number in range(len(kept))]
    assert faults_of_looks(opened.page) == []
    assert opened.faults == []
    opened.page.close()


def test_hostile_names_are_only_text(browser: Browser, tmp_path: Path) -> None:
    opened = Opened(browser, "laptop", tmp_path / "plan.html", hostile())
    name = opened.page.locator(".row .name")
    assert (name.get_attribute("title"), name.locator("bdi *").count()) == (HOSTILE, 0)
    assert "Nothing to do" in opened.page.locator(".steps").inner_text()
    assert opened.faults == []
    opened.page.close()
