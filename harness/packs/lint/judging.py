"""One check of a task, and its verdicts on answers, each within its share of time. Pure."""

from __future__ import annotations

import json
import re
import time

from harness.packs.building import check_names
from harness.packs.lint.asking import Asked, asked_of
from harness.packs.lint.examples import Shape, filled, shape
from harness.packs.model import Check, Evaluator, PackTask, RegexChecks
from harness.packs.patterns import PatternError, compiled, folded
from harness.packs.scoring import Answer, results_of
from harness.packs.structured import lenient_reply

SECONDS = 0.2
"""Longest search of one pattern in one answer, in seconds of the processor: a busy machine changes no finding. The
runner allows `patterns.SECONDS`."""

SECONDS_IN_ALL = 5.0
"""Longest time for one check on all answers together; a sound one needs some milliseconds."""

_LINES = re.compile(r"\(\?[a-z]*m[a-z]*[:)]|\\n|\n")

Verdict = bool | None

UNRELATED: tuple[str, ...] = (
    "",
    "Yes.",
    "No",
    "42",
    "null",
    "{}",
    "[]",
    '{"zq": "zq"}',
    '[{"zq": 1}]',
    "I'm sorry, but that is nothing with which I could help.",
    "Zebras quietly juggle.\n\nWaltzing quokkas vex jolly hymn buffs.",
    "1. Zq\n2. Zq\n3. Zq",
    "- zq\n- zq",
    "```python\nzq = 1\n```",
    "\u4eca\u65e5\u306f\u826f\u3044\u5929\u6c17\u3067\u3059\u3002",
    "ZQ " * 600,
    "zq\n" * 60,
)
"""Answers to no question at all."""


class Unit:
    """One check of a task. `name` as results call it; `check` where it is one of `regex_checks`; `shape` of its pattern
    where that can be read; `broken` once it could not be applied."""

    def __init__(self, task: PackTask, evaluator: Evaluator, at: int, name: str, asked: Asked) -> None:
        self.task, self.evaluator, self.at, self.name, self.asked = task, evaluator, at, name, asked
        self.check: Check | None = None
        if isinstance(evaluator, RegexChecks):
            self.check = [check for check in evaluator.checks if check.asks][at]
        self.broken = ""
        self.tried = 0
        self._spent = 0.0
        self._known: dict[str, Verdict] = {}
        self._shape: Shape | None = None
        self._read = False

    @property
    def line(self) -> int:
        """Where the check stands in its file."""
        return (self.check.line if self.check is not None else 0) or self.task.line

    @property
    def by_lines(self) -> bool:
        """Whether the check is about lines, so that a line end is content to it."""
        check = self.check
        return check is not None and (check.multiline or _LINES.search(check.pattern) is not None)

    @property
    def shape(self) -> Shape | None:
        """What its pattern is like."""
        if not self._read and self.check is not None and self.check.max_words is None:
            self._shape = shape(self.check.pattern)
        self._read = True
        return self._shape

    def passes(self, answer: str) -> Verdict:
        """The verdict on an answer; None where the check cannot be applied, and from then on."""
        if self.broken:
            return None
        if answer not in self._known:
            self.tried += 1
            self._known[answer] = self._verdict(answer)
        return self._known[answer]

    def _verdict(self, answer: str) -> Verdict:
        check = self.check
        if check is None:
            result = results_of(self.task, self.evaluator, Answer(answer), lenient_reply)[self.at]
            if result.passed is None:
                self.broken = result.detail
            return result.passed
        if check.max_words is not None:
            return len(answer.split()) <= check.max_words
        match = self._search(check, answer)
        return None if match is None else match != check.invert

    def _search(self, check: Check, answer: str) -> Verdict:
        pattern, text = (folded(check.pattern), folded(answer)) if check.fold else (check.pattern, answer)
        begun = time.process_time()
        try:
            rule = compiled(
                pattern, ignore_case=check.case_insensitive, multiline=check.multiline, dot_all=check.dot_all
            )
            return rule.search(text, timeout=SECONDS) is not None
        except PatternError as wrong:
            self.broken = str(wrong)
        except TimeoutError:
            self.broken = f"timeout: more than {SECONDS:g} s on an answer of {len(answer)} characters"
        except (RecursionError, MemoryError) as wrong:
            self.broken = type(wrong).__name__
        finally:
            self._spent += time.process_time() - begun
            if self._spent > SECONDS_IN_ALL and not self.broken:
                self.broken = f"timeout: more than {SECONDS_IN_ALL:g} s on {self.tried} answers"
        return None

    def matches(self, answer: str) -> Verdict:
        """Whether the pattern is found, `invert` aside."""
        verdict = self.passes(answer)
        return verdict if verdict is None or self.check is None else verdict != self.check.invert

    def examples(self) -> list[str]:
        """Texts in which the pattern is found, one for each of its alternatives."""
        read = self.shape
        if read is None:
            return []
        texts: list[str] = []
        for template in read.templates:
            for text in (filled(template, "-"), filled(template, ""), filled(template, " ")):
                around = (text, f" {text} ", f"x{text}")
                found = next((each for each in around if self.matches(each)), None)
                if found is not None:
                    texts.append(found)
                    break
        return list(dict.fromkeys(texts))


def units_of(task: PackTask, asked: Asked | None = None) -> list[Unit]:
    """Every check of a task that counts."""
    asked = asked or asked_of(task)
    units = []
    for evaluator in task.evaluators:
        for at, name in enumerate(_names(evaluator)):
            units.append(Unit(task, evaluator, at, name, asked))
    return units


def _names(evaluator: Evaluator) -> list[str]:
    if isinstance(evaluator, RegexChecks):
        return [check.name for check in evaluator.checks if check.asks]
    return check_names(evaluator)


def excerpt(text: str, most: int = 160) -> str:
    """An answer in one line, as JSON writes a text, cut."""
    said = json.dumps(text, ensure_ascii=True)
    return said if len(said) <= most else said[: most - 4] + '..."'
