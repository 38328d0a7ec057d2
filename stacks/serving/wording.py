"""The remedies of a stack: a text per outcome, with the names of parser, format and model filled in. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.formats.model import CallFormat
from stacks.formats.registry import format_named

_NO_CHOICE = frozenset(("required", "qwen25"))
"""`required` is no parser but a tool choice; `qwen25` is SGLang's deprecated name of `qwen`."""

Remedies = Mapping[str, str]
"""Outcome (`layer.code`) to text. `{parser}`, `{format}`, `{model}`, `{context}`, `{tokens}` and `{room}` (the context
to have) are filled in."""


def call_format(facts: Mapping[str, str]) -> CallFormat | None:
    """The call format that the model writes, where the facts name a known one."""
    try:
        return format_named(facts.get("format", ""))
    except KeyError:
        return None


def parser_for(stack: str, facts: Mapping[str, str]) -> str | None:
    """The name of this stack's parser to configure: as given, else one that reads the format that the model writes.

    Where several do, one that stands in the model's name (`glm-4.7` -> `glm47`) wins, else the first.
    """
    if facts.get("parser"):
        return facts["parser"]
    written = call_format(facts)
    claimed = written.parsers.get(stack, ()) if written is not None else ()
    names = [name for name in claimed if name not in _NO_CHOICE]
    model = _plain(facts.get("model", ""))
    fitting = [name for name in names if _plain(name) in model]
    return max(fitting, key=len) if fitting else (names[0] if names else None)


def format_title(facts: Mapping[str, str]) -> str:
    """The call format in words."""
    written = call_format(facts)
    return written.title if written is not None else "the format that the model writes"


def fill(text: str | None, facts: Mapping[str, str], parser: str | None, no_parser: str) -> str | None:
    """A remedy with its places filled. `no_parser` stands where no parser's name is known."""
    if text is None:
        return None
    values = {
        "parser": parser or no_parser,
        "format": format_title(facts),
        "model": facts.get("model") or "MODEL",
        "context": facts.get("context") or "N",
        "tokens": facts.get("tokens") or "the prompt's length",
        "room": facts.get("room") or facts.get("tokens") or "the prompt's length",
    }
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def _plain(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())
