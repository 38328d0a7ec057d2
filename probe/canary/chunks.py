"""Cutting a script into the tokens that write it.

The next token of a canary depends on the previous one (and on the script in force), so within one script no token may
stand twice with different successors. Cutting at other lengths makes equal text into different tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from probe.canary.spec import LONGEST_CHUNK, CanaryError, CanarySpec, Script, text_bytes

_MOST_STEPS = 200_000


@dataclass(frozen=True)
class ChunkedScript:
    """A script as tokens: ``tokens`` in writing order, then ``end``, or back to token number ``loop_start``.

    ``fallback`` are the tokens that a server's grammar gets instead of a forbidden end, before the end.
    """

    name: str
    tokens: tuple[bytes, ...]
    end: str | None
    loop_start: int | None
    fallback: tuple[bytes, ...] = ()


def chunk_script(script: Script, spec: CanarySpec) -> ChunkedScript:
    """Cut ``script``; raises CanaryError when no cut keeps its tokens apart."""
    reserved = frozenset(text_bytes(tag) for tag in _fixed_tokens(spec))
    seen: set[bytes] = set()
    if script.chunks:
        tokens = [text_bytes(chunk) for chunk in script.chunks]
        for number, token in enumerate(tokens):
            _check_given(script, token, tokens[:number])
        seen.update(tokens)
    else:
        tokens = _chunk_text(script.name, text_bytes(script.text), spec, reserved, seen)
    loop_start = None
    if script.loop:
        loop_start = len(tokens)
        tokens = tokens + _chunk_text(script.name, text_bytes(script.loop), spec, reserved, seen)
    fallback = _chunk_text(script.name, text_bytes(script.fallback), spec, reserved, seen)
    return ChunkedScript(script.name, tuple(tokens), None if script.loop else script.end, loop_start, tuple(fallback))


def _fixed_tokens(spec: CanarySpec) -> Iterator[str]:
    yield from spec.tags
    yield from spec.generation_prompts
    yield from spec.all_triggers()


def _check_given(script: Script, token: bytes, before: list[bytes]) -> None:
    if not token:
        raise CanaryError(f"script {script.name!r} has an empty chunk")
    if len(token) > LONGEST_CHUNK:
        raise CanaryError(
            f"chunk {token!r} of script {script.name!r} has {len(token)} bytes; at most {LONGEST_CHUNK} survive in "
            "every server: cut it in two"
        )
    if token in before:
        raise CanaryError(
            f"chunk {token!r} stands twice in script {script.name!r}, so what follows it is ambiguous: cut one of the "
            "two places differently, or give the text without chunks"
        )


def _chunk_text(name: str, data: bytes, spec: CanarySpec, reserved: frozenset[bytes], seen: set[bytes]) -> list[bytes]:
    tokens: list[bytes] = []
    tags = [text_bytes(tag) for tag in spec.tags]
    opening = {text_bytes(tag) for tag in spec.split_after}
    for piece, is_token in _pieces(data, tags, opening, seen):
        tokens += [piece] if is_token else _cut(name, piece, spec.chunk_bytes, reserved, seen)
    return tokens


def _pieces(data: bytes, tags: list[bytes], opening: set[bytes], seen: set[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Split off the first occurrence of each tag (and the newline after an opening one), marking them as seen.

    The flag tells tokens from text that is still to be cut.
    """
    start = position = 0
    while position < len(data):
        tag = next((t for t in tags if t not in seen and data.startswith(t, position)), None)
        if tag is None:
            position += 1
            continue
        if position > start:
            yield data[start:position], False
        seen.add(tag)
        yield tag, True
        position += len(tag)
        if tag in opening and data[position : position + 1] == b"\n" and b"\n" not in seen:
            seen.add(b"\n")
            yield b"\n", True
            position += 1
        start = position
    if start < len(data):
        yield data[start:], False


def _cut(name: str, data: bytes, preferred: int, reserved: frozenset[bytes], seen: set[bytes]) -> list[bytes]:
    """Cut ``data`` into distinct unseen pieces near ``preferred`` bytes, by depth-first search with backtracking."""
    taken: list[bytes] = []
    choices = [_lengths(data, 0, preferred)]
    position = 0
    for _ in range(_MOST_STEPS):
        if position == len(data):
            seen.update(taken)
            return taken
        length = next(choices[-1], None)
        if length is None:
            choices.pop()
            if not choices:
                break
            position -= len(taken.pop())
            continue
        piece = data[position : position + length]
        if piece in seen or piece in reserved or piece in taken:
            continue
        taken.append(piece)
        position += length
        choices.append(_lengths(data, position, preferred))
    raise CanaryError(
        f"script {name!r}: the text {data[:60]!r} cannot be cut into tokens that differ from each other; make it "
        "shorter or less repetitive, or give it as a loop"
    )


def _lengths(data: bytes, position: int, preferred: int) -> Iterator[int]:
    """Piece lengths to try at ``position``: the preferred one, shorter ones, longer ones, and a single byte last."""
    left = len(data) - position
    for length in (*range(preferred, 1, -1), *range(preferred + 1, LONGEST_CHUNK + 1), 1):
        if length <= left and left - length != 1 and _on_boundary(data, position + length):
            yield length
    if 1 < left - 1 <= LONGEST_CHUNK and _on_boundary(data, len(data) - 1):
        yield left - 1


def _on_boundary(data: bytes, position: int) -> bool:
    """False inside a UTF-8 character: a token then holds whole characters only."""
    return position >= len(data) or data[position] & 0xC0 != 0x80
