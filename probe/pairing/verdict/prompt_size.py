"""How large an agent's prompt is against the server's context: by the server's own words or counts, else estimated."""

from __future__ import annotations

import json
from typing import NamedTuple

from probe.pairing.verdict.known_turns import KnownTurns, prompt_texts
from probe.pairing.verdict.room import sizes_of_error
from probe.pairing.verdict.server_side import ServerSide
from probe.pairing.verdict.walk import Asked
from stacks.turn import CanonicalRequest

_CUT = 0.8
"""A prompt counted at less than this share of its messages' own tokens has lost some of them. A template adds tokens
and takes none away; a tenth is left for messages that it legally drops (empty ones, reasoning of past turns)."""
_FEWEST = 400
"""Tokens below which a count says too little."""
_BYTES_PER_TOKEN = 3.5
"""Of an agent's request, by the recorded walks of opencode, Codex CLI, Qwen Code and mini-swe-agent."""


class PromptSize(NamedTuple):
    """Tokens of the prompt and of the context; ``stated`` where the server itself named the tokens."""

    tokens: int | None
    context: int | None
    stated: bool


def prompt_size(asked: Asked, server: ServerSide) -> PromptSize:
    """The size of one request's prompt."""
    facts = asked.facts
    error = facts.error.raw if facts.error is not None else None
    tokens, context = sizes_of_error(error, facts.all_error_text) if facts.failed else (None, None)
    context = context or server.context or asked.request.context_length
    bound = tokens is not None and "at least" in facts.all_error_text
    if tokens is not None and not bound:
        return PromptSize(tokens, context, True)
    estimate = estimated_tokens(asked)
    if tokens is None and not facts.failed and facts.prompt_tokens and facts.prompt_tokens >= _CUT * estimate:
        return PromptSize(facts.prompt_tokens, context, True)
    return PromptSize(max(estimate, tokens or 0) or None, context, False)


def estimated_tokens(asked: Asked) -> int:
    """An estimate of a prompt's tokens by the bytes of what the template renders."""
    request = asked.request
    size = sum(len(text.encode("utf-8", "replace")) for text in prompt_texts(request)) + tools_bytes(request)
    return round(size / _BYTES_PER_TOKEN)


def tools_bytes(request: CanonicalRequest) -> int:
    """Bytes of the tools of a request, as compact JSON."""
    return sum(
        len(json.dumps(tool.raw, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace"))
        for tool in request.tools
    )


def message_tokens(turns: KnownTurns, request: CanonicalRequest) -> int:
    """The tokens of the messages' words alone, by the canary's own tokenizer."""
    words = [message.content or "" for message in request.messages]
    if isinstance(request.prompt, str):
        words.append(request.prompt)
    return sum(turns.tokens(text) for text in words if text)


def was_cut(turns: KnownTurns, asked: Asked) -> int | None:
    """The tokens of the messages, where the server counted far fewer for the whole prompt; None where it did not."""
    facts = asked.facts
    counted = facts.prompt_tokens
    if not counted or facts.failed or (facts.usage is not None and facts.usage.cached):
        return None
    words = sum(len(message.content or "") for message in asked.request.messages)
    if words < counted:  # A token is a byte at least, and the count need not be looked at.
        return None
    own = message_tokens(turns, asked.request)
    return own if own >= _FEWEST and counted < _CUT * own else None
