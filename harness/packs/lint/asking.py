"""What a prompt asks for, as far as words show it. Pure, and cautious: where it is open, everything may be demanded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from harness.packs.model import PackTask
from stacks.formats.json_reader import JsonReader

_ONE_LINE = re.compile(
    r"\b(?:one|single|same)[- ]line\b|\bno (?:line|new)[- ]?(?:breaks?|lines?)\b|\bminified\b|\bcompact\b", re.I
)
_SMALL = re.compile(r"\blower[- ]?case\b|\bsmall letters\b|\bcase[- ]sensitive\b", re.I)
_CODE = re.compile(
    r"\b(?:code|python|javascript|typescript|java|rust|golang|sql|bash|shell|html|css|ya?ml|json|function|method|class|"
    r"program|script|snippet|command|regex)\b|```",
    re.I,
)
_LENGTH = re.compile(
    r"\b(?:words?|sentences?|lines?|paragraphs?|bullets?|characters?|tokens?|items?|steps?|points?|brief(?:ly)?|"
    r"short(?:er|ly)?|concise(?:ly)?|terse(?:ly)?|succinct(?:ly)?|compact|only|just|nothing|alone|single|length|long|"
    r"limit|stop|end|no more|at most|once|repeat\w*|exactly|without)\b",
    re.I,
)
_MOST_WORDS = re.compile(
    r"\b(?:at most|no more than|max(?:imum)?(?: of)?|up to|under|fewer than|less than|within|in|limit of)"
    r"\s+(\d{1,5})\s+words?\b|\b(\d{1,5})\s+words?\s+(?:or (?:less|fewer)|at most|max(?:imum)?)",
    re.I,
)
_OPEN = re.compile(
    r"\b(?:all|everything|every|each|summar\w*|overview|full\w*|complete\w*|details?|explain\w*|why|reasons?|analy\w*|"
    r"assess\w*|diagnos\w*|describe\w*|interpret\w*|what happened|any(?:thing)?|whatever|health|"
    r"relevant|write|draft|compose|confirm\w*|e-?mail|message|letter|reply|inform\w*|about)\b",
    re.I,
)
_EVERYTHING = re.compile(r"\b(?:all|everything|every|each|full\w*|complete\w*|whatever)\b", re.I)
_EQUALS = re.compile(
    r"(?<![\w.])([A-Za-z][A-Za-z_]*(?:[ -][A-Za-z]+)?)\s*(?:=\s*([^\s,;{}\[\]]+)|:\s*([$\u20ac]?-?\d[^\s,;]*))"
)
_OWN_LINE = re.compile(
    r"^[ \t]*[-*]?[ \t]*([A-Za-z][A-Za-z_]*(?:[ -][A-Za-z]+){0,2})[ \t]*:[ \t]*(\S+(?: \S+){0,3})[ \t]*$", re.M
)
_COUNTED = re.compile(
    r"(?<![\w.])([A-Za-z_]{3,}(?: rate| usage| time| count| load)?)"
    r"(?:(?: is| was| of| at) (-?\d[\d,.]*)| (-?\d[\d,.]*\s?(?:%|ms\b|MB\b|GB\b)))"
)
_WORDS = re.compile(r"[A-Za-z]+|\d+(?:\.\d+)?")
_UNITS = frozenset({"ms", "sec", "secs", "seconds", "pct", "percent", "percentage", "usd", "eur", "mb", "gb", "kb"})
_UNITS |= {"value", "id", "p50", "p95", "p99", "p"}
_LETTERS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\W]+")


class Asked(msgspec.Struct, frozen=True):
    """What the messages of a task say. `text`: all of them; `ask`: what is left of the prompt without its data;
    `data`: its values by their keys, where the prompt holds some; `most_words`: the length that is asked for."""

    text: str
    ask: str
    data: tuple[tuple[str, str], ...] = ()
    one_line: bool = False
    small_letters: bool = False
    code: bool = False
    length: bool = False
    most_words: int | None = None

    def names(self, token: str) -> bool:
        """Whether a word stands in the messages as a value to be written as it is: quoted, or in upper or lower case
        beside another such word."""
        quoted = rf"[\"'`\u201c\u2018<(]{re.escape(token)}[\"'`\u201d\u2019>)]"
        return re.search(quoted, self.text) is not None

    def says(self, name: str) -> bool:
        """Whether the messages hold a name, or all words of it."""
        lowered = self.text.casefold()
        if name.casefold() in lowered:
            return True
        words = [word for word in _split(name) if len(word) > 1]
        return bool(words) and all(word in lowered for word in words)

    def unasked(self, tokens: set[str]) -> str | None:
        """The key of the data that a text with these words is about, where the prompt asks for others of its keys and
        not for that one; None where it does ask, is open, or the words are about something else."""
        if not self.data or _EVERYTHING.search(self.ask):
            return None
        named = {key for key, _ in self.data if self._asks(key)}
        if not named or (len(named) < 2 and _OPEN.search(self.ask)):
            return None
        keys: set[str] = set()
        for token in tokens:
            about = {key for key, value in self.data if token in _split(key) or token in _tokens(value)}
            if not about or about & named:
                return None
            keys |= about
        return sorted(keys)[0] if keys else None

    def _asks(self, key: str) -> bool:
        lowered = set(_stems(self.ask))
        words = [word for word in _split(key) if word not in _UNITS] or _split(key)
        return all(_stem(word) in lowered for word in words)


def asked_of(task: PackTask) -> Asked:
    """Read a task's messages."""
    tools = json.dumps(task.tools) if task.tools else ""
    text = "\n".join([*(message.content for message in task.messages), tools])
    spans: list[tuple[str, str]] = []
    rest = []
    for message in task.messages:
        data, left = _without_data(message.content)
        spans += data
        rest.append((message.role, left))
    prompt = " ".join(left for role, left in rest if role == "user")
    system = " ".join(left for role, left in rest if role == "system")
    most = [int(one or other) for one, other in _MOST_WORDS.findall(text)]
    return Asked(
        text=text,
        ask=f"{system} {prompt}",
        data=tuple(dict.fromkeys(spans)),
        one_line=bool(_ONE_LINE.search(text)),
        code=bool(_CODE.search(text)),
        small_letters=bool(_SMALL.search(text)),
        length=bool(_LENGTH.search(" ".join(left for _, left in rest))),
        most_words=min(most) if most else None,
    )


