"""`stacktap issue` from the command line: reports, exit codes, a request made smaller, an interrupt."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from results.manifest import write_manifest
from tests.support.bug_cases import manifest
from tests.support.failing_requests import with_a_reference_to_nothing
from tests.support.recorded import CALL_TEXT, Script, answer, response
from tests.support.servers import command_line, environment, stacktap

REFUSED = json.dumps({"error": {"message": f"Failed to parse input at pos 0: {CALL_TEXT}", "type": "server_error"}})
WORDS = json.dumps({"error": {"message": "cannot resolve $ref #/$defs/nothing", "type": "invalid_request_error"}})


def record(folder: Path, **body: Any) -> None:
    script = Script(folder)
    script.chat(response(REFUSED.encode(), b"500 Internal Server Error"))
    script.chat(answer(content="Hello."), tools=[])
    script.chat(response(WORDS.encode(), b"400 Bad Request"), **body)
    script.run()
    write_manifest(folder, manifest())


@pytest.fixture
def run(tmp_path: Path) -> Path:
    record(tmp_path / "run", **with_a_reference_to_nothing())
    return tmp_path


@contextlib.contextmanager
def picky_server(seconds: float = 0.0) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Simulated: refuses a `$ref`, answers everything else; the URL, and what it was asked."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(404, "{}")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body)
            time.sleep(seconds)
            refused = "$ref" in json.dumps(body)
            self.answer(400 if refused else 200, WORDS if refused else "{}")

        def answer(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_report_is_printed_and_its_reader_told_to_read_it(run: Path) -> None:
    done = stacktap(run, "issue", "./run", "1")
    assert done.returncode == 0, done.stderr
    assert "# llama-server b11434: the server failed" in done.stdout
    assert "curl -sS" in done.stdout
    assert "https://github.com/ggml-org/llama.cpp/issues/new" in done.stderr
    assert "Read it before you post it" in done.stderr
    assert stacktap(run, "issue", "./run", "1").stdout == done.stdout


def test_the_report_goes_to_a_file_or_into_json(run: Path) -> None:
    done = stacktap(run, "issue", "./run", "1", "--out", "report.md")
    assert (done.returncode, done.stdout) == (0, "")
    assert "written: report.md" in done.stderr
    assert (run / "report.md").stat().st_mode & 0o777 == 0o600
    said = json.loads(stacktap(run, "issue", "./run", "1", "--json").stdout)
    assert said["markdown"] == (run / "report.md").read_text()
    assert (said["version"], said["kind"], said["at_fault"]) == (1, "bug", "stack")
    assert said["request"]["messages"] == [{"role": "user", "content": "Weather?"}]
    failed = stacktap(run, "issue", "./run", "1", "--out", "no/such/report.md")
    assert failed.returncode == 3
    assert "cannot write no/such/report.md" in failed.stderr


def test_where_there_is_nothing_to_report_it_is_said(run: Path) -> None:
    done = stacktap(run, "issue", "./run", "2", "--minimise", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert "# Nothing to report" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("./run", "99"), 3, "no finished attempt 99"),
        (("./run", "0"), 2, "ATTEMPT is a number"),
        (("./run", "-1"), 2, "No such option"),
        (("./run", "1e3"), 2, "ATTEMPT is a number"),
        (("./run", "x/1"), 3, "no recording x"),
        (("./nothing", "1"), 3, "nothing"),
        (("@last", "1"), 3, ""),
        (("./run", "3", "--minimise", "http://127.0.0.1:9", "--record", "run"), 3, "run"),
    ],
)
def test_what_cannot_be_found(words: tuple[str, ...], code: int, said: str, run: Path) -> None:
    done = stacktap(run, "issue", *words)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_attempt_of_a_grid_is_named_with_its_recording(tmp_path: Path) -> None:
    for name in ("001", "002"):
        (tmp_path / "grid" / "recordings" / name).mkdir(parents=True)
        record(tmp_path / "grid" / "recordings" / name)
    (tmp_path / "grid" / "episodes.jsonl").write_text("")
    done = stacktap(tmp_path, "issue", "./grid", "1")
    assert done.returncode == 3
    assert "name one, 001/1 for instance" in done.stderr
    assert "the server failed" in stacktap(tmp_path, "issue", "./grid", "002/1").stdout


def test_a_request_is_made_smaller_on_a_server_and_nothing_else_is_left_behind(run: Path) -> None:
    with picky_server() as (url, asked):
        done = stacktap(run, "issue", "./run", "3", "--minimise", url, "--limit", "60", "--model", "other", "--json")
        said = json.loads(done.stdout)
    assert said["smaller"]["steady"], done.stderr
    assert said["smaller"]["after"] < said["smaller"]["before"] / 10
    assert len(asked) <= 62
    assert {body["model"] for body in asked} == {"other"}
    assert said["request"]["tools"][0]["function"]["parameters"]["properties"] == {
        "field_2": {"$ref": "#/$defs/nothing"}
    }
    assert "smallest so far" in done.stderr
    assert sorted(path.name for path in run.iterdir()) == ["run"]


def test_a_fault_that_does_not_come_again_leaves_the_request_as_it_was(run: Path) -> None:
    with picky_server() as (url, asked):
        done = stacktap(run, "issue", "./run", "1", "--minimise", url)
    assert done.returncode == 0
    assert "the fault did not come again" in done.stderr
    assert "could not be made smaller" in done.stdout
    assert len(asked) == 1
    done = stacktap(run, "issue", "./run", "1", "--minimise", "http://127.0.0.1:9")
    assert "transport.connect" in done.stderr


def test_an_interrupt_prints_the_smallest_so_far(run: Path) -> None:
    with picky_server(0.15) as (url, asked):
        process = subprocess.Popen(
            command_line("issue", "./run", "3", "--minimise", url, "--json"),
            env=environment(run), cwd=run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        until = time.monotonic() + 30
        while len(asked) < 8 and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=20)
    said = json.loads(out)
    assert process.returncode in (0, 1), errors
    assert said["smaller"]["stopped"] == "it was interrupted"
    assert said["smaller"]["after"] < said["smaller"]["before"]
    assert "Traceback" not in errors
