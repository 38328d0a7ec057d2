"""Markdown in which recorded text can do nothing: it stands in code, or is made of words that mean nothing there.

GitHub turns `@name`, `#12`, `owner/repo#12`, `GH-12`, commit hashes and addresses into links and notices, also inside
sentences (GitHub's documentation of autolinked references); inside code it does not. A fence is longer than any run of
backticks in what it holds (CommonMark 0.31, 4.5), and so is a code span (6.1).
"""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
_IN_CODE = re.compile(r"(`[^`]+`)")
_AROUND = re.compile(r"([(]*)(.*?)([).,;:]*)")
_PLAIN_WORD = re.compile(r"[(\"']*[A-Za-z0-9][A-Za-z0-9.,;:%'/-]*[)\"'.,;:?]*\Z|[-–,.;:()=%]+\Z")
_LINKED = re.compile(r"(?i)://|www\.|gh-\d|[0-9a-f]{7,}|\w\.(?:com|org|net|io|dev|ai)\b")


def visible(text: str) -> str:
    """Text with control characters, direction overrides and characters without a shape written out (`\\x1b`)."""
    return _UNSEEN.sub(lambda found: _escape(found[0]), text.replace("\r\n", "\n"))


def _escape(char: str) -> str:
    number = ord(char)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def longest_run(text: str) -> int:
    """Length of the longest run of backticks."""
    return max((len(run) for run in re.findall(r"`+", text)), default=0)


def fenced(text: str, language: str = "text") -> str:
    """A code block that nothing inside can end."""
    shown = visible(text)
    fence = "`" * max(3, longest_run(shown) + 1)
    return f"{fence}{language}\n{shown.rstrip(chr(10))}\n{fence}"


def code(text: str) -> str:
    """A code span on one line that nothing inside can end."""
    shown = " ".join(visible(text).split()) or "(empty)"
    ticks = "`" * (longest_run(shown) + 1)
    space = " " if "`" in shown else ""
    return f"{ticks}{space}{shown}{space}{ticks}"


def prose(text: str) -> str:
    """A sentence that may quote what was recorded: plain words stay, everything else goes into code."""
    shown = " ".join(visible(text).split())
    out = ""
    for part in _IN_CODE.split(shown):
        for piece in [code(part[1:-1])] if _IN_CODE.fullmatch(part) else map(_word, re.split(r"( )", part)):
            # Two code spans side by side would be read as one, which ends elsewhere.
            out += f" {piece}" if out.endswith("`") and piece.startswith("`") else piece
    return out


def _word(word: str) -> str:
    """A plain word as it is, another one in code; brackets and full stops around it stay outside."""
    if not word.strip() or (_PLAIN_WORD.match(word) and not _LINKED.search(word)):
        return word
    around = _AROUND.fullmatch(word)
    if around is None or not around[2]:
        return code(word)
    return f"{around[1]}{code(around[2])}{around[3]}"


def cut(text: str, longest: int) -> tuple[str, str]:
    """(the text, its middle left out where it is longer; a note that says so, or nothing)."""
    if len(text) <= longest:
        return text, ""
    tail = longest // 4
    gone = len(text) - longest
    shown = f"{text[: longest - tail]}\n[... {gone:,} characters left out ...]\n{text[-tail:]}"
    return shown, f"{gone:,} of {len(text):,} characters are left out in the middle."
