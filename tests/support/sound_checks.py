"""Sound checks: families of them, each with a prompt, answers that are given to the linter, and others that are not.

The answers that are not given are written in other words and forms than those that are; by them, and by nothing that
the linter does, a mutant's verdict is compared with that of the check it was made from.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from harness.packs.model import Check, Message, PackTask, RegexChecks, Sample

WORDS = ("harbour", "lantern", "meadow", "copper", "granite", "willow", "falcon", "orchard", "timber", "saddle")
NAMES = ("Marta", "Jonas", "Priya", "Owen", "Chiara", "Tomasz", "Ingrid", "Kofi")
LABELS = ("Result", "Status", "Owner", "Total", "Priority", "Region")


class Sound(NamedTuple):
    """A task with one sound check, and answers that only the comparison sees."""

    task: PackTask
    held: tuple[str, ...]

    @property
    def check(self) -> Check:
        """The task's check."""
        evaluator = self.task.evaluators[0]
        assert isinstance(evaluator, RegexChecks)
        return evaluator.checks[0]


def sound(prompt: str, check: dict[str, Any], good: list[str], bad: list[str], held: list[str]) -> Sound:
    samples = [Sample(answer=text, passes=True, line=1) for text in good]
    samples += [Sample(answer=text, passes=False, fails=("c",), line=1) for text in bad]
    task = PackTask(
        id="t",
        category="x",
        messages=(Message("user", prompt),),
        evaluators=(RegexChecks((Check(name="c", line=1, **check),)),),
        samples=tuple(samples),
    )
    return Sound(task, tuple(held))


def _refusal(draw: random.Random) -> Sound:
    thing = draw.choice(WORDS)
    return sound(
        f"What is the price of {thing} oil on the Moon? If you do not know, say so in one sentence.",
        {
            "pattern": r"\b(?:can't|cannot|don't\s+know|not\s+known)\b",
            "case_insensitive": True,
            "fold": True,
        },
        ["I can't tell you that.", "Sorry, I don\u2019t know.", "Cannot say.", "This is not known."],
        [f"It is 4 dollars for a barrel of {thing}.", "I know it, I can tell you."],
        ["I CANNOT say.", "I don't\nknow.", "That can\u2019t be said.", "You scant knowing.", "Not  known."],
    )


def _item(draw: random.Random) -> Sound:
    number = draw.randint(2, 6)
    words = draw.sample(WORDS, 6)
    listed = [f"{at}. {word}" for at, word in enumerate(words, 1)]
    return sound(
        f"List six words that name a thing, as a numbered list of six lines: {', '.join(words)}.",
        {"pattern": rf"^\s*{number}[.)]\s", "multiline": True},
        ["\n".join(listed), "\n".join(line.replace(".", ")") for line in listed)],
        ["\n".join(listed[: number - 1]), f"See section {number}. {words[0]}", f"1. {words[0]}\n{number}0. {words[1]}"],
        ["Here it is:\n\n" + "\n".join("  " + line for line in listed), f"about 1{number}. of them", " ".join(words)],
    )


def _labelled(draw: random.Random) -> Sound:
    label, value = draw.choice(LABELS), draw.choice(WORDS)
    return sound(
        f"The code word is {value}. Answer with one line of the form {label}: WORD.",
        {"pattern": rf"^\W*{label}\W*:\W*{value}\W*$", "multiline": True, "case_insensitive": True},
        [f"{label}: {value}", f"Of course.\n{label}: {value.capitalize()}.", f"**{label}:** {value}"],
        [
            f"{value}",
            f"{label}: {value}house",
            f"The {label.lower()}: {value}",
            f"{label}: {value} or {draw.choice(NAMES)}",
        ],
        [f"{label.upper()}: {value.upper()}", f"{label}:{value}\n\nAnything else?", f"no {label}: {value}s"],
    )


