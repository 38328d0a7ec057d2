"""What the linter says: findings with their place, reason and repair. No I/O."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Code = Literal[
    "never_passes",
    "never_fails",
    "contradicts",
    "flips_on_format",
    "not_asked",
    "refuses_good",
    "lets_bad_through",
    "catastrophic",
    "broken",
]
"""`refuses_good`, `lets_bad_through`: the check judges a sample of the pack otherwise than the pack says."""

CODES: dict[str, str] = {
    "never_passes": "no answer can pass the check",
    "never_fails": "no answer can fail the check",
    "contradicts": "an answer that passes this check fails another one of the same task",
    "flips_on_format": "the verdict changes with the form of an answer, its content being the same",
    "not_asked": "the check demands what the prompt does not ask for",
    "refuses_good": "an answer that the pack says is right fails the check",
    "lets_bad_through": "an answer that the pack says is wrong passes the check",
    "catastrophic": "the pattern tries too many ways: on some answers it does not end in time",
    "broken": "the check cannot be applied to an answer",
}

KINDS: dict[str, str] = {
    "json": "JSON written compactly, with spaces, or over several lines",
    "quotes": "straight or typographic apostrophes and quotation marks",
    "line_ends": "LF or CRLF, and a line end after the last line",
    "spaces": "one space, two, a tab, a no-break space, or a line end where the text is wrapped",
    "paragraphs": "sentences on one line, or each in a paragraph of its own",
    "unicode": "composed or decomposed letters (NFC, NFD)",
    "capital": "a small or a capital letter at the start of a sentence",
}
"""Changes of form under which a verdict must stay as it is."""


class Repair(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change of the pack after which the finding is gone, and no other has come: it was tried. `fields`: fields of
    the check with their new values; `drop`: the check is taken out; `ask`: a sentence for the prompt."""

    said: str
    fields: dict[str, Any] = msgspec.field(default_factory=dict)
    drop: bool = False
    ask: str = ""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One fault of one check. `kind`: the change of form (`KINDS`) for `flips_on_format`. `answers`: the answer, or the
    two answers, that show it. `repair` is None where none of the tried changes takes the fault away."""

    code: Code
    task: str
    check: str
    reason: str
    file: str = ""
    line: int = 0
    kind: str = ""
    answers: tuple[str, ...] = ()
    repair: Repair | None = None


class PackReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the linter found in one pack. `checks`: how many it tried; `tried`: on how many answers; `untested`: checks
    for which the pack holds no answer that should fail them; `warnings`: what loading said."""

    pack: str
    version: str
    sha256: str
    path: str
    checks: int
    tried: int
    findings: tuple[Finding, ...] = ()
    untested: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unfinished: str = ""
