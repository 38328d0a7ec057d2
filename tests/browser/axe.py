"""axe-core on a page: what people with a screen reader, a keyboard or weak eyes could not use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.install import AXE, axe_script

if TYPE_CHECKING:
    from playwright.sync_api import Page

_RUN = """
() => axe.run(document, {preload: false, resultTypes: ['violations'], elementRef: false})
  .then(found => found.violations)
"""
GRAVE = ("serious", "critical")


def violations(page: Page, *, grave: bool = True) -> list[str]:
    """What axe-core finds: one line for each rule and the first places. Skips where axe-core is not there."""
    script = axe_script()
    if not script.is_file():
        pytest.skip(f"axe-core {AXE} is not there (make browser; it needs npm)")
    # Evaluated over the debugging protocol, which the page's own policy does not bind.
    page.evaluate(script.read_text("utf-8") + "; true")
    found: list[dict[str, Any]] = page.evaluate(_RUN)
    return [_line(each) for each in found if not grave or each["impact"] in GRAVE]


def _line(violation: dict[str, Any]) -> str:
    nodes = violation["nodes"]
    places = "; ".join(f"{node['target']} {_why(node)}" for node in nodes[:3])
    return f"{violation['impact']} {violation['id']} ({len(nodes)}): {places}"[:900]


def _why(node: dict[str, Any]) -> str:
    return " ".join(str(node.get("failureSummary", "")).split())[:200]
