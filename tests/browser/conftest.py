"""The browser that pages are opened in: Debian's chromium; nothing is downloaded."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("NOT TESTED: the page in a browser; install it with `apt-get install chromium`")
    with sync_playwright() as playwright:
        arguments = ["--headless", "--no-sandbox", "--disable-gpu"]
        opened = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield opened
        opened.close()
