"""What the console says of a cluster with a paused pool, nodes of nobody, labels of namespaces and a pod that waits.

Needs Debian's chromium; nothing is downloaded.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.looks import faults_of_looks
from tests.factories import claim_for, namespace, node, node_pool, pdb, pod
from tests.web.processes import console

from karpool.model.labels import PAUSED
from karpool.wire.objects import Object, encode_value

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PATIENCE: Final = 120_000
"""How long an answer may take on a machine that does other things, too, in milliseconds."""
WARNING: Final = "the input holds no DaemonSet"
PAUSED_NODES: Final = 30
ENDING: Final = ".eu-west-1.compute.internal"
API_VERSIONS: Final = {
    "NodePool": "karpenter.sh/v1",
    "NodeClaim": "karpenter.sh/v1",
    "PodDisruptionBudget": "policy/v1",
}
PRINT: Final = "window.dispatchEvent(new Event('beforeprint'))"


def items() -> Iterator[tuple[str, Object]]:
    yield "NodePool", node_pool("sale", annotations={PAUSED: "until Monday"})
    yield "NodePool", node_pool("web")
    yield "Namespace", namespace("search", team="discovery")
    nodes = [node(f"ip-10-0-0-{number}{ENDING}", pool="sale") for number in range(PAUSED_NODES)]
    nodes += [node(f"web-{number}{ENDING}", pool="web") for number in range(2)]
    for entry in nodes:
        yield "Node", entry
        yield "NodeClaim", claim_for(entry)
    yield "Node", node("metal", type="acme.custom", pool=None, cpu="64", memory="256Gi")
    yield "Pod", pod("cart", namespace="shop", node=nodes[0].name, labels={"team": "cart"})
    yield "Pod", pod("index", namespace="search", node=nodes[1].name)
    yield "Pod", pod("own", namespace="search", node=nodes[2].name, labels={"team": "other"})
    yield "Pod", pod("web", namespace="shop", node=nodes[-1].name)
    yield "Pod", pod("trainer", namespace="shop", node="metal", cpu="4")
    yield "PodDisruptionBudget", pdb("cart", {"team": "cart"}, namespace="shop")
    yield "Pod", pod("waits", namespace="shop", cpu="40")
    yield "Pod", pod("too-large", namespace="shop", cpu="4000")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("cluster") / "of shop.json"
    listed = [
        {"apiVersion": API_VERSIONS.get(kind, "v1"), "kind": kind, **msgspec.to_builtins(entry, enc_hook=encode_value)}
        for kind, entry in items()
    ]
    file.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": listed}))
    return file


@pytest.fixture(scope="module")
def address(cluster: Path) -> Iterator[str]:
    with console("-f", cluster, "--catalog=sample", "--effort=0", "--at=2026-11-15T12:00:00Z") as served:
        yield served


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    opened = browser.new_page(viewport={"width": 1280, "height": 800})
    opened.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    faults: list[str] = []
    opened.on("console", lambda message: faults.append(message.text))
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.goto(address)
    expect(opened.locator(".totals")).not_to_contain_text("still being read")
    yield opened
    expect.set_options(timeout=5_000)
    assert faults == []
    opened.close()


def explain(page: Page, about: str) -> str:
    """What the sheet says of a node or a pod, once all of it is worked out."""
    page.evaluate(f"karpool.explain({about})")
    expect(page.locator("#sheet .asked h3").first).to_be_visible()
    return page.locator("#sheet").inner_text()


def test_brakes_name_the_pool_that_they_hold_and_warnings_stand_there_once(page: Page, address: str) -> None:
    page.goto(f"{address}#plan")
    expect(page.locator("#view .brakes")).to_have_text(
        [
            (
                "Nothing of NodePool sale is disrupted at this time. Paused: NodePool sale: is paused by its annotation"
                " karpool.sh/paused: until Monday"
            )
        ]
    )
    assert page.locator("body").inner_text().lower().count(WARNING.lower()) == 1


def test_nodes_without_a_pool_are_found_by_the_filter_that_offers_them(page: Page) -> None:
    page.get_by_label("Pool", exact=True).select_option("none")
    expect(page.get_by_role("searchbox")).to_have_value("pool:none")
    expect(page.locator(".bar-name")).to_have_text(["metal"])


def test_a_label_that_a_pod_lacks_is_that_of_its_namespace(page: Page, address: str) -> None:
    search = page.get_by_role("searchbox")
    for words, found in (
        ("label:team=discovery", ["ip-10-0-0-1"]),
        ("label:team=other", ["ip-10-0-0-2"]),
        ("label:team", ["ip-10-0-0-0", "ip-10-0-0-1", "ip-10-0-0-2"]),
    ):
        search.fill(words)
        expect(page.locator(".bar-name")).to_have_text(found)
    page.goto(f"{address}#costs")
    page.get_by_role("button", name="By label").click()
    page.get_by_label("Label to group by").focus()
    expect(page.locator("#pod-labels option[value=team]")).to_have_count(1)


def test_a_pod_without_a_node_is_told_why_it_waits(page: Page) -> None:
    said = explain(page, "{pod: karpool.live.fleet.podsByName.get('shop/waits')}")
    assert "Why does it wait?" in said
    assert "it would go to metal" in said
    assert "1 node would take it:" in said
    assert "Why is it here" not in said
    assert "other node" not in said
    page.keyboard.press("Escape")
    said = explain(page, "{pod: karpool.live.fleet.podsByName.get('shop/too-large')}")
    assert "No node that exists would take it." in said
    assert "Why does none take it?" in said
    assert "cpu" in said


def test_a_sheet_that_is_opened_as_another_closes_gets_its_answer_and_leads_back_to_none(page: Page) -> None:
    explain(page, "{pod: karpool.live.fleet.podsByName.get('shop/waits')}")
    page.evaluate(
        "document.getElementById('sheet').close();"
        "karpool.explain({pod: karpool.live.fleet.podsByName.get('shop/too-large')})"
    )
    expect(page.locator("#sheet .asked h3").first).to_have_text("Why does it wait?")
    expect(page.locator("#sheet").get_by_role("button", name="Back")).to_have_count(0)


def test_a_node_of_nobody_is_told_in_whole_sentences(page: Page) -> None:
    said = explain(page, "{node: karpool.live.fleet.byName.get('metal')}")
    assert "? $/h\n" in said
    assert "? $/h ·" not in said
    assert "It stays. NotManaged: has neither a NodeClaim" in said
    assert "--" not in said
    waits = page.locator("#sheet tr", has_text="shop/waits")
    expect(waits.locator(".badge")).to_have_text("waits, expected here")
    expect(page.locator("#sheet tr", has_text="shop/trainer").first.locator(".badge")).to_have_count(0)


def test_a_node_that_goes_says_why(page: Page) -> None:
    expect(page.locator(".totals")).to_contain_text("The plan saves")
    said = explain(page, f"{{node: karpool.live.fleet.byName.get('web-0{ENDING}')}}")
    assert "delete in step 1: Empty" in said
    assert "Why it goes\nEmpty: " in said


def test_a_scenario_to_keep_names_the_file_that_the_page_is_about(page: Page, address: str, cluster: Path) -> None:
    page.goto(f"{address}#what-if")
    page.get_by_role("button", name="No budgets").click()
    page.locator(".exports summary", has_text="Scenario").click()
    first, *_ = page.locator(".exports pre").last.inner_text().splitlines()
    assert first == f"# karpool snapshot -f '{cluster}' -o cluster.json.zst && karpool simulate FILE"


@pytest.mark.parametrize("width", [390, 1280, 1440, 1920])
def test_what_fields_ask_for_can_be_read(page: Page, address: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for view in ("fleet", "what-if"):
        page.goto(f"{address}#{view}")
        page.reload()
        expect(page.locator("#view input").first).to_be_visible()
        assert faults_of_looks(page) == []


@pytest.mark.parametrize("view", ["fleet", "plan"])
def test_all_bars_are_printed_also_those_out_of_sight(page: Page, address: str, view: str) -> None:
    page.set_viewport_size({"width": 390, "height": 400})
    page.goto(f"{address}#{view}")
    expect(page.locator(".pool-facts", has_text=f"{PAUSED_NODES} nodes")).to_be_visible()
    assert page.locator(".bar").count() < PAUSED_NODES
    page.evaluate(PRINT)
    expect(page.locator(".bar")).to_have_count(PAUSED_NODES + 3)
    names = page.locator(".bar-name").all_text_contents()
    assert len(set(names)) == len(names)
    assert f"ip-10-0-0-{PAUSED_NODES - 1}" in names
