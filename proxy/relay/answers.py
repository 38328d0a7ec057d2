"""The relay's own answers, told apart from the upstream's by `x-stacktap-error: CODE`.

The JSON body has the shape that OpenAI and Anthropic clients print: an `error` object with message, type and code.
"""

from __future__ import annotations

import json

STATUS = {
    "upstream_refused": 502,
    "upstream_unreachable": 502,
    "name_not_resolved": 502,
    "tls_failed": 502,
    "timeout_connect": 504,
    "timeout_read": 504,
    "no_route": 400,
    "host_not_allowed": 403,
    "token_required": 401,
    "journal_failed": 503,
    "relay_stopped": 503,
}
"""HTTP status for each code of `proxy.tap.FAULTS`."""

_REASONS = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


def answer(code: str, detail: str, *, method: bytes = b"") -> bytes:
    """A complete response for a fault; without a body where the request was HEAD. The connection is closed after it."""
    status = STATUS[code]
    error = {"message": f"stacktap: {detail}", "type": "stacktap_error", "code": code, "param": None}
    body = json.dumps({"type": "error", "error": error}, ensure_ascii=False).encode()
    lines = [
        f"HTTP/1.1 {status} {_REASONS[status]}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        f"x-stacktap-error: {code}",
        "connection: close",
    ]
    if status == 401:
        lines.append('www-authenticate: Bearer realm="stacktap"')
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"
    return head if method == b"HEAD" else head + body
