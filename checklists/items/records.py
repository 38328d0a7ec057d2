"""The serving checklist as records: items, what each was filled with, and how many are.

An entry counts as filled where its question is answered: by a value (`yes`), or by a truthful `no` ("the rendered
prompt does not hold the tools"). A `no` that only says that nobody looked ("no other server was asked") is `not done`
and is not filled; neither is `unknown`, nor `not applicable`. All four are said in the header.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

CHECKLIST_SCHEMA = 1
"""Version of the JSON shape of `Checklist`."""

State = Literal["yes", "no", "unknown", "not_applicable"]
Counted = Literal["filled", "unknown", "not_done", "not_applicable"]

COUNTED_WORDS: dict[Counted, str] = {
    "filled": "filled",
    "unknown": "unknown",
    "not_done": "not done",
    "not_applicable": "not applicable",
}
STATED = "stated by the user"


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One question. `asks` in plain words, `why` it matters, `origin` where the question is from, `filled_from` what
    answers it without asking anybody."""

    id: str
    title: str
    asks: str
    why: str
    origin: str
    filled_from: str


class Link(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Where an answer can be looked at: bytes `start` to `end` of one direction of an attempt, on the wire.

    `recording` is "" in a run of one journal, else the recording's name; `what` says what stands there.
    """

    attempt: int
    direction: Literal["request", "response"]
    start: int
    end: int
    what: str = ""
    recording: str = ""

    @property
    def place(self) -> str:
        """`attempt 12, response bytes 80-140`, after the recording's name where there are several."""
        where = f"recording {self.recording}, " if self.recording else ""
        return f"{where}attempt {self.attempt}, {self.direction} bytes {self.start}-{self.end}"


class Part(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The answer for one server, model or cell, where an item has to be answered for each. `about` names it."""

    about: str
    state: State
    value: str = ""
    why: str = ""
    command: str = ""
    done: bool = True


class Filled(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One item with its answer.

    `value` is the answer in one line (for `yes`, and for a `no` that answers; what is known besides for `unknown`);
    `why` says why there is none, or what a `no` means; `command` is what would fill it. `done` is False where a `no`
    says only that it was not done. `stated`: the user said so, nothing was measured. `parts` are the answers one by one
    where there are several servers, models or cells; `data` is the same for programs; `evidence` leads to the bytes.
    """

    id: str
    state: State
    value: str = ""
    why: str = ""
    command: str = ""
    done: bool = True
    stated: bool = False
    parts: tuple[Part, ...] = ()
    data: dict[str, Any] = msgspec.field(default_factory=dict)
    evidence: tuple[Link, ...] = ()

    @property
    def counted(self) -> Counted:
        """What it counts as in the header."""
        if self.state in ("unknown", "not_applicable"):
            return self.state
        return "filled" if self.state == "yes" or self.done else "not_done"

    @property
    def said(self) -> str:
        """The answer in words, whatever its state; without the command that would fill it."""
        words = {"yes": "", "no": "no: ", "unknown": "unknown: ", "not_applicable": "not applicable: "}[self.state]
        if self.counted == "not_done":
            words = "not done: "
        text = words + (self.value or self.why)
        if self.state == "unknown" and self.value:
            text = f"{words}{self.why}; known: {self.value}"
        return f"{text} ({STATED})" if self.stated else text


class Counts(msgspec.Struct, frozen=True):
    """How many items are what; they add up to `total`."""

    filled: int
    unknown: int
    not_done: int
    not_applicable: int

    @property
    def total(self) -> int:
        """All items."""
        return self.filled + self.unknown + self.not_done + self.not_applicable


class ScopeLine(msgspec.Struct, frozen=True):
    """One sentence on what the run's numbers hold for, or on a claim that they cannot carry. `kind` is `holds_for`,
    `hosted_api`, `scale`, `family`, `reasoning`, `hardware`, `ranking` or `mixed`."""

    kind: str
    text: str


class Checklist(msgspec.Struct, frozen=True, kw_only=True):
    """The whole list of a run, in the order of the items."""

    schema: int
    stacktap: str
    run: str
    entries: tuple[Filled, ...]
    scope: tuple[ScopeLine, ...] = ()

    @property
    def counts(self) -> Counts:
        """How many entries are filled, unknown, not done, not applicable."""
        words = [entry.counted for entry in self.entries]
        return Counts(
            words.count("filled"), words.count("unknown"), words.count("not_done"), words.count("not_applicable")
        )

    @property
    def header(self) -> str:
        """`18 of 22 filled (2 unknown, 1 not done, 1 not applicable)`; what is stated by the user is said, too."""
        counts = self.counts
        rest = [
            f"{number} {word}"
            for number, word in (
                (counts.unknown, "unknown"),
                (counts.not_done, "not done"),
                (counts.not_applicable, "not applicable"),
            )
            if number
        ]
        stated = sum(entry.stated for entry in self.entries)
        if stated:
            rest.append(f"{stated} {STATED}")
        return f"{counts.filled} of {counts.total} filled" + (f" ({', '.join(rest)})" if rest else "")

    def entry(self, item: str) -> Filled:
        """The entry of an item. Raises KeyError."""
        return next((one for one in self.entries if one.id == item), None) or _missing(item)


def _missing(item: str) -> Filled:
    raise KeyError(item)
