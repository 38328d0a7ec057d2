"""Agent profiles: what is known of one agent, read from one TOML file each in `proxy/agents/profiles`.

A new agent is a new file; nothing else has to change. Unknown fields, missing ones and wrong types are refused with the
file's name and the field's path.
"""

from __future__ import annotations

import functools
import os.path
import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import msgspec

from proxy.agents.invocation import Invocation, Place, pointed, with_program

_LAUNCHERS = frozenset(
    ("npx", "uvx", "uv", "pipx", "run", "env", "-m", "python", "python3", "bunx", "pnpm", "exec", "dlx", "tool", "node")
)


class ProfileError(Exception):
    """A profile that cannot be used; ``str()`` names the file and the field."""


class Install(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an agent is installed: from PyPI into an environment of its own, or from npm into a prefix of its own."""

    kind: Literal["pypi", "npm"]
    package: str
    version: str
    """The exact version."""
    programs: tuple[str, ...]
    """The commands that the package brings; the first one is the agent."""
    extra: tuple[str, ...] = ()
    """Further packages (PyPI requirements, or npm ``name@version``)."""
    check: tuple[str, ...] = ("--version",)
    """Arguments with which the first program must end with exit code 0 before the installation counts as whole."""
    scripts: bool = False
    """npm: whether the packages' own installation scripts must run (they stay off unless the agent needs them)."""
    node: int = 0
    """npm: the least major version of Node.js; where this host's is older, a newer one is installed beside it."""
    python: str = ""
    """pypi: the least version of Python, ``3.12``."""
    megabytes: int = 0
    """About how much room it takes."""


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A configuration file of the agent: a path under ``{home}`` or ``{work}``, and its text with placeholders. In
    JSON, TOML and YAML files a placeholder stands inside double quotes."""

    path: str
    text: str


class Point(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What points the agent at ``{base_url}`` (with /v1) or ``{url}`` (without), beside the variables that every
    agent is given (`proxy.agents.clients.base_url_environment`)."""

    environment: dict[str, str] = {}
    files: tuple[File, ...] = ()


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the agent is run without a person: the arguments after its program, with ``{task}`` and ``{model}``."""

    arguments: tuple[str, ...]
    program: str = ""
    """The program, where it is not the first of ``install.programs``."""


class Calls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the agent was seen to offer for running a shell command. Its first request is the better source."""

    tool: str = ""
    argument: str = ""
    argument_is_list: bool = False
    """The argument holds a list of commands, each a line for the shell."""
    extra: dict[str, Any] = {}
    """Further arguments that the tool's schema requires, with allowed values."""
    text: str = ""
    """A text protocol instead of a tool, in words."""
    finish: str = "a message without a tool call"
    """How the agent's task ends, in words."""
    finish_command: str = ""
    """The shell command that ends the task, where the agent wants one."""


class AgentProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One agent. ``name`` is the file's name without its suffix, ``title`` what people call it."""

    name: str
    title: str
    licence: str
    commands: tuple[str, ...]
    """How its command is called, as the user types it."""
    setting: str
    """The setting that carries its base URL, in words; ``{base_url}`` is filled in."""
    api: Literal["chat", "responses", "messages", "ollama"]
    sources: tuple[str, ...]
    """Where these facts come from."""
    tracker: str = ""
    """Where its bugs are reported: a repository on GitHub as OWNER/NAME; empty: not known."""
    notes: tuple[str, ...] = ()
    tested: str = ""
    """What it did here with a self-driving canary, with versions and date; empty: not tried."""
    variant_of: str = ""
    """The agent that this is another way of running: its installation is used."""
    variant_words: tuple[str, ...] = ()
    """Words in a command line that mean this variant (a configuration's name, a switch)."""
    install: Install | None = None
    point: Point = Point()
    run: Run | None = None
    calls: Calls = Calls()

    def invocation(
        self, programs: Mapping[str, Path], *, task: str, model: str, relay_url: str, home: Path, work: Path
    ) -> Invocation:
        """The agent run without a person. ``programs`` are those of `proxy.agents.installed`.

        Raises ProfileError where the profile says no way to run it, or its program is not among ``programs``.
        """
        if self.run is None or self.install is None:
            raise ProfileError(f"{self.title}: its profile says no way to run it without a person")
        program = self.run.program or self.install.programs[0]
        if program not in programs:
            raise ProfileError(f"{self.title}: its program {program} is not installed: {install_command(self)}")
        place = Place(relay_url, model, task, home, work)
        found = pointed(("", *self.run.arguments), place, self.point.environment, self._files())
        return Invocation((str(programs[program]), *found.command[1:]), found.environment, found.files)

    def _files(self) -> list[tuple[str, str]]:
        return [(file.path, file.text) for file in self.point.files]


def install_command(profile: AgentProfile) -> str:
    """What a user types to install the agent."""
    return f"python -m proxy.agents.install {profile.variant_of or profile.name}"


def point(
    command: Sequence[str], profile: AgentProfile | None, place: Place, programs: Mapping[str, Path] | None = None
) -> Invocation:
    """A user's own command line, pointed at the relay by variables and files; ``{base_url}``, ``{url}``, ``{model}``,
    ``{task}``, ``{home}`` and ``{work}`` in it are filled. A bare first word that is one of ``programs`` (those of an
    installed agent) becomes that program."""
    environment = profile.point.environment if profile is not None else {}
    return pointed(
        with_program(command, programs or {}), place, environment, profile._files() if profile is not None else []
    )


def profiles() -> tuple[AgentProfile, ...]:
    """Every profile, by name. Raises ProfileError."""
    return _read_all()


@functools.cache
def _read_all() -> tuple[AgentProfile, ...]:
    folder = files("proxy.agents.profiles")
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda entry: entry.name)
    return linked([read_profile(entry.name, entry.read_text(encoding="utf-8")) for entry in found])


