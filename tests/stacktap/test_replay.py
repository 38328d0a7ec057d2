"""`stacktap replay` from the command line: a grid's run, several servers, what cannot be served, strictness."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import httpx
import pytest

from tests.support.journalled import Raw, record
from tests.support.recorded import Script, answer, chat_request
from tests.support.servers import running, stacktap


def asked(url: str, path: str = "/v1/chat/completions", **body: object) -> httpx.Response:
    _, data = chat_request(**body)
    return httpx.post(url + path, content=data, trust_env=False, timeout=20)


def said(answered: httpx.Response) -> str:
    text: str = answered.json()["choices"][0]["message"]["content"]
    return text


def grid(folder: Path) -> None:
    for name in ("001", "002"):
        script = Script(folder / "recordings" / name)
        script.chat(answer(content=f"of {name}"), tags=(("episode", f"e{name}"),))
        script.run()
    (folder / "episodes.jsonl").write_text('{"event":"header","schema":1,"run":"r","epoch_us":0}\n')


def test_a_grids_run_is_served_whole(tmp_path: Path) -> None:
    grid(tmp_path / "grid")
    with running(tmp_path, "replay", str(tmp_path / "grid"), "--json", "--strict") as (process, ready):
        assert (ready["answers"], ready["upstreams"]) == (2, ["up"])
        tagged = asked(ready["url"], "/up/t/episode=e002/v1/chat/completions")
        assert [said(tagged), said(asked(ready["url"])), said(asked(ready["url"]))] == ["of 002", "of 001", "of 002"]
        process.terminate()
        out, _ = process.communicate(timeout=10)
    assert json.loads(out)["matched"] == {"bytes": 3}
    assert json.loads(out)["repeated"] == 1
    assert process.returncode == 0


def test_what_cannot_be_served_and_what_matched_loosely_is_said(tmp_path: Path) -> None:
    script = Script(tmp_path / "run")
    script.chat(answer(content="x"), messages=[{"role": "user", "content": "at 2026-11-30T01:02:03Z"}])
    script.refused("upstream_refused", "connection refused", b"")
    script.opaque(b"\x00", b"\x01")
    script.run()
    with running(tmp_path, "replay", str(tmp_path / "run"), "--json", "--strict") as (process, ready):
        assert ready["left_out"] == {"upstream_refused": 1, "not HTTP": 1}
        assert said(asked(ready["url"], messages=[{"role": "user", "content": "at 2027-01-30T01:02:03Z"}])) == "x"
        unseen = asked(ready["url"], messages=[{"role": "user", "content": "other"}])
        assert unseen.status_code == 404
        process.terminate()
        out, _ = process.communicate(timeout=10)
    assert json.loads(out)["matched_loosely"] == {"POST /v1/chat/completions": "attempt 1"}
    assert "messages[0].content" in json.loads(out)["unseen"][0]
    assert process.returncode == 1


def test_a_reset_loses_nothing(tmp_path: Path) -> None:
    """As in tests/proxy/replay, on the event loop that the command runs on."""
    answered = b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + b"x" * 2_000_000
    head, body = chat_request()
    record(tmp_path / "run", [Raw(head + body, answered, "rst")])
    with running(tmp_path, "replay", str(tmp_path / "run"), "--json") as (process, ready):
        host, port = ready["url"].removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as client:
            client.sendall(head.replace(b"Host: relay", b"Host: localhost") + body)
            received = 0
            with pytest.raises(ConnectionResetError):  # noqa: PT012
                while data := client.recv(65536):
                    received += len(data)
        process.terminate()
        process.communicate(timeout=10)
    assert received == len(answered)


@pytest.mark.parametrize("name", ["empty", "nothing", "torn"])
def test_what_holds_no_answer_is_told(name: str, tmp_path: Path) -> None:
    Script(tmp_path / "empty").run()
    (tmp_path / "nothing").mkdir()
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "wire.jsonl").write_bytes(b"\xff\x00\n" * 5)
    done = stacktap(tmp_path, "replay", str(tmp_path / name))
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "nothing in it can be served" in done.stderr or "no journal" in done.stderr


def test_what_stacktap_asks_to_identify_a_server_is_not_unseen(tmp_path: Path) -> None:
    script = Script(tmp_path / "run")
    script.chat(answer(content="x"))
    script.run()
    for code in (0, 1):
        with running(tmp_path, "replay", str(tmp_path / "run"), "--json", "--strict") as (process, ready):
            assert stacktap(tmp_path, "doctor", ready["url"]).returncode in (0, 1, 3)
            if code:
                assert asked(ready["url"], "/mine").status_code == 404
            process.terminate()
            out, _ = process.communicate(timeout=20)
        done = json.loads(out)
        assert done["identifying"] > 0
        assert (len(done["unseen"]), process.returncode) == (code, code)
