"""The self-driving canary: its calls run shell commands that print the trigger of the next step.

The agent's own tool result then chooses what the model writes next, so an unchanged agent walks a known task. A command
prints its trigger without containing it (``echo '[''[k2]]'``): the trigger cannot reach the next prompt through the
call's own text in the history, only through the result of a command that ran.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probe.canary.call_formats import write_call
from probe.canary.format_specs import format_marks
from probe.canary.format_template import assistant_opening, format_template
from probe.canary.members import hermes_template
from probe.canary.spec import GENERATION_PROMPTS, CanaryError, CanarySpec, Script

DEFAULT_NONCE = "canary-4711"
DEFAULT_FILE = "canary_note.txt"
DEFAULT_FINISH = "The note is written and checked."


@dataclass(frozen=True)
class Step:
    """One turn of the walk: what the canary says, and the shell command it calls (None: words only, the end)."""

    say: str
    command: str | None = None


def note_steps(
    nonce: str = DEFAULT_NONCE,
    file: str = DEFAULT_FILE,
    finish: str = DEFAULT_FINISH,
    finish_command: str | None = None,
) -> tuple[Step, ...]:
    """Look, write ``nonce`` to ``file``, read it back, finish (in words, or by ``finish_command`` where an agent wants
    one)."""
    checked_names(nonce, file)
    return (
        Step("Let me look around first.", "ls"),
        Step("Now I write the note.", f"echo {nonce} > {file}"),
        Step("I read it back.", f"cat {file}"),
        Step(finish, finish_command),
    )


def checked_names(nonce: str, file: str) -> None:
    """Raises CanaryError unless both are plain names: they stand in commands that a shell runs."""
    for label, value in (("nonce", nonce), ("file", file)):
        plain = value.isascii() and all(c.isalnum() or c in "-_." for c in value) and value.strip(".")
        if not plain or value.startswith("-"):
            raise CanaryError(f"the {label} {value!r} must be letters, digits, '-', '_' and '.', as the shell sees it")


def trigger_command(command: str, trigger: str) -> str:
    """``command``, then a command that prints ``[[trigger]]`` without containing it (POSIX shells)."""
    return f"{command}; echo '[''[{trigger}]]'"


def selfdriving(
    tool_name: str,
    argument_name: str,
    steps: Sequence[Step] | None = None,
    call_format: str = "hermes",
    *,
    extra_arguments: Mapping[str, Any] | None = None,
    prefix: str = "k",
    name: str = "canary-selfdriving",
) -> CanarySpec:
    """The canary that walks an agent through ``steps`` (default: ``note_steps()``).

    ``tool_name`` and ``argument_name`` are the agent's shell tool and its command argument; with the ``fenced`` format
    ``tool_name`` is the language of the fence. ``extra_arguments`` go into every call. The first step needs no trigger
    (a trigger in the task would be the latest again in agents that repeat the task); step n answers to
    ``[[<prefix>n]]``. Raises CanaryError when a step cannot be written in the format.
    """
    steps = note_steps() if steps is None else tuple(steps)
    if not steps:
        raise CanaryError("a self-driving canary needs at least one step")
    scripts = []
    for number, step in enumerate(steps, start=1):
        text = step.say
        if step.command is not None:
            last = number == len(steps)
            command = step.command if last else trigger_command(step.command, f"{prefix}{number + 1}")
            call = write_call(call_format, tool_name, {argument_name: command, **(extra_arguments or {})})
            text = call if call_format == "bare_json" or not text else f"{text}\n{call}"
        elif number < len(steps):
            raise CanaryError(f"step {number} of {len(steps)} has no command, so nothing leads to the next step")
        scripts.append(Script(f"{prefix}{number}", text, about=f"step {number} of {len(steps)}"))
    return CanarySpec(name, tuple(scripts), hermes_template(), context=65536)


PLAIN_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' ~ message.role ~ '\\n' -}}"
    "{%- if message.content is string -%}{{- message.content -}}"
    "{%- elif message.content -%}{%- for part in message.content -%}{{- part.text or '' -}}{%- endfor -%}{%- endif -%}"
    "{{- '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)
"""ChatML without a word on tools: servers that infer a parser from the template infer none."""


def walking_spec(
    scripts: Sequence[Script],
    call_format: str | None,
    *,
    name: str = "canary-selfdriving",
    context: int = 131_072,
    triggers: Mapping[str, str] | None = None,
) -> CanarySpec:
    """The canary that writes ``scripts``, the first by default, under the chat template of ``call_format``.

    The format's own markers are tokens, as its models have them. None as format: a text protocol, whose template and
    tokens know no tools. ``triggers`` lead to scripts beside ``[[name]]``. Raises CanaryError for an unknown format.
    """
    more = dict(triggers or {})
    if call_format is None:
        return CanarySpec(name, tuple(scripts), PLAIN_TEMPLATE, triggers=more, tags=(), split_after=(), context=context)
    if call_format == "hermes":
        return CanarySpec(name, tuple(scripts), hermes_template(), triggers=more, context=context)
    tags, split_after = format_marks(call_format, scripts[0].text)
    return CanarySpec(
        name,
        tuple(scripts),
        format_template(call_format),
        triggers=more,
        tags=tags,
        split_after=split_after,
        generation_prompts=tuple(dict.fromkeys([assistant_opening(call_format), *GENERATION_PROMPTS])),
        context=context,
    )
