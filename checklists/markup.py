"""HTML and SVG as a tree that is escaped by construction: a string is text, and only code can make an element.

Text of a recording is untrusted. Control characters and direction overrides in it are made visible, and what stands in
an attribute or an element cannot end it. Attributes that could carry a script or load something are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from proxy.present import printable

VOID = frozenset({"meta", "br", "hr", "col", "rect", "line", "circle", "path"})
"""Elements without a closing tag in HTML (the SVG ones are written as closed)."""
_CLOSED = frozenset({"rect", "line", "circle", "path"})
_NAME = re.compile(r"[a-z][A-Za-z0-9-]*\Z")
_REFUSED = re.compile(
    r"(?:on.*|style|src|srcset|srcdoc|action|formaction|xlink-href|data|ping|background)\Z", re.IGNORECASE
)
"""Attributes that nothing here needs."""
_INVISIBLE = re.compile(
    r"[\u200b-\u200f\u2028\u2029\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """Text with everything that cannot be seen, or that changes how other text is seen, written out."""
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", printable(text.replace("\r\n", "\n")))


@dataclass(frozen=True, slots=True)
class Tag:
    """One element. `attributes` and `children` are data and are escaped; the names are code's."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    children: tuple[Tag | str, ...]

    def __str__(self) -> str:
        """As HTML."""
        return "".join(_written(self))


def tag(name: str, /, *children: Tag | str | None, **attributes: object) -> Tag:
    """An element. Keyword names: `class_` is class, other underscores are hyphens (`aria_label`), except in the SVG
    name `viewBox`. An attribute that is None or False is left out, True is written without a value.

    Raises ValueError for a name that is none, or an attribute that may run or load something.
    """
    found = []
    for key, value in attributes.items():
        written = key.rstrip("_").replace("_", "-")
        if not _NAME.match(written) or _REFUSED.match(written):
            raise ValueError(f"no attribute {written!r} here")
        if written == "href" and not str(value).startswith("#"):
            raise ValueError("links lead to places on the page only")
        if value is not None and value is not False:
            found.append((written, "" if value is True else str(value)))
    if not _NAME.match(name) or name == "script":
        raise ValueError(f"no element {name!r} here")
    return Tag(name, tuple(found), tuple(child for child in children if child is not None))


def _written(node: Tag | str) -> Iterator[str]:
    if isinstance(node, str):
        yield escape(visible(node), quote=False)
        return
    attributes = "".join(f' {name}="{escape(visible(value))}"' for name, value in node.attributes)
    if node.name in VOID:
        yield f"<{node.name}{attributes}{'/' if node.name in _CLOSED else ''}>"
        return
    yield f"<{node.name}{attributes}>"
    if node.name == "style":
        yield from _style(node.children)
    else:
        for child in node.children:
            yield from _written(child)
    yield f"</{node.name}>"


def _style(children: Sequence[Tag | str]) -> Iterator[str]:
    """A style sheet is code's own and is written as it is; it must not be able to end its element."""
    for child in children:
        if not isinstance(child, str) or "</" in child:
            raise ValueError("a style sheet is plain text")
        yield child
