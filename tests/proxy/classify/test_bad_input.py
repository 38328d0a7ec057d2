"""Input that no server should send, through the journal: an outcome or a clear note, never an exception."""

from __future__ import annotations

import gzip
import json
import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from proxy.classify import classify
from proxy.exchange_files import from_case, load_exchanges
from proxy.exchange_view import classify_run, view_of
from results.outcomes import Outcome, check
from results.reader import RunReader
from tests.proxy.classify.exchanges import CALL, WEATHER, message
from tests.support.corpus import cases
from tests.support.journalled import Raw, record

REQUEST_BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [WEATHER]}).encode()
GOOD_BODY = json.dumps(message(None, [("get_weather", {"city": "Lyon"})])).encode()


def request(body: bytes = REQUEST_BODY, path: str = "/v1/chat/completions") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def response(body: bytes, status: int = 200, **headers: str) -> bytes:
    said = {"Content-Type": "application/json", "Content-Length": str(len(body))} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    head = f"HTTP/1.1 {status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in said.items() if value)
    return head.encode() + b"\r\n" + body


def judged(folder: Path, *raws: Raw) -> list[Outcome]:
    found = [classify(view_of(exchange)) for exchange in record(folder, raws)]
    for outcome in found:
        check(outcome)
        assert outcome.evidence
    return found


