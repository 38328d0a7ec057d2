"""The next best where a server cannot show the prompt it renders: how many tokens it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stacks.serving.base import Ask, Rendered, Steps


def prompt_tokens(path: str, request: Mapping[str, Any], why: str) -> Steps[Rendered]:
    """Send the chat request for one token and read `usage.prompt_tokens`; `why` says why there is no text."""
    body = {**request, "max_tokens": 1, "stream": False}
    body.pop("stream_options", None)
    answer = yield Ask("POST", path, body, purpose="tokens of the prompt", generates=True)
    tokens = answer.get("usage", "prompt_tokens")
    counted = isinstance(tokens, int) and not isinstance(tokens, bool)
    return Rendered(tokens=tokens if counted else None, source="usage of one token", why=why, asks=(answer.number,))
