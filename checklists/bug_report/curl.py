"""A recorded request as a command that sends it: `curl` in a POSIX shell, quoted so that nothing in it is run. Pure."""

from __future__ import annotations

import base64
import json
import re
import shlex
from typing import Any, NamedTuple

from checklists.bug_report.anonymous import Anonymiser
from results.exchange import HttpRequest

KEPT_HEADERS = frozenset({"accept", "anthropic-beta", "anthropic-version", "content-type", "openai-beta"})
KEY_HEADERS = {
    "authorization": "Authorization: Bearer $API_KEY",
    "x-api-key": "X-Api-Key: $API_KEY",
    "api-key": "Api-Key: $API_KEY",
}
_SEEN = re.compile(r"[^\x20-\x7e\n]")


class Command(NamedTuple):
    """A command to send a request. `body_size`: characters of the body as it stands in the text; `masked`: whether the
    recording holds asterisks in place of secrets in it."""

    text: str
    body_size: int


def curl(
    request: HttpRequest, hide: Anonymiser, *, url: str = "http://localhost:8080", body: Any | None = None
) -> Command:
    """The command for a request; `body` is sent in place of the recorded one (a JSON value). The server's address and
    a key are variables."""
    target = hide.text(request.forwarded_target)
    lines = [f"curl -sS {_quoted_url(target)}"]
    if request.method != "POST":
        lines.append(f"-X {shlex.quote(request.method)}")
    lines += [f"-H {header}" for header in _headers(request, hide)]
    text, decode = _body(request, hide, body)
    command = " \\\n  ".join(lines)
    setting = f"SERVER={shlex.quote(url)}\n"
    if any("$API_KEY" in line for line in lines):
        setting += "API_KEY=...\n"
    if not text:
        return Command(setting + command, 0)
    mark = _mark(text)
    given = f"{command} \\\n  --data-binary @-"
    sent = f"base64 -d <<'{mark}' | {given}" if decode else f"{given} <<'{mark}'"
    return Command(f"{setting}{sent}\n{text}\n{mark}", len(text))


def _quoted_url(target: str) -> str:
    """The address, its first part a variable; the rest in single quotes where it needs any."""
    path = target if target.startswith("/") else f"/{target}"
    return f'"$SERVER"{shlex.quote(path)}'


def _headers(request: HttpRequest, hide: Anonymiser) -> list[str]:
    found = []
    for name, value in request.headers:
        low = name.lower()
        if low in KEY_HEADERS:
            found.append(f'"{KEY_HEADERS[low]}"')
        elif low in KEPT_HEADERS and value.strip() != "*/*":
            found.append(shlex.quote(f"{name}: {hide.text(value)}"))
    return found


def _body(request: HttpRequest, hide: Anonymiser, body: Any | None) -> tuple[str, bool]:
    """(text of the body, whether it is base64)."""
    value = body
    if value is None:
        if not request.body:
            return "", False
        try:
            value = json.loads(request.body)
        except (ValueError, RecursionError):
            return _not_json(request.body, hide)
    try:
        return as_json(hide.value(value)), False
    except RecursionError:
        return _not_json(request.body, hide)


def as_json(value: Any) -> str:
    """A JSON value, indented; characters that cannot be seen, or that no shell passes on, as their escapes."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return _SEEN.sub(lambda found: found[0] if _shown(found[0]) else json.dumps(found[0])[1:-1], text)


def _shown(char: str) -> bool:
    return char.isprintable() and not "\ud800" <= char <= "\udfff"


def _not_json(body: bytes, hide: Anonymiser) -> tuple[str, bool]:
    # A here-document ends with a line end of its own, which such a body may not have.
    try:
        hidden = hide.text(body.decode()).encode()
    except UnicodeError:
        hidden = hide.text(body.decode("latin-1")).encode("latin-1", "replace")
    return _lines(base64.b64encode(hidden)), True


def _lines(encoded: bytes) -> str:
    text = encoded.decode()
    return "\n".join(text[at : at + 100] for at in range(0, len(text), 100))


def _mark(text: str) -> str:
    lines, mark = set(text.split("\n")), "BODY"
    while mark in lines:
        mark += "_"
    return mark
