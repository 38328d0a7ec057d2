"""Spans on their way to a collector: the one place where an export leaves the machine, and only with `--otlp URL`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from urllib.parse import urlsplit

import httpx

from stacktap.failure import CouldNotRunError

_TRIES = 4
_AGAIN = frozenset((429, 502, 503, 504))
"""Statuses after which the OTLP specification ("Retryable Response Codes") has a client send once more."""

_LONGEST_WAIT = 30.0
_SECONDS = 30.0


def traces_url(url: str) -> str:
    """Where traces go: `/v1/traces` is added to a URL without a path, as the OTLP specification has it. Raises
    CouldNotRunError (exit code 2) for what is no URL over HTTP."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise CouldNotRunError(f"--otlp {url!r} is no URL; write the collector's, e.g. http://localhost:4318", 2)
    return url if parts.path not in ("", "/") else url.rstrip("/") + "/v1/traces"


def send_traces(messages: Iterable[bytes], url: str) -> tuple[int, list[str]]:
    """POST each message (OTLP over HTTP, protobuf); (how many the collector took, what it said against spans).

    Raises CouldNotRunError where one is refused or the collector is not there; what was taken before then stays there.
    """
    from checklists.exports.otlp import rejected_of

    sent, said = 0, []
    headers = {"Content-Type": "application/x-protobuf", "User-Agent": "stacktap"}
    with httpx.Client(timeout=_SECONDS, headers=headers, follow_redirects=False) as client:
        for message in messages:
            answered = _post(client, url, message, sent)
            rejected, why = rejected_of(answered)
            if rejected or why:
                said.append(f"the collector rejected {rejected} spans: {why[:300]}")
            sent += 1
    return sent, said


def _post(client: httpx.Client, url: str, message: bytes, sent: int) -> bytes:
    for left in reversed(range(_TRIES)):
        try:
            answer = client.post(url, content=message)
        except httpx.HTTPError as failure:
            raise CouldNotRunError(
                f"no collector took the spans at {url}: {failure or type(failure).__name__} ({sent} batches were sent)"
            ) from None
        if answer.status_code < 300:
            return answer.content
        if answer.status_code not in _AGAIN or not left:
            break
        time.sleep(_wait(answer.headers.get("retry-after", ""), _TRIES - 1 - left))
    shown = answer.text[:200].encode("ascii", "backslashreplace").decode()
    raise CouldNotRunError(
        f"the collector at {url} answered {answer.status_code}: {shown!r} ({sent} batches were sent)"
    )


def _wait(stated: str, tried: int) -> float:
    return min(float(stated) if stated.isdecimal() and len(stated) < 6 else 0.5 * 2**tried, _LONGEST_WAIT)
