"""Changes of a check that take its faults away: each is tried, and only what leaves no fault is proposed. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import msgspec

from harness.packs.lint.asking import asked_of
from harness.packs.lint.judging import Unit, units_of
from harness.packs.lint.model import Finding, Repair
from harness.packs.lint.rules import faults
from harness.packs.model import Check, Dialect, Message, PackTask, RegexChecks

_SETTINGS = ("multiline", "dot_all", "case_insensitive", "fold")
_INLINE = {"multiline": "m", "dot_all": "s", "case_insensitive": "i"}
_SPACE = re.compile(r"(?<!\\)(?<!\[)(?:\\ | )(?![*+?{])")
_STRAIGHT = "'\u2019"


def repaired(
    unit: Unit, finding: Finding, dialect: Dialect, allowed: frozenset[str], others: Sequence[Finding]
) -> Repair | None:
    """The first change under which the check has no fault left; else the first that takes this fault away and brings no
    other. `others`: all faults of the check."""
    before = {(one.code, one.kind) for one in others}
    second = None
    for repair in _candidates(unit, finding, dialect):
        task = applied(unit, repair)
        left = None if task is None else _left(unit, task, repair, allowed, finding)
        if left is None:
            continue
        if not left:
            return repair
        if second is None and (finding.code, finding.kind) not in left and left < before:
            second = repair
    return second


def applied(unit: Unit, repair: Repair) -> PackTask | None:
    """The task with a repair made; None where nothing would be left of it."""
    task = unit.task
    if repair.ask:
        at = max(at for at, message in enumerate(task.messages) if message.role == "user")
        last = task.messages[at]
        said = Message(last.role, f"{last.content.rstrip()} {repair.ask}")
        return msgspec.structs.replace(task, messages=(*task.messages[:at], said, *task.messages[at + 1 :]))
    evaluators = []
    for evaluator in task.evaluators:
        if evaluator is not unit.evaluator or not isinstance(evaluator, RegexChecks):
            evaluators.append(evaluator)
            continue
        checks: list[Check] = []
        for check in evaluator.checks:
            if check is not unit.check:
                checks.append(check)
            elif not repair.drop:
                checks.append(msgspec.structs.replace(check, **repair.fields))
        if checks:
            evaluators.append(RegexChecks(tuple(checks)))
    return msgspec.structs.replace(task, evaluators=tuple(evaluators)) if evaluators else None


def _left(
    unit: Unit, task: PackTask, repair: Repair, allowed: frozenset[str], finding: Finding
) -> set[tuple[str, str]] | None:
    """The faults that the check still has; None where no check would be left, or the answers that showed the fault
    still show it."""
    units = units_of(task, asked_of(task))
    if repair.drop:
        return set() if units else None
    again = [one for one in units if one.name == unit.name and (one.check is None) == (unit.check is None)]
    same = [one for one in again if one.line == unit.line] or again
    if not same or not _cured(same[0], finding):
        return None
    return {(one.code, one.kind) for one in faults(same[0], units, allowed)}


def _cured(unit: Unit, finding: Finding) -> bool:
    verdicts = [unit.passes(answer) for answer in finding.answers]
    if finding.code == "flips_on_format":
        return len(set(verdicts)) == 1
    if finding.code in ("refuses_good", "never_passes"):
        return all(verdicts)
    if finding.code in ("lets_bad_through", "never_fails"):
        return not any(verdicts)
    return True


def _candidates(unit: Unit, finding: Finding, dialect: Dialect) -> Iterator[Repair]:
    check = unit.check
    if finding.code == "not_asked":
        yield from _asking(unit, finding)
    if check is None:
        return
    if check.max_words is not None:
        yield from _lengths(unit, check)
    else:
        seen: set[str] = set()
        for fields in _edits(check, dialect, tighten=finding.code in ("lets_bad_through", "never_fails")):
            key = repr(sorted(fields.items()))
            if fields and key not in seen:
                seen.add(key)
                yield Repair(_said(fields), fields)
    if finding.code in ("not_asked", "never_passes", "never_fails", "contradicts"):
        yield Repair("take the check out", drop=True)


def _asking(unit: Unit, finding: Finding) -> Iterator[Repair]:
    check = unit.check
    if check is not None and check.max_words is None:
        return
    if check is not None:
        ask = f"Use at most {check.max_words} words."
    else:
        keys = re.findall(r"'([^']+)'", finding.reason)
        if isinstance(required := getattr(unit.evaluator, "schema", {}).get("required"), list):
            keys = [str(key) for key in required]
        ask = f"Use exactly these keys: {', '.join(keys)}."
    yield Repair(f"say so in the prompt: {ask!r}", ask=ask)


def _lengths(unit: Unit, check: Check) -> Iterator[Repair]:
    counts = [len(sample.answer.split()) for sample in unit.task.samples if sample.passes]
    asked = unit.asked.most_words
    for most in sorted({count for count in (*counts, asked or 0) if count > (check.max_words or 0)}):
        yield Repair(f"max_words: {most}", {"max_words": most})


def _edits(check: Check, dialect: Dialect, *, tighten: bool) -> Iterator[dict[str, Any]]:
    """Changed fields, the smallest changes first."""
    texts = [check.pattern, *_other_patterns(check.pattern, tighten=tighten)]
    settings: list[dict[str, bool]] = [{}]
    for count in (1, 2, 3, 4):
        settings += [
            dict.fromkeys(names, True)
            for names in combinations(_SETTINGS, count)
            if not any(getattr(check, name) for name in names)
        ]
    if tighten:
        settings += [{name: False} for name in _SETTINGS if getattr(check, name)]
    pairs = [(text, setting) for text in texts for setting in settings]
    pairs.sort(key=lambda pair: (pair[0] != check.pattern) + len(pair[1]))
    for text, setting in pairs:
        fields: dict[str, Any] | None = {**({"pattern": text} if text != check.pattern else {}), **setting}
        if dialect == "aqbe":
            fields = _as_aqbe(check, text, setting)
        if fields:
            yield fields


def _as_aqbe(check: Check, pattern: str, setting: Mapping[str, bool]) -> dict[str, Any] | None:
    """The same change in AQBE's form, which has no such fields: flags at the head of the pattern, both apostrophes."""
    if not all(setting.values()):
        return None
    fields: dict[str, Any] = {}
    flags = "".join(_INLINE[name] for name in setting if name in ("multiline", "dot_all"))
    if setting.get("case_insensitive"):
        fields["case_insensitive"] = True
    if setting.get("fold"):
        pattern = pattern.replace("\u2019", "'").replace("'", f"[{_STRAIGHT}]")
    pattern = f"(?{flags}){pattern}" if flags else pattern
    if pattern != check.pattern:
        fields["pattern"] = pattern
    return fields or None


def _other_patterns(pattern: str, *, tighten: bool) -> list[str]:
    """The pattern with every space read as any white space, with white space allowed before the end, with anchors."""
    spaced = _SPACE.sub(r"\\s+", pattern)
    loose = re.sub(r"(?<!\\)\$(?=\)|\||\Z)", r"\\s*$", spaced)
    ended = re.sub(r"(?<!\\)\$(?=\)|\||\Z)", r"\\s*$", pattern)
    dotted = re.sub(r"(?<=\d)\.(?=\d)", r"\\.", pattern)
    texts = [dotted, spaced, ended, loose]
    if tighten:
        core = f"(?:{pattern})" if "|" in pattern else pattern
        texts += [rf"\b{core}\b", rf"^\s*{core}", rf"{core}\s*$", rf"^\s*{core}\s*$", rf"\b{core}", rf"{core}\b"]
    return [text for text in dict.fromkeys(texts) if text != pattern]


def _said(fields: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items())
