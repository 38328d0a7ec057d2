"""What the JSON reader for evidence gives back: a value or `UNPARSED`, and notes on what was wrong with the text."""

from __future__ import annotations

import msgspec

MAX_DEPTH = 200
"""Containers nested deeper than this are skipped, noted and read as None."""

MAX_NOTES = 1000
"""Notes beyond this number are dropped, but for those that end a reading."""

Path = tuple[str | int, ...]
"""Keys and array positions that lead to a value inside a JSON text."""


class _Unparsed:
    """The type of `UNPARSED`: no value could be read."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNPARSED"

    def __bool__(self) -> bool:
        return False


UNPARSED = _Unparsed()


class JsonNote(msgspec.Struct):
    """What a plain reader hides or refuses. Codes: duplicate_key, nonstandard_number, lone_surrogate,
    control_character, bad_escape, invalid_utf8, too_deep, truncated, trailing_data, syntax, empty, byte_order_mark,
    huge_number. `start`/`end` are byte offsets in the text read."""

    code: str
    message: str
    start: int
    end: int


class Reading(msgspec.Struct):
    """Result of `read`: the value (UNPARSED where nothing could be read), the notes, and the end of the value."""

    value: object
    notes: list[JsonNote] = msgspec.field(default_factory=list)
    end: int = 0

    def has(self, code: str) -> bool:
        """Whether a note of that code was made."""
        return any(note.code == code for note in self.notes)

    @property
    def valid(self) -> bool:
        """True when a strict reader would accept the text too (duplicate keys and depth are accepted by RFC 8259)."""
        return not any(note.code not in ("duplicate_key", "too_deep", "huge_number") for note in self.notes)
