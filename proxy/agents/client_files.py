"""Temporary configuration for agents that read no base-URL variable. The user's own files are read, never changed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from proxy.agents.clients import AgentHint, Pointing, codex_configuration, opencode_configuration, without_comments


def agent_environment(
    hint: AgentHint | None, pointing: Pointing, environment: Mapping[str, str], folder: Path, project: Path = Path()
) -> dict[str, str]:
    """Write what this agent needs into `folder` (private, temporary) and return the variables that point at it.

    `project` is the folder that the agent will run in.
    """
    home = Path(environment.get("HOME") or Path.home())
    if hint is None:
        return {}
    if hint.name == "opencode":
        return _opencode(pointing, environment, home, folder, project)
    if hint.name == "Codex CLI":
        return _codex(pointing, environment, home, folder)
    return {}


def _opencode(
    pointing: Pointing, environment: Mapping[str, str], home: Path, folder: Path, project: Path
) -> dict[str, str]:
    base = Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
    named = environment.get("OPENCODE_CONFIG")
    candidates = [Path(named)] if named else []
    candidates += [
        base / "opencode.json",
        base / "opencode.jsonc",
        project / "opencode.json",
        project / "opencode.jsonc",
    ]
    user: dict[str, object] = {}
    providers: dict[str, object] = {}
    for path in candidates:
        found = _json_file(path)
        known = found.pop("provider", None)
        if isinstance(known, dict):
            providers.update(known)
        user.update(found)
    made = opencode_configuration(pointing, {**user, "provider": providers})
    if named:
        # The variable holds one file: what the user's held goes along.
        made = {**_json_file(Path(named)), **made, "provider": {**providers, **made["provider"]}}
    path = folder / "opencode.json"
    path.write_text(json.dumps(made, indent=1), encoding="utf-8")
    return {"OPENCODE_CONFIG": str(path)}


def _codex(pointing: Pointing, environment: Mapping[str, str], home: Path, folder: Path) -> dict[str, str]:
    own = Path(environment.get("CODEX_HOME") or home / ".codex")
    target = folder / "codex"
    target.mkdir()
    if own.is_dir():
        for entry in own.iterdir():
            if entry.name != "config.toml":
                os.symlink(entry.absolute(), target / entry.name)
    user = _text_file(own / "config.toml")
    (target / "config.toml").write_text(codex_configuration(pointing, user), encoding="utf-8")
    return {"CODEX_HOME": str(target)}


def _text_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _json_file(path: Path) -> dict[str, object]:
    try:
        value = json.loads(without_comments(_text_file(path)) or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