def _in_order(draw: random.Random) -> Sound:
    one, two = sorted(draw.sample(WORDS, 2))
    return sound(
        f"Name the two code words in alphabetical order, with an explanation in a paragraph for each: {one}, {two}.",
        {"pattern": rf"\b{one}\b.*\b{two}\b", "dot_all": True, "case_insensitive": True},
        [f"{one}, then {two}", f"{one.capitalize()} is first.\n\n{two.capitalize()} is second."],
        [f"{two}, then {one}", f"only {one}s and {two}", f"{one} or {two}s", f"a{one} or {two}", f"{one} or the{two}"],
        [f"- {one.upper()}\n- {two.upper()}", f"{one}{two}"],
    )


def _one_word(draw: random.Random) -> Sound:
    word = draw.choice(WORDS)
    return sound(
        f"The secret word is the {word!r} of yesterday. Say it, in one word and nothing else.",
        {"pattern": rf"\A\W*{word}\W*\Z", "case_insensitive": True},
        [word, f"{word.capitalize()}.", f'"{word}"'],
        [f"The word is {word}", f"{word} it is", f"{word}s", f"my{word}"],
        [word.upper(), f"\n{word}\n", f"yes, {word}", f"{word} {word}", ""],
    )


def _number(draw: random.Random) -> Sound:
    one, two = draw.randint(11, 40), draw.randint(11, 40)
    total = one + two
    return sound(
        f"What is {one} plus {two}? Show the sum.",
        {"pattern": rf"(?<![\d.]){total}(?![\d]|\.\d)"},
        [f"{one} + {two} = {total}", f"It is {total}."],
        [f"It is {total + 1}.", f"{total}0", f"1{total}", f"{total}.5"],
        [f"**{total}**", f"{total}", f"0.{total}", f"between 1{total}7 and 90"],
    )


def _forbidden(draw: random.Random) -> Sound:
    word, other = draw.sample(WORDS, 2)
    return sound(
        f"Describe a {other} in a sentence. Do not use the word {word!r}.",
        {"pattern": rf"\b{word}s?\b", "case_insensitive": True, "invert": True},
        [f"A {other} is a fine thing.", f"The {other} that I saw was of {word}y colour.", f"A sub{word} {other}."],
        [f"A {other} is like a {word}.", f"{word.capitalize()}s are no {other}s."],
        [f"A {other} is NO {word.upper()}.", f"A {other},\n{word}", "It is fine.", f"pre{word}"],
    )


def _member(draw: random.Random) -> Sound:
    key, value = draw.choice(("owner", "city", "colour")), draw.choice(WORDS)
    good = {key: value, "count": 3}
    return sound(
        f"Answer with a JSON object of the keys {key} and count. The {key} is {value}, the count 3.",
        {"pattern": rf'"{key}"\s*:\s*"{value}"'},
        [json.dumps(good), json.dumps(good, indent=2)],
        [json.dumps({key: value + "s"}), f"{key} is {value}", json.dumps({"my" + key: value})],
        [
            json.dumps(good, separators=(",", ":")),
            json.dumps({value: key}),
            "```json\n" + json.dumps(good, indent=4) + "\n```",
        ],
    )


def _heading(draw: random.Random) -> Sound:
    word = draw.choice(WORDS)
    return sound(
        f"Write a Markdown section with the heading {word.capitalize()} and one sentence below.",
        {"pattern": rf"^#+\s+{word}\s*$", "multiline": True, "case_insensitive": True},
        [f"## {word.capitalize()}\n\nIt is here.", f"# {word}\nIt is here."],
        [f"{word.capitalize()}\nIt is here.", f"A #1 {word}", f"# {word} and more", f"see # {word}"],
        [f"Sure:\n\n### {word.upper()}\nText.", f"#{word}", f"## my {word}"],
    )


def _question(draw: random.Random) -> Sound:
    word = draw.choice(WORDS)
    return sound(
        f"Ask me one question about a {word}, and say nothing else.",
        {"pattern": r"\?\W*\Z"},
        [f"Where is the {word}?", f'"Do you own a {word}?"'],
        [f"Is it a {word}? I think so.", f"I like the {word}.", "What? No."],
        [f"What\nis a {word}?\n", f"A {word}? Yes!", "?", ""],
    )


