"""What the words of a tool and of its arguments weigh, for running a shell command or Python.

Points are given for what the argument and the tool are called and said to be, in any language of the lexicon, and
taken for what only looks alike: what searches, explains, stops or answers commands, and the commands of other things.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from probe.pairing.learning import lexicon
from probe.pairing.learning.lexicon import first_sentence, mentions, words_of
from probe.pairing.learning.schemas import Schema, choices_of, properties_of, required_of
from probe.pairing.learning.slots import Slot
from stacks.turn import OfferedTool

Language = Literal["shell", "python"]
ENOUGH = 4.5
"""Points below which a tool is not taken at all."""

_ACTIONS = frozenset(("action", "operation", "op", "method", "subcommand", "verb", "request", "command", "mode"))
_LANGUAGES = frozenset(("language", "lang", "interpreter", "kernel", "runtime", "shell", "executor"))
_NEGATED = re.compile(
    r"\b(without|does not|doesn't|will not|won't|is not|isn't|are not|is never|are never|nothing is)\s+"
    r"(actually |itself |be |being |ever )*(run|running|executed?|executing|launched|performed)\b"
)


@dataclass(slots=True)
class Weight:
    points: float = 0
    reasons: list[str] = field(default_factory=list)

    def add(self, points: float, reason: str) -> None:
        """Count ``points``, and say what for."""
        if points:
            self.points += points
            self.reasons.append(f"{reason} {points:+g}")


def weigh_tool(tool: OfferedTool, language: Language) -> Weight:
    """The points of a tool's name and description."""
    weight = Weight()
    name = tool.name or ""
    words, own = words_of(name), words_of(re.split(r"__|[./:]", name)[-1]) or words_of(name)
    about = (tool.description or "").strip()
    first = first_sentence(about).lower()
    said = words_of(first)
    _weigh_name(weight, name, words, language)
    if not set(own) & lexicon.SHELL or set(own) & _STOPPING:
        looks = sorted(set(own) & lexicon.NOT_RUNNING)
        weight.add(-6 if looks else 0, f"the name says {', '.join(looks)}")
    worlds = sorted((set(words) & lexicon.OTHER_WORLDS) - ({"sandbox"} if language == "shell" else set()))
    if worlds and not {"bash", "shell", "terminal"} & set(own):
        weight.add(-6, f"the name says {', '.join(worlds)}")
    if language == "python" and set(words) & lexicon.OTHER_LANGUAGES:
        weight.add(-6, "the name says another language")
    _weigh_words(weight, first, said, language)
    if _NEGATED.search(about[:300].lower()):
        weight.add(-7, "the description says that nothing is run")
    if said and _stem(said[0]) in lexicon.NOT_RUNNING:
        weight.add(-5, f"the description begins with {said[0]}")
    elif {"slash", "palette"} & set(said) or ("sql" in said and language == "shell"):
        weight.add(-6, "the description speaks of other commands")
    return weight


_STOPPING = frozenset(
    ("kill", "stop", "cancel", "output", "outputs", "log", "logs", "history", "stdin", "status", "explain", "describe",
     "suggest", "interrupt", "poll", "help", "docs", "search", "list", "get", "read", "close", "check", "validate")
)  # fmt: skip


def _weigh_name(weight: Weight, name: str, words: Sequence[str], language: Language) -> None:
    runs = mentions(name, words, lexicon.RUN, lexicon.FOREIGN_RUN)
    if language == "shell":
        if mentions(name, words, lexicon.SHELL, lexicon.FOREIGN_SHELL):
            weight.add(4, "the name says shell")
        elif mentions(name, words, lexicon.COMMAND, lexicon.FOREIGN_COMMAND):
            weight.add(3 if runs else 2, "the name says command")
        elif runs:
            weight.add(1.5, "the name says run")
        return
    if mentions(name, words, lexicon.PYTHON):
        weight.add(4, "the name says Python")
    elif mentions(name, words, lexicon.CODE, lexicon.FOREIGN_CODE):
        weight.add(3 if runs else 2, "the name says code")
    elif runs:
        weight.add(1, "the name says run")


def _weigh_words(weight: Weight, first: str, said: Sequence[str], language: Language) -> None:
    runs = mentions(first, said, lexicon.RUN, lexicon.FOREIGN_RUN)
    commands = mentions(first, said, lexicon.COMMAND, lexicon.FOREIGN_COMMAND)
    shell = mentions(first, said, lexicon.SHELL, lexicon.FOREIGN_SHELL)
    python = "python" in first
    if language == "shell":
        if python and not shell:
            weight.add(-4 if not commands or "python command" in first else 0, "the description speaks of Python")
        if "python shell" in first:
            weight.add(-4, "it is a Python shell")
        elif shell and (runs or commands):
            weight.add(3, "the description speaks of a shell")
        elif commands and runs:
            weight.add(2, "the description speaks of running commands")
        elif shell:
            weight.add(1, "the description names a shell")
        return
    if python:
        weight.add(3, "the description speaks of Python")
    elif mentions(first, said, lexicon.CODE, lexicon.FOREIGN_CODE) and runs:
        weight.add(1.5, "the description speaks of running code")
    if set(said) & lexicon.OTHER_LANGUAGES and not python:
        weight.add(-4, "the description speaks of another language")