def content_words(text: str) -> set[str]:
    """Words and numbers of a text that carry content."""
    return {word for word in _tokens(text) if len(word) > 1 or word.isdigit()}


def _tokens(text: str) -> list[str]:
    return [word.casefold() for word in _WORDS.findall(text)]


def _split(name: str) -> list[str]:
    return [word.casefold() for word in _LETTERS.split(name) if word]


def _stem(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word


def _stems(text: str) -> Iterator[str]:
    for word in _tokens(text):
        yield _stem(word)


def _without_data(text: str) -> tuple[list[tuple[str, str]], str]:
    """The keys and values that a message holds, and the message without them."""
    pairs: list[tuple[str, str]] = []
    left, position = [], 0
    for start, end, value in _json_values(text):
        pairs += _flat(value)
        left.append(text[position:start])
        position = end
    rest = "".join([*left, text[position:]])
    rules = [_EQUALS, _COUNTED] + ([_OWN_LINE] if len(_OWN_LINE.findall(rest)) > 1 else [])
    for rule in rules:
        pairs += [
            (found[1].strip(), (found[2] or found[found.re.groups] or "").strip()) for found in rule.finditer(rest)
        ]
        rest = rule.sub(" ", rest)
    return pairs, rest


def _json_values(text: str) -> Iterator[tuple[int, int, Any]]:
    position = 0
    for _ in range(50):
        start = min((at for at in (text.find("{", position), text.find("[", position)) if at >= 0), default=-1)
        if start < 0:
            return
        try:
            reading = JsonReader(text).read(start)
        except RecursionError:
            return
        if reading.node is not None and reading.node.complete:
            yield start, reading.end, reading.node.value
            position = max(reading.end, start + 1)
        else:
            position = start + 1


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _flat(inner, key)
    elif key:
        yield key, str(value)
