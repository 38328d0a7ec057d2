"""Where agents are installed, and which of them are there. Reads the disk, starts nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from proxy.agents.profile import AgentProfile, Install, ProfileError, profile_named
from stacks.launching.made_folder import is_whole_folder
from stacks.locations import agents_folder

MARKER = "stacktap-agent.json"
_DESCRIPTIVE = ("megabytes", "check")


@dataclass(frozen=True, slots=True)
class InstalledAgent:
    """An agent that is installed: its folder, the programs by name, its version."""

    folder: Path
    programs: Mapping[str, Path]
    version: str


def fingerprint(install: Install) -> str:
    """SHA-256 over everything that decides what is installed."""
    content = {key: value for key, value in msgspec.to_builtins(install).items() if key not in _DESCRIPTIVE}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def agent_folder(profile: AgentProfile) -> Path:
    """Where this agent is, or would be: ``STACKTAP_AGENT_<NAME>`` names another folder (variants share one)."""
    name = profile.variant_of or profile.name
    named = os.environ.get(folder_variable(name))
    return Path(named).expanduser().absolute() if named else agents_folder() / name


def folder_variable(name: str) -> str:
    """The environment variable that names an agent's folder."""
    return "STACKTAP_AGENT_" + name.upper().replace("-", "_")


def is_whole(install: Install, folder: Path) -> bool:
    """Whether the folder holds a finished installation of exactly this."""
    return is_whole_folder(folder, MARKER, fingerprint(install))


def installed(profile: AgentProfile) -> InstalledAgent | None:
    """The agent where it is installed whole, None where it is not (or its profile says no way to install it)."""
    folder = agent_folder(profile)
    if profile.install is None or not is_whole(profile.install, folder):
        return None
    programs = {name: folder / "bin" / name for name in profile.install.programs}
    if not all(os.access(path, os.X_OK) for path in programs.values()):
        return None
    return InstalledAgent(folder, programs, profile.install.version)


def with_installed(command: tuple[str, ...]) -> tuple[str, ...]:
    """A command whose program is not on PATH, but an agent that is installed here, with that agent's program."""
    if not command or os.path.sep in command[0] or shutil.which(command[0]) is not None:
        return command
    profile = profile_named(command[0])
    found = installed(profile) if profile is not None else None
    if found is None:
        return command
    program = found.programs.get(command[0]) or next(iter(found.programs.values()))
    return (str(program), *command[1:])


def require_installed(profile: AgentProfile) -> InstalledAgent:
    """The installed agent. Raises ProfileError, which says how to install it."""
    found = installed(profile)
    if found is None:
        how = "its profile says no way to install it" if profile.install is None else f"run `{_command(profile)}`"
        raise ProfileError(f"{profile.title} is not installed in {agent_folder(profile)}: {how}")
    return found


def _command(profile: AgentProfile) -> str:
    return f"python -m proxy.agents.install {profile.variant_of or profile.name}"
