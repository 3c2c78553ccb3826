"""What moves in a live cluster is drawn on its way. Needs Debian's chromium; nothing is downloaded."""

import asyncio
import shutil
from dataclasses import dataclass
from typing import Final

import pytest
from msgspec.structs import replace
from playwright.async_api import Page, async_playwright, expect
from tests.factories import pod
from tests.web.shown import Served, StoreSource, ask_served

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CHROMIUM: Final = shutil.which("chromium")
WATCH_FLIGHTS: Final = """() => {
    window.flights = 0;
    new MutationObserver(changes => {
        for (const change of changes) {
            for (const part of change.addedNodes) window.flights += part.classList?.contains("flying") ? 1 : 0;
        }
    }).observe(document.body, {childList: true});
}"""


@dataclass(frozen=True)
class Watched:
    """A page in a browser, and the cluster that it shows."""

    page: Page
    source: StoreSource

    async def flights(self, count: int) -> None:
        """Wait until so many pods have been drawn on their way."""
        for _ in range(100):
            if await self.page.evaluate("window.flights") == count:
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"not {count} but {await self.page.evaluate('window.flights')} pods fly")


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_pods_fly_from_node_to_node(motion: str) -> None:
    """One that is bound, and one that takes the place of another; nothing flies for those who want less motion."""
    if CHROMIUM is None:
        pytest.skip("NOT TESTED: the page in a browser; install it with `apt-get install chromium`")
    source = StoreSource()
    drawn = 1 if motion == "no-preference" else 0

    async def look(served: Served) -> None:
        async with async_playwright() as playwright:
            arguments = ["--headless", "--no-sandbox", "--disable-gpu"]
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
            page = await browser.new_page(reduced_motion="reduce" if motion == "reduce" else "no-preference")
            await page.goto(served.base)
            await expect(page.locator(".bar")).to_have_count(2, timeout=60_000)
            await expect(page.locator(".totals")).to_contain_text("1 pod waiting", timeout=60_000)
            await page.evaluate(WATCH_FLIGHTS)
            watched = Watched(page, source)
            waits = source.store.pods.get("default/waits")
            assert waits is not None
            source.store.pods.put(replace(waits, spec=replace(waits.spec, node_name="a")))
            await expect(page.locator(".totals")).to_contain_text("none waiting", timeout=60_000)
            await watched.flights(drawn)
            source.store.pods.remove("default/cart")
            source.store.pods.put(pod("cart-2", node="b", cpu="500m", memory="1Gi"))
            await expect(page.locator(".bar", has_text="b").locator(".slice")).to_have_count(1, timeout=60_000)
            await watched.flights(2 * drawn)
            await expect(page.locator(".flying")).to_have_count(0, timeout=60_000)
            await browser.close()

    ask_served(look, source)
