"""Chat templates: what is adapted in OpenAI-shaped messages before rendering, and rendering as transformers does it.

Source of the conventions (block trimming, ``tojson`` without HTML escapes, ``raise_exception``, ``strftime_now``,
``{% generation %}``): the chat template support of Hugging Face transformers, for which these templates are written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from stacks.engine import Message, RenderError, Tool


def template_hash(source: str | None) -> str:
    """Return the SHA-256 of a template's text, or ``unknown`` with the reason when the model has none."""
    return hashlib.sha256(source.encode()).hexdigest() if source else "unknown (the model has no chat template)"


def render_adapted(
    messages: Sequence[Message], render: Callable[[list[dict[str, Any]]], str]
) -> tuple[str, tuple[str, ...]]:
    """Adapt OpenAI-shaped messages to what templates expect, call ``render``, return (text, adaptations).

    Most templates want the arguments of past calls as objects, a few concatenate them as strings; objects are tried
    first. Raises :class:`RenderError` with the template's own words.
    """
    adapted, adaptations = adapt_messages(messages)
    try:
        return render(adapted), adaptations
    except Exception as error:
        decoded = [a for a in adaptations if a.startswith(_DECODED)]
        if isinstance(error, RenderError) or not decoded:
            raise _render_error(error) from error
        strings, _ = adapt_messages(messages, decode_arguments=False)
        try:
            return render(strings), tuple(a for a in adaptations if a not in decoded)
        except Exception:
            raise _render_error(error) from error


_DECODED = "arguments decoded"


def adapt_messages(
    messages: Sequence[Message], *, decode_arguments: bool = True
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return (messages for a template, what was changed).

    Text parts are joined by newlines, a null content becomes an empty string, arguments of past calls are decoded.
    Raises :class:`RenderError` for parts that are not text and for arguments that are no JSON object.
    """
    adaptations: list[str] = []
    adapted = []
    for place, message in enumerate(messages):
        copy = dict(message)
        content = copy.get("content")
        if content is None:
            copy["content"] = ""
            adaptations.append(f"null content emptied in message {place}")
        elif not isinstance(content, str):
            copy["content"] = _join_parts(content, place)
            adaptations.append(f"text parts joined in message {place}")
        if copy.get("tool_calls") and decode_arguments:
            copy["tool_calls"] = [_decode_call(call, place) for call in copy["tool_calls"]]
            if copy["tool_calls"] != list(message["tool_calls"]):
                adaptations.append(f"{_DECODED} in message {place}")
        adapted.append(copy)
    return adapted, tuple(adaptations)


def _join_parts(content: Any, place: int) -> str:
    texts = []
    for part in content if isinstance(content, Sequence) else [content]:
        text = part.get("text") if isinstance(part, Mapping) else None
        if not isinstance(text, str):
            kind = part.get("type", "unknown") if isinstance(part, Mapping) else type(part).__name__
            raise RenderError(f"message {place} holds a part of type {kind!r}: only text can be rendered")
        texts.append(text)
    return "\n".join(texts)


def _decode_call(call: Any, place: int) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(arguments, str):
        return call
    try:
        decoded = json.loads(arguments) if arguments.strip() else {}
    except ValueError as error:
        raise RenderError(f"the arguments of a past call in message {place} are not JSON: {error}") from error
    if not isinstance(decoded, dict):
        raise RenderError(f"the arguments of a past call in message {place} are no JSON object")
    return {**call, "function": {**function, "arguments": decoded}}


def _render_error(error: Exception) -> RenderError:
    if isinstance(error, RenderError):
        return error
    return RenderError(f"the model's chat template failed: {type(error).__name__}: {error}")


class _GenerationTag(Extension):
    """``{% generation %}`` marks what an assistant wrote, for training; in a prompt it is plain content."""

    tags = {"generation"}  # noqa: RUF012 - the base class declares it this way

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return the body of the block."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def render_template(
    source: str, messages: Sequence[Message], tools: Sequence[Tool] | None, variables: Mapping[str, Any]
) -> str:
    """Render a template's text in a sandbox, generation prompt included.

    ``variables`` holds the special tokens (``bos_token``, ``eos_token``) and whatever the caller adds.
    Raises ``jinja2.TemplateError`` or what the template's own expressions raise.
    """
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _GenerationTag]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment.from_string(source).render(
        **{"documents": None, "add_generation_prompt": True, **variables, "messages": messages, "tools": tools}
    )


def _to_json(
    value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)
