"""Whether two requests are the same: a ladder from the same bytes to the same meaning. Pure.

Rungs: `bytes`; `json` (equal values); `normalised` (equal once defaults and empty fields are dropped); `nonces` (equal
but for what clients make anew each time: ids, dates and times, random names, masked secrets).
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from typing import Any

RUNGS = ("bytes", "json", "normalised", "nonces")

_IDS = frozenset({"id", "tool_call_id", "call_id", "tool_use_id", "item_id", "response_id", "previous_response_id"})
_PER_SESSION = frozenset(
    {
        "user",
        "user_id",
        "session_id",
        "request_id",
        "conversation_id",
        "prompt_cache_key",
        "safety_identifier",
        "metadata",
        "client_metadata",
    }
)
"""Fields at the top of a request that name a session or a user: no server answers differently for them."""

_NONCE = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"  # UUID
    r"|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b"  # ISO 8601
    r"|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? +(?:\d{1,2} +)?[A-Z][a-z]{2,8}(?: +\d{1,2},?)?(?: +\d{4})?\b"
    r"|\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AaPp][Mm])?\b"  # a time of day
    r"|\b1[0-9]{9}(?:\.\d+|\d{3}|\d{6})?\b"  # seconds, milliseconds, microseconds since 1970
    r"|\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{12,}\b"  # hashes, random names
    r"|(?<=/tmp/)[A-Za-z0-9_.-]+|(?<=/T/)[A-Za-z0-9_.-]+"  # folders of mktemp
    r"|\*{4,}"  # masked by the recorder
)


_MAY_HOLD = re.compile(r"[0-9]|/tmp/|/T/|\*{4}")


def keys_of(method: str, path: str, body: bytes) -> tuple[bytes, bytes, bytes]:
    """The digests of a request, one for each of `RUNGS` but the last; of what is no JSON they are the same."""
    exact = _digest(method, path, body)
    try:
        value = json.loads(body) if body else None
        plain = json.dumps(value, sort_keys=True)
        fewer = json.dumps(_normalised(value, path), sort_keys=True)
    except (ValueError, RecursionError):
        return exact, exact, exact
    return exact, _digest(method, path, plain.encode()), _digest(method, path, fewer.encode())


def loose_key(method: str, path: str, body: bytes) -> bytes:
    """The digest of a request without what clients make anew each time: the last of `RUNGS`."""
    try:
        value = _normalised(json.loads(body) if body else None, path)
        rough = json.dumps(_without_nonces(value), sort_keys=True)
    except (ValueError, RecursionError):
        rough = _rough(body.decode("latin-1"))
    return _digest(method, _rough(path), rough.encode())


def _rough(text: str) -> str:
    """Text without nonces. Nearly all of them have a digit: prose is not looked through."""
    return _NONCE.sub("*", text) if _MAY_HOLD.search(text) else text


def _digest(method: str, path: str, body: bytes) -> bytes:
    head = f"{method} {path}\n".encode("utf-8", "surrogatepass")
    return blake2b(head + body, digest_size=16).digest()


def _normalised(value: Any, path: str) -> Any:
    value = _without_empty(value)
    if isinstance(value, dict):
        streams_by_default = "/api/" in path
        if value.get("stream", streams_by_default) == streams_by_default:
            value.pop("stream", None)
    return value


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _without_empty(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item not in (None, {}, [])}
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    return value


def _without_nonces(value: Any) -> Any:
    seen: dict[str, str] = {}
    if isinstance(value, dict):
        value = {name: item for name, item in value.items() if name not in _PER_SESSION}
    return _masked(value, seen)


def _masked(value: Any, seen: dict[str, str]) -> Any:
    """Ids become their place in the order in which they first come, so that what refers to what is kept."""
    if isinstance(value, str):
        return _rough(value)
    if isinstance(value, list):
        return [_masked(item, seen) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: seen.setdefault(item, f"id {len(seen)}")
        if name in _IDS and isinstance(item, str)
        else _masked(item, seen)
        for name, item in value.items()
    }


def leaves_of(body: bytes) -> set[tuple[str, str]]:
    """Leaves of a JSON body as (path, text), so that two bodies can be compared field by field."""
    try:
        value = json.loads(body) if body else None
    except (ValueError, RecursionError):
        return {("body", body.decode("latin-1"))}
    leaves: set[tuple[str, str]] = set()
    open_values: list[tuple[str, Any]] = [("", value)]
    while open_values:
        path, item = open_values.pop()
        if isinstance(item, dict):
            open_values.extend((f"{path}.{name}".lstrip("."), inner) for name, inner in item.items())
        elif isinstance(item, list):
            open_values.extend((f"{path}[{number}]", inner) for number, inner in enumerate(item))
        else:
            leaves.add((path, json.dumps(item)))
    return leaves