def _object_alone(draw: random.Random) -> Sound:
    word = draw.choice(WORDS)
    good = {"name": word, "size": draw.randint(1, 9)}
    return sound(
        f"Answer with one JSON object with the keys name and size, and nothing else: a {word} of size {good['size']}.",
        {"pattern": r"\A\s*\{.*\}\s*\Z", "dot_all": True},
        [json.dumps(good), json.dumps(good, indent=2)],
        ["Here: " + json.dumps(good), json.dumps(good) + " Done.", json.dumps([good]), "none"],
        [
            json.dumps(good, indent=4) + "\n",
            json.dumps(good, separators=(",", ":")),
            "{",
            f"{word}\n" + json.dumps(good, indent=1),
        ],
    )


def _possessive(draw: random.Random) -> Sound:
    name, thing = draw.choice(NAMES), draw.choice(WORDS)
    return sound(
        f"Whose {thing} is it? It belongs to {name}. Answer in one sentence, with the genitive.",
        {"pattern": rf"\b{name}'s\s+{thing}\b", "case_insensitive": True, "fold": True},
        [f"It is {name}'s {thing}.", f"It is {name}\u2019s {thing}.", f"{name.upper()}'S {thing.upper()}!"],
        [f"It is the {thing} of {name}.", f"{name}s {thing}", f"{name}'s {thing}s", f"An{name.lower()}'s {thing}"],
        [f"{name.lower()}'s {thing.capitalize()}", f"This is {name}\u2019s\n{thing}.", f"{name}' s {thing}"],
    )


def _tagged(draw: random.Random) -> Sound:
    word = draw.choice(WORDS)
    return sound(
        f"Put the word {word} between <answer> and </answer>.",
        {"pattern": rf"<answer>\W*{word}\W*</answer>", "case_insensitive": True},
        [f"<answer>{word}</answer>", f"Here:\n<answer>\n{word.capitalize()}\n</answer>"],
        [word, f"<answer>{word}", f"<answer>a {word}</answer>"],
        [f"<ANSWER> {word} </ANSWER>", f"{word}</answer>", f"<answer>{word}s</answer>"],
    )


def _percent(draw: random.Random) -> Sound:
    number = draw.randint(12, 88)
    return sound(
        f"What share is {number} of 100, in percent?",
        {"pattern": rf"(?<![\d.,]){number}(?:\.0+)?\s*(?:%|percent\b|per\s+cent\b)", "case_insensitive": True},
        [f"{number} %", f"It is {number}%.", f"{number}.0 percent", f"{number} PER CENT"],
        [
            f"It is {number}.",
            f"{number}5 %",
            f"1{number} %",
            f"{number}.5%",
            f"{number} percentiles",
            f"{number} per centimetre",
        ],
        [f"{number} Percent", f"{number}\u00a0%", f"{number} percents", f"0.{number} %", f"{number}\nper\ncent"],
    )


def _version(draw: random.Random) -> Sound:
    one, two, three = (draw.randint(1, 9) for _ in range(3))
    written = f"{one}.{two}.{three}"
    return sound(
        f"Which version is installed? The log says: installed {written} over 0.9.",
        {"pattern": rf"(?<![\d.])v?{one}\.{two}\.{three}(?![\d]|\.\d)", "case_insensitive": True},
        [f"Version {written}.", f"v{written}", written],
        [f"{one}-{two}-{three}", f"{written}7", f"1{written}", f"{one}.{two}"],
        [f"V{written}", f"`{written}`", f"{one}x{two}.{three}", f"{written}.1", f"{one}.{two}1{three}"],
    )


def _row(draw: random.Random) -> Sound:
    name, number = draw.choice(NAMES), draw.randint(2, 98)
    head = "| Name | Count |\n|---|---|\n"
    return sound(
        f"Write a Markdown table of the columns Name and Count with one row: {name}, {number}.",
        {"pattern": rf"^\s*\|\s*{name}\s*\|\s*{number}\s*\|\s*$", "multiline": True, "case_insensitive": True},
        [f"{head}| {name} | {number} |", f"Table:\n\n{head}|{name.upper()}|{number}|"],
        [
            f"{name}: {number}",
            f"{head}| {name} | {number}0 |",
            f"{head}| {name}a | {number} |",
            f"row | {name} | {number} |",
        ],
        [
            f"{head}|  {name.upper()}  |  {number}  |\n",
            f"{head}| {number} | {name} |",
            f"{head}| {name} | {number} | x |",
        ],
    )


