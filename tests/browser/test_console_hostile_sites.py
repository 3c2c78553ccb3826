"""What the page of another site can do to a console that runs on the same machine: nothing. Needs Debian's chromium."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, sync_playwright
from tests.web.processes import console

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
EVIL = "evil.example"
REBOUND = "rebound.example"
"""A name of the attacker that leads to this machine, as one does after DNS rebinding."""
TRIES = """async address => {
  const outcome = async attempt => { try { return await attempt(); } catch { return "refused"; } };
  const element = (tag, attributes) => new Promise(done => {
    const made = Object.assign(document.createElement(tag), attributes);
    made.onload = () => done("loaded");
    made.onerror = () => done("refused");
    document.body.append(made);
  });
  const read = options => async () => (await fetch(address + "data/fleet", options)).text();
  return {
    fetched: await outcome(read({})),
    "with cookies": await outcome(read({credentials: "include"})),
    unread: await outcome(read({mode: "no-cors"})),
    posted: await outcome(read({method: "POST", body: "x"})),
    script: await element("script", {src: address + "data/fleet"}),
    image: await element("img", {src: address + "assets/icon.svg"}),
    followed: await new Promise(done => {
      const events = new EventSource(address + "data/events?epoch=x&after=0");
      events.onopen = () => done("opened");
      events.onerror = () => (events.close(), done("refused"));
    }),
  };
}"""

FRAMED = """address => new Promise(done => {
  document.body.append(Object.assign(document.createElement("iframe"), {src: address, onload: done}));
})"""


@contextmanager
def evil_site() -> Iterator[str]:
    """A site that serves an empty page, on another port of this machine."""

    class Empty(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>free prizes</title><body></body>")

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Requests are not logged."""

    with HTTPServer(("127.0.0.1", 0), Empty) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"http://{EVIL}:{server.server_port}/"
        finally:
            server.shutdown()
            serving.join()


@contextmanager
def visitor() -> Iterator[Page]:
    """A browser for which the attacker's names lead to this machine."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("NOT TESTED: other sites in a browser; install it with `apt-get install chromium`")
    names = f"--host-resolver-rules=MAP {EVIL} 127.0.0.1, MAP {REBOUND} 127.0.0.1"
    with sync_playwright() as playwright:
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", names]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield browser.new_page()
        browser.close()


def test_another_site_can_neither_read_nor_ask_nor_frame_a_console() -> None:
    with (
        console("-f", ROOT / "examples", "--catalog=sample") as address,
        evil_site() as evil,
        visitor() as page,
    ):
        page.goto(evil)
        tried = page.evaluate(TRIES, address)
        assert tried.pop("unread") in ("", "refused")
        assert set(tried.values()) == {"refused"}, tried
        page.evaluate(FRAMED, address)
        assert len(page.frames) == 2
        assert "Karpool" not in page.frames[1].content()

        # A name that leads to this machine is of the attacker's origin, so that nothing but the server can refuse it.
        answer = page.goto(f"http://{REBOUND}:{urlsplit(address).port}/data/fleet")
        assert answer is not None
        assert answer.status == 403
        assert "served as localhost only" in answer.text()

        # A link is followed, as somebody does who types the address.
        page.goto(evil)
        page.evaluate("address => { document.body.innerHTML = `<a href='${address}'>here</a>`; }", address)
        page.get_by_role("link", name="here").click()
        page.wait_for_selector(".pool")
        assert page.evaluate("document.querySelectorAll('.bar').length") == 12
