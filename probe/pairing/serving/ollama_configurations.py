"""Configurations of a canary on Ollama by name, as a user's own model has it, and which one mends a failure. Pure.

A configuration is a way to the weights (`probe.canary.ollama_files`) with PARAMETER lines; how Ollama treats the same
text in each is measured on 0.30.8 and 0.32.15 (`tests/data/captures/ollama.jsonl.zst`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from probe.canary.ollama_files import WAYS, OllamaWay, parser_way
from probe.diagnose.on_ollama import way_like
from stacks.formats.registry import formats
from stacks.serving.ollama_modes import OllamaMode, mode_of, parameters_of
from stacks.serving.wording import parser_for

_NAMED = re.compile(r"(?P<way>.+?)(?:\s+with\s+num_ctx\s+(?P<context>\d+))?", re.IGNORECASE)
_STEP = 4096
_CONTEXT_CODES = frozenset({"request.context_exceeded", "truncation.context_cut_silently"})
_PARSED_WRONG = frozenset({"parser.server_error", "parser.left_as_text", "parser.dropped", "nonresponse.swallowed"})


class ConfigurationError(ValueError):
    """No such configuration; the message names those that there are."""


def parser_names() -> tuple[str, ...]:
    """Ollama's built-in parsers that are known to read one of the call formats here."""
    return tuple(sorted({name for each in formats() for name in each.parsers.get("ollama", ()) if " " not in name}))


def configuration(text: str) -> OllamaWay:
    """The configuration of a name: a way (`native`, `tools-if`, `tools-range`, `thinking`, `no-tools`) or a built-in
    parser (`qwen3-coder`, ...), each also `... with num_ctx N`. Raises ConfigurationError."""
    found = _NAMED.fullmatch(text.strip())
    name = found["way"].lower() if found else ""
    way = WAYS.get(name) or (parser_way(name) if name in parser_names() else None)
    if found is None or way is None:
        known = ", ".join([*WAYS, *(parser for parser in parser_names() if parser not in WAYS)])
        raise ConfigurationError(
            f"Ollama has no configuration {text!r}; there are {known}, each also as `NAME with num_ctx N`"
        )
    return with_context(way, int(found["context"])) if found["context"] else way


def with_context(way: OllamaWay, tokens: int) -> OllamaWay:
    """The same way with `PARAMETER num_ctx`. Raises ConfigurationError for a context that is none."""
    if tokens < 1:
        raise ConfigurationError(f"num_ctx is {tokens}: it is a number of tokens, at least 1")
    name = f"{way.name.partition(' with num_ctx ')[0]} with num_ctx {tokens}"
    return replace(way, name=name, parameters={**way.parameters, "num_ctx": tokens})


def context_of(way: OllamaWay) -> int | None:
    """The context in tokens that a configuration sets; None where the server's default holds."""
    found = way.parameters.get("num_ctx")
    return found if isinstance(found, int) else None


def like_users(shown: Mapping[str, Any]) -> OllamaWay:
    """As the user's own model is configured, by its `/api/show`: the same Go template, renderer, parser and num_ctx.

    A model with the jinja template of its GGUF in force is paired with the canary's own jinja template: Ollama takes
    none from outside a GGUF.
    """
    mode = mode_of(shown)
    way = way_like(mode, shown.get("template"))
    context = parameters_of(shown).get("num_ctx")
    about = f"as the model itself: calls are read by {mode.reads}"
    like = replace(way, name="like yours", about=about)
    return with_context(like, context) if isinstance(context, int) and context > 0 else like


def call_format_for(way: OllamaWay) -> str:
    """The call format that the parser of a configuration reads; `hermes` where llama.cpp's parser is made from the
    canary's own template."""
    mode = mode_of_way(way)
    if mode.way == "builtin":
        fitting = [each.name for each in formats() if mode.parser in each.parsers.get("ollama", ())]
        return fitting[0] if fitting else "hermes"
    if mode.way == "go_if" and mode.tag != "{":
        opened = [each.name for each in formats() if mode.tag in (opener.strip() for opener in each.openers)]
        return opened[0] if opened else "hermes"
    return "bare_json" if mode.way in ("go_if", "go_range", "go_no_calls") else "hermes"


def mode_of_way(way: OllamaWay) -> OllamaMode:
    """How Ollama treats a configuration."""
    if way.parser or way.renderer:
        return OllamaMode("builtin", way.renderer, way.parser)
    text = way.template_text
    return mode_of({"template": text}) if text else OllamaMode("none" if way.bare else "native", names_tools=True)


def remedied(way: OllamaWay, code: str, call_format: str, tokens: int | None = None) -> OllamaWay | None:
    """The configuration that mends a failure of outcome `code` (`layer.code`); None where none does.

    `call_format` is what the model writes, `tokens` the context that the agent needs (a step more is given).
    """
    if code in _CONTEXT_CODES:
        return with_context(way, -(-(tokens or _STEP) // _STEP) * _STEP + _STEP)
    if code == "gate.tools_unsupported":
        return _keeping(way, WAYS["native"])
    if code not in _PARSED_WRONG:
        return None
    if mode_of_way(way).way in ("go_range", "go_no_calls") and call_format == "hermes":
        return _keeping(way, WAYS["tools-if"])
    parser = parser_for("ollama", {"format": call_format})
    return _keeping(way, parser_way(parser)) if parser and " " not in parser and parser != way.parser else None


def facts_of(way: OllamaWay, call_format: str, model: str = "") -> dict[str, str]:
    """What `stacks.serving` wants to know of a configuration to word a remedy."""
    mode = mode_of_way(way)
    facts = {"mode": mode.way, "in_force": mode.reads, "format": call_format, "model": model}
    context = context_of(way)
    if context is not None:
        facts["context"] = str(context)
    return {name: fact for name, fact in facts.items() if fact}


def _keeping(old: OllamaWay, new: OllamaWay) -> OllamaWay:
    context = context_of(old)
    return new if context is None else with_context(new, context)
