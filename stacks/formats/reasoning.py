"""Telling a model's reasoning from its answer, in one text.

A reasoning block opens at the start of the text or of a line (a tag named in the middle of a sentence is a word), and
ends at its closing marker. A closing marker without an opening one means that the template had opened the block in
the prompt, so that the text starts inside it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from stacks.formats.model import Span, complement


class ReasoningStyle(NamedTuple):
    """Markers of one way to write reasoning, and the models or templates that use it."""

    name: str
    opens: str
    closes: str
    source: str


STYLES: tuple[ReasoningStyle, ...] = (
    ReasoningStyle(
        "think", "<think>", "</think>", "DeepSeek R1, Qwen3, GLM, Nemotron, Olmo 3, Granite 3.3, MiniMax M2"
    ),
    ReasoningStyle("thinking", "<thinking>", "</thinking>", "prompted models"),
    ReasoningStyle("thought", "<thought>", "</thought>", "EXAONE Deep"),
    ReasoningStyle("reasoning", "<reasoning>", "</reasoning>", "Reka"),
    ReasoningStyle("mistral", "[THINK]", "[/THINK]", "Magistral, Ministral 3 Reasoning template"),
    ReasoningStyle("seed", "<seed:think>", "</seed:think>", "ByteDance-Seed-OSS template"),
    ReasoningStyle("longcat", "<longcat_think>", "</longcat_think>", "LongCat Flash Thinking"),
    ReasoningStyle("command", "<|START_THINKING|>", "<|END_THINKING|>", "Command A Reasoning, Command R7B template"),
    ReasoningStyle("kimi_vl", "\u25c1think\u25b7", "\u25c1/think\u25b7", "Kimi-VL-Thinking"),
    ReasoningStyle("gemma4", "<|channel>thought", "<channel|>", "gemma-4 template"),
    ReasoningStyle("apertus", "<|inner_prefix|>", "<|inner_suffix|>", "Apertus template"),
    ReasoningStyle("hunyuan3", "<think:opensource>", "</think:opensource>", "tencent-Hy3 template"),
    ReasoningStyle("minimax3", "<mm:think>", "</mm:think>", "MiniMax-M3 template"),
    ReasoningStyle("solar", "<|think|>", "<|end|>", "Solar-Open template"),
    ReasoningStyle("granite_words", "Here is my thought process:", "Here is my response:", "Granite 3.2 template"),
)

_BY_OPEN = {style.opens: style for style in STYLES}
_OPEN = re.compile("|".join(re.escape(style.opens) for style in STYLES))
_CLOSES = tuple(dict.fromkeys(style.closes for style in STYLES if style.name not in ("solar", "granite_words")))
_CLOSE = re.compile("|".join(re.escape(mark) for mark in _CLOSES))
_HARMONY = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>(?P<channel>analysis)(?P<head>[^<]*(?:<\|constrain\|>[^<]*)?)<\|message\|>"
)
_HARMONY_END = re.compile(r"<\|end\|>|<\|return\|>|<\|call\|>|(?=<\|start\|>|<\|channel\|>)")
_BARE_HARMONY = re.compile(r"\A\s*analysis(?=[A-Z\"'\s])")
_BARE_HARMONY_END = re.compile(r"assistant(?=final|commentary)")
MAX_BLOCKS = 256


class ReasoningSplit(msgspec.Struct, frozen=True):
    """Where a text reasons and where it answers. Spans include the markers; they are disjoint and in order.

    unclosed: the last reasoning block runs to the end of the text. opened_by_template: the text starts inside
    reasoning. styles: names of the styles seen.
    """

    reasoning: tuple[Span, ...]
    answer: tuple[Span, ...]
    unclosed: bool = False
    opened_by_template: bool = False
    styles: tuple[str, ...] = ()

    def answer_text(self, text: str) -> str:
        """The answer's parts, joined."""
        return "".join(span.of(text) for span in self.answer)

    def reasoning_text(self, text: str) -> str:
        """The reasoning's parts with their markers, joined."""
        return "".join(span.of(text) for span in self.reasoning)


