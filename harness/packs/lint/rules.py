"""The faults of one check, each found by trying it on answers. Pure; the repairs are looked for elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product

from harness.packs.lint.asking import content_words
from harness.packs.lint.examples import GAP, filled
from harness.packs.lint.judging import UNRELATED, Unit, excerpt
from harness.packs.lint.model import Code, Finding
from harness.packs.lint.values import value_faults
from harness.packs.lint.variants import capitals, like_json, variants

MOST_WORDS = 20_000
"""Words that no answer within a usual budget has."""
GUARD = 100
"""From so many words on, a limit only guards against an answer without end; below, the prompt has to ask for it."""
_LABEL = re.compile(r"(?:\A|\n)\s*([A-Za-z][A-Za-z_ ]{2,24}):|<([A-Za-z_]{3,24})>")
_LATER_ITEM = re.compile(r"(?:[2-9]|\d\d)[.)]")
Rule = Callable[[Unit, Sequence[Unit]], Iterator[Finding]]


def faults(unit: Unit, others: Sequence[Unit], allowed: frozenset[str] = frozenset()) -> list[Finding]:
    """The faults of a check beside the others of its task, at most one of each code (of `flips_on_format`: one of each
    kind). `allowed`: kinds of form whose change may change the verdict."""
    found: dict[tuple[str, str], Finding] = {}
    for rule in RULES:
        for finding in rule(unit, others):
            if finding.kind not in allowed:
                found.setdefault((finding.code, finding.kind), finding)
        if unit.broken:
            return [_broken(unit)]
    codes = {code for code, _ in found}
    if codes & {"never_passes", "never_fails"}:
        return [one for one in found.values() if one.code in ("never_passes", "never_fails")]
    return list(found.values())


def _finding(
    unit: Unit, code: Code, reason: str, answers: Sequence[str] = (), *, kind: str = "", line: int = 0
) -> Finding:
    return Finding(
        code=code,
        task=unit.task.id,
        check=unit.name,
        reason=reason,
        file=unit.task.file,
        line=unit.line,
        kind=kind,
        answers=tuple(answers),
    )


def _broken(unit: Unit) -> Finding:
    if unit.broken.startswith("timeout"):
        said = unit.broken.removeprefix("timeout: ")
        return _finding(
            unit, "catastrophic", f"the pattern takes {said}: a repeat stands within a repeat, and it tries every way"
        )
    return _finding(unit, "broken", f"the check cannot be applied to an answer: {unit.broken}")


def _pumped(unit: Unit, _others: Sequence[Unit]) -> Iterator[Finding]:
    """Long texts on which a repeat within a repeat does not end; what comes of it is in `unit.broken`."""
    for text in unit.shape.pumps if unit.shape is not None else ():
        unit.passes(text)
    yield from ()


def _samples(unit: Unit, _others: Sequence[Unit]) -> Iterator[Finding]:
    for sample in unit.task.samples:
        verdict = unit.passes(sample.answer)
        if sample.passes and verdict is False:
            reason = f"the pack says that {excerpt(sample.answer)} (line {sample.line}) is right; the check fails it"
            yield _finding(unit, "refuses_good", reason, [sample.answer])
        if unit.name in sample.fails and verdict:
            reason = f"the pack says that {excerpt(sample.answer)} (line {sample.line}) fails this check, and it passes"
            yield _finding(unit, "lets_bad_through", reason, [sample.answer])


def _never(unit: Unit, _others: Sequence[Unit]) -> Iterator[Finding]:
    texts = [*UNRELATED, *(sample.answer for sample in unit.task.samples)]
    check = unit.check
    if check is not None and check.max_words is not None:
        if check.max_words == 0:
            yield _finding(unit, "never_passes", "only an empty answer has no word")
        elif check.max_words >= min(MOST_WORDS, unit.task.max_tokens or MOST_WORDS):
            reason = f"no answer within the budget has more than {check.max_words} words"
            yield _finding(unit, "never_fails", reason)
        return
    if check is None:
        if all(unit.passes(text) for text in texts):
            yield _finding(unit, "never_fails", f"each of {len(texts)} answers to anything passes, even none", [""])
        return
    if all(unit.matches(text) for text in texts):
        code: Code = "never_passes" if check.invert else "never_fails"
        reason = f"the pattern is found in each of {len(texts)} answers to anything, the empty one too"
        yield _finding(unit, code, reason, [""])
    read = unit.shape
    good = any(unit.matches(sample.answer) for sample in unit.task.samples)
    if read is None or good or unit.broken or unit.examples():
        return
    if read.inner_anchor or not read.looks:
        code = "never_fails" if check.invert else "never_passes"
        why = "an anchor stands where text has come before it, or comes after it" if read.inner_anchor else "tried: "
        said = (
            why if read.inner_anchor else why + ", ".join(excerpt(filled(one, " "), 60) for one in read.templates[:3])
        )
        yield _finding(unit, code, f"no text that the pattern describes is found by it ({said})")


def _forms(unit: Unit, _others: Sequence[Unit]) -> Iterator[Finding]:
    """Answers in another form: those of the pack, and those made from the pattern."""
    texts = [sample.answer for sample in unit.task.samples]
    examples = unit.examples()
    by_lines = unit.by_lines
    for text in [*texts, *examples]:
        for kind, changed in variants(text, unit.asked):
            wrapped = kind in ("spaces", "paragraphs") and changed.count("\n") > text.count("\n")
            if not (wrapped and by_lines):
                yield from _flip(unit, kind, text, changed)
    if unit.check is not None and not unit.check.case_insensitive:
        for text in examples:
            for kind, changed in capitals(text, unit.asked):
                yield from _flip(unit, kind, text, changed)
    yield from _stretches(unit)


def _flip(unit: Unit, kind: str, text: str, changed: str) -> Iterator[Finding]:
    before, after = unit.passes(text), unit.passes(changed)
    if before is None or after is None or before == after:
        return
    words = {True: "passes", False: "fails"}
    reason = f"{excerpt(text)} {words[before]}, and {excerpt(changed)}, the same in another form, {words[after]}"
    yield _finding(unit, "flips_on_format", reason, [text, changed], kind=kind)


def _stretches(unit: Unit) -> Iterator[Finding]:
    """An open stretch (`.*`) between two parts of a pattern, written with a line end. Where the pattern is bound to a
    line, or the prompt asks for one, the line is content."""
    read, check = unit.shape, unit.check
    if read is None or check is None or check.dot_all or unit.asked.one_line:
        return
    if unit.by_lines:
        return
    for template in read.templates:
        inside = template.strip(GAP)
        if GAP not in inside or "\n" in template:
            continue
        text = filled(template, " . ")
        if unit.matches(text):
            kind, lines = ("json", "\n ") if like_json(text) else ("paragraphs", ".\n\n")
            yield from _flip(unit, kind, text, filled(template, lines))


def _contradictions(unit: Unit, others: Sequence[Unit]) -> Iterator[Finding]:
    check = unit.check
    if check is None:
        return
    for other in others:
        if other is unit or other.check is None:
            continue
        if check.max_words is not None:
            yield from _too_short(unit, other)
        elif not check.invert and other.check.max_words is None and not _both(unit):
            yield from _excluded(unit, other, before=others.index(other) < others.index(unit))


def _both(unit: Unit) -> bool:
    """Whether the pack shows an answer that passes everything."""
    return any(sample.passes for sample in unit.task.samples)


def _too_short(unit: Unit, other: Unit) -> Iterator[Finding]:
    assert unit.check is not None
    examples = other.examples() if other.check is not None and not other.check.invert else []
    if examples and all(not unit.passes(text) for text in examples):
        reason = f"an answer that passes {other.name} has more than {unit.check.max_words} words"
        yield _finding(unit, "contradicts", reason, examples[:1])


def _excluded(unit: Unit, other: Unit, *, before: bool) -> Iterator[Finding]:
    assert other.check is not None
    examples = unit.examples()
    if not examples:
        return
    if other.check.invert:
        if other.passes("") and all(other.passes(text) is False for text in examples):
            reason = f"each answer that passes holds what {other.name} forbids"
            yield _finding(unit, "contradicts", reason, examples[:1])
    elif before and _start_of_text(unit) and _start_of_text(other) and _disjoint(unit, other):
        first = other.examples()[:1]
        reason = (
            f"^ stands for the start of the whole text, and {other.name} wants something else there: no answer passes "
            "both (the start of a line was meant)"
        )
        yield _finding(unit, "contradicts", reason, [*first, examples[0]])


def _start_of_text(unit: Unit) -> bool:
    check, read = unit.check, unit.shape
    return bool(check and read and read.starts and not check.multiline and "(?m" not in check.pattern)


def _disjoint(unit: Unit, other: Unit) -> bool:
    """Whether the two patterns begin with different texts, whatever their alternatives."""
    assert unit.shape is not None
    assert other.shape is not None
    pairs = [(one.casefold(), two.casefold()) for one, two in product(unit.shape.literals, other.shape.literals)]
    return bool(pairs) and not any(one.startswith(two) or two.startswith(one) for one, two in pairs)


def _list_markers(unit: Unit, _others: Sequence[Unit]) -> Iterator[Finding]:
    """`^2.` is meant for a line: the second item of a list is never the start of the text."""
    read = unit.shape
    if read is None or unit.check is None or not _start_of_text(unit):
        return
    items = [text.lstrip() for text in unit.examples()]
    if not items or not all(_LATER_ITEM.match(text) for text in items):
        return
    for marker in items:
        listed = "1. Zq\n" + marker
        if unit.matches(listed) is False:
            reason = (
                f"^ stands for the start of the whole text: in a list, {excerpt(listed)}, the item is not found (the "
                "start of a line was meant)"
            )
            yield _finding(unit, "never_passes" if not unit.check.invert else "never_fails", reason, [listed])
            return


def _loose_dots(unit: Unit, _others: Sequence[Unit]) -> Iterator[Finding]:
    """A dot between two digits is meant as one: as it stands it takes any character."""
    read = unit.shape
    if read is None or not read.dotted:
        return
    for text in unit.examples():
        for at in range(1, len(text) - 1):
            if text[at - 1].isdigit() and text[at] == "x" and text[at + 1].isdigit():
                meant = f"{text[:at]}.{text[at + 1 :]}"
                if unit.matches(meant):
                    reason = (
                        f"the dot between two digits stands for any character: {excerpt(text)} is taken for {meant}"
                    )
                    yield _finding(unit, "lets_bad_through", reason, [text])
                    return


def _not_asked(unit: Unit, _others: Sequence[Unit]) -> Iterator[Finding]:
    check = unit.check
    if check is None or check.invert:
        return
    if check.max_words is not None:
        yield from _length(unit)
        return
    read = unit.shape
    examples = unit.examples()
    if read is None or not examples:
        return
    demanded = [content_words(filled(template, " ").replace("\\", " ")) for template in read.templates]
    keys = [unit.asked.unasked(words) for words in demanded]
    if keys and all(keys):
        named = ", ".join(dict.fromkeys(key for key in keys if key))
        reason = f"it demands the {named} of the data, and the prompt asks for other parts of it, not for this one"
        yield _finding(unit, "not_asked", reason, examples[:1])
    labels = [{one or two for one, two in _LABEL.findall(text)} for text in examples]
    if all(labels) and not any(unit.asked.says(label.strip()) for each in labels for label in each):
        named = ", ".join(sorted(set().union(*labels)))
        yield _finding(
            unit, "not_asked", f"it demands the label {named!r}, which the prompt does not name", examples[:1]
        )


def _length(unit: Unit) -> Iterator[Finding]:
    assert unit.check is not None
    most = unit.check.max_words or 0
    if unit.asked.most_words is not None and most < unit.asked.most_words:
        reason = f"it allows {most} words, and the prompt allows {unit.asked.most_words}"
        yield _finding(unit, "not_asked", reason)
    elif most < GUARD and not unit.asked.length:
        yield _finding(unit, "not_asked", f"it allows {most} words, and the prompt says nothing of a length")


RULES: tuple[Rule, ...] = (
    _samples,
    _never,
    _list_markers,
    _loose_dots,
    value_faults,
    _forms,
    _contradictions,
    _not_asked,
    _pumped,
)
