"""How common clients and agents are pointed at the relay: variables, configurations, and what to say when that failed.

Pure: nothing is read or written here. Variable names and switches are those each client's own source or documentation
gives (openai-python `_client.py`, anthropic SDK, ollama-python `_client.py`, LiteLLM provider docs, goose, OpenHands,
pydantic-ai, opencode and Codex CLI configuration references; as of 2026-11).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from proxy.agents.profile import profile_of, profiles
from proxy.agents.variables import DUMMY_KEY, LOOPBACK, base_url_environment

__all__ = [
    "AGENTS",
    "DUMMY_KEY",
    "AgentHint",
    "Pointing",
    "agent_of",
    "arguments_past_relay",
    "base_url_environment",
    "bypass_advice",
    "codex_configuration",
    "filled_command",
    "opencode_configuration",
    "without_comments",
]


@dataclass(frozen=True, slots=True)
class Pointing:
    """Where an agent shall go: the relay's URL (no trailing slash, no /v1), the server behind it, its model names."""

    relay_url: str
    upstream_url: str
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentHint:
    """What is known of one agent: how its command is called, and the setting that carries its base URL."""

    name: str
    commands: tuple[str, ...]
    setting: str


AGENTS = tuple(AgentHint(profile.title, profile.commands, profile.setting) for profile in profiles())


def agent_of(command: Sequence[str]) -> AgentHint | None:
    """The known agent that a command line starts, looking through `npx`, `uvx`, `pipx run`, `python -m` and `env`."""
    profile = profile_of(command)
    return None if profile is None else AgentHint(profile.title, profile.commands, profile.setting)


def filled_command(command: Sequence[str], relay_url: str) -> list[str]:
    """The command with `{base_url}` (with /v1) and `{url}` (without) filled in; other braces stay as they are."""
    return [word.replace("{base_url}", f"{relay_url}/v1").replace("{url}", relay_url) for word in command]


def arguments_past_relay(command: Sequence[str], upstream_url: str) -> list[str]:
    """Arguments that name the server itself: with them the agent goes past the relay."""
    netloc = urlsplit(upstream_url).netloc.rpartition("@")[2]
    names = {netloc}
    host, _, port = netloc.rpartition(":")
    if port.isdigit() and host.strip("[]") in LOOPBACK:
        names |= {f"{alias}:{port}" for alias in ("127.0.0.1", "localhost", "[::1]")}
    pattern = re.compile("|".join(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])" for name in sorted(names) if name))
    return [word for word in command if netloc and pattern.search(word)]


def opencode_configuration(pointing: Pointing, user: Any) -> dict[str, Any]:
    """An opencode configuration (merged over the user's by opencode) with a provider `stacktap` for the relay.

    `user` is the user's own parsed configuration, if any: each of its providers that points at the upstream is
    redirected too, so that the model the user names keeps working.
    """
    relay_url, models = pointing.relay_url, pointing.models
    providers: dict[str, Any] = {
        "stacktap": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "stacktap relay",
            "options": {"baseURL": f"{relay_url}/v1", "apiKey": DUMMY_KEY},
            "models": {model: {"name": model} for model in models},
        }
    }
    known = user.get("provider") if isinstance(user, dict) else None
    for name, provider in known.items() if isinstance(known, dict) else ():
        options = provider.get("options") if isinstance(provider, dict) else None
        url = options.get("baseURL") if isinstance(options, dict) else None
        if isinstance(url, str) and arguments_past_relay([url], pointing.upstream_url):
            path = urlsplit(url).path.rstrip("/")
            providers[str(name)] = {"options": {"baseURL": relay_url + path}}
    configuration: dict[str, Any] = {"$schema": "https://opencode.ai/config.json", "provider": providers}
    if models and not (isinstance(user, dict) and user.get("model")):
        configuration["model"] = f"stacktap/{models[0]}"
    return configuration


def codex_configuration(pointing: Pointing, user: str) -> str:
    """A Codex CLI config.toml: the user's text with the provider `stacktap` added and chosen.

    Codex reads no base-URL variable and speaks only the Responses API to a provider of its configuration.
    """
    kept: list[str] = []
    table = ""
    for line in user.splitlines():
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line)
        if header:
            table = header[1]
        ours = table == "model_providers.stacktap" or table.startswith("model_providers.stacktap.")
        if not ours and not (table == "" and re.match(r"\s*model_provider\s*=", line)):
            kept.append(line)
    has_model = any(re.match(r"\s*model\s*=", line) for line in _top_level(kept))
    top = ['model_provider = "stacktap"']
    if pointing.models and not has_model:
        top.append(f"model = {json.dumps(pointing.models[0])}")
    provider = [
        "[model_providers.stacktap]",
        'name = "stacktap relay"',
        f"base_url = {json.dumps(pointing.relay_url + '/v1')}",
        'wire_api = "responses"',
    ]
    return "\n".join([*top, *kept, "", *provider, ""])


def _top_level(lines: Sequence[str]) -> list[str]:
    for number, line in enumerate(lines):
        if line.lstrip().startswith("["):
            return list(lines[:number])
    return list(lines)


def without_comments(jsonc: str) -> str:
    """JSON with `//` and `/* */` comments and trailing commas removed (opencode.jsonc); strings stay whole."""
    token = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
    plain = token.sub(lambda found: found[0] if found[0].startswith('"') else " ", jsonc)
    comma = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])')
    return comma.sub(lambda found: found[0] if found[0] != "," else "", plain)


def bypass_advice(command: Sequence[str], pointing: Pointing) -> str:
    """What to tell a user whose agent ended without one exchange through the relay."""
    lines = ["no exchange came through the relay: the agent bypassed it (or never called a model)."]
    direct = arguments_past_relay(command, pointing.upstream_url)
    if direct:
        lines.append(f"  This argument names the server itself: {direct[0]!r}. Write {{base_url}} there instead.")
    hint = agent_of(command)
    if hint is not None:
        setting = hint.setting.replace("{base_url}", f"{pointing.relay_url}/v1")
        lines.append(f"  {hint.name} takes its base URL from: {setting}.")
    elif not direct:
        lines.append(
            "  Set its base URL by its own configuration: run 'stacktap proxy --upstream URL --port 8787' and point "
            "it at http://127.0.0.1:8787/v1, or put {base_url} into the command where the URL goes."
        )
    return "\n".join(lines)
