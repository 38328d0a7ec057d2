"""The agent of a pairing: what a user's words mean, where its program is, and how it is started against a relay."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from probe.pairing.agent_run.scratch import INTERPRETERS
from proxy.agents.installed import installed
from proxy.agents.invocation import Invocation, Place, clean_environment
from proxy.agents.profile import (
    AgentProfile,
    ProfileError,
    install_command,
    point,
    profile_named,
    profile_of,
    profiles,
)

_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+(?:[-+.]?[a-z]+[\w.]*)?)")
_VERSION_SECONDS = 15.0


class SubjectError(Exception):
    """The agent cannot be run at all; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An agent under test. ``command`` is what the user typed; with ``by_profile`` it is a name alone, and the profile
    says how it is run with our task. ``programs`` are the executables of the installed agent by name."""

    name: str
    command: tuple[str, ...]
    profile: AgentProfile | None = None
    by_profile: bool = False
    programs: Mapping[str, Path] = field(default_factory=dict)
    version: str = ""

    def invocation(self, place: Place) -> Invocation:
        """How it is started there. Raises SubjectError where its profile says no way."""
        if not self.by_profile:
            return point(self.command, self.profile, place, self.programs)
        assert self.profile is not None
        try:
            return self.profile.invocation(
                self.programs,
                task=place.task,
                model=place.model,
                relay_url=place.relay_url,
                home=place.home,
                work=place.work,
            )
        except ProfileError as wrong:
            raise SubjectError(str(wrong)) from None

    @property
    def takes_our_task(self) -> bool:
        """Whether the agent is asked for our task; else the command holds one of its own, which the canary ignores."""
        return self.by_profile or any("{task}" in word for word in self.command)


def subject_of(command: Sequence[str]) -> Subject:
    """The agent that a user's words name: a profile alone (``opencode``), or a whole command. Raises SubjectError when
    its program is not here; nothing is started."""
    if not command or not command[0].strip():
        raise SubjectError("no agent was named: give its name or its command after --")
    alone = profile_named(command[0]) if len(command) == 1 else None
    if alone is None:
        profile = profile_of(command)
        by_profile = profile is not None and len(command) == 1 and profile.run is not None
    else:
        profile, by_profile = alone, True
    programs, version = _programs(profile) if profile is not None else ({}, "")
    subject = Subject(
        profile.title if profile is not None else _name(command),
        tuple(command),
        profile,
        by_profile,
        programs,
        version,
    )
    _require(subject)
    return subject


def _name(command: Sequence[str]) -> str:
    """What to call an agent without a profile: its program, or the script that an interpreter runs."""
    words = [Path(word).name for word in command if not word.startswith("-")]
    if len(words) > 1 and INTERPRETERS.fullmatch(words[0]) and re.fullmatch(r"[\w.@+-]+", words[1]):
        return words[1].removesuffix(".py")
    return words[0] if words else command[0]


def _programs(profile: AgentProfile) -> tuple[dict[str, Path], str]:
    """The programs of an agent: those that stacktap installed, else those on PATH."""
    found = installed(profile)
    if found is not None:
        return dict(found.programs), found.version
    names = profile.install.programs if profile.install is not None else profile.commands
    on_path = {name: shutil.which(name) for name in names}
    return {name: Path(path).absolute() for name, path in on_path.items() if path}, ""


def _require(subject: Subject) -> None:
    """Raise SubjectError unless the program is there."""
    profile = subject.profile
    if subject.by_profile:
        assert profile is not None
        wanted = (profile.run.program if profile.run else "") or (
            profile.install.programs[0] if profile.install else profile.commands[0]
        )
        if wanted not in subject.programs:
            how = f"run `{install_command(profile)}`" if profile.install is not None else "install it yourself"
            raise SubjectError(f"{profile.title} is not installed: {how}; nothing was run")
        return
    first = subject.command[0]
    if first in subject.programs or shutil.which(first) is not None:
        return
    if os.sep in first:
        state = "is not executable" if Path(first).exists() else "does not exist"
        raise SubjectError(f"{first} {state}; nothing was run")
    if profile is not None and profile.install is not None:
        how = f"run `{install_command(profile)}`"
    else:
        names = ", ".join(each.name for each in profiles() if each.run is not None)
        how = f"give the path of its command; agents that are known by name: {names}"
    raise SubjectError(f"{first} was not found on PATH; nothing was run\n  -> {how}")


def version_of(subject: Subject) -> str:
    """The agent's version: that of its installation, else what its program says to ``--version`` in an empty HOME.
    Empty where it says none. Blocks for some seconds at most."""
    if subject.version or not subject.command:
        return subject.version
    program = subject.programs.get(subject.command[0]) or shutil.which(subject.command[0])
    if program is None or subject.profile is None:
        return ""  # of a program that nobody knows, `--version` may be anything
    with tempfile.TemporaryDirectory(prefix="stacktap-version-") as home:
        try:
            done = subprocess.run(
                [str(program), "--version"],
                env={**clean_environment(os.environ), "HOME": home},
                cwd=home,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_VERSION_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
    found = _VERSION.search((done.stdout + done.stderr).decode("utf-8", "replace"))
    return found[1] if found else ""
