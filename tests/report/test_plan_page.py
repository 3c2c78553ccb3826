import json
import re
from html.parser import HTMLParser
from typing import Any

from msgspec.structs import replace
from tests.report import samples

from karpool.model.reasons import Reason
from karpool.report.plans.document import Drawing, DrawnNode, DrawnPod, PlanDocument, PricesPart
from karpool.report.plans.plan_page import plan_page

HOSTILE = "</script><script>alert(1)</script><!--$data&lt;\u2028"


def embedded(page: str) -> Any:
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    return json.loads(data[1])


def hostile() -> tuple[PlanDocument, Drawing]:
    plan, _ = samples.small()
    node = replace(plan.nodes[0], name=HOSTILE, node_pool=HOSTILE, reasons=(Reason(HOSTILE, HOSTILE, HOSTILE),))
    pod = DrawnPod(name=HOSTILE, cpu=0.5, memory=0.5, workload=HOSTILE)
    drawn = DrawnNode(name=HOSTILE, cpu=4.0, memory=2.0**34, price_per_hour=None, pods=(pod,))
    return replace(plan, nodes=(node,), commands=()), Drawing(before=(drawn,), after=(drawn,))


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href"}]


def test_a_name_cannot_leave_the_data() -> None:
    page = plan_page(*hostile())
    elements = Elements()
    elements.feed(page)
    assert elements.tags.count("script") == 2
    assert "alert(1)</script>" not in page
    assert embedded(page)["nodes"][0]["name"] == HOSTILE


def test_what_brakes_hold_stands_above_the_totals() -> None:
    plan, drawing = samples.small()
    page = plan_page(samples.stopped(plan), drawing)
    order = [page.index(text) for text in ("Nothing is disrupted", "Nothing of NodePool spot", 'id="totals"')]
    assert order == sorted(order)
    assert 'class="card brakes"' not in plan_page(plan, drawing)


def test_what_brakes_say_is_text() -> None:
    plan, drawing = samples.small()
    stopped = samples.stopped(plan)
    page = plan_page(replace(stopped, stops=(replace(stopped.stops[0], message=HOSTILE),)), drawing)
    assert "alert(1)</script>" not in page
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page


def test_steps_say_when_rates_let_them_begin() -> None:
    plan, drawing = samples.small()
    page = plan_page(samples.paced(plan), drawing)
    assert [command["begins"] for command in embedded(page)["commands"]] == ["09:30 UTC", "10:30 UTC", "11:30 UTC"]
    assert "Rates spread the steps over 2h" in page


def test_the_head_names_the_cluster_and_where_prices_come_from() -> None:
    plan, drawing = samples.small()
    prices = (PricesPart(source="price list", cloud="aws", region="eu-west-1", date="2026-08-01"),)
    page = plan_page(replace(plan, prices=prices), replace(drawing, cluster="production <b>"))
    head = page[page.index("<header") : page.index("</header>")]
    assert '<b class="cluster-name">production &lt;b&gt;</b>' in head
    assert "Prices: aws eu-west-1, price list of 2026-08-01." in head
    assert "<title>Karpool plan: production &lt;b&gt;</title>" in page
    assert page.count("price list of 2026-08-01") == 1


def test_the_page_needs_no_network() -> None:
    page = plan_page(*samples.small())
    elements = Elements()
    elements.feed(page)
    assert elements.addresses == ["#cluster"]
    assert "default-src 'none'" in page
    assert "unsafe-inline" not in page
    assert "url(" not in page


def test_the_script_writes_text_only() -> None:
    page = plan_page(*samples.small())
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", page)


def test_a_pod_is_stored_once_and_moves_are_node_numbers() -> None:
    data = embedded(plan_page(*samples.small()))
    names = [pod[0] for pod in data["pods"]]
    assert len(names) == len(set(names))
    pod, source, target = data["commands"][1]["moves"][0]
    assert (pod, data["nodes"][source]["name"], data["nodes"][target]["name"]) == (
        "data/kafka-1",
        "ip-10-0-1-37",
        "new-1",
    )


def test_a_node_that_did_not_change_is_drawn_from_its_first_state() -> None:
    nodes = {node["name"]: node for node in embedded(plan_page(*samples.small()))["nodes"]}
    assert "after" not in nodes["ip-10-0-3-66"]
    assert nodes["ip-10-0-2-77"]["after"] is None
    assert nodes["new-1"]["before"] is None
    assert len(nodes["ip-10-0-1-11"]["after"]) > len(nodes["ip-10-0-1-11"]["before"])


def test_a_step_with_several_replacements_has_them_all_with_the_pods_that_go_there() -> None:
    data = embedded(plan_page(*samples.several()))
    (command,) = data["commands"]
    names = [node["name"] for node in data["nodes"]]
    assert [names[new["node"]] for new in command["replacements"]] == ["new-1", "new-2"]
    assert {names[target] for _, _, target in command["moves"]} == {"new-1", "new-2"}
    assert [node["came"] for node in data["nodes"] if node["verdict"] == "new"] == [1, 1]


def test_the_price_is_drawn_against_evictions_with_the_least_possible() -> None:
    page = plan_page(*samples.several())
    assert "Within 2.1 % of the least possible (2.00 $/h)" in page
    assert page.count('class="dot"') == 2
    assert "<title>After step 1: 2.33 $/h, 7 evictions</title>" in page
    assert page.count('class="least"') == 1


def test_a_plan_that_evicts_nothing_has_no_picture() -> None:
    plan, drawing = samples.small()
    assert "<svg viewBox" not in plan_page(replace(plan, commands=(), curve=plan.curve[:1]), drawing)


def test_a_plan_without_prices_has_no_picture() -> None:
    plan, drawing = samples.several()
    curve = tuple(replace(point, price_per_hour=None) for point in plan.curve)
    assert "<svg viewBox" not in plan_page(replace(plan, curve=curve), drawing)


def test_a_page_of_two_thousand_nodes_stays_small() -> None:
    assert len(plan_page(*samples.large(2000)).encode()) < 6_000_000
