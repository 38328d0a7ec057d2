"""Captured exchanges of real Ollama servers, read for replay: what was asked, what came back, what it rests on.

A captures file is JSON lines: a `kind: meta` line (`version`, `model`, and where several files are packed into one,
`file`), then the exchanges taken from one server in order.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

from proxy.replay.framing import payload, reframed, split_head
from proxy.replay.ollama_meaning import Meaning, meaning_of

_STUCK = "server-stuck-after-earlier-parser-error"
_TOKENS = re.compile(rb'"(?:eval_count|completion_tokens|output_tokens)":(\d+)')
_PROMPT = re.compile(rb'"(?:prompt_eval_count|prompt_tokens|input_tokens)":(\d+)')
_CUT = re.compile(
    rb'"(?:done_reason|finish_reason)":"length"|"stop_reason":"max_tokens"|"reason":"max_output_tokens"'
    rb"|unexpected end of JSON input"
)
_LONGEST_FILE = 256 << 20


class CapturesError(Exception):
    """A captures file cannot be read; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One captured exchange. `raw` is the answer with its framing repaired, empty where no byte came (`stuck`: because
    of an earlier parser error). `tokens` and `prompt_tokens` are what the answer counts, None where it does not.
    """

    source: str
    version: str
    canary: str
    meaning: Meaning
    body: bytes
    raw: bytes
    status: int
    payload: bytes = b""
    stuck: bool = False
    whole: bool = True
    cut: bool = False
    tokens: int | None = None
    prompt_tokens: int | None = None
    known_text: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)


def read_captures(paths: Iterable[Path]) -> list[Taken]:
    """Every exchange of captures files (`.jsonl`, `.jsonl.zst`) or of folders of them. Raises CapturesError."""
    found: list[Taken] = []
    for path in paths:
        for file in sorted(path.glob("ollama*.jsonl*")) if path.is_dir() else [path]:
            found += taken_from(_lines(file), file.name.split(".jsonl")[0])
    return found


def taken_from(lines: Iterable[str], source: str) -> list[Taken]:
    """The exchanges of one captures file, in order. Raises CapturesError naming the line that is none."""
    meta: dict[str, Any] = {}
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if record.get("kind") == "meta":
                meta = record
            elif "request" in record:
                found.append(_taken(record, str(meta.get("file", source)), meta))
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise CapturesError(f"{source}, line {number}: not a captured exchange ({wrong!r})") from None
    return found


def _lines(path: Path) -> Iterator[str]:
    try:
        data = path.read_bytes()
        if path.suffix == ".zst":
            data = zstandard.ZstdDecompressor().decompress(data, max_output_size=_LONGEST_FILE)
    except (OSError, zstandard.ZstdError) as failure:
        raise CapturesError(f"cannot read the captures {path}: {failure}") from None
    yield from data.decode("utf-8", "surrogateescape").split("\n")


def _taken(record: dict[str, Any], source: str, meta: dict[str, Any]) -> Taken:
    request = record["request"]
    body = request.get("body")
    text = "" if body is None else body if isinstance(body, str) else json.dumps(body)
    encoded = record.get("response_raw_base64")
    raw = base64.b64decode(encoded) if encoded else str(record.get("response_raw") or "").encode()
    raw = raw if request["method"] == "HEAD" else reframed(raw)
    head, _ = split_head(raw)
    inside = payload(raw)
    asked = meaning_of(str(request["method"]), str(request["path"]), text.encode())
    return Taken(
        source=f"{source}/{record['id']}",
        version=str(meta.get("version", "")),
        canary=str(meta.get("model", "")) if "canary" in str(meta.get("model", "")) else "",
        meaning=asked,
        body=text.encode(),
        raw=raw,
        status=int(head.split(b" ", 2)[1]) if head else 0,
        payload=inside,
        stuck=not raw and (_STUCK in record["id"] or asked.budget is not None),
        whole=record.get("ended", "eof") == "eof" and bool(raw),
        cut=bool(_CUT.search(inside)),
        tokens=_last(_TOKENS, inside),
        prompt_tokens=_last(_PROMPT, inside),
        known_text=record.get("canary_text") or None,
        meta=meta,
    )


def _last(pattern: re.Pattern[bytes], data: bytes) -> int | None:
    found = pattern.findall(data)
    return int(found[-1]) if found else None
