"""Who may read the pages, with which methods, and what a browser may do with them."""

import asyncio
import re
from pathlib import Path
from typing import Any

from aiohttp import web
from tests.tables import row, table
from tests.web.shown import Served, StoreSource, ask_served

from karpool.observability.serving import Address

ASSETS = Path(__file__).resolve().parents[2] / "src" / "karpool" / "web" / "assets"
PATHS = ("/", "/assets/main.js", "/data/clusters", "/data/fleet", "/data/pods", "/data/ask/plan")
EVERYWHERE = Address("0.0.0.0", 0)  # noqa: S104


def statuses(*, paths: tuple[str, ...] = PATHS, method: str = "GET", **headers: str) -> set[int]:
    async def ask(pages: Served) -> set[int]:
        return {(await pages.get(path, method, **headers))[0] for path in paths}

    found: set[int] = ask_served(ask)
    return found


@table(
    row("a name that leads to this machine", host="evil.example"),
    row("with a port", host="evil.example:8088"),
    row("one that begins as localhost does", host="localhost.evil.example"),
    row("an address of the network", host="192.168.1.5:8088"),
    row("nothing", host=""),
    row("what is no name", host="[::1"),
)
def test_only_localhost_is_a_name_for_it(host: str) -> None:
    assert statuses(Host=host) == {403}


@table(row(host="localhost:1"), row(host="127.0.0.1"), row(host="LOCALHOST:8088"), row(host="[::1]:8088"))
def test_a_forwarded_port_may_have_another_number(host: str) -> None:
    assert statuses(paths=("/", "/data/fleet"), Host=host) == {200}


@table(
    row("another site", origin="http://evil.example"),
    row("another port of this machine", origin="http://localhost:9"),
    row("a page of a file", origin="null"),
    row("what is no address", origin="http://[::1"),
)
def test_requests_of_other_pages_are_refused(origin: str) -> None:
    assert statuses(Origin=origin, Host="localhost:8088") == {403}


def test_requests_of_its_own_page_are_answered() -> None:
    assert statuses(paths=("/data/fleet",), Origin="http://localhost:8088", Host="localhost:8088") == {200}


@table(
    row("read by a script of another site", mode="no-cors", dest="script", site="cross-site", status=403),
    row("fetched by another site", mode="cors", dest="empty", site="cross-site", status=403),
    row("fetched by another port of this machine", mode="cors", dest="empty", site="same-site", status=403),
    row("framed by another site", mode="navigate", dest="iframe", site="cross-site", status=403),
    row("opened by a link of another site", mode="navigate", dest="document", site="cross-site", status=200),
    row("typed into the address bar", mode="navigate", dest="document", site="none", status=200),
    row("fetched by its own page", mode="cors", dest="empty", site="same-origin", status=200),
)
def test_what_a_browser_says_of_a_request_counts(mode: str, dest: str, site: str, status: int) -> None:
    headers = {"Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest, "Sec-Fetch-Site": site}
    assert statuses(paths=("/", "/data/fleet"), **headers) == {status}


@table(*(row(method=method) for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS")))
def test_nothing_can_be_written(method: str) -> None:
    assert statuses(method=method) == {405}


def test_head_is_answered_without_work() -> None:
    assert statuses(method="HEAD") == {200}


def test_every_answer_forbids_scripts_and_styles_that_are_not_files_of_the_page() -> None:
    async def ask(pages: Served) -> list[dict[str, str]]:
        return [(await pages.get(path))[2] for path in ("/", "/assets/console.css", "/data/fleet", "/assets/none")]

    for headers in ask_served(ask):
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_the_page_has_no_script_or_style_of_its_own_and_loads_nothing_from_elsewhere() -> None:
    page = (ASSETS / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"<style|\bstyle=|\bon[a-z]+=", page) == []
    for file in ASSETS.iterdir():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, file.name
        assert "https://" not in text, file.name


def test_no_script_makes_elements_of_text() -> None:
    for file in ASSETS.glob("*.js"):
        assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", file.read_text()) == []


@table(
    row(path="/assets/..%2Fconsole.py"),
    row(path="/assets/%2e%2e%2fpages.py"),
    row(path="/assets/nothing.js"),
    row(path="/api/nothing"),
)
def test_only_files_of_the_page_are_served(path: str) -> None:
    assert statuses(paths=(path,)) == {404}


def test_a_cluster_that_is_not_there_is_none_and_a_question_that_nobody_knows_is_refused() -> None:
    assert statuses(paths=("/data/fleet?cluster=other",)) == {404}
    assert statuses(paths=("/data/ask/everything", "/data/ask/node", "/data/ask/pod?name=" + "x" * 700)) == {400}


@table(row(query="after=-1"), row(query="after=9e9"), row(query="after=" + "9" * 400), row(query="after=%00"))
def test_numbers_that_are_none_count_as_zero(query: str) -> None:
    async def ask(pages: Served) -> Any:
        return await pages.json(f"/data/pods?{query}")

    assert len(ask_served(ask)["pods"]) == 2


@table(row(last="9" * 5000), row(last="-1"), row(last="x"))
def test_an_event_that_never_was_counts_as_the_first(last: str) -> None:
    assert statuses(paths=("/data/events?epoch=other",), **{"Last-Event-ID": last}) == {200}


def test_beyond_the_loopback_interface_a_guard_is_asked_for_everything() -> None:
    asked: list[str] = []

    async def guard(request: web.Request) -> web.Response | None:
        asked.append(request.path)
        return None if request.headers.get("Authorization") == "Bearer good" else web.Response(status=401)

    async def ask(pages: Served) -> list[set[int]]:
        without = {(await pages.get(path))[0] for path in PATHS}
        token = {"Authorization": "Bearer good"}
        named = {(await pages.get(path, Host="karpool.example", **token))[0] for path in ("/", "/data/fleet")}
        return [without, named]

    assert ask_served(ask, address=EVERYWHERE, guard=guard) == [{401}, {200}]
    assert set(asked) == set(PATHS)


def test_beyond_the_loopback_interface_nobody_is_answered_without_a_guard() -> None:
    async def ask(pages: Served) -> set[int]:
        return {(await pages.get(path))[0] for path in PATHS}

    assert ask_served(ask, address=EVERYWHERE) == {403}


def test_a_cluster_is_opened_once_for_all_pages() -> None:
    source = StoreSource()

    async def ask(pages: Served) -> None:
        await asyncio.gather(*(pages.json("/data/fleet") for _ in range(20)))

    ask_served(ask, source)
    assert source.opened == 1
