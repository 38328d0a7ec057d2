"""A run as a shell script of curl commands that send the same requests again. Pure: gives the file in pieces.

Everything from the recording stands inside single quotes, where a POSIX shell (POSIX.1-2017, section 2.2.2) gives no
character a meaning but the quote itself, or in base64. Text that a terminal would act on is written in base64 as well.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from checklists.exports.masked import MASKED, parts_of, sent_again, variable_for
from checklists.exports.selection import ExportRun, place_of
from checklists.exports.targets import origin_form, url_safe
from checklists.reading import Seen
from results.exchange import HttpRequest

_PLAIN_BODY = re.compile(r"[\n\t\x20-\x7e\xa1-\u1fff\u2c00-\ud7ff\uf900-\ufefe\uff00-\uffef]*\Z")
"""Text that reads the same in an editor and a terminal: no controls, no direction marks, no separators."""

_PRINTABLE = re.compile(r"[ -~]*\Z")
_TOKEN = re.compile(r"[A-Za-z]{1,32}\Z")
_LINE = 76


def shell_script(run: ExportRun, version: str) -> Iterator[bytes]:
    """The pieces of the script, one command an exchange. Raises ExportError as `ExportRun` does."""
    yield _preamble(run, version).encode()
    for seen in run:
        yield _command(run, seen).encode("utf-8", "replace")


def quoted(text: str) -> str:
    """One word of a POSIX shell, whatever is in it; NUL, which no argument can hold, goes."""
    return "'" + text.replace("\0", "").replace("'", "'\\''") + "'"


def remark(text: str, longest: int = 200) -> str:
    """Text for a comment: one line of printable ASCII."""
    return re.sub(r"[^ -~]+", " ", text)[:longest]


def _preamble(run: ExportRun, version: str) -> str:
    lines = [
        "#!/bin/sh",
        f"# Requests of run {remark(run.run)}, sent again in the order in which they ended. By stacktap {version}.",
        "# STACKTAP_URL is where the server is; API_KEY goes where the recording masked a secret.",
        "# Each answer is printed with its head. What one request gets does not stop the next.",
        ': "${STACKTAP_URL:=http://127.0.0.1:8080}" "${API_KEY:=none}"',
        "send() {",
        '  curl --disable --silent --show-error --include --globoff --path-as-is --max-time "${TIMEOUT:-600}" "$@"',
        '  code=$?; echo; [ $code -eq 0 ] || echo "curl: exit code $code" >&2',
        "}",
        "",
    ]
    return "\n".join(lines)


def _command(run: ExportRun, seen: Seen) -> str:
    outcome = seen.judged.outcome
    heading = f"\n# attempt {place_of(seen)}: {outcome.name}"
    request = seen.exchange.request
    if request is None:
        return f"{heading}\n# not HTTP: nothing to send again\n"
    if not _TOKEN.match(request.method):
        return f"{heading}\n# its method is none that can be sent again\n"
    notes = [heading]
    if outcome.detail:
        notes.append(f"# {remark(outcome.detail)}")
    if not request.complete:
        notes.append("# the recording lacks the end of this request")
    before, argument, body_note = _body(request)
    words = ["send", "--request", quoted(request.method), "--url", _url(run, seen, request)]
    headers = sent_again(request.headers)
    for name, value in headers:
        words += ["\\\n  --header", _header(name, value)]
    if argument and not any(name.lower() == "content-type" for name, _ in headers):
        # curl would name a form.
        words += ["\\\n  --header", "'Content-Type:'"]
    if argument:
        words += ["\\\n  --data-binary", argument]
    return "\n".join(notes + body_note) + "\n" + before + " ".join(words) + "\n"


def base_variable(run: ExportRun, upstream: str) -> str:
    """The variable that holds the server's URL: `STACKTAP_URL`, or one for each upstream where a run has several."""
    names = sorted({one.name for each in run.source.recordings if each.manifest for one in each.manifest.upstreams})
    if len(names) < 2 or upstream not in names:
        return "STACKTAP_URL"
    return f"STACKTAP_URL_{names.index(upstream) + 1}"


def _url(run: ExportRun, seen: Seen, request: HttpRequest) -> str:
    variable = base_variable(run, seen.exchange.upstream)
    base = '"${STACKTAP_URL}"' if variable == "STACKTAP_URL" else f'"${{{variable}:-$STACKTAP_URL}}"'
    return base + _word(url_safe(origin_form(request.forwarded_target)), "API_KEY")


def _header(name: str, value: str) -> str:
    # A header without a value is sent only where a semicolon ends its name (curl's manual, --header).
    return _word(f"{name}: {value}", variable_for(name)) if value.strip() else quoted(f"{name};")


def _word(text: str, variable: str) -> str:
    """One word in which each masked secret is a variable."""
    given = "${API_KEY}" if variable == "API_KEY" else f"${{{variable}:-$API_KEY}}"
    return "".join(f'"{given}"' if masked else _plain(part) for masked, part in parts_of(text))


def _plain(text: str) -> str:
    """A part of a head, of which each character is one byte; what is not printable ASCII is made when it runs."""
    if _PRINTABLE.match(text):
        return quoted(text)
    escaped = "".join(
        char.replace("\\", "\\\\") if _PRINTABLE.match(char) else f"\\0{ord(char) & 0xFF:03o}" for char in text
    )
    return f"\"$(printf '%b' {quoted(escaped)})\""


def _body(request: HttpRequest) -> tuple[str, str, list[str]]:
    """(what stands before the command, the argument of --data-binary, comments)."""
    body = request.body
    if not body:
        return "", "", []
    notes = []
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if MASKED.search(text):
        notes.append("# a secret in this body was masked in the recording: put it in where the asterisks are")
    if _PLAIN_BODY.match(text):
        # printf is part of the shell, so that no limit on arguments holds.
        return f"printf '%s' {quoted(text)} | ", "@-", notes
    coded = base64.b64encode(body).decode()
    lines = "\n".join(coded[at : at + _LINE] for at in range(0, len(coded), _LINE))
    return f"printf '%s' '\n{lines}\n' | base64 -d | ", "@-", notes