def weigh_argument(weight: Weight, slot: Slot, language: Language, *, certain: bool, tool_points: float) -> bool:
    """Add the argument's points; False where it cannot be the place of a command."""
    name, words = slot.names[-1], words_of(slot.names[-1])
    if name.lower() in _NOT_A_PLACE:
        return False
    about = str(slot.schema.get("description") or "").lower()
    said = words_of(first_sentence(about))
    own = (lexicon.COMMAND, lexicon.FOREIGN_COMMAND) if language == "shell" else (lexicon.CODE, lexicon.FOREIGN_CODE)
    named = mentions(name, words, own[0] | (lexicon.SHELL if language == "shell" else lexicon.PYTHON), own[1])
    if set(words) & lexicon.NO_TEXT_OF_ITS_OWN and not (named and set(words) <= _BOTH):
        return False
    if named:
        weight.add(4 if language == "shell" else 3, f"the argument is called {name}")
    elif set(words) & lexicon.CODE and (certain or language == "python"):
        weight.add(3, f"the argument is called {name}")
    elif "argv" in words and isinstance(slot.shape, list):
        weight.add(3, "the argument is an argument vector")
    elif set(words) & {"script", "line", "argv", "keystrokes", "instruction"}:
        weight.add(1.5, f"the argument is called {name}")
    elif name.lower() in lexicon.NEUTRAL_ARGUMENTS or set(words) & lexicon.NEUTRAL_ARGUMENTS:
        weight.add(0.5, f"the argument is called {name}")
    elif tool_points < ENOUGH and not about:
        return False
    _weigh_argument_words(weight, about, said, language)
    if slot.argument in required_of(slot.variant):
        weight.add(1, "required")
    elif required_of(slot.variant):
        weight.add(-3, "not required, though others are")
    if len(slot.names) > 1 or isinstance(slot.shape, list):
        weight.add(-0.25, "not a plain text")
    return True


_NOT_A_PLACE = frozenset(("commandid", "command_id", "cmd_id", "shell_id", "bash_id", "command_name", "shell_type"))
_BOTH = lexicon.COMMAND | lexicon.SHELL | lexicon.CODE | lexicon.PYTHON | frozenset(("line", "string", "text", "input"))


def _weigh_argument_words(weight: Weight, about: str, said: Sequence[str], language: Language) -> None:
    runs = mentions(about, said, lexicon.RUN, lexicon.FOREIGN_RUN)
    if language == "shell":
        shell = mentions(about, said, lexicon.SHELL, lexicon.FOREIGN_SHELL)
        commands = mentions(about, said, lexicon.COMMAND, lexicon.FOREIGN_COMMAND)
        if "python" in said and not shell:
            weight.add(-3, "the argument's words speak of Python")
        elif (commands or shell) and (runs or shell):
            weight.add(2, "the argument's words speak of a command to run")
        elif commands:
            weight.add(1, "the argument's words speak of a command")
    elif "python" in about:
        weight.add(2, "the argument's words speak of Python")
    looks = sorted(word for word in said if word in _TO_BE_LOOKED_AT)
    if looks and not runs:
        weight.add(-5, f"the argument is there to {looks[0]}")
    if "triggered" in said:
        weight.add(-4, "the argument tells what happened")


_TO_BE_LOOKED_AT = frozenset(
    ("explain", "describe", "search", "find", "check", "validate", "parse", "translate", "explained", "described",
     "checked", "kill", "stop", "approve", "remember", "store", "schedule", "suggest", "analyze", "analyse", "look")
)  # fmt: skip


def weigh_choices(variant: Schema, root: Schema, language: Language) -> tuple[dict[str, Any], tuple[float, str], str]:
    """Values of the arguments that choose an action or a language, the points they give, and what speaks against."""
    chosen: dict[str, Any] = {}
    points, reason = 0.0, ""
    for name, schema in properties_of(variant).items():
        values = choices_of(schema, root)
        words = set(words_of(str(name)))
        texts = [value for value in values if isinstance(value, str)]
        if not texts:
            if str(name).lower() in ("language", "lang") and not values:
                chosen[str(name)] = "bash" if language == "shell" else "python"
                points, reason = points + 2, f"{name} can be {chosen[str(name)]}"
            continue
        if words & _LANGUAGES:
            wanted = lexicon.SHELL if language == "shell" else lexicon.PYTHON
            value = _first(texts, wanted)
            if value is None:
                return {}, (0, ""), f"{name} allows {', '.join(texts[:6])} only"
            chosen[str(name)] = value
            points, reason = points + 3, f"{name} can be {value}"
        elif words & _ACTIONS and name in required_of(variant):
            value = _first(texts, lexicon.RUN) or _first(texts, lexicon.COMMAND | lexicon.SHELL)
            if value is None and (len(texts) > 1 or set(words_of(texts[0])) & (lexicon.NOT_RUNNING | _STOPPING)):
                return {}, (0, ""), f"{name} allows {', '.join(texts[:6])}, none of which runs a command"
            if value is None:
                continue
            chosen[str(name)] = value
            points, reason = points + 1, f"{name} can be {value}"
    return chosen, (points, reason), ""


def _first(texts: Sequence[str], wanted: frozenset[str]) -> str | None:
    """The value that says one of the words most plainly (``bash`` before ``bash_output``)."""
    found = [text for text in texts if set(words_of(text)) & wanted and not set(words_of(text)) & _STOPPING]
    preferred = ("bash", "sh", "shell", "run", "execute", "exec")
    return min(found, key=lambda text: (text.lower() not in preferred, len(words_of(text))), default=None)


def _stem(word: str) -> str:
    return word[:-1] if word.endswith("s") and word[:-1] in lexicon.NOT_RUNNING else word
