"""Canary secrets in every place they may stand in: a byte search of the run folder finds none of them."""

from __future__ import annotations

import gzip
import json
import re
import time
from base64 import b64decode, b64encode
from itertools import count, pairwise
from pathlib import Path
from urllib.parse import unquote_to_bytes

import brotli
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from proxy.tap import (
    ConnectionClosed,
    Event,
    Note,
    OpaqueData,
    RelayFault,
    RequestData,
    RequestStarted,
    ResponseData,
)
from results.manifest import UpstreamFacts, new_manifest, write_manifest
from results.reader import RunReader

BEARER, API_KEY, COOKIE = b"sk-bearer-canary-001", b"sk-apikey-canary-002", b"cookie-canary-003-xyz"
QUERY, USER, PASSWORD = b"query-canary/004+=", b"user-canary-005", b"password-canary-006"
UPSTREAM, FLAG, VARIABLE = b"upstream-canary-007", b"flag-canary-008", b"variable-canary-009"
SET_COOKIE, FIELD, PATTERN = b"setcookie-canary-010", b"field canary \xc3\xa9 011", b"ACME-4711-canary"
SECRETS = [
    *(BEARER, API_KEY, COOKIE, QUERY, USER, PASSWORD, UPSTREAM, FLAG, VARIABLE, SET_COOKIE, FIELD, PATTERN),
]
_NUMBERS = count()
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")


def redactor() -> Redactor:
    made = Redactor(patterns=[r"ACME-\d+-[a-z]+"], fields=["ssn"])
    made.learn_url(f"http://joe:{UPSTREAM.decode()}@127.0.0.1:1/")
    made.learn_arguments(["llama-server", "--api-key", FLAG.decode()])
    made.learn_environment({"SOME_API_KEY": VARIABLE.decode()})
    return made


