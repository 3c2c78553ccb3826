"""The console of a real `karpool ui` process as a browser shows it. Needs Debian's chromium; nothing is downloaded."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, expect
from tests.factories import claim_for, node, node_pool, pod
from tests.web.processes import console

from karpool.cli.main import cli
from karpool.live.snapshot_file import encode_snapshot
from karpool.model.objects import Objects
from karpool.wire.objects import encode_value
from karpool.wire.output_files import write_whole

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
SIZES = {"laptop": (1280, 800), "phone": (390, 844), "wide": (1920, 1080)}
PATIENCE = 120_000
"""How long an answer may take on a machine that does other things, too, in milliseconds."""
HOSTILE = "<img src=x onerror=alert(1)>"
SCENARIO = """
name: small
pools: [{metadata: {name: general}, spec: {disruption: {consolidateAfter: 30s}}}]
workloads:
- {name: web, cpu: 1500m, memory: 1Gi, replicas: {hours: [
    {at: "00:00", value: 20}, {at: "01:00", value: 120}, {at: "03:00", value: 60}, {at: "05:00", value: 30}]}}
- {name: api, cpu: 700m, memory: 3Gi, replicas: {hours: [
    {at: "00:00", value: 12}, {at: "02:00", value: 60}, {at: "04:00", value: 20}]}}
