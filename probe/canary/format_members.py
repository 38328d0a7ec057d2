"""The members of the canary family in one call format: good calls, damaged ones, and texts around them.

Each member says by construction what its text is, so that a table of what servers did with it needs no parser.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from probe.canary.call_formats import Call, write_calls
from probe.canary.spec import END_OF_TEXT, END_OF_TURN, Script
from stacks.formats import CallFormat, format_named

Kind = Literal["valid_call", "malformed_call", "unknown_tool", "invalid_arguments", "prose", "nothing", "thoughts"]
"""What a text is, in the words of ``results.taxonomy.WROTE`` (``thoughts``: reasoning and nothing else)."""

TOOL = "get_weather"
PLAIN_TOOL = "list_cities"
UNKNOWN_TOOL = "launch_rocket"
PARIS: Mapping[str, Any] = {"city": "Paris"}
LONDON: Mapping[str, Any] = {"city": "London"}
ESCAPES = 'a "b" \\ c\nd'
UNICODE = "Z\u00fcrich \u2600\ufe0f \u6771\u4eac \U0001f600"
PROSE_BEFORE = "I will check the weather now."
PROSE_AFTER = "I have called the weather tool."
THOUGHT = "The user wants the weather."
ANSWER = "The weather in Paris is 18 degrees and sunny."
SUNNY = "It is sunny today."
REFUSAL = "I could look up the weather in Paris, but I will not."
LOOP = "la la la lo lo lo "
LOOP_IN_CALL = "ha ha ho ho "


@dataclass(frozen=True, slots=True)
class Member:
    """One text of the family. ``kind``, ``calls`` and ``prose`` say what a perfect reader makes of it.

    ``in_reasoning`` marks a good call that stands inside reasoning; ``loop`` is repeated for ever after ``text``.
    """

    name: str
    about: str
    text: str
    kind: Kind
    calls: tuple[Call, ...] = ()
    prose: str = ""
    in_reasoning: bool = False
    loop: str = ""
    end: str = END_OF_TURN

    def script(self) -> Script:
        """As a script of a canary."""
        return Script(self.name, self.text, self.loop, END_OF_TURN if self.loop else self.end, about=self.about)


@dataclass(frozen=True, slots=True)
class Speech:
    """How a format's models write what is no call: ``say`` is prose before a call, ``answer`` a final one."""

    think: Callable[[str], str] = lambda text: f"<think>\n{text}\n</think>\n\n"
    open_thought: Callable[[str], str] = lambda text: f"<think>\n{text}"
    say: Callable[[str], str] = lambda text: f"{text}\n"
    answer: Callable[[str], str] = lambda text: text
    after: Callable[[str], str] | None = lambda text: f"\n{text}"


_HARMONY = Speech(
    think=lambda text: f"<|channel|>analysis<|message|>{text}<|end|><|start|>assistant",
    open_thought=lambda text: f"<|channel|>analysis<|message|>{text}",
    say=lambda text: f"<|channel|>commentary<|message|>{text}<|end|><|start|>assistant",
    answer=lambda text: f"<|channel|>final<|message|>{text}",
    after=None,
)
SPEECH: dict[str, Speech] = {"harmony": _HARMONY}
"""Formats whose prose and reasoning have markers of their own (harmony: the openai-harmony response format)."""


_STRING_ARGUMENTS = ("glaive",)
"""Formats whose own form of the arguments is a JSON string."""


def is_json_format(call_format: str) -> bool:
    """Whether the arguments of a call stand in the text as one JSON object."""
    return json.dumps(dict(PARIS)) in write_calls(call_format, [(TOOL, PARIS)])


def format_members(call_format: str) -> tuple[Member, ...]:
    """The family in one format, ``good`` first. Raises CanaryError when the format is unknown."""
    write_calls(call_format, [(TOOL, PARIS)])
    entry = format_named(call_format)
    speech = SPEECH.get(call_format, Speech())
    members = [*_good(entry), *_beside(entry, speech), *_wrong(entry)]
    if is_json_format(call_format):
        members += _damaged_json(entry)
    members += [*_cut(entry, speech), *_without_call(speech)]
    return tuple(members)


def _good(entry: CallFormat) -> Iterator[Member]:
    def member(name: str, about: str, *calls: Call) -> Member:
        return Member(name, about, write_calls(entry.name, calls), "valid_call", calls)

    nested = {"city": "Paris", "options": {"days": [1, 2, {"hour": None}], "exact": True}}
    yield member("good", "one good call", (TOOL, PARIS))
    yield member("two", "two good calls", (TOOL, PARIS), (TOOL, LONDON))
    yield member("nested", "nested arguments", (TOOL, nested))
    yield member("unicode", "arguments with letters beyond ASCII", (TOOL, {"city": UNICODE}))
    yield member("escapes", "arguments with quotes, backslash and newline", (TOOL, {"city": ESCAPES}))
    yield member("emptyargs", "a call of a tool without parameters", (PLAIN_TOOL, {}))