def everything_on_disk(folder: Path) -> bytes:
    """All files, decompressed, and beside each what its JSON strings, base64 and percent escapes say."""
    out = []
    for path in folder.rglob("*"):
        raw = path.read_bytes() if path.is_file() else b""
        if path.suffix == ".zst":
            raw = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True).read()
        out.append(raw)
        for line in raw.splitlines():
            try:
                out.extend(strings(json.loads(line)))
            except ValueError:
                continue
    whole = b"\n".join(out)
    decoded = [whole, unquote_to_bytes(whole)]
    for match in _BASE64.finditer(whole):
        for start in range(4):
            piece = match[0][start:].replace(b"-", b"+").replace(b"_", b"/").rstrip(b"=")
            decoded.append(b64decode(piece[: len(piece) // 4 * 4]))
    decoded.extend(text.replace(b'\\"', b'"').replace(b"\\/", b"/") for text in list(decoded))
    return b"\n".join(decoded)


def strings(value: object) -> list[bytes]:
    if isinstance(value, str):
        raw = value.encode()
        try:
            return [raw, b64decode(raw, validate=True)]
        except ValueError:
            return [raw]
    if isinstance(value, dict):
        return [found for item in value.items() for part in item for found in strings(part)]
    if isinstance(value, list):
        return [found for item in value for found in strings(item)]
    return []


def request_wire() -> tuple[bytes, bytes]:
    body = json.dumps({"ssn": FIELD.decode(), "note": PATTERN.decode(), "echo": f"{BEARER.decode()} {FLAG.decode()}"})
    basic = b64encode(USER + b":" + PASSWORD)
    head = b"POST /v1/x?api_key=query-canary%%2F004%%2B%%3D&a=1 HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %b\r\n"
    head += b"Proxy-Authorization: Basic %b\r\nX-Api-Key: %b\r\nCookie: sid=%b\r\nContent-Length: %d\r\n\r\n"
    return head % (BEARER, basic, API_KEY, COOKIE, len(body)), body.encode()


def echo() -> bytes:
    every = [one.decode() for one in SECRETS]
    text = {"said": every, "nested": json.dumps(every), "b64": b64encode(b"x" + b" ".join(SECRETS[:11])).decode()}
    return json.dumps({**text, "ssn": FIELD.decode()}).encode()


def response_wire(coding: str, *, framed: bool) -> bytes:
    body = echo()
    if coding == "gzip":
        body = gzip.compress(body)
    elif coding == "br":
        body = brotli.compress(body)
    elif coding == "zstd":
        body = zstandard.ZstdCompressor().compress(body)
    head = b"HTTP/1.1 200 OK\r\nX-Echo: %b\r\nSet-Cookie: n=%b; Path=/\r\n" % (API_KEY, SET_COOKIE)
    head += b"Content-Encoding: %b\r\n" % coding.encode() if coding else b""
    if not framed:
        return head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    pieces = [body[at : at + 9] for at in range(0, len(body), 9)]
    framed_body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + framed_body


def split(data: bytes, points: list[int]) -> list[bytes]:
    edges = [0, *sorted({point % (len(data) + 1) for point in points}), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def events(coding: str, framed: bool, points: list[int]) -> list[Event]:
    now = time.monotonic_ns()
    head, body = request_wire()
    parts = split(body, points)
    made: list[Event] = [RequestStarted(1, now, "up", (("k", "v"),), head, parts[0], head.split(b" ")[1], False)]
    made += [RequestData(1, now, part, False) for part in parts[1:]]
    made.append(RequestData(1, now, b"", True))
    made += [ResponseData(1, now, part) for part in split(response_wire(coding, framed=framed), points)]
    made.append(Note(1, now, 1, "seen", {"text": [one.decode() for one in SECRETS]}))
    made += [OpaqueData(2, now, "up", "client", part) for part in split(b" ".join(SECRETS[:10]), points)]
    made.append(OpaqueData(2, now, "up", "upstream", b" ".join(SECRETS[:10])))
    made.append(ConnectionClosed(2, now))
    made.append(RequestStarted(3, now, "up", (), head, body, b"/", True))
    detail = f"no connection to http://joe:{UPSTREAM.decode()}@h"
    made.append(RelayFault(3, now, "upstream_refused", detail, b"HTTP/1.1 502 Bad\r\n\r\n" + UPSTREAM))
    return made


def check(folder: Path, coding: str, framed: bool, points: list[int]) -> None:
    recorder = Recorder(folder, "run", redactor(), segment_bytes=2000)
    recorder.start()
    for event in events(coding, framed, points):
        recorder.put(event)
    recorder.close()
    assert recorder.status()["failing"] == ""
    masked = redactor()
    command = masked.learn_arguments(["stacktap", "--api-key", FLAG.decode()])
    url = masked.text(f"http://joe:{UPSTREAM.decode()}@127.0.0.1:1/")
    write_manifest(folder, new_manifest("run", command=command, upstreams=[UpstreamFacts("up", url)]))
    found = everything_on_disk(folder)
    assert [secret for secret in SECRETS if secret in found] == []
    reader = RunReader(folder)
    exchanges = {exchange.attempt: exchange for exchange in reader}
    assert not reader.problems
    one = exchanges[1]
    assert one.request is not None
    assert one.response is not None
    assert len(one.wire("request")) == sum(map(len, request_wire()))
    assert len(one.wire("response")) == len(response_wire(coding, framed=framed))
    assert one.response.problems == []
    assert len(one.response.body) == len(echo())
    assert json.loads(one.response.body).keys() == {"said", "nested", "b64", "ssn"}


def test_whole_reads(tmp_path: Path) -> None:
    for coding in ("", "gzip", "br", "zstd"):
        for framed in (False, True):
            check(tmp_path / f"{coding}-{framed}", coding, framed, [])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    coding=st.sampled_from(["", "gzip", "br"]),
    framed=st.booleans(),
    points=st.lists(st.integers(0, 2000), max_size=30),
)
def test_reads_cut_anywhere(tmp_path: Path, coding: str, framed: bool, points: list[int]) -> None:
    check(tmp_path / str(next(_NUMBERS)), coding, framed, points)
