"""The signature table: what serving stacks say when something goes wrong, and what it means.

Rows are data (`signatures.json`), sourced and versioned. A row with a pattern is matched against a text of its kind
(`where`); a row without one describes a structure (an empty answer, a contradiction) and is there to be printed and to
lend its meaning and remedy. Nothing here decides an outcome: hits are facts, best first.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib import resources
from typing import Annotated, Literal, NamedTuple

import msgspec

from stacks.signatures.versions import in_range, parse_range
from stacks.stack_names import stack_name

Where = Literal["error", "body", "header", "log", "stream", "text", "structure"]
AtFault = Literal["config", "stack", "client", "model", "network", "undetermined"]
ModelRan = Literal["yes", "no", "unknown"]

LAYERS = frozenset(
    ("transport", "gate", "request", "template", "engine", "nonresponse", "truncation", "parser", "protocol", "model")
) | {"ok", "fingerprint"}
#: Stacks that answer with another server's words: Ollama and LM Studio run llama.cpp inside, gateways pass anything on.
INNER: dict[str, tuple[str, ...]] = {"ollama": ("llamacpp",), "lmstudio": ("llamacpp",)}
_HEAD, _TAIL = 65_536, 16_384

_Filled = Annotated[str, msgspec.Meta(min_length=1)]


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row. outcome: `layer.code` in the names of DESIGN section 4, or `fingerprint`.

    where: error (an error message, out of whatever envelope), body (the whole body), header (the header block), log,
    stream (an event or line), text (what the model wrote), structure (no pattern; `sign` says what to look for).
    versions: range in which it is known, empty for any. generic: says little by itself, so it ranks last.
    """

    id: _Filled
    stack: _Filled
    where: Where
    outcome: _Filled
    meaning: _Filled
    remedy: _Filled
    source: _Filled
    at_fault: AtFault
    model_ran: ModelRan
    sign: str = ""
    pattern: str = ""
    versions: str = ""
    statuses: tuple[int, ...] = ()
    generic: bool = False

    @property
    def layer(self) -> str:
        """The outcome's layer."""
        return self.outcome.partition(".")[0]

    @property
    def code(self) -> str:
        """The outcome's code, empty for a fingerprint."""
        return self.outcome.partition(".")[2]


class SignatureHit(NamedTuple):
    """A row that matched, and the characters of the text that it matched."""

    row: Signature
    span: tuple[int, int]


class TableError(ValueError):
    """The signature table is not what it should be; the message names the row."""


def load_table(data: bytes) -> tuple[Signature, ...]:
    """Decode and check a table. Raises TableError naming the row and the fault."""
    try:
        rows = tuple(msgspec.json.decode(data, type=list[Signature]))
    except msgspec.ValidationError as error:
        raise TableError(f"signature table: {error}") from None
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise TableError(f"signature {row.id}: the id is used twice")
        seen.add(row.id)
        if (row.where == "structure") == bool(row.pattern):
            raise TableError(f"signature {row.id}: a structure has no pattern, every other row needs one")
        if row.layer not in LAYERS or (row.layer != "fingerprint" and not row.code):
            raise TableError(f"signature {row.id}: {row.outcome!r} is no layer.code")
        try:
            parse_range(row.versions)
        except ValueError as error:
            raise TableError(f"signature {row.id}: {error}") from None
    return rows


@cache
def table() -> tuple[Signature, ...]:
    """The rows that come with stacktap."""
    return load_table(resources.files(__package__).joinpath("signatures.json").read_bytes())


def rows(stack: str | None = None) -> tuple[Signature, ...]:
    """The rows of one stack and those of any stack; all rows without a stack, or for one that is not known."""
    name = stack_name(stack)
    if name is None:
        return table()
    return tuple(row for row in table() if row.stack in (name, "any"))


def stack_names() -> tuple[str, ...]:
    """Every stack that the table knows."""
    return tuple(sorted({row.stack for row in table()} - {"any"}))


def row(signature_id: str) -> Signature:
    """One row by its id. Raises KeyError."""
    return _by_id()[signature_id]


@cache
def _by_id() -> dict[str, Signature]:
    return {entry.id: entry for entry in table()}


# ---------------------------------------------------------------------- matching
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")


def required_literals(pattern: str) -> tuple[str, ...]:
    """For each top-level alternative of a regular expression, a text that every match must hold.

    Empty when some alternative has none of at least three characters, or letter case is ignored: then nothing can be
    ruled out beforehand. Reads only the constructs that the table uses, and errs on the side of shorter texts.
    """
    if re.match(r"\(\?[a-z]*i", pattern):
        return ()
    literals: list[str] = []
    for alternative in _alternatives(pattern):
        best = max(_runs(alternative), key=len, default="")
        if len(best) < 3:
            return ()
        literals.append(best)
    return tuple(literals)


