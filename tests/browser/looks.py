"""How a page looks: what is cut off, what is on the first screen, what one can see of the focus."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

_WIDE = """
() => {
  const width = document.documentElement.clientWidth;
  const found = [];
  const whole = document.scrollingElement.scrollWidth;
  if (whole > width) found.push(`page ${whole} of ${width}`);
  for (const node of document.querySelectorAll('body *')) {
    const box = node.getBoundingClientRect();
    if (!box.width || box.right <= width + 1) continue;
    let inside = false;
    for (let up = node.parentElement; up; up = up.parentElement) {
      const style = getComputedStyle(up);
      if (/(auto|scroll|hidden|clip)/.test(style.overflowX) && up !== document.body
          && up !== document.documentElement) inside = true;
    }
    if (!inside) found.push(`<${node.localName} class=${node.getAttribute('class')}> to ${Math.round(box.right)}`);
  }
  return found.slice(0, 10);
}
"""


def too_wide(page: Page) -> list[str]:
    """What makes the page scroll sideways; what scrolls within a box of its own is left out."""
    return list(page.evaluate(_WIDE))


def open_folds(page: Page) -> None:
    """Open all that is folded up."""
    page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")


_SEEN = """
selector => {
  const box = document.querySelector(selector)?.getBoundingClientRect();
  return Boolean(box && box.width && box.top >= 0 && box.top < innerHeight && box.left >= 0 && box.left < innerWidth);
}
"""


def seen(page: Page, selector: str) -> bool:
    """Whether the first such element lies within the window, at least its upper part, by and by (pages scroll)."""
    for _ in range(20):
        if page.evaluate(_SEEN, selector):
            return True
        page.wait_for_timeout(100)
    return False


def colours(page: Page) -> tuple[str, str]:
    """Background and text colour of the page."""
    return tuple(  # type: ignore[return-value]
        page.evaluate("(style => [style.backgroundColor, style.color])(getComputedStyle(document.body))")
    )


def focus_shows(page: Page) -> bool:
    """Whether the focused element differs in its looks from the same element without focus."""
    return bool(
        page.evaluate(
            """() => {
              const node = document.activeElement;
              const looks = () => {
                const style = getComputedStyle(node);
                return [style.outlineStyle, style.outlineWidth, style.outlineColor, style.boxShadow, style.border,
                        style.background].join();
              };
              const focused = looks();
              node.blur();
              const plain = looks();
              node.focus();
              return focused !== plain;
            }"""
        )
    )