def read_profile(file: str, text: str) -> AgentProfile:
    """One profile from the text of its file. Raises ProfileError with the file's name and the field."""
    try:
        profile = msgspec.convert(tomllib.loads(text), AgentProfile)
    except tomllib.TOMLDecodeError as wrong:
        raise ProfileError(f"{file}: not TOML: {wrong}") from None
    except msgspec.ValidationError as wrong:
        raise ProfileError(f"{file}: {wrong}") from None
    for field, problem in _problems(profile, file):
        raise ProfileError(f"{file}: {problem} - at `$.{field}`")
    return profile


def _problems(profile: AgentProfile, file: str) -> list[tuple[str, str]]:
    found = []
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", profile.name):
        found.append(("name", f"{profile.name!r} must be lower-case letters, digits and '-'"))
    elif file != f"{profile.name}.toml":
        found.append(("name", f"{profile.name!r} must be the file's name without .toml"))
    if not profile.commands:
        found.append(("commands", "an agent needs the name of its command"))
    if not profile.sources:
        found.append(("sources", "say where the facts come from"))
    if bool(profile.variant_of) != bool(profile.variant_words):
        found.append(("variant_words", "variant_of and variant_words go together"))
    if profile.tracker and not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[\w.-]+", profile.tracker):
        found.append(("tracker", f"{profile.tracker!r} is no OWNER/NAME"))
    if profile.variant_of and profile.install is not None:
        found.append(("install", f"a variant uses the installation of {profile.variant_of}"))
    if profile.install is not None and not profile.install.programs:
        found.append(("install.programs", "name the commands that the package brings"))
    if profile.run is not None and not any("{task}" in word for word in profile.run.arguments):
        found.append(("run.arguments", "{task} is missing"))
    for number, file_ in enumerate(profile.point.files):
        inside = file_.path.startswith(("{home}/", "{work}/")) and ".." not in file_.path.split("/")
        if not inside:
            found.append((f"point.files[{number}].path", f"{file_.path!r} must lie under {{home}}/ or {{work}}/"))
    return found


def linked(found: Sequence[AgentProfile]) -> tuple[AgentProfile, ...]:
    """The profiles with each variant given the installation of the agent it is one of. Raises ProfileError."""
    by_name = {profile.name: profile for profile in found}
    result = []
    for profile in found:
        if profile.variant_of:
            whole = by_name.get(profile.variant_of)
            if whole is None or whole.variant_of:
                raise ProfileError(f"{profile.name}.toml: no agent {profile.variant_of!r} - at `$.variant_of`")
            profile = msgspec.structs.replace(profile, install=whole.install)  # noqa: PLW2901
        result.append(profile)
    return tuple(result)


def profile_named(name: str) -> AgentProfile | None:
    """The profile of that name (its own, or what people call the agent), None where there is none."""
    wanted = name.strip().lower()
    for profile in profiles():
        if wanted in (profile.name, profile.title.lower()):
            return profile
    return None


def profile_of(command: Sequence[str]) -> AgentProfile | None:
    """The profile of the agent that a command line starts, looking through `npx`, `uvx`, `pipx run`, `python -m` and
    `env` (by the command's or the package's name); of an agent with variants the one whose words stand in the
    command."""
    for word in list(command)[:6]:
        base = re.sub(r"(?<=.)(@[^/]*|==.*|\[.*|\.exe|\.py)$", "", os.path.basename(word))
        names = {base, base.replace("-ai", "")} - {""}
        called = [profile for profile in profiles() if names & {*profile.commands, _package(profile)}]
        if called:
            return _variant(called, command)
        if base not in _LAUNCHERS and not re.fullmatch(r"python3(\.\d+)?|-.*|.*=.*", base):
            return None
    return None


def _package(profile: AgentProfile) -> str:
    return os.path.basename(profile.install.package).partition("[")[0] if profile.install is not None else ""


def _variant(called: Sequence[AgentProfile], command: Sequence[str]) -> AgentProfile:
    for profile in called:
        if any(word in part for word in profile.variant_words for part in command):
            return profile
    return next((profile for profile in called if not profile.variant_of), called[0])
