"""How an agent is started against the relay: command, variables, and the files it reads. Pure: nothing is written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proxy.agents.variables import base_url_environment

_KEPT = ("PATH", "TERM", "TMPDIR", "TZ", "USER", "LOGNAME", "SHELL", "SYSTEMROOT", "COMSPEC", "PATHEXT")
_NOT_PLAIN = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_QUOTED_SUFFIXES = (".json", ".toml", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Place:
    """Where and for what an agent is run: the relay's URL (no trailing slash, no /v1), the model's name at the server,
    the task in the user's words, its HOME, and the folder it works in (absolute paths)."""

    relay_url: str
    model: str
    task: str
    home: Path
    work: Path

    def values(self) -> dict[str, str]:
        """What the placeholders of a template stand for."""
        return {
            "{base_url}": f"{self.relay_url}/v1",
            "{url}": self.relay_url,
            "{model}": self.model,
            "{task}": self.task,
            "{home}": str(self.home),
            "{work}": str(self.work),
        }


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command ready to run in `Place.work`: ``environment`` is what to set over a clean environment
    (`clean_environment`), ``files`` the text of each file (absolute path) that must be there first."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    files: Mapping[Path, str] = field(default_factory=dict)

    def write_files(self) -> None:
        """Write the files, with the folders they are in. Raises OSError."""
        for path, text in self.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def filled(template: str, place: Place, *, quoted: bool = False) -> str:
    """The template with the placeholders of `Place.values` filled in; other braces stay as they are.

    Filled in one pass: a value that looks like a placeholder is left alone. ``quoted`` escapes values for a
    double-quoted string, which JSON, TOML (basic strings) and YAML write alike.
    """
    values = place.values()
    parts: list[str] = []
    rest = template
    while True:
        found = min(((rest.find(name), name) for name in values if name in rest), default=None)
        if found is None:
            return "".join([*parts, rest])
        start, name = found
        value = _escaped(values[name]) if quoted else values[name]
        parts += [rest[:start], value]
        rest = rest[start + len(name) :]


def _escaped(value: str) -> str:
    """The inside of a double-quoted string that JSON, TOML and YAML read alike (TOML knows no surrogate pairs, and
    neither it nor YAML takes every character that JSON does)."""
    inside = json.dumps(value, ensure_ascii=False)[1:-1]
    return _NOT_PLAIN.sub(lambda found: f"\\u{ord(found[0]):04x}", inside)


def filled_file(path: str, text: str, place: Place) -> tuple[Path, str]:
    """A profile's file, ready to be written; in JSON, TOML and YAML the placeholders stand in double quotes."""
    return Path(filled(path, place)), filled(text, place, quoted=path.endswith(_QUOTED_SUFFIXES))


def pointed(
    command: Sequence[str], place: Place, environment: Mapping[str, str], files: Sequence[tuple[str, str]]
) -> Invocation:
    """The command with its placeholders filled, the variables of `scratch_variables` under those given, the files."""
    return Invocation(
        tuple(filled(word, place) for word in command),
        {**scratch_variables(place), **{name: filled(value, place) for name, value in environment.items()}},
        dict(filled_file(path, text, place) for path, text in files),
    )


def scratch_variables(place: Place) -> dict[str, str]:
    """HOME and the folders of the XDG specification inside it, and every base-URL variable set to the relay."""
    home = place.home
    return {
        "HOME": str(home),
        "USERPROFILE": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "PWD": str(place.work),
        **base_url_environment(place.relay_url, {}),
    }


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What an agent in a scratch HOME may see of the user's environment: no key, no setting of any agent."""
    return {name: value for name, value in environment.items() if name in _KEPT or name.startswith(("LC_", "LANG"))}


def with_program(command: Sequence[str], programs: Mapping[str, Path]) -> tuple[str, ...]:
    """The command with its first word replaced by the installed program of that name, where there is one."""
    first = os.path.basename(command[0]) if command else ""
    if first == (command[0] if command else "") and first in programs:
        return (str(programs[first]), *command[1:])
    return tuple(command)
