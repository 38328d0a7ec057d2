"""Request targets and the URLs of servers. Pure."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

_ABSOLUTE = re.compile(r"https?://", re.IGNORECASE)
_NOT_FOR_A_URL = re.compile(r"[^!-~]|#")


def origin_form(target: str) -> str:
    """A request target as path and query (RFC 9112, section 3.2.1), also of one that was a whole URL."""
    if _ABSOLUTE.match(target):
        target = "/" + target.split("://", 1)[1].partition("/")[2]
    return target if target.startswith("/") else f"/{target}"


def url_safe(target: str) -> str:
    """A target without bytes that a URL cannot hold, and without what would begin a fragment, percent-encoded."""
    return _NOT_FOR_A_URL.sub(lambda found: f"%{ord(found[0]) & 0xFF:02X}", target)


def parts_of_url(url: str) -> SplitResult | None:
    """The parts of an absolute URL over HTTP; None where it is none."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return None
    return parts if usable else None


def origin_of(url: str) -> str | None:
    """`http://host:port` of a URL: a recorded target holds the path already. None where it is no URL."""
    parts = parts_of_url(url)
    return None if parts is None else f"{parts.scheme}://{parts.netloc}"
