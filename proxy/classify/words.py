"""What error texts say, by kind and not by product: the fallback for messages that no signature knows.

Each row is (layer.code, remedy, alternatives). Order matters: the first match wins. Statuses are looked at
elsewhere; a text means the same under any of them, since servers disagree about statuses.
"""

from __future__ import annotations

import re

from proxy.classify.word_rows import ROWS, Words

JSON_WORDS = re.compile(
    r"expecting (?:value|property name|',' delimiter|':' delimiter)|extra data: line|unterminated string|"
    r"unexpected (?:end of json|eof)|\beof\b|invalid character|json.?(?:decode|parse)|json\.exception\.parse|"
    r"invalid (?:\\escape|control character|json)|unexpected token|not valid json|unexpected end of (?:content|input)|"
    r"missing request body|attempting to parse an empty input|invalid tool call arguments",
    re.IGNORECASE,
)
"""Words of JSON (or XML) readers of every language: they say that something did not parse, not what it was."""

HISTORY_WORDS = re.compile(
    r"arguments|messages?\b|tool.?calls?|content|history|concatenate|nonetype|'role'|\brole\b|unmarshal|internal server"
    r" error|apiconnectionerror|list index|subscriptable|keyerror|attribute",
    re.IGNORECASE,
)
"""Words under which a broken turn of the history is the likely thing that was refused."""


def kind_of(text: str) -> Words | None:
    """The first row whose pattern stands in the text (of a long one, in its first 3,000 or last 1,000 characters)."""
    if not text:
        return None
    text = text if len(text) <= 4000 else f"{text[:3000]}\n{text[-1000:]}"
    return next((row for row in ROWS if row.pattern.search(text)), None)
