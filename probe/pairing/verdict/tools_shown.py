"""Whether the offered tools can be in the prompt, by the server's own count of its tokens. Pure."""

from __future__ import annotations

import json

from probe.pairing.verdict.known_turns import KnownTurns
from probe.pairing.verdict.prompt_size import message_tokens
from probe.pairing.verdict.walk import Asked

_FEWEST = 300
"""Tokens of tools below which a count says too little."""
_SHARE = 0.25
"""Templates render a tool shorter than its JSON, but never at less than this share of it: names, descriptions and
property names are its bulk."""


def tools_not_shown(turns: KnownTurns, asked: Asked) -> bool:
    """Whether the prompt's count leaves no room for the tools that were offered."""
    facts = asked.facts
    counted = facts.prompt_tokens
    if not counted or facts.failed or not facts.offers or (facts.usage is not None and facts.usage.cached):
        return False
    rendered = json.dumps([tool.raw for tool in asked.request.tools], ensure_ascii=False, default=str)
    if len(rendered) < _FEWEST or counted >= len(rendered):
        return False
    tokens = turns.tokens(rendered)
    if tokens < _FEWEST:
        return False
    return counted < message_tokens(turns, asked.request) + _SHARE * tokens