DEEP = b"[" * 50_000 + b"]" * 50_000
BODIES = {
    "empty": b"",
    "zero bytes": b"\0" * 5000,
    "noise": random.Random(1).randbytes(5000),
    "deep list": DEEP,
    "deep object": b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    "deep in arguments": json.dumps(message(None, [("get_weather", "[" * 50_000)])).encode(),
    "duplicate keys": GOOD_BODY.replace(b'"id": "chatcmpl-1"', b'"id": "a", "id": "b", "choices": 1', 1),
    "NaN": GOOD_BODY.replace(b"1700000000", b"NaN"),
    "lone surrogate": GOOD_BODY.replace(b"Lyon", b"\\ud800"),
    "raw surrogate": GOOD_BODY.replace(b"Lyon", b"\xed\xa0\x80"),
    "not UTF-8": GOOD_BODY.replace(b"Lyon", b"\xff\xfe"),
    "UTF-16": json.dumps(message("hi")).encode("utf-16"),
    "number": b"42",
    "list": b"[1, 2]",
    "null": b"null",
    "string": b'"hello"',
    "choices null": b'{"choices": null}',
    "choices of numbers": b'{"choices": [1, null, "x"]}',
    "message a string": b'{"choices": [{"message": "hi"}]}',
    "calls a number": b'{"choices": [{"message": {"tool_calls": 7}}]}',
    "calls of nulls": b'{"choices": [{"message": {"tool_calls": [null, [], "x", {"function": 3}]}}]}',
    "usage strange": b'{"choices": [{"message": {"content": "x"}}], "usage": '
    b'{"prompt_tokens": "x", "completion_tokens": -5}}',
    "huge number": b'{"choices": [{"message": {"content": "x"}}], "usage": {"completion_tokens": '
    + b"9" * 5000
    + b"}}",
    "error a number": b'{"error": 5}',
    "error of lists": b'{"error": [[[{"message": null}]]]}',
    "half": GOOD_BODY[: len(GOOD_BODY) // 2],
    "events without sense": b"data: {\n\ndata: [DONE]\n\nevent: x\n\n: c\n\nretry: x\n\n",
}


@pytest.mark.parametrize("status", [200, 400, 500])
def test_bodies(tmp_path: Path, status: int) -> None:
    kinds = ("application/json", "text/event-stream", "application/x-ndjson", "")
    paths = ("/v1/chat/completions", "/api/chat", "/v1/messages", "/v1/responses")
    raws = [
        Raw(request(path=paths[(number + turn) % 4]), response(body, status, Content_Type=kinds[turn]))
        for number, body in enumerate(BODIES.values())
        for turn in range(4)
    ]
    for outcome in judged(tmp_path / "run", *raws):
        assert outcome.at_fault != "model"


@pytest.mark.parametrize("name", list(BODIES))
def test_requests(tmp_path: Path, name: str) -> None:
    raws = [
        Raw(request(BODIES[name], path), response(GOOD_BODY))
        for path in (
            "/v1/chat/completions",
            "/api/chat",
            "/v1/messages",
            "/v1/responses",
            "/api/generate",
            "/v1/completions",
        )
    ]
    judged(tmp_path / "run", *raws)


def test_lies_about_length_and_coding(tmp_path: Path) -> None:
    packed = gzip.compress(GOOD_BODY)
    found = judged(
        tmp_path / "run",
        Raw(request(), response(GOOD_BODY, Content_Length=str(len(GOOD_BODY) + 500))),
        Raw(request(), response(GOOD_BODY, Content_Length="7")),
        Raw(request(), response(GOOD_BODY, Content_Length="", Content_Encoding="gzip")),
        Raw(request(), response(packed, Content_Encoding="gzip")),
        Raw(request(), response(packed[:-30], Content_Encoding="gzip", Content_Length=str(len(packed)))),
        Raw(request(), response(packed, Content_Encoding="br")),
        Raw(request(), response(GOOD_BODY, Transfer_Encoding="chunked", Content_Length="")),
    )
    names = [outcome.name for outcome in found]
    assert names.count("ok.native_call") >= 2, names
    assert names[0] == "ok.native_call"
    miscoded = [outcome for outcome in found if "content-encoding says" in outcome.detail]
    assert [(outcome.name, outcome.at_fault) for outcome in miscoded] == [("transport.not_http", "undetermined")] * 2
    assert "transport.not_http" in names  # what came after the seven bytes that the length promised
    assert all(outcome.at_fault != "model" for outcome in found)


def test_not_http_at_all(tmp_path: Path) -> None:
    found = judged(
        tmp_path / "run",
        Raw(request(), b"220 mail.example ESMTP ready\r\n"),
        Raw(request(), b"\x16\x03\x01\x02\x00"),
        Raw(request(), b"\n"),
        Raw(request(), b"HTTP/1.1 2"),
    )
    assert {outcome.layer for outcome in found} == {"transport"}


def test_no_server(tmp_path: Path) -> None:
    found = judged(
        tmp_path / "run",
        Raw(request(), b"", "refused"),
        Raw(request(), b"", "timeout"),
        Raw(request(), b"", "client"),
        Raw(request(), b"", "rst"),
        Raw(request(), b"", "fin"),
    )
    assert [outcome.name for outcome in found] == [
        "transport.connect",
        "transport.timeout_read",
        "transport.client_gone",
        "transport.reset",
        "transport.reset",
    ]


@pytest.mark.parametrize("status", [None, 200])
def test_a_recording_ended_early_is_not_the_server_s_fault(status: int | None) -> None:
    case = {"request": {"path": "/v1/chat/completions", "body": json.loads(REQUEST_BODY)}, "response": {}}
    case["response"] = {"status": status, "body": '{"choices": [{"mess'} if status else {}
    view = from_case(case).view
    cut = replace(view, end="relay_stopped", wire=replace(view.wire, response_complete=False))
    outcome = classify(cut)
    assert outcome.name == "transport.client_gone"
    assert "the recording was ended" in (outcome.remedy or "")


def test_half_a_journal(tmp_path: Path) -> None:
    record(tmp_path / "run", [Raw(request(), response(GOOD_BODY))] * 20)
    journal = tmp_path / "run" / "wire.jsonl"
    whole = journal.read_bytes()
    for share in (0.3, 0.5, 0.77, 0.95):
        journal.write_bytes(whole[: int(len(whole) * share)])
        found = list(classify_run(RunReader(tmp_path / "run")))
        assert found
        for line in found:
            check(line.outcome)
            assert line.outcome.at_fault != "model"


def test_a_large_answer_takes_linear_time(tmp_path: Path) -> None:
    text = ("word {not json} <tag> [x] " * 40_000)[:1_000_000]
    view = from_case(
        {
            "request": {"method": "POST", "path": "/v1/chat/completions", "body": json.loads(REQUEST_BODY)},
            "response": {"status": 200, "headers": {}, "body": message(text + CALL)},
        }
    ).view
    started = time.monotonic()
    outcome = classify(view)
    assert outcome.name == "parser.left_as_text"
    assert time.monotonic() - started < 20


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_mutated_cases_raise_nothing(data: st.DataObject) -> None:
    known = cases()
    case = data.draw(st.sampled_from(known))
    loaded = from_case(case)
    raw = bytearray(loaded.response_raw or b"HTTP/1.1 200 OK\r\n\r\n{}")
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, max(0, len(raw) - 1)))
        kind = data.draw(st.integers(0, 3))
        if kind == 0:
            raw[at : at + 1] = bytes([data.draw(st.integers(0, 255))])
        elif kind == 1:
            del raw[at : at + data.draw(st.integers(1, 40))]
        elif kind == 2:
            raw[at:at] = raw[at : at + data.draw(st.integers(1, 60))]
        else:
            del raw[at:]
    line = {"request": case["request"], "response_raw": raw.decode("latin-1"), "id": "x"}
    for loaded in load_exchanges(json.dumps(line).encode()):
        check(classify(loaded.view))
        check(classify(loaded.view, None, CALL))
