"""`stacktap diagnose` and `compare` from outside: servers that lie, stall and flood, and Ctrl-C. Simulated servers."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import chat_server, command_line, environment, stacktap

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def answering(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """A simulated server that does the same with every request."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer(self)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer(self)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _whole(kind: str, body: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return answer


def _streaming(piece: bytes, pause: float, most: int) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        if request.command == "GET":
            _whole("application/json", b'{"object":"list","data":[{"id":"m"}]}')(request)
            return
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Connection", "close")
        request.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(most):
                request.wfile.write(piece)
                request.wfile.flush()
                time.sleep(pause)
        request.close_connection = True

    return answer


_EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"la "},"finish_reason":null}]}\n\n'

LYING: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {
    "a web page for everything": _whole("text/html", b"<!doctype html><title>Notes</title><p>hello"),
    "200 and the same JSON for everything": _whole("application/json", b'{"ok": true}'),
    "200 and nothing": _whole("application/json", b""),
    "a list": _whole("application/json", b"[1, 2, 3]"),
    "bytes": _whole("application/octet-stream", bytes(range(256)) * 40),
    "deep JSON": _whole("application/json", b"[" * 200_000),
    "a stream without end": _streaming(_EVENT, 0.05, 10_000),
    "a stream of a gigabyte": _streaming(_EVENT * 4000, 0, 3300),
}


@pytest.mark.parametrize("name", LYING)
def test_a_server_that_is_none_gets_a_verdict_or_a_clear_error_in_time(name: str, tmp_path: Path) -> None:
    with answering(LYING[name]) as url:
        began = time.monotonic()
        done = stacktap(tmp_path, "diagnose", url, "--model", "m", "--seconds", "20", "--json")
        took = time.monotonic() - began
    assert took < 45
    assert done.returncode in (1, 3), (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    if done.returncode == 1:
        found = json.loads(done.stdout)
        assert found["headline"]
        assert not found["healthy"]
        assert found["outcome"] is None or found["outcome"]["at_fault"] != "model"


def test_no_server_and_a_wrong_address_are_told(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    done = stacktap(tmp_path, "diagnose", url, "--model", "m")
    assert done.returncode == 1
    assert "Nothing answers there" in done.stdout
    for wrong in ("ftp://x", "http://", "http://[::1"):
        assert stacktap(tmp_path, "diagnose", wrong).returncode in (2, 3)
    assert stacktap(tmp_path, "diagnose").returncode == 2
    assert "no run" in stacktap(tmp_path, "diagnose", "--run", "nonesuch").stderr.lower()


def test_a_model_that_answers_in_prose_is_never_blamed_without_a_comparison(tmp_path: Path) -> None:
    with chat_server() as url:
        done = stacktap(tmp_path, "diagnose", url, "--json")
    found = json.loads(done.stdout)
    assert (
        found["outcome"] is None or found["outcome"]["grade"] != "observed" or found["outcome"]["at_fault"] != "model"
    )


def test_the_second_diagnosis_says_what_the_first_one_said(tmp_path: Path) -> None:
    with answering(LYING["200 and nothing"]) as url:
        first = stacktap(tmp_path, "diagnose", url, "--model", "m", "--json")
        assert json.loads(first.stdout)["before"] == ""
        word = json.loads(first.stdout)["outcome"]
    assert word is not None


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_and_frees_its_ports(kind: signal.Signals, tmp_path: Path) -> None:
    with answering(LYING["a stream without end"]) as url:
        process = subprocess.Popen(
            command_line("diagnose", url, "--model", "m"),
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        until = time.monotonic() + 30
        while not list(tmp_path.glob("data/stacktap/runs/*/wire.jsonl")) and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(2)
        process.send_signal(kind)
        _, said = process.communicate(timeout=20)
        assert process.returncode in (130, 143, 3, 1), said
        assert "Traceback" not in said
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)


def test_compare_tells_what_could_not_be_asked(tmp_path: Path) -> None:
    with chat_server() as url:
        done = stacktap(tmp_path, "compare", f"a={url}", "b=up:llamacpp:/nonesuch.gguf", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    cells = {cell["target"]: cell for cell in found["cells"]}
    assert cells["b"]["outcome"] is None
    assert cells["b"]["why"]
    assert cells["a"]["outcome"] is not None
    assert stacktap(tmp_path, "compare", "up:llamacpp").returncode == 2
    assert stacktap(tmp_path, "compare", url, "--from", "nonesuch").returncode == 3
