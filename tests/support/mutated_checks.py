"""Mutants of checks: what a slip of the hand makes of a pattern. They know nothing of what the linter looks for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from harness.packs.model import Check, PackTask, RegexChecks
from harness.packs.scoring import check_text
from tests.support.sound_checks import Sound

TOKEN = re.compile(r"\\.|\(\?(?:[:=!>]|<[=!])|\[(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|.", re.DOTALL)
ANCHORS = (r"\A", r"\Z", r"\b", "^", "$")
FLAGS = {"multiline": "lines", "dot_all": "lines", "case_insensitive": "case", "fold": "quotes", "invert": "inverted"}
QUOTES = {"'": "\u2019", "\u2019": "'", '"': "\u201d"}


class Mutant(NamedTuple):
    """A check with one slip in it, and the kind of the slip."""

    slip: str
    check: Check


def mutants(check: Check) -> Iterator[Mutant]:
    """Every mutant of one slip: a setting switched, an anchor left out, a part written otherwise."""
    if check.max_words is not None:
        for most in (check.max_words // 2, check.max_words * 20):
            yield Mutant("length", replace(check, max_words=most))
        return
    for flag, slip in FLAGS.items():
        yield Mutant(slip, replace(check, **{flag: not getattr(check, flag)}))
    tokens = TOKEN.findall(check.pattern)
    for at, token in enumerate(tokens):
        for slip, other in _otherwise(token, tokens[at - 1] if at else ""):
            pattern = "".join([*tokens[:at], other, *tokens[at + 1 :]])
            if _valid(pattern):
                yield Mutant(slip, replace(check, pattern=pattern))
    for pattern in _without_alternatives(check.pattern):
        if _valid(pattern):
            yield Mutant("alternative", replace(check, pattern=pattern))


def _otherwise(token: str, before: str) -> Iterator[tuple[str, str]]:
    if token in ANCHORS:
        yield "anchor", ""
    if token in QUOTES:
        yield "quotes", QUOTES[token]
    if token == "\\s":
        yield "space", " "
    if token == "\\W" or token.startswith("[^"):
        yield "class", "."
    if token.startswith("\\") and token[1] in ".+*?|{}[]()$^":
        yield "escape", token[1]
    if token == "+":
        yield "repeat", "*"
    if token == "*" and before:
        yield "repeat", "+"
    if token.isalpha() and before in ("", "^", r"\b", r"\A", '"', "(?:", "|"):
        yield "case", token.swapcase()


def _without_alternatives(pattern: str) -> Iterator[str]:
    for group in re.finditer(r"\(\?:([^()]*\|[^()]*)\)", pattern):
        parts = group.group(1).split("|")
        for at in range(len(parts)):
            left = "|".join(parts[:at] + parts[at + 1 :])
            yield f"{pattern[: group.start(1)]}{left}{pattern[group.end(1) :]}"


def _valid(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def with_check(task: PackTask, check: Check) -> PackTask:
    """The task with its check put in the place of the one of the same name."""
    evaluators = [
        RegexChecks(tuple(check if one.name == check.name else one for one in each.checks))
        if isinstance(each, RegexChecks)
        else each
        for each in task.evaluators
    ]
    return replace(task, evaluators=tuple(evaluators))


def reforms(text: str) -> Iterator[str]:
    """An answer as other models would lay it out."""
    yield text
    yield text.replace("'", "\u2019")
    yield text.replace("\u2019", "'")
    yield text.replace("\n", "\r\n")
    yield text + "\n"
    words = text.split(" ")
    if len(words) > 3 and "\n" not in text and "{" not in text:
        yield "\n".join([" ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])])
    try:
        value = json.loads(text)
    except ValueError:
        return
    if isinstance(value, dict | list):
        yield json.dumps(value, indent=2)
        yield json.dumps(value, separators=(",", ":"))


def changes_a_verdict(one: Sound, mutant: Check) -> bool:
    """Whether a mutant judges some answer otherwise than the check that it was made from."""
    answers = [*one.held, *(sample.answer for sample in one.task.samples)]
    return any(
        check_text(one.check, text).passed != check_text(mutant, text).passed
        for answer in answers
        for text in reforms(answer)
    )
