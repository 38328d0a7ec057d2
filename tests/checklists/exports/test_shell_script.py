"""The script of curl commands, run by real shells: what arrives is what was recorded, and nothing else happens."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checklists.exports.shell_script import quoted, remark, shell_script
from tests.support.exported import HOSTILE, binary_kind, every_kind, opened, raw_request
from tests.support.journalled import Raw, record

EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
SHELLS = [name for name in ("sh", "bash", "dash") if shutil.which(name)]
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
Arrived = list[tuple[str, str, list[tuple[str, str]], bytes]]


@contextlib.contextmanager
def listener() -> Iterator[tuple[str, Arrived]]:
    """A server that notes what arrives: method, target, headers, body."""
    arrived: Arrived = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            arrived.append((self.command, self.path, self.headers.items(), body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", arrived
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def run_script(script: bytes, url: str, folder: Path, shell: str = "sh") -> subprocess.CompletedProcess[bytes]:
    path = folder / "script.sh"
    path.write_bytes(script)
    environment = {"PATH": "/usr/bin:/bin", "STACKTAP_URL": url, "API_KEY": "k$e'y", "HOME": str(folder)}
    return subprocess.run([shell, str(path)], env=environment, cwd=folder, capture_output=True, timeout=60, check=False)


@needs_curl
@pytest.mark.parametrize("shell", SHELLS)
def test_the_same_requests_arrive_and_nothing_else_happens(shell: str, tmp_path: Path) -> None:
    run = every_kind(tmp_path / "run")
    work = tmp_path / "work"
    work.mkdir()
    with listener() as (url, arrived):
        done = run_script(b"".join(shell_script(run, "1")), url, work, shell)
    requests = [seen.exchange.request for seen in run if seen.exchange.request is not None]
    assert [(method, target, body) for method, target, _, body in arrived] == [
        (request.method, request.forwarded_target, request.body) for request in requests
    ]
    assert all(dict(headers)["Content-Type"] == "application/json" for _, _, headers, _ in arrived)
    assert [path.name for path in work.iterdir()] == ["script.sh"]
    assert done.stderr == b""


@needs_curl
def test_binary_bodies_arrive_as_they_were(tmp_path: Path) -> None:
    run = binary_kind(tmp_path)
    with listener() as (url, arrived):
        run_script(b"".join(shell_script(run, "1")), url, tmp_path)
    assert [body for _, _, _, body in arrived] == [b"\x00\xff\xfe body", b"{}"]


@needs_curl
def test_a_masked_secret_becomes_the_key(tmp_path: Path) -> None:
    request = raw_request(
        b"{}",
        ("Authorization", "Bearer sk-secretsecretsecret"),
        ("Cookie", "sid=verylongsecretcookie"),
        target="/x?api_key=abcdefgh1",
    )
    record(tmp_path / "run", [Raw(request, EMPTY)])
    script = b"".join(shell_script(opened(tmp_path / "run"), "1"))
    assert b'Bearer \'"${API_KEY}"' in script
    with listener() as (url, arrived):
        run_script(script, url, tmp_path)
    ((_, target, headers, _),) = arrived
    assert dict(headers)["Authorization"] == "Bearer k$e'y"
    assert dict(headers)["Cookie"] == "sid=k$e'y"
    assert target == "/x?api_key=k$e'y"


@needs_curl
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    bodies=st.lists(
        st.one_of(st.binary(max_size=60), st.text(max_size=40).map(lambda text: text.encode("utf-8", "replace"))),
        max_size=4,
    ),
    value=st.text(st.characters(min_codepoint=1, max_codepoint=255, exclude_characters="\r\n"), max_size=20),
    query=st.text(st.characters(min_codepoint=33, max_codepoint=255), max_size=20),
)
def test_anything_recorded_arrives_byte_for_byte(
    bodies: list[bytes], value: str, query: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("quoting")
    value = value.strip(" \t\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0")
    raws = [Raw(raw_request(body, ("X-Any", value), target=f"/v1/x?{query}"), EMPTY) for body in [b"1", *bodies]]
    record(folder / "run", raws)
    run = opened(folder / "run")
    with listener() as (url, arrived):
        run_script(b"".join(shell_script(run, "1")), url, folder)
    sent = [seen.exchange.request for seen in run if seen.exchange.request is not None]
    assert [body for _, _, _, body in arrived] == [request.body for request in sent]
    assert sorted(path.name for path in folder.iterdir()) == ["run", "script.sh"]
    if "*" not in value:
        got = [next((text for name, text in headers if name == "X-Any"), None) for _, _, headers, _ in arrived]
        assert got == [request.header("x-any") for request in sent]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_quoted_word_is_that_word(shell: str) -> None:
    words = [HOSTILE.replace("\0", ""), "", "'", "\\'", "$x", "-n", "\n\n", "a\tb"]
    command = "printf '%s\\037' " + " ".join(quoted(word) for word in words)
    said = subprocess.run([shell, "-c", command], capture_output=True, timeout=20, check=True).stdout
    assert said.decode().split("\x1f")[:-1] == words


@given(st.text())
def test_a_remark_is_one_line_of_printable_ascii(text: str) -> None:
    assert all(" " <= char <= "~" for char in remark(text))


def test_text_that_a_terminal_would_act_on_is_not_in_the_script(tmp_path: Path) -> None:
    script = b"".join(shell_script(every_kind(tmp_path), "1")).decode()
    assert all(char == "\n" or char.isprintable() for char in script)