length: 4h
policies: {karpool: {decisions: {search: prefix}}}
"""
PAINTED = """canvas => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
    .data.some((part) => part > 0)"""
NAMELESS = """() => [...document.querySelectorAll(
    "button, a, input, select, section, nav, [role=listbox], [role=img]"
)].filter((part) => !part.hidden && !(
    part.getAttribute("aria-label") || part.getAttribute("aria-labelledby") || part.textContent.trim()
    || (part.labels && part.labels.length)
)).map((part) => part.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    """The example cluster."""
    with console("-f", ROOT / "examples", "--catalog=sample", "--at=2026-11-15T12:00:00Z", "--effort=0") as address:
        yield address


class Opened:
    """A page in a window, with everything that went wrong in it."""

    def __init__(self, browser: Browser, address: str, size: str = "laptop", scheme: str = "light") -> None:
        width, height = SIZES[size]
        self.width = width
        self.page: Page = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
        )
        self.page.set_default_timeout(PATIENCE)
        self.faults: list[str] = []
        self.page.on("console", lambda message: self.faults.append(message.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", lambda dialog: self.faults.append(dialog.message))
        self.page.on("request", lambda request: request.url.startswith(address) or self.faults.append(request.url))
        self.page.on("request", lambda request: request.method in ("GET", "HEAD") or self.faults.append(request.method))
        self.page.goto(address)
        self.page.wait_for_selector(".pool")

    def view(self, name: str) -> Page:
        self.page.get_by_role("link", name=name, exact=True).click()
        expect(self.page.locator("#view .working")).to_have_count(0, timeout=PATIENCE)
        return self.page

    def expect_fits(self) -> None:
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.width


@pytest.fixture
def opened(browser: Browser, shop: str) -> Iterator[Opened]:
    made = Opened(browser, shop)
    yield made
    assert made.faults == []
    made.page.close()


def test_the_fleet_has_every_node_in_its_pool(opened: Opened) -> None:
    page = opened.page
    expect(page.locator(".bar")).to_have_count(12)
    general = page.locator(".pool", has_text="general-1")
    expect(general.locator(".pool-facts")).to_have_text("8 nodes · 1.92 $/h · 46 pods")
    chips = general.locator(".chip")
    expect(chips.filter(has_text="m6i.xlarge")).to_contain_text("6")
    expect(chips.filter(has_text="us-east-1a")).to_contain_text("3")
    totals = page.locator(".totals").inner_text()
    assert "2.23 $/h" in totals
    assert "1,626 $ a month" in totals
    assert page.title() == "Fleet · examples · Karpool"
    expect(page.locator("#prices")).to_have_text("Prices: aws us-east-1, sample table.")


def test_a_bar_is_filled_by_what_its_pods_ask_for(opened: Opened) -> None:
    expect(opened.page.locator(".totals")).to_contain_text("The plan saves", timeout=PATIENCE)
    bar = opened.page.locator(".bar", has_text="general-3")
    filled = bar.locator(".track").evaluate(
        "track => [...track.children].reduce((sum, slice) => sum + slice.offsetWidth, 0) / track.offsetWidth"
    )
    assert filled == pytest.approx(0.45, abs=0.03)
    expect(bar.locator(".ratio")).to_have_text("45 %")


def test_searching_shows_what_is_wanted_only(opened: Opened) -> None:
    page = opened.page
    search = page.get_by_role("searchbox")
    for words, found in (
        ("pool:batch", 4),
        ("pool:batch zone:us-east-1a", 2),
        ("workload:checkout", 3),
        ("ns:data", 4),
        ("label:workload=batch", 4),
        ("general-3", 1),
        ("shop/ledger", 1),
        ("nothing-at-all", 0),
    ):
        search.fill(words)
        expect(page.locator(".bar")).to_have_count(found)
    search.fill("")
    page.get_by_label("Pool", exact=True).select_option("batch")
    expect(search).to_have_value("pool:batch")
    expect(page.locator(".bar")).to_have_count(4)


def test_cells_are_zoomed_to_bars_and_back(opened: Opened) -> None:
    page = opened.page
    zoom = page.get_by_label("Zoom, from small cells to bars")
    zoom.fill("2")
    expect(page.locator(".bar")).to_have_count(0)
    expect(page.locator("canvas")).to_have_count(2)
    assert page.locator("canvas").first.evaluate(PAINTED)
    colours = page.get_by_role("group", name="Colour by")
    pressed = colours.locator("[aria-pressed=true]")
    expect(pressed).to_have_text("Use")
    zoom.fill("4")
    expect(page.locator(".bar")).to_have_count(12)
    # Slices of bars are pods: use is seen in cells only.
    expect(pressed).to_have_text("Namespace")
    colours.get_by_role("button", name="Use").click()
    expect(page.locator(".bar")).to_have_count(0)
    expect(pressed).to_have_text("Use")
    zoom.fill("4")
    expect(page.locator(".bar")).to_have_count(12)


def test_the_plan_goes_step_by_step(opened: Opened) -> None:
    page = opened.view("Plan")
    assert "66.9 %" in page.locator(".totals").inner_text()
    assert "0.67 $/h" in page.locator(".totals").inner_text()
    where = page.locator(".where")
    expect(where).to_contain_text("Today: 12 nodes, 2.23 $/h")
    page.locator(".pool", has_text="batch").first.evaluate("pool => pool.scrollIntoView()")  # drawn when it is seen
    expect(page.locator(".badge", has_text="goes next")).to_have_count(1)
    page.get_by_label("Next step").click()
    expect(where).to_contain_text("After step 1 of")
    expect(page.locator(".bar", has_text="batch-4")).to_have_count(0)
    slider = page.get_by_label("Step of the plan")
    last = slider.get_attribute("max")
    slider.fill(last or "0")
    expect(where).to_contain_text("5 nodes, 0.7378 $/h, 36 evictions")
    facts = page.locator(".pool-facts")
    expect(facts.filter(has_text="1 node ")).to_have_count(1)
    expect(facts.filter(has_text="4 nodes")).to_have_count(1)
    slider.fill("0")
    expect(facts.filter(has_text="8 nodes")).to_have_count(1)
    types = page.locator("table", has_text="Instance type")
    assert "10 · 1.46 $/h" in types.inner_text()


def test_a_knob_changes_the_price(opened: Opened) -> None:
    page = opened.view("What if")
    page.get_by_role("button", name="No pod is do-not-disrupt").click()
    outcome = page.locator(".outcome")
    expect(outcome).to_contain_text("remove karpenter.sh/do-not-disrupt", timeout=PATIENCE)
    rows = outcome.locator("tbody tr")
    expect(rows.filter(has_text="Nodes").first).to_contain_text("5")
    expect(page.get_by_label("Lift do-not-disrupt of")).to_have_value("*")
    page.get_by_label("Fee for each node, $/h").fill("0.1")
    expect(outcome.locator(".words")).to_contain_text("count 0.1 $/h for each node", timeout=PATIENCE)
    expect(outcome.locator(".showing")).to_contain_text("With a fee of 0.10 $/h a node, which both sides count")
    expect(outcome.locator("tbody tr").filter(has_text="Price").first).to_contain_text("1.24 $/h")
    page.get_by_label("Fee for each node, $/h").fill("-1")
    expect(page.locator(".result .problem")).to_have_text(
        "nodeFee: -1 is not allowed; write a number from 0 to 1,000,000", timeout=PATIENCE
    )
    page.get_by_label("Fee for each node, $/h").fill("")
    page.get_by_label("consolidateAfter").select_option("Never")
    expect(outcome.locator(".words")).to_contain_text("Never", timeout=PATIENCE)
    assert page.locator("table", has_text="Saves more").locator("tbody tr").count() == 3
    page.locator(".exports summary", has_text="NodePool general").click()
    patch = page.locator(".exports pre").filter(has_text="nodepool general").inner_text()
    assert "kubectl patch nodepool general --type merge" in patch
    assert "consolidateAfter: Never" in patch


def test_only_the_latest_question_is_answered(opened: Opened) -> None:
    """A knob that is turned further gives up what was asked before."""
    page = opened.view("What if")
    fee = page.get_by_label("Fee for each node, $/h")
    for value in ("0.01", "0.02", "0.03", "0.04"):
        fee.fill(value)
        page.wait_for_timeout(300)
    expect(page.locator(".outcome .words")).to_contain_text("count 0.04 $/h", timeout=PATIENCE)
    expect(page.locator(".outcome")).to_have_count(1)


def test_blockers_are_worth_what_lifting_them_saves(opened: Opened) -> None:
    page = opened.view("Blockers")
    first = page.locator("table.list tbody tr").first
    expect(first).to_contain_text("NodePool general", timeout=PATIENCE)
    expect(first).to_contain_text("0.14 $/h")
    first.get_by_role("link", name="Try it").click()
    expect(page.locator(".outcome .words")).to_contain_text("allow all instance types", timeout=PATIENCE)
    expect(page.locator(".outcome .big")).to_contain_text("0.14 $/h less")
    opened.view("Blockers")
    page.get_by_role("button", name="By namespace").click()
    expect(page.locator("table.list tbody tr", has_text="shop").first).to_be_visible(timeout=PATIENCE)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    head, *lines = saved.value.path().read_text().splitlines()
    assert head.startswith("owner,codes,objects,namespaces,workloads,savingsPerHour")
    assert "shop" in [line.split(",")[0] for line in lines]


def test_costs_are_shared_by_namespace_workload_and_label(opened: Opened) -> None:
    page = opened.view("Who pays")
    rows = page.locator("table.list tbody tr")
    expect(rows.filter(has_text="shop")).to_contain_text("0.43 $/h", timeout=PATIENCE)
    expect(rows.filter(has_text="idle")).to_contain_text("73 %")
    expect(rows.last).to_contain_text("in total")
    expect(rows.last.locator("td")).to_contain_text(
        ["47", "2.23 $/h", "100 %", "0.74 $/h", "1.49 $/h", "1,626 $", "539 $", "1,087 $"]
    )
    page.get_by_role("button", name="Workloads").click()
    expect(rows.filter(has_text="Deployment shop/web")).to_have_count(1, timeout=PATIENCE)
    page.get_by_role("button", name="By label").click()
    page.get_by_label("Label to group by").fill("app")
    page.keyboard.press("Enter")
    # The rows of workloads, which are shown until then, name their kinds.
    expect(rows.filter(has_text="Deployment")).to_have_count(0, timeout=PATIENCE)
    expect(rows.filter(has_text="checkout")).to_have_count(1)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    head, *lines = saved.value.path().read_text().splitlines()
    assert head.startswith("app,kind,podsBefore,podsAfter,pricePerHourBefore")
    assert "checkout" in [line.split(",")[0] for line in lines]


def test_pods_that_would_find_no_place_are_told(opened: Opened) -> None:
    page = opened.view("What if")
    page.get_by_label("Requests of").select_option("Deployment shop/web")
    page.get_by_label("CPU, times").fill("100")
    expect(page.locator(".outcome .big")).to_have_text("4 pods would find no place", timeout=PATIENCE)
    expect(page.locator(".outcome .problem")).to_contain_text("limit cpu 200 reached")
    expect(page.locator(".outcome .notice")).to_contain_text("6 pods no longer fit where they are")


def test_the_plan_says_what_the_terminal_says(opened: Opened) -> None:
    page = opened.view("Plan")
    said = page.locator(".said-of-plan")
    expect(said).to_contain_text("least possible", timeout=PATIENCE)
    expect(said).to_contain_text("of the savings")
    opened.view("Fleet")
    expect(page.locator(".saves")).to_contain_text("$ a month")


def test_filters_know_reasons_and_stay_the_same_elements(opened: Opened) -> None:
    page = opened.page
    reason = page.get_by_label("Reason to stay", exact=True)
    expect(reason).to_be_visible(timeout=PATIENCE)
    reason.select_option("PodDoNotDisrupt")
    expect(page.get_by_role("searchbox")).to_have_value("reason:PodDoNotDisrupt")
    reason.focus()
    page.evaluate("karpool.view.rankedAt = null; karpool.view.refresh()")
    expect(reason).to_be_focused()
    expect(reason).to_have_value("PodDoNotDisrupt")


def test_a_label_that_nobody_has_is_said_to_be_one(opened: Opened) -> None:
    for view, name in (("Who pays", "Label to group by"), ("Blockers", "Label that names the owner")):
        page = opened.view(view)
        page.get_by_role("button", name="By label").click()
        page.get_by_label(name).fill("nobodys")
        page.keyboard.press("Enter")
        expect(page.locator(".notice")).to_contain_text("No pod has the label nobodys", timeout=PATIENCE)
        page.locator(".notice").get_by_role("button", name="app", exact=True).click()
        expect(page.get_by_label(name)).to_have_value("app")
        expect(page.locator(".notice")).to_have_count(0, timeout=PATIENCE)


def test_a_pod_of_a_daemon_set_is_only_said_to_go_with_its_node(opened: Opened) -> None:
    page = opened.page
    page.evaluate("karpool.explain({pod: [...karpool.live.fleet.pods.values()].find((pod) => pod.daemon)})")
    sheet = page.locator("#sheet")
    expect(sheet).to_contain_text("it comes and goes with its node", timeout=PATIENCE)
    expect(sheet).not_to_contain_text("placed anew")
    expect(sheet).not_to_contain_text("Where could it be?")


def test_without_prices_nobody_is_said_to_pay_or_save_nothing(browser: Browser, tmp_path: Path) -> None:
    made = node("odd", type="x9.large", pool=None)
    write_whole(tmp_path / "odd.json.zst", encode_snapshot(Objects(nodes=(made,), pods=(pod("p", node="odd"),))))
    with console("-f", tmp_path / "odd.json.zst", "--catalog=sample") as address:
        opened = Opened(browser, address)
        page = opened.view("Who pays")
        expect(page.locator("table.list")).to_contain_text("in total", timeout=PATIENCE)
        said = page.locator("#view").inner_text()
        assert "? $/h" in said
        assert "0.00 $/h" not in said
        expect(page.locator("#notices")).to_contain_text(
            "1 node of unknown price not counted; --catalog FILE or --price"
        )
        opened.view("Blockers")
        expect(page.locator(".hero")).to_contain_text("What nodes cost is not known", timeout=PATIENCE)
        expect(page.locator("table.list tbody th b").first).to_have_text("nodes without a pool")
        assert opened.faults == []
        page.close()


def test_what_is_not_all_known_is_said_to_be_at_most(browser: Browser, tmp_path: Path) -> None:
    """A node of unknown price beside two of which one can go."""
    nodes = [node("a"), node("b"), node("odd", type="x9.large", pool=None)]
    pods = [pod(f"on-{name}", node=name, cpu="500m", memory="1Gi") for name in ("a", "b", "odd")]
    objects = Objects(
        nodes=tuple(nodes),
        node_claims=tuple(map(claim_for, nodes[:2])),
        node_pools=(node_pool("default"),),
        pods=tuple(pods),
    )
    write_whole(tmp_path / "some.json.zst", encode_snapshot(objects))
    with console("-f", tmp_path / "some.json.zst", "--catalog=sample") as address:
        opened = Opened(browser, address)
        page = opened.page
        expect(page.locator(".saves")).to_contain_text("at most", timeout=PATIENCE)
        opened.view("Plan")
        expect(page.locator(".hero .pill")).to_contain_text("at most", timeout=PATIENCE)
        expect(page.locator(".hero")).to_contain_text("1 node of unknown price not counted")
        expect(page.locator(".totals .card", has_text="$ an hour")).to_contain_text("0.3840 + ?")
        opened.view("Who pays")
        total = page.locator("table.list tbody tr").last
        expect(total.locator("td").nth(5)).to_contain_text("$ + ?", timeout=PATIENCE)
        assert opened.faults == []
        page.close()


def test_back_and_a_shared_link_show_what_was_shown(opened: Opened, browser: Browser, shop: str) -> None:
    page = opened.page
    page.get_by_role("searchbox").fill("pool:batch")
    expect(page.locator(".bar")).to_have_count(4)
    page.get_by_role("button", name="Zones").click()
    opened.view("What if")
    page.get_by_role("button", name="No pod is do-not-disrupt").click()
    expect(page.locator(".outcome .words")).to_contain_text("remove karpenter.sh", timeout=PATIENCE)
    page.get_by_label("Fee for each node, $/h").fill("0.1")
    expect(page.locator(".outcome .words")).to_contain_text("count 0.1 $/h", timeout=PATIENCE)
    other = Opened(browser, shop)
    other.page.goto(page.url)
    expect(other.page.locator(".outcome .words")).to_contain_text("count 0.1 $/h", timeout=PATIENCE)
    expect(other.page.get_by_label("Fee for each node, $/h")).to_have_value("0.1")
    assert other.faults == []
    other.page.close()
    page.go_back()
    expect(page.locator(".outcome .words")).not_to_contain_text("count 0.1 $/h", timeout=PATIENCE)
    expect(page.get_by_label("Lift do-not-disrupt of")).to_have_value("*")
    page.get_by_role("link", name="Fleet", exact=True).click()
    expect(page.get_by_role("searchbox")).to_have_value("pool:batch")
    expect(page.get_by_role("button", name="Zones")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".bar")).to_have_count(4)


def test_what_an_address_may_not_say_is_left_out(browser: Browser, shop: str) -> None:
    opened = Opened(browser, shop)
    for place in (
        "what-if?form=%7B%22add%22%3A3%2C%22x%22%3A%221%22%7D",
        "what-if?form=nothing",
        "blockers?by=colour",
        "costs?by=colour",
        "fleet?zoom=99&group=colour&colour=7",
        "plan?step=-4",
        "timeline?at=noon",
    ):
        opened.page.goto(f"{shop}#{place}")
        expect(opened.page.locator("#view .working")).to_have_count(0, timeout=PATIENCE)
        expect(opened.page.locator("#view .problem")).to_have_count(0)
    assert opened.faults == []
    opened.page.close()


def test_what_is_to_be_kept_is_of_the_last_question(opened: Opened) -> None:
    page = opened.view("What if")
    page.get_by_role("button", name="No budgets").click()
    expect(page.locator(".exports")).to_be_visible(timeout=PATIENCE)
    expect(page.locator(".as-of")).to_have_text("As of 12:00:00 UTC.")
    page.get_by_label("Weight", exact=True).fill("150")
    expect(page.locator(".result .problem")).to_have_text(
        "weight: 150 is not allowed; write a whole number from 0 to 100", timeout=PATIENCE
    )
    expect(page.locator(".exports")).to_be_hidden()


def test_an_answer_says_that_the_cluster_has_changed_since(opened: Opened) -> None:
    for view in ("Blockers", "What if"):
        page = opened.view(view)
        if view == "What if":
            page.get_by_role("button", name="No budgets").click()
        as_of = page.locator(".as-of")
        expect(as_of).to_have_text("As of 12:00:00 UTC.", timeout=PATIENCE)
        page.evaluate("karpool.live.number += 1; karpool.view.changed()")
        expect(as_of).to_contain_text("The cluster has changed since.")
        with page.expect_request(lambda request: "since=" in request.url):
            as_of.get_by_role("button", name="Ask again").click()
        expect(as_of).to_have_text("As of 12:00:00 UTC.", timeout=PATIENCE)


def test_without_a_journal_the_timeline_says_how_to_get_one(opened: Opened) -> None:
    page = opened.view("Timeline")
    expect(page.locator("#view")).to_contain_text("karpool run --journal FILE")


def test_the_timeline_tells_what_was_done(browser: Browser, tmp_path: Path) -> None:
    journal = tmp_path / "decisions.jsonl"
    (tmp_path / "small.yaml").write_text(SCENARIO)
    simulated = CliRunner().invoke(cli, ["simulate", str(tmp_path / "small.yaml"), "--journal", str(journal)])
    assert simulated.exit_code == 0, simulated.stderr
    with console("-f", ROOT / "examples", "--catalog=sample", f"--journal={journal}") as address:
        opened = Opened(browser, address)
        page = opened.view("Timeline")
        expect(page.locator(".totals")).to_contain_text("completed", timeout=PATIENCE)
        expect(page.locator("figure svg").first).to_be_visible(timeout=PATIENCE)
        expect(page.locator("#view")).to_contain_text(f"Journal {journal}: ")
        page.locator("table.list tbody tr").first.get_by_role("button").click()
        expect(page.locator(".moment h3")).to_contain_text("At 20", timeout=PATIENCE)
        opened.expect_fits()
        assert opened.faults == []
        page.close()


def test_a_node_a_pod_and_a_pool_are_explained(opened: Opened) -> None:
    page = opened.page
    sheet = page.locator("#sheet")
    page.locator(".bar", has_text="general-7").click()
    expect(sheet).to_contain_text("has karpenter.sh/do-not-disrupt")
    expect(sheet).to_contain_text("if Pod data/export-x7k2p were not marked do-not-disrupt: saves 0.107 $/h")
    sheet.get_by_role("button", name="data/export-x7k2p").first.click()
    expect(sheet).to_contain_text("It may not be moved: has karpenter.sh/do-not-disrupt.")
    expect(sheet).to_contain_text("would take it")
    expect(sheet).to_contain_text("taint workload=batch:NoSchedule")
    sheet.get_by_role("button", name="Back").click()
    expect(sheet.locator("h2")).to_have_text("general-7")
    sheet.get_by_role("button", name="general", exact=True).click()
    expect(sheet).to_contain_text("Consolidation")
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()


def test_a_click_opens_what_is_under_it(opened: Opened) -> None:
    """Also where the list begins out of sight, which a keyboard would scroll to."""
    page = opened.page
    page.set_viewport_size({"width": 640, "height": 300})
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.locator(".bar", has_text="general-8").click()
    expect(page.locator("#sheet h2")).to_have_text("general-8")
    page.keyboard.press("Escape")
    page.get_by_label("Zoom, from small cells to bars").fill("0")
    cells = page.locator(".pool", has_text="general").locator("[role=listbox]").first
    cells.click(position={"x": 3 * 6 + 2, "y": 2})
    expect(page.locator("#sheet h2")).to_have_text(re.compile("general-"))


def test_everything_can_be_done_with_the_keyboard(opened: Opened) -> None:
    page = opened.page
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('role')") == "listbox":
            break
    body = page.locator("[role=listbox]:focus")
    expect(body).to_have_count(1)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    active = body.get_attribute("aria-activedescendant")
    assert "general-3" in (page.locator(f"[id='{active}']").get_attribute("aria-label") or "")
    page.keyboard.press("Enter")
    expect(page.locator("#sheet h2")).to_have_text("general-3")
    page.keyboard.press("Escape")
    expect(page.locator("#sheet")).to_be_hidden()
    page.get_by_role("link", name="Plan", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator(".scrubber")).to_be_visible(timeout=PATIENCE)
    page.get_by_label("Step of the plan").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".where")).to_contain_text("After step 1 of")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_every_view_fits_its_window(browser: Browser, shop: str, size: str, scheme: str) -> None:
    opened = Opened(browser, shop, size, scheme)
    for name in opened.page.locator("#views a").all_inner_texts():
        opened.view(name)
        opened.expect_fits()
    opened.page.goto(shop + "#fleet")
    # On a phone the nodes are below what is in sight, and are drawn when they come into sight.
    opened.page.locator(".pool").first.evaluate("pool => pool.scrollIntoView()")
    opened.page.locator(".bar").first.click()
    expect(opened.page.locator("#sheet .working")).to_have_count(0, timeout=PATIENCE)
    opened.expect_fits()
    assert opened.faults == []
    opened.page.close()


