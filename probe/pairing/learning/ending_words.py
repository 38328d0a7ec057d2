"""How a text protocol wants the task ended where no tool or command does it: a word, tag, fence or label. Pure."""

from __future__ import annotations

import re

from probe.pairing.learning import lexicon
from probe.pairing.learning.lexicon import words_of

SAID = "{said}"
"""Stands for the closing sentence in a form of the end."""
_ENDS = r"(?:DONE|FINISH|COMPLET|TERMINAT|SUBMIT|STOP|EXIT|QUIT|SUCCESS|OVER\b|END\b|FINAL)"
_CAPITALS = rf"(?=[A-Z_\- ]*{_ENDS})[A-Z][A-Z_\-]{{2,40}}"
_SAYING = (
    r"\b(?i:answer|repl(?:y|ies)|respond|say|write|output|print|type|end|return|send|emit|use|include|with|only|just)"
)
_WORD = re.compile(
    rf"{_SAYING}\b[^.\n]{{0,80}}?[\s`'\"*:]((?:<\|?|\[\[?|##*\s?)?{_CAPITALS}(?:\|?>|\]\]?|##*)?)(?=[\s`'\".,;:!*)]|$)",
    re.MULTILINE,
)
_QUOTED = re.compile(rf"{_SAYING}\b[^.\n]{{0,60}}?[`'\"]([A-Za-z_\-]{{4,30}})[`'\"]", re.IGNORECASE)
_WHEN = re.compile(
    r"\b(?:when|once|after|if|as soon as|until|at the end|in the end)\b[^.\n]{0,80}"
    r"\b(?:done|finish\w*|complet\w*|over|accomplish\w*|solved|ready)\b|\b(?:to|task) (?:finish|end|complete)\b",
    re.IGNORECASE,
)
_TAG = re.compile(r"<([A-Za-z_][\w\-]*)\s*(/>|>[^<]{0,2000}?</\1>)")
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})([\w.+\-]+)[ \t]*$", re.MULTILINE)
_LABEL = re.compile(r"^[ \t>*\-]*([A-Z][A-Za-z_ ]{2,20}):[ \t]*\S", re.MULTILINE)


def ending_form(prompt: str) -> str:
    """The whole last answer as the prompt wants it, ``SAID`` where the closing sentence goes; empty where it names
    none. Tags, fences and labels count by what they are called, words by the sentence that asks for them."""
    for match in _TAG.finditer(prompt):
        if is_ending(match.group(1)):
            name = match.group(1)
            return match.group(0) if match.group(2) == "/>" else f"<{name}>\n{SAID}\n</{name}>"
    for match in _FENCE.finditer(prompt):
        if is_ending(match.group(2)):
            return f"{match.group(1)}{match.group(2)}\n{SAID}\n{match.group(1)}"
    for match in _LABEL.finditer(prompt):
        if is_ending(match.group(1)):
            return f"{match.group(1)}: {SAID}"
    return _word(prompt)


def _word(prompt: str) -> str:
    """A word that stands alone on the last line, after the closing sentence."""
    for match in _WORD.finditer(prompt):
        if _near_an_end(prompt, match) and "echo" not in match.group(0):
            return f"{SAID}\n{match.group(1)}"
    for match in _QUOTED.finditer(prompt):
        if is_ending(match.group(1)) and _near_an_end(prompt, match) and "command" not in match.group(0).lower():
            return f"{SAID}\n{match.group(1)}"
    return ""


def _near_an_end(prompt: str, match: re.Match[str]) -> bool:
    start = max(prompt.rfind("\n\n", 0, match.start()), match.start() - 120)
    after, _, _ = prompt[match.end(1) : match.end() + 100].partition("\n\n")
    around = prompt[max(start, 0) : match.start(1)] + after
    return _WHEN.search(around) is not None


def is_ending(name: str) -> bool:
    """Whether a name says that the task ends, and nothing else."""
    words = set(words_of(name))
    return bool(words & lexicon.FINISH) and words <= lexicon.FINISH | lexicon.FINISH_BESIDE
