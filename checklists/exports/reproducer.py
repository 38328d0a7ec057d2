"""A run as a file of tests that send its requests to a server and say whether the recorded fault is still there.

The file needs Python and pytest, nothing of stacktap. A test passes while the server's answer bears the recorded sign
(`answer_sign`): the fault is reproduced. With `STACKTAP_EXPECT=fixed` in the environment it is the other way round.
Everything from the recording stands in literals that `ascii` wrote. Pure: gives the file in pieces.
"""

from __future__ import annotations

import pprint
import re
from collections.abc import Iterator
from importlib import resources

from checklists.exports import masked
from checklists.exports.answer_sign import sign_of
from checklists.exports.selection import ExportError, ExportRun, place_of
from checklists.exports.shell_script import remark
from checklists.exports.targets import origin_form, url_safe
from checklists.reading import Seen
from results.exchange import Exchange, HttpRequest

_NAME = re.compile(r"[^0-9A-Za-z]+")
_TOKEN = re.compile(r"[A-Za-z]{1,32}\Z")
_NEVER_REACHED = frozenset(
    ("upstream_refused", "upstream_unreachable", "name_not_resolved", "tls_failed", "timeout_connect")
)

_PREAMBLE = '''"""Requests of run {run}, sent again. Written by stacktap {version}.

STACKTAP_URL     where the server is, e.g. http://127.0.0.1:8080
API_KEY          goes where the recording masked a secret
STACKTAP_EXPECT  `recorded` (default): a test passes while the answer looks as it was recorded, so the fault is there;
                 `fixed`: a test passes once the answer looks otherwise
"""

import http.client
import os
import urllib.parse

import pytest

'''
_SENDING = '''

def send(method, target, headers, body, tools):
    """The sign of the answer to a request."""
    url = urllib.parse.urlsplit(os.environ.get("STACKTAP_URL", ""))
    if url.scheme not in ("http", "https") or not url.hostname:
        pytest.skip("set STACKTAP_URL to the server, e.g. http://127.0.0.1:8080")
    connect = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = connect(url.hostname, url.port, timeout=float(os.environ.get("TIMEOUT", "600")))
    try:
        connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value.replace("\\0API_KEY", os.environ.get("API_KEY", "none")).encode("latin-1"))
        if body:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body or None)
        return received(connection, tools)
    except (OSError, http.client.HTTPException):
        return sign_of("none", 0, b"", tools)
    finally:
        connection.close()


def received(connection, tools):
    response = connection.getresponse()
    ended, body = "complete", b""
    try:
        while True:
            piece = response.read1(65536)
            if not piece:
                break
            body += piece
        if response.length:
            ended = "cut"
    except http.client.IncompleteRead as cut:
        ended, body = "cut", body + cut.partial
    except (OSError, http.client.HTTPException):
        ended = "cut"
    return sign_of(ended, response.status, body, tools)


def check(expected, found):
    if os.environ.get("STACKTAP_EXPECT", "recorded") == "fixed":
        assert found != expected, "the answer still looks as it was recorded: the fault is there"
    else:
        assert found == expected, "the answer looks otherwise than it was recorded: the fault is not reproduced"
'''


def reproducer(run: ExportRun, version: str) -> Iterator[bytes]:
    """The pieces of the file: a test for each attempt that was named, else for each whose outcome is not `ok`.

    Raises ExportError as `ExportRun` does, and where no attempt is left.
    """
    yield _PREAMBLE.format(run=remark(run.run).replace("\\", "/").replace('"', "'"), version=version).encode("ascii")
    own = resources.files("checklists.exports").joinpath("answer_sign.py").read_text("utf-8")
    yield own.partition("from __future__ import annotations\n")[2].strip().encode() + b"\n" + _SENDING.encode()
    written = 0
    for seen in run:
        if not run.chosen and seen.judged.outcome.layer == "ok":
            continue
        test = _test(seen)
        if test is None and run.chosen:
            raise ExportError(f"attempt {place_of(seen)} cannot be sent again: it is not HTTP, or reached no server")
        if test is not None:
            written += 1
            yield test.encode("ascii")
    if not written:
        raise ExportError("no attempt has a fault that a request can show again; name one with --attempt")


def _test(seen: Seen) -> str | None:
    exchange, outcome = seen.exchange, seen.judged.outcome
    request = exchange.request
    if request is None or not _TOKEN.match(request.method) or exchange.relay_answer or exchange.end in _NEVER_REACHED:
        return None
    asked = seen.classified.facts.assembled.request
    tools = tuple(asked.tool_names) if asked is not None else ()
    headers = [(name, _with_key(value)) for name, value in masked.sent_again(request.headers)]
    name = _NAME.sub("_", f"attempt {place_of(seen)} {outcome.layer} {outcome.code}")
    said = remark(f"{outcome.name}: {outcome.detail}" if outcome.detail else outcome.name)
    lines = [
        f"\n\ndef test_{name}():",
        f"    # {said}",
        f"    method = {request.method!a}",
        f"    target = {url_safe(origin_form(request.forwarded_target))!a}",
        f"    headers = {_literal(headers)}",
        f"    body = {_literal(request.body)}",
        f"    tools = {_literal(tools)}",
        f"    expected = {_literal(recorded_sign(exchange, request, tools))}",
        "    check(expected, send(method, target, headers, body, tools))",
    ]
    return "\n".join(lines) + "\n"


def recorded_sign(exchange: Exchange, request: HttpRequest, tools: tuple[str, ...]) -> dict[str, object]:
    """The sign of the answer that was recorded. What the client did not wait for is taken as cut."""
    response = exchange.response
    if response is None:
        return sign_of("none", 0, b"", tools)
    whole = exchange.end == "complete" and response.complete
    body = b"" if request.method == "HEAD" else response.body
    return sign_of("complete" if whole else "cut", response.status, body, tools)


def _with_key(value: str) -> str:
    """A header's value in which the test puts the key where a secret was masked."""
    return "".join("\0API_KEY" if hidden else part for hidden, part in masked.parts_of(value))


def _literal(value: object) -> str:
    """A Python literal in ASCII, indented to stand in a function."""
    text = ascii(value)
    if len(text) <= 100:
        return text
    broken = pprint.pformat(value, width=110, sort_dicts=False)
    if not broken.isascii():
        broken = text
    return broken.replace("\n", "\n    ")
