"""One verdict with the bytes it rests on: as text with the cited bytes marked, and as data.

Pure: it is given the outcome and the wire bytes of every attempt that the evidence cites.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from proxy.present import printable
from results.outcomes import Evidence, Judged, Outcome
from results.taxonomy import info

CONTEXT = 80
"""Bytes shown before and after a citation."""
LONGEST = 600
"""Bytes of a citation that are shown; the middle of a longer one is left out."""

Wire = Callable[[int, str], bytes | None]
"""(attempt, direction) to the bytes of that direction, None where they are not at hand."""


@dataclass(frozen=True, slots=True)
class Style:
    """How cited bytes and headings are marked; the default is plain text for a file, `ANSI` for a terminal."""

    open: str = ">>>"
    close: str = "<<<"
    strong: str = ""
    dim: str = ""
    reset: str = ""


PLAIN = Style()
ANSI = Style(open="\x1b[7m", close="\x1b[27m", strong="\x1b[1m", dim="\x1b[2m", reset="\x1b[0m")


def explain(judged: Judged, wire: Wire, style: Style = PLAIN) -> str:
    """The verdict on one attempt in words, then every citation with the bytes around it."""
    outcome = judged.outcome
    lines = [
        f"{style.strong}attempt {judged.attempt}: {printable(outcome.name)}{style.reset}"
        f"  ({info(outcome.name).meaning})",
        *_facts(judged),
    ]
    for number, cited in enumerate(outcome.evidence, 1):
        lines += ["", f"{style.strong}[{number}]{style.reset} {_where(cited)}"]
        lines.append(_shown(cited, wire(cited.attempt, cited.direction), style))
    return "\n".join(lines)


def _facts(judged: Judged) -> list[str]:
    outcome = judged.outcome
    asked = " ".join(part for part in (judged.method, judged.path) if part)
    rows = [
        ("request", f"{asked}  status {judged.status}" if judged.status else asked),
        ("stack", judged.stack),
        ("why", outcome.detail),
        ("at fault", outcome.at_fault),
        ("model ran", outcome.model_ran),
        ("delivery", outcome.delivery if outcome.delivery != "unknown" else ""),
        ("sure", f"{outcome.confidence}, {outcome.grade}"),
        ("flags", ", ".join(outcome.flags)),
        ("signature", outcome.signature or ""),
        ("change", outcome.remedy or ""),
        ("decide by", outcome.decide_by or ""),
    ]
    return [f"  {name:<10} {printable(value)}" for name, value in rows if value]


def _where(cited: Evidence) -> str:
    said = f"attempt {cited.attempt}, {cited.direction}, bytes {cited.start}-{cited.end}"
    return f"{said}: {printable(cited.why)}" if cited.why else said


def _shown(cited: Evidence, data: bytes | None, style: Style) -> str:
    if data is None:
        return f"{style.dim}    {cited.quote!r} (the bytes are not at hand){style.reset}"
    if cited.start >= len(data) or cited.end <= cited.start:
        return f"{style.dim}    {printable(cited.quote)}{style.reset}"
    before = data[max(0, cited.start - CONTEXT) : cited.start]
    inside = data[cited.start : cited.end]
    after = data[cited.end : cited.end + CONTEXT]
    if len(inside) > LONGEST:
        inside = inside[: LONGEST // 2] + b" [...] " + inside[-LONGEST // 2 :]
    text = f"{_text(before)}{style.open}{_text(inside)}{style.close}{_text(after)}"
    return "\n".join("    " + line for line in text.splitlines())


def _text(data: bytes) -> str:
    """Bytes as text that cannot disturb a terminal: control characters are written out."""
    decoded = data.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
    return "".join(char if char.isprintable() or char == "\n" else f"\\x{ord(char):02x}" for char in decoded)


def explained(judged: Judged, wire: Wire) -> dict[str, Any]:
    """The same as data: the judged line, and for each citation the bytes as they stand on the wire."""
    said: dict[str, Any] = msgspec.to_builtins(judged)
    said["outcome"] = outcome_json(judged.outcome)
    said["cited"] = [
        {"attempt": cited.attempt, "direction": cited.direction, "start": cited.start, "end": cited.end, "text": text}
        for cited in judged.outcome.evidence
        if (text := _cited_text(cited, wire)) is not None
    ]
    return said


def _cited_text(cited: Evidence, wire: Wire) -> str | None:
    data = wire(cited.attempt, cited.direction)
    return None if data is None else data[cited.start : cited.end].decode("utf-8", "backslashreplace")


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """An outcome as plain data, with its name."""
    said: dict[str, Any] = msgspec.to_builtins(outcome)
    return {"name": outcome.name, **said}
