"""How much context an agent needs: the numbers in a refusal, and the size to start a server with. Pure.

The words of the refusals are those of llama-server (`n_prompt_tokens`, `n_ctx`; "request (N tokens) exceeds the
available context size (M tokens)"), vLLM ("maximum context length is M tokens"), SGLang ("longer than the model's
context length (M tokens)") and llama-cpp-python ("Requested tokens (N) exceed context window of M"), as they stand in
the rows of ``stacks/signatures`` and in the recorded answers of these servers.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

_CONTEXT = re.compile(
    r"(?:context (?:length|size|window)|maximum allowed length|n_ctx|max_model_len|num_ctx)\W{0,4}"
    r"(?:is |of |only )?(?:limited to )?\(?(\d{2,7})",
    re.IGNORECASE,
)
_TOKENS = re.compile(
    r"n_prompt_tokens\W{0,4}(\d{2,7})|(?:request|input|prompt|requested tokens)\D{0,24}?\(?(\d{2,7})\)?(?: input)? "
    r"tokens|requested tokens \((\d{2,7})\)|(\d{2,7}) (?:input|prompt) tokens|too long: (\d{2,7})",
    re.IGNORECASE,
)
_ROOM = 2048
"""Tokens for an answer where the request does not say how many it wants."""
_MOST_ROOM = 8192
_DOUBLING = 32768
"""Up to here contexts are powers of two; above, multiples of half of this."""


class Sizes(NamedTuple):
    """What a refusal says: tokens of the prompt, and of the context. None where it does not."""

    tokens: int | None
    context: int | None


def sizes_in(text: str) -> Sizes:
    """The numbers in a refusal for size."""
    context = next((int(found[1]) for found in _CONTEXT.finditer(text)), None)
    numbers = [int(group) for found in _TOKENS.finditer(text) for group in found.groups() if group]
    tokens = min((number for number in numbers if context is None or number > context), default=None)
    return Sizes(tokens, context)


def sizes_of_error(raw: object, text: str) -> Sizes:
    """The numbers in an error object (its own members before its words) and in its text."""
    return sizes_in(f"{json.dumps(raw, default=str) if raw is not None else ''} {text}")


def context_for(tokens: int, answer: int | None = None) -> int:
    """A context that holds a prompt of so many tokens and room for an answer: a power of two, or a multiple of 16,384
    where that would waste much."""
    wanted = tokens + min(answer if answer and answer > 0 else _ROOM, _MOST_ROOM)
    if wanted > _DOUBLING:
        step = _DOUBLING // 2
        return -(-wanted // step) * step
    size = 2048
    while size < wanted:
        size *= 2
    return size