def _beside(entry: CallFormat, speech: Speech) -> Iterator[Member]:
    good = write_calls(entry.name, [(TOOL, PARIS)])
    calls: tuple[Call, ...] = ((TOOL, PARIS),)
    if entry.delimited or entry.tail_stands:
        yield Member("prosecall", "prose, then a good call", speech.say(PROSE_BEFORE) + good, "valid_call", calls,
                     PROSE_BEFORE)  # fmt: skip
    if speech.after is not None and entry.delimited:
        yield Member("callprose", "a good call, then prose", good + speech.after(PROSE_AFTER), "valid_call", calls,
                     PROSE_AFTER)  # fmt: skip
    if "```" not in good:
        yield Member("fence", "a good call inside a code fence", f"```\n{good}\n```", "valid_call", calls,
                     end=END_OF_TEXT)  # fmt: skip
    yield Member("think", "reasoning, then a good call", speech.think(THOUGHT) + good, "valid_call", calls)
    if entry.name != "harmony":
        inside = f"<think>\nI call the tool right here.\n{good}\nNow I wait.\n</think>"
        yield Member("thinkcall", "a good call inside reasoning", inside, "valid_call", calls, in_reasoning=True)


def _wrong(entry: CallFormat) -> Iterator[Member]:
    def member(name: str, about: str, kind: Kind, call: Call) -> Member:
        return Member(name, about, write_calls(entry.name, [call]), kind, (call,))

    yield member("unknown", "a call to a tool that is not offered", "unknown_tool", (UNKNOWN_TOOL, {"target": "moon"}))
    yield member("badtype", "a word for a whole number", "invalid_arguments", (TOOL, {**PARIS, "days": "tomorrow"}))
    yield member("noparams", "no arguments for a tool that needs one", "invalid_arguments", (TOOL, {}))


def _damaged_json(entry: CallFormat) -> Iterator[Member]:
    good, body = write_calls(entry.name, [(TOOL, PARIS)]), json.dumps(dict(PARIS))

    def member(name: str, about: str, text: str, arguments: Mapping[str, Any] = PARIS) -> Member:
        return Member(name, about, text, "malformed_call", ((TOOL, arguments),))

    yield member("single", "single quotes instead of double ones", good.replace('"', "'"))
    yield member("comma", "a trailing comma", good.replace(body, body[:-1] + ",}"))
    metric = {"city": "Paris", "metric": True}
    literal = json.dumps(metric).replace("true", "True")
    yield member("literals", "a Python literal in the arguments", good.replace(body, literal), metric)
    if '"name"' in good and entry.name not in _STRING_ARGUMENTS:
        yield member("argstring", "arguments as a JSON string", good.replace(body, json.dumps(body)))


def _cut(entry: CallFormat, speech: Speech) -> Iterator[Member]:
    good = write_calls(entry.name, [(TOOL, PARIS)])
    upto = good[: good.index("Paris")]
    yield Member("trunc", "a call that breaks off inside its arguments", upto + "Par", "malformed_call",
                 ((TOOL, {"city": "Par"}),))  # fmt: skip
    opener = max((mark for mark in entry.openers if good.startswith(mark)), key=len, default="")
    if opener and entry.delimited and good.removeprefix(opener).lstrip()[:1] in ("{", "["):
        gap = "\n" if good.startswith(opener + "\n") else ""
        yield Member("doubleopen", "the opening marker twice", opener + gap + good, "malformed_call", ((TOOL, PARIS),))
    yield Member("loopcall", "the same words for ever inside an argument", upto, "malformed_call", loop=LOOP_IN_CALL)
    yield Member("thinkopen", "reasoning that is never closed", speech.open_thought("I never come to an end about"),
                 "thoughts")  # fmt: skip


def _without_call(speech: Speech) -> Iterator[Member]:
    yield Member("prose", "prose, no call", speech.answer(REFUSAL), "prose", prose=REFUSAL)
    sunny = speech.think("That is easy to say.") + speech.answer(SUNNY)
    yield Member("thinkanswer", "reasoning, then an answer", sunny, "prose", prose=SUNNY)
    thought = speech.think("I wonder about the weather.").removesuffix("<|start|>assistant").rstrip()
    yield Member("thinkonly", "reasoning and nothing else", thought, "thoughts")
    yield Member("answer", "the final answer; also after any tool result", speech.answer(ANSWER), "prose",
                 prose=ANSWER, end=END_OF_TEXT)  # fmt: skip
    yield Member("empty", "ends at once", "", "nothing", end=END_OF_TEXT)
    yield Member("loop", "the same words for ever", "", "prose", loop=LOOP)
