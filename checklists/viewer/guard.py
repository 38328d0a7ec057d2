"""Who may ask: only this machine, only with the viewer's key, never a page of another site.

The key is made by the program, printed in the link, kept by the page in its own storage and sent as a header with each
call. A page of another origin can neither read it nor send that header (a preflight would be needed, and gets no
permission); other users of the machine do not have it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from proxy.relay.hosts import is_loopback, token_matches

KEY_HEADER = "X-Stacktap-Key"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def answer(value: Any, status: int = 200) -> web.Response:
    """A JSON answer; letters beyond ASCII as escapes, so that half a surrogate pair does no harm."""
    return web.json_response(value, status=status, dumps=json.dumps)


def error(status: int, code: str, message: str) -> web.Response:
    """An error as JSON: what happened and what to do."""
    return answer({"error": {"code": code, "message": message}}, status)


def guard(key: str) -> Any:
    """The middleware that refuses whom it must and puts the headers on every answer."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        refused = _refused(request, key)
        if refused is not None:
            response: web.StreamResponse = refused
        else:
            try:
                response = await handler(request)
            except web.HTTPException as failure:
                response = error(failure.status, "http", f"{failure.status} {failure.reason}: there is nothing here")
        response.headers.update(HEADERS)
        return response

    return middleware


def _refused(request: web.Request, key: str) -> web.Response | None:
    host = request.headers.get("Host", "")
    if not host.strip() or not is_loopback(host):
        return error(403, "host_not_allowed", "use http://127.0.0.1 to reach the viewer")
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host.strip().lower():
        return error(403, "origin_not_allowed", "a page of another site may not ask the viewer for anything")
    if not request.path.startswith("/api/"):
        return None
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return error(403, "origin_not_allowed", "a page of another site may not ask the viewer for anything")
    given = request.headers.get(KEY_HEADER)
    if not token_matches(given.encode("utf-8", "surrogateescape") if given is not None else None, key):
        return error(401, "key_needed", "open the link that `stacktap view` printed: it carries the key")
    if request.method == "POST" and request.content_type != "application/json":
        return error(415, "json_needed", "send application/json")
    return None
