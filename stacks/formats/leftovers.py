"""Markers of calls, reasoning and turns that are left over in a text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from stacks.formats.model import Span, complement, inside_any
from stacks.formats.reasoning import reasoning_markers
from stacks.formats.registry import formats

SPECIAL_TOKENS = (
    "<|im_end|>", "<|im_start|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>", "<|end|>",
    "<|call|>", "<|return|>", "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|start_header_id|>",
    "<|end_header_id|>", "<end_of_turn>", "<start_of_turn>", "<turn|>", "<|turn>", "<|END_OF_TURN_TOKEN|>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>", "<|eot|>", "<|user|>", "<|assistant|>", "<|observation|>", "[INST]",
    "[/INST]", "<|end_of_role|>", "<|start_of_role|>", "[e~[",
)  # fmt: skip
#: Opening marks and what closes them.
QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019", "(": ")", "\u00ab": "\u00bb"}


class Leak(NamedTuple):
    """A marker left over in the text, outside of every call that could be read and of reasoning."""

    marker: str
    span: Span
    formats: tuple[str, ...]


@cache
def all_markers() -> dict[str, tuple[str, ...]]:
    """Every marker of every format, of reasoning, and special tokens -> names of the formats that own it."""
    owners: dict[str, tuple[str, ...]] = {}
    for entry in formats():
        for marker in entry.markers:
            owners[marker] = (*owners.get(marker, ()), entry.name)
    for marker in reasoning_markers():
        owners.setdefault(marker, ("reasoning",))
    for marker in SPECIAL_TOKENS:
        owners.setdefault(marker, ("special",))
    return dict(sorted(owners.items(), key=lambda item: -len(item[0])))


@cache
def _marker_starts() -> frozenset[str]:
    return frozenset(marker[:2] for marker in all_markers())


_MAX_LEAKS = 200


def _in_quotes(text: str, start: int, end: int) -> bool:
    """Whether quote marks or backticks stand right around a range: the text talks about it."""
    return start > 0 and QUOTES.get(text[start - 1]) == text[end : end + 1] != ""


def find_markers(text: str, outside: Sequence[Span] = ()) -> tuple[Leak, ...]:
    """Every known marker in a text (the longest at each place), outside of the given spans; at most 200.

    A marker in quote marks is talked about, and none.
    """
    if not text:
        return ()
    spans = sorted(outside)
    joined = complement(complement(spans, len(text)), len(text)) if spans else []
    leaks: list[Leak] = []
    absent = {start for start in _marker_starts() if start not in text}
    for marker, owners in all_markers().items():
        if marker[:2] in absent:
            continue
        at = text.find(marker)
        hits = 0
        while at >= 0 and hits < _MAX_LEAKS:
            if not inside_any(at, joined) and not _in_quotes(text, at, at + len(marker)):
                leaks.append(Leak(marker, Span(at, at + len(marker)), owners))
                hits += 1
            at = text.find(marker, at + len(marker))
    leaks.sort(key=lambda leak: (leak.span.start, -len(leak.marker)))
    kept: list[Leak] = []
    for leak in leaks:
        if not kept or leak.span.start >= kept[-1].span.end:
            kept.append(leak)
    return tuple(kept[:_MAX_LEAKS])
