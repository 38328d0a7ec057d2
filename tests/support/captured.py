"""Captured exchanges for tests: a splitter of raw HTTP responses, the committed selection, the shared corpus."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

from stacks.dialects import WireExchange

ROOT = Path(__file__).resolve().parents[2]
SELECTION = ROOT / "tests" / "data" / "captures" / "selection.jsonl.zst"


@dataclass
class Captured:
    """One captured exchange: where it comes from, the exchange, and the text the model is known to write."""

    source: str
    id: str
    exchange: WireExchange
    canary_text: str | None
    meta: dict[str, Any]
    record: dict[str, Any]


def shared_folder() -> Path | None:
    """The shared corpus: the folder named by STACKTAP_SHARED, or `shared` beside the repository; None without one."""
    named = os.environ.get("STACKTAP_SHARED")
    for folder in (Path(named) if named else None, ROOT.parent / "shared"):
        if folder is not None and (folder / "captures").is_dir():
            return folder
    return None


_SIZE_LINE = re.compile(rb"(?:\A|\r\n)([0-9a-fA-F]{1,8})\r\n")


def dechunk(body: bytes) -> tuple[bytes, bool]:
    """(payload, complete) of a chunked body. Sizes are believed only where the next size line confirms them: paths in
    the captures were replaced by shorter ones after recording, so that a size can be too large."""
    found = _SIZE_LINE.match(body)
    if found is None:
        return body, True  # already joined by the client that captured it
    parts: list[bytes] = []
    while found is not None:
        size, start = int(found.group(1), 16), found.end()
        if size == 0:
            return b"".join(parts), True
        exact = _SIZE_LINE.match(body, start + size)
        found = exact if exact is not None else _SIZE_LINE.search(body, start)
        parts.append(body[start : found.start() if found is not None else start + size])
    return b"".join(parts), False


def split_response(raw: bytes) -> tuple[int, list[tuple[str, str]], bytes, bool]:
    """(status, headers, decoded body, complete) of a raw HTTP response; status 0 when there is none."""
    head, separator, body = raw.partition(b"\r\n\r\n")
    if not separator or not head.startswith(b"HTTP/"):
        return 0, [], b"", False
    lines = head.decode("latin-1").split("\r\n")
    status = int(lines[0].split()[1])
    headers = []
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers.append((name.strip(), value.strip()))
    lower = {name.lower(): value for name, value in headers}
    complete = True
    if "chunked" in lower.get("transfer-encoding", "").lower():
        body, complete = dechunk(body)
    elif "content-length" in lower and lower["content-length"].isdigit():
        body = body.removesuffix(b"\n") if len(body) == int(lower["content-length"]) + 1 else body
    return status, headers, body, complete


def captured_from(record: dict[str, Any], source: str, meta: dict[str, Any]) -> Captured:
    """Build the exchange of one capture line."""
    request = record["request"]
    body = request.get("body")
    if "body_base64" in request:
        body_bytes = base64.b64decode(request["body_base64"])
    elif body is None:
        body_bytes = b""
    else:
        body_bytes = (body if isinstance(body, str) else json.dumps(body)).encode("utf-8", "surrogatepass")
    if "response_raw_base64" in record:
        raw = base64.b64decode(record["response_raw_base64"])
    else:
        raw = (record.get("response_raw") or "").encode("utf-8", "surrogatepass")
    status, headers, response, complete = split_response(raw)
    complete = complete and record.get("ended", "eof") == "eof"
    exchange = WireExchange(
        request.get("method") or "POST", request.get("path") or "/", body_bytes, status, headers, response, complete
    )
    return Captured(source, record["id"], exchange, record.get("canary_text"), meta, record)


def read_captures(lines: Iterator[str], source: str) -> Iterator[Captured]:
    """All exchanges of one capture file (connection records of agents are left out)."""
    meta: dict[str, Any] = {}
    for line in lines:
        record = json.loads(line)
        if record.get("kind") == "meta":
            meta = record
        elif "request" in record:
            yield captured_from(record, record.get("source", source), meta)


def shared_captures() -> Iterator[Captured]:
    """Every exchange of the shared corpus; empty without one."""
    folder = shared_folder()
    for path in sorted((folder / "captures").glob("*.jsonl")) if folder is not None else ():
        with path.open(encoding="utf-8") as handle:
            yield from read_captures(iter(handle), path.stem)


def selected_captures() -> list[Captured]:
    """The committed selection."""
    text = zstandard.ZstdDecompressor().decompress(SELECTION.read_bytes(), max_output_size=64 << 20).decode("utf-8")
    return list(read_captures(iter(text.splitlines()), "selection"))