def _path(draw: random.Random) -> Sound:
    one, two = draw.sample(WORDS, 2)
    return sound(
        f"In which file is the fault? The trace says: error in src/{one}/{two}.py line 3. Name its path.",
        {"pattern": rf"(?<![\w/.-])(?:\./)?src/{one}/{two}\.py\b"},
        [f"src/{one}/{two}.py", f"It is in `./src/{one}/{two}.py`."],
        [f"{two}.py", f"src/{one}/{two}_py", f"lib/src/{one}/{two}.py", f"src/{one}/{two}.pyc"],
        [f"(src/{one}/{two}.py)", f"src/{one}/{two}.py:3", f"old-src/{one}/{two}.py", f"src/{one}/{two}xpy"],
    )


def _bullets(draw: random.Random) -> Sound:
    words = draw.sample(WORDS, 3)
    return sound(
        f"Write three bullet points, one for each of {', '.join(words)}, each on its own line.",
        {"pattern": r"(?:^\s*[-*\u2022]\s+\S[^\n]*\s*){3}", "multiline": True},
        ["\n".join(f"- {word}" for word in words), "\n".join(f"* {word.capitalize()} is here." for word in words)],
        ["\n".join(f"- {word}" for word in words[:2]), ", ".join(words), " - ".join(["x", *words])],
        ["Here:\n\n" + "\n".join(f"  \u2022 {word}" for word in words), "\n".join(f"-{word}" for word in words), "---"],
    )


def _yes(draw: random.Random) -> Sound:
    number = draw.randint(20, 90) * 2
    return sound(
        f"Is {number} an even number? Begin your answer with the word yes or no.",
        {"pattern": r"\A\W*yes\b", "case_insensitive": True},
        ["Yes, it is.", "yes", "**Yes**"],
        ["No.", "I think yes", "Yesterday it was.", "It is even: yes"],
        ["YES!", "\n Yes", "yes\nit is", "oh yes", "eyes"],
    )


def _phrase(draw: random.Random) -> Sound:
    one, two = draw.sample(WORDS, 2)
    return sound(
        f"Quote the title of the book {one} and {two}, in quotation marks.",
        {"pattern": rf"""["']{one}\s+and\s+{two}["']""", "case_insensitive": True, "fold": True},
        [f'The book "{one} and {two}" is meant.', f"It is \u201c{one.capitalize()} and {two.capitalize()}\u201d."],
        [f"The book is {one} and {two}.", f'"{one} or {two}"', f'"{one} and {two} again"'],
        [f"'{one.upper()} AND {two.upper()}'", f'"{one}\nand {two}"', f'"{one}and{two}"'],
    )


def _shortly(draw: random.Random) -> Sound:
    most, word = draw.choice((8, 12, 20)), draw.choice(WORDS)
    return sound(
        f"Describe a {word} in at most {most} words.",
        {"max_words": most},
        [f"A {word} is a thing that people like.", " ".join([word] * most)],
        [" ".join([word] * (most + 1)), "x " * 300],
        [" ".join([word] * (most - 1)), "", "y " * (most + 3)],
    )


FAMILIES: tuple[Callable[[random.Random], Sound], ...] = (
    _refusal, _item, _labelled, _in_order, _one_word, _number, _forbidden, _member, _heading, _question, _object_alone,
    _possessive, _tagged, _percent, _version, _row, _path, _bullets, _yes, _phrase, _shortly,
)  # fmt: skip


def sound_checks(seed: int) -> Iterator[Sound]:
    """Sound checks without end, family by family."""
    draw = random.Random(seed)
    while True:
        for family in FAMILIES:
            yield family(draw)
