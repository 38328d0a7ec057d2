"""`stacktap classify` on input that nobody should send: an outcome or a clear note, in bounded time and memory."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import time
import zlib
from itertools import pairwise
from pathlib import Path

import pytest

from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from results.outcomes import Judged, decode_judged
from tests.support import journalled
from tests.support.journalled import Raw, record
from tests.support.servers import stacktap

TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": TOOLS}
DEEP = b"[" * 100_000 + b"]" * 100_000


def answer(content: str | None, arguments: str | None = None) -> bytes:
    said: dict[str, object] = {"role": "assistant", "content": content}
    if arguments is not None:
        call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
        said["tool_calls"] = [call]
    choice = {"index": 0, "message": said, "finish_reason": "stop" if arguments is None else "tool_calls"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return json.dumps(body).encode()


GOOD = answer(None, '{"city": "Lyon"}')


def request(body: bytes | None = None) -> bytes:
    body = json.dumps(ASKED).encode() if body is None else body
    return b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def response(body: bytes, kind: str = "application/json", **headers: str) -> bytes:
    said = {"Content-Type": kind, "Content-Length": str(len(body))}
    said |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in said.items() if value)
    return b"HTTP/1.1 200 OK\r\n" + lines.encode() + b"\r\n" + body


RAWS = {
    "binary": Raw(request(), response(random.Random(1).randbytes(20_000), "application/octet-stream")),
    "binary called JSON": Raw(request(), response(b"\0\xff" * 5000)),
    "binary request": Raw(request(random.Random(2).randbytes(5000)), response(GOOD)),
    "deep JSON": Raw(request(), response(DEEP)),
    "deep object": Raw(request(), response(b'{"a":' * 50_000 + b"1" + b"}" * 50_000)),
    "deep request": Raw(request(DEEP), response(GOOD)),
    "deep arguments": Raw(request(), response(answer(None, "[" * 50_000))),
    "deep schema": Raw(
        request(json.dumps(ASKED).encode().replace(b'"object"', DEEP[:400] + DEEP[-400:])), response(GOOD)
    ),
    "duplicate keys": Raw(request(), response(GOOD.replace(b'"id": "c"', b'"choices": [], "id": "a", "id": "b"'))),
    "duplicate keys in the request": Raw(request(b'{"model": "a", "model": "b", "messages": []}'), response(GOOD)),
    "NaN": Raw(request(), response(GOOD.replace(b'"created": 1', b'"created": NaN, "x": -Infinity'))),
    "NaN argument": Raw(request(), response(answer(None, '{"city": NaN}'))),
    "lone surrogates": Raw(request(), response(GOOD.replace(b"Lyon", b"\\\\ud800").replace(b'"c"', b'"\\udfff"'))),
    "surrogate in the answer": Raw(request(), response(answer("x").replace(b'"x"', b'"half \\ud83d of it"'))),
    "surrogate in an error": Raw(request(), response(b'{"error": {"message": "\\ud800 is not known"}}')),
    "surrogate as UTF-8": Raw(request(), response(GOOD.replace(b"Lyon", b"\xed\xa0\x80"))),
    "length too long": Raw(request(), response(GOOD, Content_Length="999999999")),
    "length too short": Raw(request(), response(GOOD, Content_Length="7")),
    "length no number": Raw(request(), response(GOOD, Content_Length="many")),
    "length twice": Raw(request(), response(GOOD, Content_Length="5, 7")),
    "coding is a lie": Raw(request(), response(GOOD, Content_Encoding="gzip")),
    "coding is another": Raw(request(), response(gzip.compress(GOOD), Content_Encoding="br")),
    "coding unknown": Raw(request(), response(GOOD, Content_Encoding="x-secret")),
    "coding not told": Raw(request(), response(gzip.compress(GOOD))),
    "coding cut": Raw(request(), response(gzip.compress(GOOD)[:-20], Content_Encoding="gzip")),
    "chunked is a lie": Raw(request(), response(GOOD, Content_Length="", Transfer_Encoding="chunked")),
    "chunk sizes are lies": Raw(
        request(), response(b"fffffffff\r\n" + GOOD + b"\r\n0\r\n\r\n", Content_Length="", Transfer_Encoding="chunked")
    ),
}


def judged(folder: Path) -> list[Judged]:
    return [decode_judged(line) for line in (folder / "outcomes.jsonl").read_bytes().splitlines()]


def test_every_bad_exchange_gets_its_outcome(tmp_path: Path) -> None:
    recorded = record(tmp_path / "run", RAWS.values())
    done = stacktap(tmp_path, "classify", "./run", "--labels", "dense")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    found = judged(tmp_path / "run")
    assert [line.attempt for line in found] == [exchange.attempt for exchange in recorded]
    # What follows a body that is longer than its length says is an attempt of its own.
    first = {exchange.connection: exchange.attempt for exchange in reversed(recorded)}
    by_name = {name: found[first[connection] - 1] for connection, name in enumerate(RAWS, 1)}
    wronged = [name for name, line in by_name.items() if line.outcome.at_fault == "model"]
    assert set(wronged) <= {"deep arguments", "NaN argument"}, wronged
    assert by_name["length too long"].outcome.name == "ok.native_call"
    assert by_name["duplicate keys"].outcome.layer == "ok"
    assert "\\ud800" in by_name["surrogate in an error"].outcome.evidence[0].quote


@pytest.mark.parametrize(
    "name", ["binary", "deep JSON", "surrogate in an error", "coding cut", "surrogate in the answer"]
)
def test_a_bad_exchange_is_explained(tmp_path: Path, name: str) -> None:
    record(tmp_path / "run", [RAWS[name]])
    for more in ((), ("--json",)):
        done = stacktap(tmp_path, "explain", "./run", "1", *more)
        assert done.returncode == 0, done.stderr
        assert "attempt" in done.stdout


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.99])
def test_half_a_journal(tmp_path: Path, share: float) -> None:
    record(tmp_path / "run", [Raw(request(), response(GOOD))] * 12)
    journal = tmp_path / "run" / "wire.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole[: int(len(whole) * share)])
    done = stacktap(tmp_path, "classify", "./run")
    assert done.returncode == 0, done.stderr
    assert "torn" in done.stderr
    found = judged(tmp_path / "run")
    assert 12 * share - 1 <= len(found) <= 12 * share + 1
    assert all(line.outcome.layer in ("ok", "transport") for line in found)


def test_a_journal_with_holes_and_noise(tmp_path: Path) -> None:
    record(tmp_path / "run", [Raw(request(), response(GOOD))] * 12)
    journal = tmp_path / "run" / "wire.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[7] = b"\xff\0 no line\n"
    lines[15] = (
        b'{"event": "chunk", "attempt": 99, "direction": "response", "at_us": 1, "start": 0, "bytes": 99999999999}\n'
    )
    lines[20:20] = [b"[" * 100_000 + b"\n", b"{}\n", b"\n", b'{"event": "end"}\n']
    del lines[30]
    journal.write_bytes(b"".join(lines))
    done = stacktap(tmp_path, "classify", "./run")
    assert done.returncode == 0, done.stderr
    assert "corrupt" in done.stderr
    assert all(line.outcome.at_fault != "model" for line in judged(tmp_path / "run"))


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 5000, b"no journal\n", b"{}", b"[" * 100_000, b'{"event": "segment"}\n']
)
def test_no_journal_at_all(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "wire.jsonl").write_bytes(content)
    done = stacktap(tmp_path, "classify", "./run")
    assert done.returncode in (0, 3), done.stderr
    assert "Traceback" not in done.stderr


CAPTURE = {"id": "x", "request": {"method": "POST", "path": "/v1/chat/completions", "body": json.dumps(ASKED)}}
FILES = {
    "empty": b"",
    "binary": bytes(range(256)) * 50,
    "deep": b"[" * 200_000,
    "deep object": b'{"a":' * 200_000,
    "half": json.dumps(CAPTURE | {"response_raw": "HTTP/1.1 200 OK\r\n\r\n{}"}).encode()[:-30],
    "NaN": json.dumps(CAPTURE | {"seconds": float("nan"), "response_raw": "HTTP/1.1 200 OK\r\n\r\n{}"}).encode(),
    "infinite": json.dumps(CAPTURE | {"seconds": 1e999, "response_raw": "HTTP/1.1 200 OK\r\n\r\n{}"}).encode(),
    "surrogates": json.dumps(
        CAPTURE | {"id": "\ud800", "response_raw": "HTTP/1.1 200 \udfff\r\nX: \ud800\r\n\r\n\ud800"}
    ).encode(),
    "surrogate path": json.dumps(
        {"id": "x", "request": {"method": "\ud800", "path": "/\udfff"}, "response_raw": "HTTP/1.1 200 OK\r\n\r\n{}"}
    ).encode(),
    "base64 cut": json.dumps(CAPTURE | {"response_raw_base64": "abc"}).encode(),
    "bad base64": json.dumps(CAPTURE | {"response_raw_base64": "%%%"}).encode(),
    "duplicate keys": b'{"request": {}, "response": {"status": 200}, "response": {"status": "x", "body": 7}}',
    "strange case": b'{"request": [], "response": {"status": %d, "headers": 5, "stream": [[1]]}}' % 10**30,
    "strange HAR": b'{"log": {"entries": [1, {"request": {"url": "http://["}, "response": {"status": 2}}]}}',
    "half a head": b"HTTP/1.1 2",
    "chunks": b'{"chunks": [[0, ">", "GET / HTTP/1.1\\r\\n\\r\\n"], [1, "<", "\\ud800"], 7, [], [0, "x", null]]}',
}


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("name", list(FILES))
def test_bad_files(tmp_path: Path, name: str, as_json: bool) -> None:
    (tmp_path / "file").write_bytes(FILES[name])
    done = stacktap(tmp_path, "classify", "--exchange", "file", *(["--json"] if as_json else []))
    assert done.returncode in (0, 3), done.stderr
    assert "Traceback" not in done.stderr
    if done.returncode == 3:
        assert "file" in done.stderr
    elif as_json:
        for line in done.stdout.splitlines():
            assert json.loads(line)["outcome"]["name"]


MEASURE = """
import os, sys
pid = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, *sys.argv[1:]])
_, status, used = os.wait4(pid, 0)
print(status, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""
"""In a small process of its own: what a child is said to have used begins at the size of the one that started it."""


def _measured(folder: Path) -> tuple[float, float]:
    """(seconds of CPU, MB at most) of `stacktap classify` on a run, which must succeed."""
    command = [sys.executable, "-c", MEASURE, "-m", "stacktap", "classify", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    status, seconds, megabytes = done.stdout.splitlines()[-1].split()
    assert status == "0", done.stderr
    return float(seconds), float(megabytes)


def _record_large(folder: Path, raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `record`, in reads of 64 KiB and with a limit on what is queued."""
    monkeypatch.setattr(
        journalled,
        "_pieces",
        lambda data, _: [data[a:b] for a, b in pairwise([*range(0, len(data), 65536), len(data)])],
    )
    recorder = Recorder(folder, "run-1", Redactor())
    recorder.start()
    for event in journalled.events(raw, 1, random.Random(1)):
        recorder.put(event)
        while recorder.full:
            time.sleep(0.01)
    recorder.close()


def _large(kind: str, size: int) -> Raw:
    if kind == "text":
        return Raw(request(), response(answer("word {not json} <tag> [x] " * (size // 26))))
    if kind == "noise":
        return Raw(request(), response(random.Random(1).randbytes(size), "application/octet-stream"))
    if kind == "deep":
        return Raw(request(), response(b"[" * size))
    if kind == "request":
        asked = ASKED | {"messages": [{"role": "user", "content": "x " * (size // 2)}]}
        return Raw(request(json.dumps(asked).encode()), response(answer("hi")))
    if kind == "bomb":
        packer = zlib.compressobj(9, wbits=31)
        packed = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(size >> 20)) + packer.flush()
        return Raw(request(), response(packed, Content_Encoding="gzip"))
    delta = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    event = (
        b"data: %b\n\n"
        % json.dumps(
            delta | {"choices": [{"index": 0, "delta": {"content": "words "}, "finish_reason": None}]}
        ).encode()
    )
    return Raw(request(), response(event * (size // len(event)), "text/event-stream"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["text", "noise", "deep", "request", "bomb", "stream"])
def test_large_bodies(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _record_large(tmp_path / "run", _large(kind, 4 << 20), monkeypatch)
    seconds, megabytes = _measured(tmp_path / "run")
    assert len(judged(tmp_path / "run")) == 1
    assert seconds < 20
    assert megabytes < 300


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["text", "noise", "deep", "request", "bomb", "stream"])
def test_bodies_of_200_mb(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _record_large(tmp_path / "run", _large(kind, 200 << 20), monkeypatch)
    seconds, megabytes = _measured(tmp_path / "run")
    found = judged(tmp_path / "run")
    assert len(found) == 1
    assert found[0].outcome.at_fault != "model"
    assert seconds < 200
    assert megabytes < 3000