def test_what_has_a_role_has_a_name(opened: Opened) -> None:
    """What a screen reader announces as something to use must say what it is."""
    for name in opened.page.locator("#views a").all_inner_texts():
        opened.view(name)
        assert opened.page.evaluate(NAMELESS) == []


def test_a_directory_of_snapshots_lets_choose(browser: Browser, tmp_path: Path) -> None:
    for cluster, count in (("blue", 1), ("green", 3)):
        nodes = tuple(node(f"{cluster}-{number}", pool=None) for number in range(count))
        write_whole(tmp_path / f"{cluster}.json.zst", encode_snapshot(Objects(nodes=nodes)))
    with console("-f", tmp_path, "--catalog=sample") as address:
        opened = Opened(browser, address)
        expect(opened.page.locator(".bar")).to_have_count(1)
        opened.page.get_by_label("Cluster", exact=True).select_option("green")
        expect(opened.page.locator(".bar")).to_have_count(3)
        assert "cluster=green" in opened.page.url
        assert opened.faults == []
        opened.page.close()


def test_hostile_names_are_only_text(browser: Browser, tmp_path: Path) -> None:
    """What an API server would refuse may still be in a file."""
    label = {"team": HOSTILE}
    evil = replace(node("evil", pool=None), metadata=replace(node("evil", pool=None).metadata, name="evil"))
    evil = replace(evil, metadata=replace(evil.metadata, labels={**evil.metadata.labels, **label}))
    owner = pod("p", node="evil", namespace="default", labels=label)
    owners = tuple(replace(entry, name=HOSTILE) for entry in owner.metadata.owner_references)
    owner = replace(owner, metadata=replace(owner.metadata, owner_references=owners))
    objects = {"apiVersion": "v1", "kind": "List", "items": []}
    items = [
        {"apiVersion": "v1", "kind": kind, **msgspec.to_builtins(entry, enc_hook=encode_value)}
        for kind, entry in (("Node", evil), ("Pod", owner))
    ]
    (tmp_path / "evil.json").write_bytes(msgspec.json.encode({**objects, "items": items}))
    with console("-f", tmp_path / "evil.json", "--catalog=sample") as address:
        opened = Opened(browser, address)
        page = opened.page
        page.locator(".bar").click()
        expect(page.locator("#sheet .working")).to_have_count(0, timeout=PATIENCE)
        page.locator("#sheet summary", has_text="label").click()
        assert f"team={HOSTILE}" in page.locator("#sheet").inner_text()
        assert HOSTILE in page.get_by_role("table", name="Pods of this node").inner_text()
        page.keyboard.press("Escape")
        page.get_by_role("searchbox").fill("<b>bold</b>")
        expect(page.locator(".bar")).to_have_count(0)
        for name in page.locator("#views a").all_inner_texts():
            opened.view(name)
        page.goto(address + "#fleet?" + re.sub(r"\s", "", f"cluster={HOSTILE}&q={HOSTILE}"))
        page.wait_for_selector(".totals")
        assert page.locator("img").count() == 0
        assert opened.faults == []
        page.close()
