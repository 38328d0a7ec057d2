"""Specifications of the format canaries: one model for each call format, and one that holds a call of every format."""

from __future__ import annotations

import re

from probe.canary.call_formats import format_names, write_calls
from probe.canary.format_members import PARIS, TOOL, format_members
from probe.canary.format_template import assistant_opening, format_template
from probe.canary.spec import GENERATION_PROMPTS, CanarySpec, Script
from stacks.formats import CallFormat, format_named

_PROMPT_TAGS = ("<think>", "</think>", "<tool_response>", "</tool_response>")
_LONGEST_TAG = 32
_MERGES = 600
_HERMES_CHUNKS = (
    "<tool_call>",
    "\n",
    '{"name": "',
    "get_weather",
    '", "arguments": ',
    '{"city": "Paris"}}\n',
    "</tool_call>",
)
"""The newline after the opening tag is a token of its own: llama-server's grammar begins behind it."""


def format_spec(call_format: str) -> CanarySpec:
    """The family in one call format, with a chat template that spells past calls so.

    The format's markers are tokens of their own, as its models have them: several parsers of vLLM refuse to start
    without them. A marker is one token where it stands first in a text, and spelled where it comes again.
    Raises CanaryError when the format is unknown.
    """
    members = format_members(call_format)
    tags, split_after = format_marks(call_format, members[0].text)
    return CanarySpec(
        name=f"canary-{call_format}",
        scripts=tuple(member.script() for member in members),
        template=format_template(call_format),
        triggers={"<tool_response>": "answer"},
        tags=tags,
        split_after=split_after,
        generation_prompts=tuple(dict.fromkeys([assistant_opening(call_format), *GENERATION_PROMPTS])),
        merges=_MERGES,
    )


def every_format_spec(template: str) -> CanarySpec:
    """One good call in every format, each chosen by ``[[name of the format]]``; Hermes without a trigger.

    It answers under the chat template of every format: it knows what each ends a prompt with.
    """
    names = ["hermes", *(name for name in format_names() if name != "hermes")]
    scripts = []
    for name in names:
        chunks = _HERMES_CHUNKS if name == "hermes" else ()
        about = f"one good call, {format_named(name).title}"
        scripts.append(Script(name, write_calls(name, [(TOOL, PARIS)]), chunks=chunks, about=about))
    # A tag to split after would also be what follows where a grammar forbids an end: too many texts end alike for that.
    openings = dict.fromkeys([*GENERATION_PROMPTS, *(assistant_opening(name) for name in names)])
    return CanarySpec(
        "canary-formats",
        tuple(scripts),
        template,
        split_after=(),
        generation_prompts=tuple(openings),
        merges=_MERGES,
    )


def format_marks(call_format: str, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Texts that are one token each in a canary of the format whose calls look like ``text``, and the one of them that
    a newline token of its own follows. Raises CanaryError when the format is unknown."""
    write_calls(call_format, [(TOOL, PARIS)])
    entry = format_named(call_format)
    tags = _tags(entry, text)
    return (*tags, *_PROMPT_TAGS), tuple(tag for tag in tags if tag in entry.openers)[:1]


def _tags(entry: CallFormat, text: str) -> tuple[str, ...]:
    """Markers of the format that are tokens of its models: those around the calls, and those within a line.

    Markup that stands between newlines (`</parameter>`) is spelled, in the models as here: beside it a newline would
    have to be a token of its own, more than once.
    """
    found = dict.fromkeys((*entry.openers, *entry.markers))
    whole = [mark for mark in found if mark in text and not mark[0].isalnum() and not mark[0].isspace()]
    return tuple(
        mark
        for mark in whole
        if 1 < len(mark.encode()) <= _LONGEST_TAG
        and (
            text.startswith(mark)
            or text.endswith(mark)
            or not re.search(rf"\n{re.escape(mark)}|{re.escape(mark)}\n", text)
        )
    )
