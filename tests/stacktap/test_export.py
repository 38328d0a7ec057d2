"""`stacktap export`: every format from the command line, to a file, a pipe, a collector; and bad input."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from checklists.exports.otlp import protobuf_messages
from checklists.exports.spans import spans_of
from stacktap import __version__
from stacktap.commands.export import ENDINGS, NEEDS
from stacktap.failure import CouldNotRunError
from stacktap.sending import send_traces, traces_url
from tests.support.exported import every_kind
from tests.support.recorded import Script
from tests.support.servers import stacktap


@contextlib.contextmanager
def collector(*answers: tuple[int, bytes]) -> Iterator[tuple[str, list[tuple[str, str, bytes]]]]:
    """A collector that gives these answers, then 200, and keeps (path, content type, body)."""
    left, kept = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.append((self.path, self.headers["Content-Type"], body))
            status, said = left.pop(0) if left else (200, b"")
            self.send_response(status)
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "run"
    every_kind(folder)
    return folder


def export(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return stacktap(home, "export", *arguments)


@pytest.mark.parametrize("form", [form for form in ENDINGS if form not in NEEDS])
def test_a_file_and_a_pipe_get_the_same(form: str, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = export(tmp_path, str(run), "--to", form, "--out", str(out), "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["to"], facts["file"], facts["bytes"]) == (form, str(out), out.stat().st_size)
    assert bool(out.stat().st_mode & 0o100) == (form == "curl")
    piped = export(tmp_path, str(run), "--to", form, "--out", "-")
    assert (piped.returncode, piped.stderr, piped.stdout) == (0, "", out.read_text("utf-8"))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--to", "xml"), 2, "'xml' is not one of"),
        ((), 2, "Missing option '--to'"),
        (("--to", "har", "--content"), 2, "go with --to otel"),
        (("--to", "har", "--otlp", "http://x"), 2, "go with --to otel"),
        (("--to", "otel", "--otlp", "nonsense"), 2, "is no URL"),
        (("--to", "otel", "--otlp", "http://127.0.0.1:1"), 3, "no collector took the spans"),
        (("--to", "otel", "--otlp", "http://x", "--out", "y"), 2, "not both"),
        (("--to", "har", "--out", "-", "--json"), 2, "--out -"),
        (("--to", "parquet", "--out", "-"), 2, "needs a file"),
        (("--to", "har", "--attempt", "x"), 2, "is no attempt"),
        (("--to", "har", "--attempt", "99"), 3, "no finished attempt 99"),
        (("--to", "har", "--attempt", "001/1"), 3, "no recording '001'"),
        (("--to", "har", "--out", "no/such/folder/x.har"), 3, "cannot write"),
        (("--to", "pytest", "--attempt", "4"), 3, "cannot be sent again"),
    ],
)
def test_bad_input_is_told(arguments: tuple[str, ...], code: int, said: str, run: Path, tmp_path: Path) -> None:
    done = export(tmp_path, str(run), *arguments)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


def test_runs_that_cannot_be_exported_leave_no_file(run: Path, tmp_path: Path) -> None:
    Script(tmp_path / "empty").run()
    (tmp_path / "nothing").mkdir()
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "wire.jsonl").write_bytes(b"\xff\x00garbage\n" * 5)
    out = tmp_path / "out.har"
    for name, said in (("empty", "nothing to export"), ("nothing", "no journal"), ("torn", "nothing to export")):
        done = export(tmp_path, str(tmp_path / name), "--to", "har", "--out", str(out))
        assert (done.returncode, said in done.stderr) == (3, True), done.stderr
    done = export(tmp_path, str(run), "--to", "har", "--out", str(run / "wire.jsonl"))
    assert (done.returncode, "a file of the run itself" in done.stderr) == (3, True)
    assert not out.exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".stacktap")]


@pytest.mark.parametrize("form", NEEDS)
def test_a_missing_library_is_named(form: str, run: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec(NEEDS[form][0]) is not None:
        pytest.skip(f"{NEEDS[form][1]} is installed")
    done = export(tmp_path, str(run), "--to", form, "--out", str(tmp_path / "out"))
    assert done.returncode == 3
    assert f"-m pip install {NEEDS[form][1]}" in done.stderr
    assert not (tmp_path / "out").exists()


def test_spans_go_to_the_collector_that_is_named(run: Path, tmp_path: Path) -> None:
    with collector((503, b"")) as (url, kept):
        done = export(tmp_path, str(run), "--to", "otel", "--otlp", url, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["requests"] == 1
    exported = every_kind_again(run)
    assert [(path, kind) for path, kind, _ in kept] == [("/v1/traces", "application/x-protobuf")] * 2
    assert kept[0][2] == kept[1][2] == exported


def every_kind_again(run: Path) -> bytes:
    from tests.support.exported import opened

    (message,) = protobuf_messages(spans_of(opened(run), content=False), "run", __version__)
    return message


def test_a_collectors_answers_are_told() -> None:
    with collector((200, b"\x0a\x07\x08\x05\x12\x03why")) as (url, _):
        assert send_traces([b"x", b"y"], url) == (2, ["the collector rejected 5 spans: why"])
    with collector((200, b""), (400, b"no \x1b[31m")) as (url, _), pytest.raises(CouldNotRunError) as refused:
        send_traces([b"x", b"y"], url)
    assert "answered 400: " in str(refused.value)
    assert "\x1b" not in str(refused.value)
    with collector(*[(503, b"")] * 4) as (url, kept), pytest.raises(CouldNotRunError):
        send_traces([b"x"], url)
    assert len(kept) == 4


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://h:4318", "http://h:4318/v1/traces"),
        ("http://h:4318/", "http://h:4318/v1/traces"),
        ("https://h/own/path", "https://h/own/path"),
    ],
)
def test_traces_go_to_their_path(url: str, target: str) -> None:
    assert traces_url(url) == target


@pytest.mark.parametrize("url", ["", "h:4318", "ftp://h", "http://", "http://h:99999", "http://[x", "file:///etc"])
def test_what_is_no_collectors_url_is_refused(url: str) -> None:
    with pytest.raises(CouldNotRunError, match="is no URL") as refused:
        traces_url(url)
    assert refused.value.exit_code == 2
