"""Ask a server that holds a canary for its known answer, and tell what came back.

The requests are those of the `openai` client (chat completions, one tool offered), plain and streamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

WEATHER_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
_TIMEOUT_SECONDS = 60.0


def weather_request(model: str, *, stream: bool, trigger: str = "") -> dict[str, Any]:
    """A chat completion that offers one tool; `trigger` chooses a canary's script (none: its default)."""
    request: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": f"What is the weather in Paris? {trigger}".strip()}],
        "tools": [WEATHER_TOOL],
        "max_tokens": 64,
        "temperature": 0,
        "stream": stream,
    }
    if stream:
        request["stream_options"] = {"include_usage": True}
    return request


async def ask(base_url: str, request: Mapping[str, Any], tags: str) -> None:
    """Send one chat completion to `base_url` (a relay's, without /v1), tagged; whatever comes back is on its record.

    An answer that ends in an error, or none at all, is a finding for the record, not an exception here.
    """
    timeout = httpx.Timeout(_TIMEOUT_SECONDS)
    async with httpx.AsyncClient(timeout=timeout, trust_env=False) as client:
        try:
            await client.post(f"{base_url}/t/{tags}/v1/chat/completions", json=dict(request))
        except httpx.HTTPError:
            return


@dataclass(frozen=True, slots=True)
class Setup:
    """One way to start a server with a canary. `remedy` is what a user who started it so would have to change."""

    name: str
    title: str
    flags: tuple[str, ...] = ()
    remedy: str = ""


def setups_of(stack: str, template: str) -> tuple[Setup, ...]:
    """The demonstration for a stack: first the right configuration, then ones that lose a call.

    `template` is the canary's chat template. mlx_lm.server infers its parser from the template's text
    (`tokenizer_utils.py`: `<tool_call>` and `tool_call.name` must stand in it), so the same template spelled
    otherwise has none. llama-server refuses `tools` without jinja, and returns raw text with --skip-chat-parsing.
    """
    right = Setup("right", "as it comes")
    if stack == "mlx_server":
        respelled = template.replace("tool_call.name", "tool_call['name']")
        title = "with the same chat template, spelled so that the server infers no tool parser from it"
        remedy = "start it without that --chat-template (the model's own spells it as the server wants)"
        return right, Setup("no-parser", title, ("--chat-template", respelled), remedy)
    if stack == "llamacpp":
        raw, plain = "--skip-chat-parsing", "--no-jinja"
        return (
            right,
            Setup("raw", f"started with {raw}", (raw,), f"start it without {raw}"),
            Setup("no-jinja", f"started with {plain}", (plain,), "start it with --jinja"),
        )
    return (right,)


def model_for(stack: str, folder: Path, gguf: Path) -> Path:
    """The form of a canary that a stack loads."""
    return gguf if stack.startswith("llamacpp") else folder
