"""The checklist as text to paste, as a Markdown page, and as JSON. Pure; a recording's words cannot become markup."""

from __future__ import annotations

import json
import re
import shlex
import unicodedata
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from checklists.items.catalogue import BY_ID
from checklists.items.records import COUNTED_WORDS, STATED, Checklist, Filled, Link

_ALWAYS = frozenset("\\`*<>|~")
_EDGE = re.compile(r"(?<!\w)_|_(?!\w)|\](?=[(\[:])|!(?=\[)|&(?=[#\w]+;)|(?<=:)/(?=/)")
"""Markup only in a certain place: an underscore at the edge of a word, the middle of a link, an entity, a URL."""
_MENTION = re.compile(r"(?<![\w@])@(?=\w)")
_SHORT = 300
_RULE = (
    "Filled counts what is answered, by a value or by a truthful no. Unknown, not done (nobody looked) and not "
    "applicable do not count as filled."
)


def plain(text: str) -> str:
    """Text from a recording on one line, without control characters: it can neither steer a terminal nor hide."""
    kept = (" " if letter.isspace() else letter for letter in text)
    return "".join(
        letter if unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Co", "Cn") else "\N{REPLACEMENT CHARACTER}"
        for letter in kept
    )


def markdown(text: str) -> str:
    """The same with everything escaped that Markdown or HTML would read as markup, and no more: it is read as plain
    text, too. A name that a forge would notify (`@name`) is written out."""
    escaped = "".join(f"\\{letter}" if letter in _ALWAYS else letter for letter in plain(text))
    return _MENTION.sub("(at)", _EDGE.sub(r"\\\g<0>", escaped))


def code(text: str) -> str:
    """A command as inline code, whatever backticks it holds."""
    line = plain(text)
    fence = "`"
    while fence in line:
        fence += "`"
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def short_text(checklist: Checklist) -> str:
    """A paragraph and a compact list, plain text that is Markdown as well: for a paper or a bug report."""
    lines = [paragraph(checklist), ""]
    lines += [f"- {entry.id} {BY_ID[entry.id].title}: {markdown(_cut(entry.said))}" for entry in checklist.entries]
    return "\n".join(lines) + "\n"


def paragraph(checklist: Checklist) -> str:
    """What the run's numbers hold for, how complete the list is, and which claims are not made."""
    holds = " ".join(markdown(_cut(line.text)) for line in checklist.scope if line.kind == "holds_for")
    scope = checklist.entry("C16").value.partition("Claims not made: ")[2]
    claims = f" No claims are made on: {markdown(scope.replace('; ', ', '))}." if scope else ""
    run = f" (run {markdown(checklist.run)}, stacktap {markdown(checklist.stacktap)})" if checklist.run else ""
    return f"Serving checklist: {checklist.header}{run}. {holds}{claims}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHORT else text[: _SHORT - 1].rstrip() + "…"


def long_markdown(checklist: Checklist, reference: str = "") -> str:
    """Every item with its question, answer, reason, the command that would fill it, and where to look."""
    name = reference or checklist.run or "RUN"
    lines = ["# Serving checklist", "", f"**{checklist.header}**", "", _RULE, ""]
    for entry in checklist.entries:
        lines += _section(entry, name)
    lines += ["## What the numbers hold for", ""]
    lines += [f"- {markdown(line.text)}" for line in checklist.scope]
    return "\n".join(lines) + "\n"


def _section(entry: Filled, reference: str) -> list[str]:
    item = BY_ID[entry.id]
    stated = f", {STATED}" if entry.stated else ""
    lines = [f"## {item.id} {item.title}", "", f"*{item.asks}* {item.why}", ""]
    lines += [f"**{COUNTED_WORDS[entry.counted]}{stated}**: {markdown(entry.said)}", ""]
    if len(entry.parts) > 1:
        lines += [f"- {markdown(one.about)}: {markdown(one.value or one.why)}" for one in entry.parts] + [""]
    if entry.command and entry.counted != "filled":
        lines += [f"To fill it: {code(entry.command)}", ""]
    if entry.evidence:
        lines += [f"- {_evidence(link, reference)}" for link in entry.evidence] + [""]
    return lines


def _evidence(link: Link, reference: str) -> str:
    what = f"{markdown(link.what)}: " if link.what else ""
    return f"{what}{markdown(link.place)}, {code(show_command(link, reference))}"


def show_command(link: Link, reference: str) -> str:
    """The command that shows an attempt. A recording inside of a grid's run is a run of its own."""
    run = f"{reference}/recordings/{link.recording}" if link.recording else reference
    return f"stacktap show {shlex.quote(run)} {link.attempt}"


def checklist_json(checklist: Checklist) -> dict[str, Any]:
    """As JSON values, by the committed schema (`schema()`)."""
    counts = checklist.counts
    return {
        "schema": checklist.schema,
        "stacktap": checklist.stacktap,
        "run": checklist.run,
        "header": checklist.header,
        "counts": {**msgspec.structs.asdict(counts), "total": counts.total},
        "items": [_entry_json(entry) for entry in checklist.entries],
        "scope": [msgspec.structs.asdict(line) for line in checklist.scope],
    }


def _entry_json(entry: Filled) -> dict[str, Any]:
    item = BY_ID[entry.id]
    return {
        "id": item.id,
        "title": item.title,
        "asks": item.asks,
        "origin": item.origin,
        "state": entry.state,
        "counted": entry.counted,
        "value": entry.value,
        "why": entry.why,
        "command": entry.command,
        "stated_by_user": entry.stated,
        "parts": [msgspec.structs.asdict(one) for one in entry.parts],
        "data": msgspec.to_builtins(entry.data),
        "evidence": [msgspec.structs.asdict(link) for link in entry.evidence],
    }


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of `checklist_json`, as it is committed."""
    text = resources.files("checklists.items").joinpath("schema.json").read_text(encoding="utf-8")
    value: dict[str, Any] = json.loads(text)
    return value