def _alternatives(pattern: str) -> list[str]:
    parts, depth, start, at = [], 0, 0, 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 2
            continue
        if char == "[":
            match = _CLASS.match(pattern, at)
            at = match.end() if match else at + 1
            continue
        depth += (char == "(") - (char == ")")
        if char == "|" and depth == 0:
            parts.append(pattern[start:at])
            start = at + 1
        at += 1
    return [*parts, pattern[start:]]


def _runs(alternative: str) -> list[str]:
    """Literal runs outside groups and classes; a character before a quantifier belongs to none."""
    runs, run, depth, at = [], "", 0, 0
    while at < len(alternative):
        char, step, literal = alternative[at], 1, ""
        if char == "\\":
            step = 2
            escaped = alternative[at + 1 : at + 2]
            literal = "" if escaped.isalnum() else escaped
        elif char == "[":
            match = _CLASS.match(alternative, at)
            step = match.end() - at if match else 1
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char not in ".^$*+?{}|":
            literal = char
        if char == "{" and "}" in alternative[at:]:
            step = alternative.index("}", at) - at + 1
        following = alternative[at + step : at + step + 1]
        if literal and depth == 0 and following not in ("?", "*", "{"):
            run += literal
        else:
            runs.append(run)
            run = ""
        at += step
    return [*runs, run]


class _Compiled(NamedTuple):
    row: Signature
    literals: tuple[str, ...]


@lru_cache(maxsize=256)
def _candidates(where: Where, stack: str | None) -> tuple[tuple[int, _Compiled], ...]:
    """Rows that may speak for a stack, with how far they are from it."""
    return tuple(
        (distance, _Compiled(row, required_literals(row.pattern)))
        for row in table()
        if row.where == where and (distance := _distance(row, stack)) is not None
    )


@lru_cache(maxsize=256)
def _by_literal(where: Where, stack: str | None) -> tuple[dict[str, list[int]], frozenset[int]]:
    """Places in `_candidates` by the literals of which a text must hold one, and the places of rows without any."""
    places: dict[str, list[int]] = {}
    always = set()
    for place, (_, entry) in enumerate(_candidates(where, stack)):
        for literal in entry.literals:
            places.setdefault(literal, []).append(place)
        if not entry.literals:
            always.add(place)
    return places, frozenset(always)


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, compiled when first needed."""
    return re.compile(pattern, re.DOTALL)


def match(
    where: Where, text: str, stack: str | None = None, version: str | None = None, status: int | None = None
) -> list[SignatureHit]:
    """Rows of kind `where` whose pattern stands in `text`, the most telling first.

    With a stack, only its rows, those of the server inside it, and those of any stack; with a version, not those of
    other versions. A status that a row does not list lowers its place and no more: servers change their status codes
    more often than their words. Any spelling of a stack will do; an unknown one counts as none. Of a very long text
    the first 64 KiB and the last 16 KiB are looked at.
    """
    pieces = [(0, text)] if len(text) <= _HEAD + _TAIL else [(0, text[:_HEAD]), (len(text) - _TAIL, text[-_TAIL:])]
    ranked: list[tuple[tuple[int, ...], SignatureHit]] = []
    name = stack_name(stack)
    candidates, (by_literal, always) = _candidates(where, name), _by_literal(where, name)
    held = [by_literal[literal] for literal in by_literal if literal in text]
    for place in sorted(always.union(*held)):
        distance, entry = candidates[place]
        if not _version_fits(entry.row, version):
            continue
        for offset, piece in pieces:
            found = compiled(entry.row.pattern).search(piece)
            if found is not None:
                hit = SignatureHit(entry.row, (found.start() + offset, found.end() + offset))
                ranked.append((_rank(entry, distance, version, status), hit))
                break
    ranked.sort(key=lambda item: item[0])
    return [hit for _, hit in ranked]


def _distance(row: Signature, stack: str | None) -> int | None:
    """0 for the stack's own row, 1 for the server inside it, 2 for any; None for another stack's."""
    if stack is None or row.stack == stack:
        return 0 if row.stack != "any" else 2
    if row.stack in INNER.get(stack, ()):
        return 1
    return 2 if row.stack == "any" else None


def _version_fits(row: Signature, version: str | None) -> bool:
    return not row.versions or version is None or in_range(version, row.versions) is not False


def _rank(entry: _Compiled, distance: int, version: str | None, status: int | None) -> tuple[int, ...]:
    row = entry.row
    other_status = status is not None and bool(row.statuses) and status not in row.statuses
    unsure_version = bool(row.versions) and (version is None or in_range(version, row.versions) is None)
    length = max((len(literal) for literal in entry.literals), default=len(row.pattern) // 2)
    return (int(row.generic), distance, int(other_status), int(unsure_version), -length)
