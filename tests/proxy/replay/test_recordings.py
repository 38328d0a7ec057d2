"""Looking up recorded answers by request."""

import json
import random
from pathlib import Path

import msgspec
import pytest

from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from proxy.replay.recordings import RecordedAnswer, Recordings
from proxy.replay.sources import answers_of_captures, answers_of_run
from proxy.tap import SideClosed, UpstreamConnected
from results.reader import RunReader
from tests.support.journalled import Raw, events


def answer(body: object, text: bytes, path: str = "/v1/chat/completions") -> RecordedAnswer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return RecordedAnswer("POST", path, raw, ((0, text),), "close", text.decode())


def served(recordings: Recordings, body: bytes, path: str = "/v1/chat/completions") -> tuple[str, str] | None:
    found = recordings.find("POST", path, body)
    return (found[0].source, found[1]) if found else None


def test_the_ladder_goes_from_bytes_to_json_to_defaults() -> None:
    recordings = Recordings([answer({"model": "m", "n": 1, "stream": False}, b"a")])
    assert served(recordings, b'{"model": "m", "n": 1, "stream": false}') == ("a", "bytes")
    assert served(recordings, b'{"n":1,"stream":false,"model":"m"}') == ("a", "json")
    assert served(recordings, b'{"n":1,"model":"m","tools":[],"options":{},"x":null}') == ("a", "normalised")
    assert served(recordings, b'{"n":2,"model":"m"}') is None
    assert served(recordings, b'{"n":1,"model":"m","stream":true}') is None


def test_ollama_streams_by_default() -> None:
    recordings = Recordings([answer({"model": "m"}, b"streamed", "/api/chat")])
    assert served(recordings, b'{"model":"m","stream":true}', "/api/chat") == ("streamed", "normalised")
    assert served(recordings, b'{"model":"m","stream":false}', "/api/chat") is None


def test_repeated_requests_are_answered_in_order_and_the_last_one_stays() -> None:
    recordings = Recordings([answer({"a": 1}, b"first"), answer({"a": 1}, b"second")])
    assert [served(recordings, b'{"a": 1}') for _ in range(3)] == [
        ("first", "bytes"),
        ("second", "bytes"),
        ("second", "bytes"),
    ]


def test_bodies_that_are_no_json_match_by_bytes_alone() -> None:
    recordings = Recordings([answer(b"{not json", b"x"), answer(b"\xff\x00", b"y")])
    assert served(recordings, b"{not json") == ("x", "bytes")
    assert served(recordings, b"\xff\x00") == ("y", "bytes")
    assert served(recordings, b"{not jsom") is None


def test_an_unseen_request_is_told_what_is_nearest() -> None:
    recordings = Recordings([answer({"model": "m", "tools": [{"name": "a"}]}, b"x")])
    text = recordings.nearest("POST", "/v1/chat/completions", b'{"model": "m", "tools": [{"name": "b"}]}')
    assert "tools[0].name" in text
    assert "POST /v1/chat/completions" in recordings.nearest("GET", "/nope", b"")


def test_captures_with_a_joined_chunked_body_get_a_length() -> None:
    raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\ndata: hello\n\n"
    line = json.dumps({"id": "e", "request": {"method": "POST", "path": "/p", "body": "{}"}, "response_raw": raw})
    (found,) = answers_of_captures([json.dumps({"kind": "meta"}), line], "file")
    assert found.pieces[0][1] == b"HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 13\r\n\r\ndata: hello\n\n"


def test_captures_whose_framing_is_whole_are_left_alone() -> None:
    raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    line = json.dumps({"request": {"method": "GET", "path": "/p"}, "response_raw": raw, "ended": "eof"})
    (found,) = answers_of_captures([line], "file")
    assert found.pieces == ((0, raw.encode()),)
    assert found.ended == "close"


def test_an_exchange_without_a_byte_hangs_or_closes_as_it_did() -> None:
    lines = [
        json.dumps({"request": {"method": "GET", "path": "/a"}, "ended": "timeout"}),
        json.dumps({"request": {"method": "GET", "path": "/b"}, "ended": "eof"}),
    ]
    assert [found.ended for found in answers_of_captures(lines, "file")] == ["hang", "close"]


@pytest.mark.parametrize("line", ["{", "[]", '{"request": 5}', '{"kind": "exchange"}', '"x"'])
def test_a_file_that_is_no_capture_is_refused_by_line(line: str) -> None:
    with pytest.raises(ValueError, match="file, line 1"):
        answers_of_captures([line], "file")


HEAD = "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


@pytest.mark.parametrize(
    ("raw", "served_as"),
    [
        (HEAD % 3 + "abc\n", HEAD % 4 + "abc\n"),
        (HEAD % 90 + '{"path": "MODEL"}', HEAD % 17 + '{"path": "MODEL"}'),
        (HEAD % 90 + '{"path": "MOD', HEAD % 90 + '{"path": "MOD'),
        (HEAD % 3 + "abc", HEAD % 3 + "abc"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ),
    ],
    ids=["a line end more", "text replaced", "cut", "as it was", "chunks of other sizes"],
)
def test_captures_get_sizes_that_hold(raw: str, served_as: str) -> None:
    line = json.dumps({"request": {"method": "GET", "path": "/p"}, "response_raw": raw})
    (found,) = answers_of_captures([line], "file")
    assert found.pieces[0][1].decode() == served_as


WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize(("sent", "ends"), [(WHOLE, "keep"), (WHOLE[:-1], "hang")])
def test_a_server_that_had_answered_goes_on_though_the_client_did_not_listen(
    sent: bytes, ends: str, tmp_path: Path
) -> None:
    asked = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
    recorder = Recorder(tmp_path / "run", "run-1", Redactor())
    recorder.start()
    for event in events(Raw(asked, sent, "client"), 1, random.Random(1)):
        recorder.put(msgspec.structs.replace(event, how="rst") if isinstance(event, SideClosed) else event)
        if isinstance(event, UpstreamConnected):
            recorder.put(SideClosed(1, event.at_ns, "client", "fin"))
    recorder.close()
    exchanges = list(RunReader(tmp_path / "run"))
    assert [one.end for one in exchanges] == ["client_gone"]
    assert [one.ended for one in answers_of_run(exchanges)] == [ends]
