"""The command of a report sends what was recorded, and runs nothing that stands in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from checklists.bug_report.anonymous import Anonymiser
from checklists.bug_report.curl import curl
from results.exchange import HttpRequest
from tests.support.journalled import Raw, record

FAKE = """#!{python}
import json, sys
data = sys.stdin.buffer.read() if "@-" in sys.argv else b""
json.dump({{"arguments": sys.argv[1:], "body": data.decode("latin-1")}}, open({out!r}, "w"))
"""
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def request(
    folder: Path, body: bytes, *headers: bytes, line: bytes = b"POST /v1/chat/completions HTTP/1.1"
) -> HttpRequest:
    head = b"\r\n".join([line, b"Host: x", b"Content-Length: %d" % len(body), *headers])
    (exchange,) = record(folder / "run", [Raw(head + b"\r\n\r\n" + body, OK)])
    assert exchange.request is not None
    return exchange.request


def sent(folder: Path, text: str) -> dict[str, Any]:
    """What the command hands to curl, when a shell runs it."""
    (folder / "bin").mkdir()
    fake = folder / "bin" / "curl"
    fake.write_text(FAKE.format(python=sys.executable, out=str(folder / "sent.json")))
    fake.chmod(0o755)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    work = folder / "work"
    work.mkdir()
    done = subprocess.run(
        ["sh", "-c", text], env={"PATH": path}, cwd=work, capture_output=True, timeout=20, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not list(work.iterdir())
    return dict(json.loads((folder / "sent.json").read_text()))


HOSTILE = "'; touch pwned; $(touch pwned) `touch pwned` \\ \" \n BODY\nBODY\n$HOME \u202e \x00 \U0001f600 é"


def test_a_hostile_body_arrives_as_it_was(tmp_path: Path) -> None:
    value = {"model": HOSTILE, "messages": [{"role": "user", "content": HOSTILE}], "BODY": "\nBODY\n"}
    found = curl(request(tmp_path, json.dumps(value).encode(), b"Content-Type: application/json"), Anonymiser())
    assert all(char.isprintable() or char == "\n" for char in found.text)
    given = sent(tmp_path, found.text)
    assert json.loads(given["body"].encode("latin-1")) == value
    assert given["arguments"][:2] == ["-sS", "http://localhost:8080/v1/chat/completions"]
    assert "Content-Type: application/json" in given["arguments"]


@pytest.mark.parametrize("body", [b"{cut", b"\xff\x00binary'$(touch pwned)", b"plain 'text'\n\n"])
def test_a_body_that_is_no_json_arrives_byte_for_byte(tmp_path: Path, body: bytes) -> None:
    given = sent(tmp_path, curl(request(tmp_path, body), Anonymiser()).text)
    assert given["body"].encode("latin-1") == body


def test_a_hostile_target_and_header_are_quoted(tmp_path: Path) -> None:
    line = b"POST /v1/x?a='$(touch%20pwned)'&b=`touch` HTTP/1.1"
    recorded = request(tmp_path, b"{}", b"anthropic-version: '$(touch pwned)", line=line)
    given = sent(tmp_path, curl(recorded, Anonymiser(), url="http://localhost:1'; touch pwned").text)
    assert given["arguments"][1] == "http://localhost:1'; touch pwned/v1/x?a='$(touch%20pwned)'&b=`touch`"
    assert "anthropic-version: '$(touch pwned)" in given["arguments"]


def test_a_key_is_a_variable(tmp_path: Path) -> None:
    found = curl(request(tmp_path, b"{}", b"Authorization: Bearer sesame-open-1", b"User-Agent: me"), Anonymiser())
    assert "API_KEY=..." in found.text
    assert "sesame" not in found.text
    given = sent(tmp_path, found.text.replace("API_KEY=...", "API_KEY=mine"))
    assert "Authorization: Bearer mine" in given["arguments"]
    assert not any(each.partition(": ")[2] == "me" for each in given["arguments"])


def test_another_method_without_a_body(tmp_path: Path) -> None:
    given = sent(tmp_path, curl(request(tmp_path, b"", line=b"GET /v1/models HTTP/1.1"), Anonymiser()).text)
    assert given == {"arguments": ["-sS", "http://localhost:8080/v1/models", "-X", "GET"], "body": ""}


def test_another_body_in_its_place(tmp_path: Path) -> None:
    found = curl(request(tmp_path, b'{"a": 1}'), Anonymiser(), body={"b": "/home/maria/x"})
    assert json.loads(sent(tmp_path, found.text)["body"]) == {"b": "/home/user/x"}
