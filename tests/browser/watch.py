"""A page watched for everything that recorded data must not do: run, ask for something, become part of the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.support.injection import ELEMENT, HOST, PRODUCT

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

_CANARY = """
window.stacktapCanary = name => { stacktapFired(String(name)); return true; };
window.addEventListener('securitypolicyviolation',
  event => stacktapBlocked(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));
"""

_INSPECT = Path(__file__).with_name("inspect.js").read_text("utf-8")

_SKELETON = """
() => {
  const found = new Set();
  for (const node of document.querySelectorAll('*')) {
    found.add(node.localName);
    for (const {name} of node.attributes) found.add(`${node.localName}[${name}]`);
  }
  return [...found].sort();
}
"""

_RAW = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Watch:
    """What happened in a page since it was made: `fired` (a hostile text ran), `errors` (console, exceptions, a
    blocked violation of the page's own policy), `requests` (those not allowed). All empty in a page that is right."""

    def __init__(self, context: BrowserContext, allowed: Callable[[str], bool]) -> None:
        """Install the canary in every page of the context. `allowed`: whether a request's URL may be asked for."""
        self.fired: list[str] = []
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._allowed = allowed
        context.expose_binding("stacktapFired", lambda _, name: self.fired.append(name))
        context.expose_binding("stacktapBlocked", lambda _, what: self.errors.append(f"blocked: {what}"))
        context.add_init_script(_CANARY)
        context.on("page", self._page)
        context.on("request", self._request)

    def forget(self) -> None:
        """Begin anew."""
        self.fired.clear()
        self.errors.clear()
        self.requests.clear()

    def _page(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.errors.append(f"exception: {error}"))
        page.on("dialog", self._dialog)
        page.on("popup", lambda popup: self.fired.append(f"window {popup.url}"))
        page.on("download", lambda download: self.fired.append(f"download {download.url}"))
        page.on("websocket", lambda socket: self.requests.append(socket.url))

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(f"console {message.type}: {message.text}")

    def _dialog(self, dialog: Any) -> None:
        self.fired.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        if not self._allowed(request.url):
            self.requests.append(request.url)

    def problems(self, page: Page) -> list[str]:
        """Everything that is wrong with the page as it stands, and all that was noticed so far."""
        found = [f"ran: {name}" for name in self.fired]
        found += self.errors
        found += [f"asked for {url}" for url in self.requests]
        try:
            found += page.evaluate(_INSPECT, [ELEMENT, HOST])
            text = page.evaluate("document.documentElement.textContent") + page.title()
        except Exception as error:  # Playwright's own class is known only where Playwright is.
            if "navigation" not in str(error):
                raise
            return [*found, "the page went elsewhere"]
        found += [f"raw character U+{ord(char):04X}" for char in sorted(set(_RAW.findall(text)))]
        if PRODUCT in text:
            found.append("an expression was computed")
        if page.title() == ELEMENT:
            found.append("title: set by a hostile text")
        return found


def skeleton(page: Page) -> set[str]:
    """Which elements a page consists of, and which attributes they have."""
    return set(page.evaluate(_SKELETON))


def only(*urls: str) -> Callable[[str], bool]:
    """Allow exactly these URLs, without their fragments."""
    return lambda url: url.partition("#")[0] in urls


def same_server(base: str) -> Callable[[str], bool]:
    """Allow what is on the same loopback host and port."""
    wanted = urlsplit(base).netloc

    def allowed(url: str) -> bool:
        parts = urlsplit(url)
        return parts.scheme in ("http", "blob") and (parts.netloc == wanted or parts.scheme == "blob")

    return allowed
