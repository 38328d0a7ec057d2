"""The same answer in other forms: a verdict that changes between them was about the form. Pure.

Which forms are no change of content depends on the prompt: where it asks for one line, a line end is content.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from harness.packs.lint.asking import Asked
from harness.packs.structured import lenient_reply

_LETTER = r"[^\W\d_]"
_STRAIGHT_APOSTROPHE = re.compile(rf"(?<={_LETTER})'(?={_LETTER})")
_CURLY_APOSTROPHE = re.compile("[\u2018\u2019]")
_STRAIGHT_QUOTED = re.compile(r'(?<![\w\\])"([^"\n{}\[\]]*)"(?!\w)')
_QUOTED_NAME = re.compile(r'"\s*:|:\s*"|[{\[,]\s*"|"[a-z][a-z0-9]*(?:_[a-z0-9]+)*"')
_CURLY_QUOTE = re.compile("[\u201c\u201d]")
_ONE_SPACE = re.compile(r"(?<=[^\s]) (?=[^\s])")
_SENTENCE = re.compile(r"(?<=[a-z0-9)\]\"'\u2019\u201d][.!?]) (?=[A-Z\"'(\u201c])")
_STRUCTURED_LINE = re.compile(r"^\s*(?:[-*+\u2022#>|]|\d+[.)]|\w[\w ]{0,30}:|\{|\}|\[|\]|```)", re.MULTILINE)
_SMALL_START = re.compile(r"\A[a-z]{2,}(?=['\u2019 ,.!?]|\Z)")
Variant = tuple[str, str]


def variants(answer: str, asked: Asked) -> Iterator[Variant]:
    """Kind of change and changed answer, for each form in which the answer could as well have come."""
    seen = {answer}
    for kind, text in _all(answer, asked):
        if text not in seen:
            seen.add(text)
            yield kind, text


def _all(answer: str, asked: Asked) -> Iterator[Variant]:
    span = json_span(answer)
    if span is not None:
        yield from _layouts(answer, *span, asked)
    whole_json = span is not None and (span[0], span[1]) == (0, len(answer))
    yield "unicode", unicodedata.normalize("NFD", answer)
    yield "unicode", unicodedata.normalize("NFC", answer)
    yield "line_ends", answer.replace("\r\n", "\n").replace("\n", "\r\n")
    yield "line_ends", answer.replace("\r\n", "\n")
    if answer.strip():
        yield "line_ends", answer + "\n"
        yield "line_ends", answer + "\r\n"
    yield from _quotes(answer, span)
    if whole_json or "```" in answer or (span is None and like_json(answer)):
        return
    prose = answer if span is None else answer[: span[0]] + answer[span[1] :]
    yield from _spaces(answer, span, asked, structured=bool(_STRUCTURED_LINE.search(prose)) or "\n" in prose.strip())


def capitals(text: str, asked: Asked) -> Iterator[Variant]:
    """A text that begins with a small letter as it stands at the start of a sentence, where that is no name or code."""
    start = _SMALL_START.match(text)
    if start is not None and not (asked.small_letters or asked.code) and not asked.names(start.group()):
        yield "capital", text[0].upper() + text[1:]


def json_span(answer: str) -> tuple[int, int, Any] | None:
    """Where a JSON object or array stands in an answer, and its value; None where none does, or a repaired one only."""
    read = lenient_reply(answer)
    if read is None or read.repairs or not isinstance(read.value, dict | list):
        return None
    start, end = read.span.start, read.span.end
    try:
        return start, end, json.loads(answer[start:end])
    except (ValueError, RecursionError):
        return None


def like_json(text: str) -> bool:
    """Whether the quotation marks of a text are those of JSON or code: around names, or before a colon."""
    return _QUOTED_NAME.search(text) is not None


def _layouts(answer: str, start: int, end: int, value: Any, asked: Asked) -> Iterator[Variant]:
    layouts: list[dict[str, Any]] = [{"separators": (",", ":")}, {}]
    if not asked.one_line:
        layouts += [{"indent": 2}, {"indent": 4}]
    try:
        for layout in layouts:
            yield "json", answer[:start] + json.dumps(value, ensure_ascii=False, **layout) + answer[end:]
    except (ValueError, RecursionError):
        return


def _quotes(answer: str, span: tuple[int, int, Any] | None) -> Iterator[Variant]:
    yield "quotes", _STRAIGHT_APOSTROPHE.sub("\u2019", answer)
    yield "quotes", _CURLY_APOSTROPHE.sub("'", answer)
    if span is not None or "`" in answer or like_json(answer):
        return  # a quotation mark of JSON or code is syntax, not typography
    yield "quotes", _STRAIGHT_QUOTED.sub("\u201c\\1\u201d", answer)
    yield "quotes", _CURLY_QUOTE.sub('"', answer)


def _spaces(answer: str, span: tuple[int, int, Any] | None, asked: Asked, *, structured: bool) -> Iterator[Variant]:
    def outside(text: str, rule: re.Pattern[str], by: str) -> str:
        if span is None:
            return rule.sub(by, text)
        return rule.sub(by, text[: span[0]]) + text[span[0] : span[1]] + rule.sub(by, text[span[1] :])

    for blank in ("  ", "\u00a0", "\t"):
        yield "spaces", outside(answer, _ONE_SPACE, blank)
    if not asked.one_line:
        yield "paragraphs", outside(answer, _SENTENCE, "\n\n")
        yield "paragraphs", outside(answer, _SENTENCE, "\n")
        if not structured:
            yield "spaces", outside(answer, _ONE_SPACE, "\n")