def split_reasoning(text: str, starts_inside: bool = False) -> ReasoningSplit:
    """Split a text. `starts_inside`: the template is known to have opened a reasoning block in the prompt."""
    if "<|channel|>" in text or (text[:12].lstrip().startswith("analysis") and "assistant" in text):
        return _harmony(text)
    spans: list[Span] = []
    styles: dict[str, None] = {}
    pos, opened = 0, False
    head = _closed_first(text, starts_inside)
    if head is not None:
        pos, opened = head.end, True
        spans.append(head)
        styles["template"] = None
    unclosed = opened and not _ends_with_close(text, pos)
    while not unclosed and len(spans) < MAX_BLOCKS and (match := _OPEN.search(text, pos)) is not None:
        pos = match.end()
        if not _at_line_start(text, match.start(), spans):
            continue
        style = _BY_OPEN[match.group()]
        styles[style.name] = None
        end = text.find(style.closes, match.end())
        unclosed = end < 0
        pos = len(text) if unclosed else end + len(style.closes)
        spans.append(Span(match.start(), pos))
    return _result(text, spans, unclosed, opened, tuple(styles))


def _result(text: str, spans: list[Span], unclosed: bool, opened: bool, styles: tuple[str, ...]) -> ReasoningSplit:
    return ReasoningSplit(tuple(spans), tuple(complement(spans, len(text))), unclosed, opened, styles)


def _ends_with_close(text: str, end: int) -> bool:
    return text.endswith(_CLOSES, 0, end)


def _at_line_start(text: str, at: int, spans: list[Span]) -> bool:
    """Whether only blanks stand between `at` and the start of its line (or the reasoning block before it)."""
    start = max(at - 64, spans[-1].end if spans else 0, 0)
    before = text[start:at].rstrip(" \t")
    if not before:
        return start == 0 or (bool(spans) and start == spans[-1].end)
    return before[-1] in "\r\n>"


def _closed_first(text: str, starts_inside: bool) -> Span | None:
    """The reasoning that a text starts in: everything up to the first closing marker that none opened."""
    match = _CLOSE.search(text)
    opening = _OPEN.search(text, 0, match.start() if match else len(text))
    if starts_inside and (opening is None or text[: opening.start()].strip()):
        return Span(0, match.end() if match else len(text))
    while match is not None and opening is None:
        before, after = text[: match.start()], text[match.end() : match.end() + 64]
        edge = not after.strip() or after[0] in "\r\n<[{" or after.startswith(" \n")
        if edge or before.endswith("\n"):
            return Span(0, match.end())
        match = _CLOSE.search(text, match.end())
        opening = _OPEN.search(text, 0, match.start() if match else len(text)) if match else None
    return None


def _harmony(text: str) -> ReasoningSplit:
    """Harmony channels (openai/harmony): `analysis` without a recipient is reasoning, the rest is answer."""
    spans: list[Span] = []
    pos, unclosed = 0, False
    while len(spans) < MAX_BLOCKS and (match := _HARMONY.search(text, pos)) is not None:
        end = _HARMONY_END.search(text, match.end())
        pos = end.end() if end else len(text)
        if "to=" not in match.group("head"):
            spans.append(Span(match.start(), pos))
            unclosed = end is None
    if not spans and (bare := _BARE_HARMONY.match(text)) is not None:
        stop = _BARE_HARMONY_END.search(text, bare.end())
        spans.append(Span(0, stop.start() if stop else len(text)))
        unclosed = stop is None
    return _result(text, spans, unclosed, False, ("harmony",) if spans else ())


def reasoning_markers() -> tuple[str, ...]:
    """Every literal that opens or closes reasoning (none that is plain words)."""
    return tuple(
        dict.fromkeys(
            mark
            for style in STYLES
            for mark in (style.opens, style.closes)
            if style.name != "granite_words" and mark != "<|end|>"
        )
    )
