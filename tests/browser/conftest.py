"""A headless Chromium for all browser tests, a fresh profile for each, and a folder for screenshots."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.install import chromium, missing, playwright_folder
from tests.browser.watch import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[2]
_SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder is a browser test."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, or another that is installed; without one, the tests are skipped by name."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    sys.path.append(str(playwright_folder()))
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), headless=True, args=list(_SWITCHES))
        yield running
        running.close()


Opener = Callable[..., tuple["Page", Watch]]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Opener]:
    """Open a URL in a profile of its own, watched: `open_page(url, allowed, dark=, width=, height=, **context)`."""
    contexts = []

    def opened(
        url: str,
        allowed: Callable[[str], bool],
        *,
        dark: bool = False,
        width: int = 1280,
        height: int = 900,
        **more: Any,
    ) -> tuple[Page, Watch]:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", **more
        )
        contexts.append(context)
        context.set_default_timeout(10_000)
        watch = Watch(context, allowed)
        page = context.new_page()
        page.goto(url, wait_until="load")
        return page, watch

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def shots() -> Path:
    """Where screenshots are kept: `STACKTAP_ARTEFACTS`, by default build/browser (outside git)."""
    folder = Path(os.environ.get("STACKTAP_ARTEFACTS", ROOT / "build" / "browser"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
