"""The environment that an agent gets in a pairing: built from a short list, never the user's own. Pure.

What names the user's keys, accounts, sockets and settings is not on the list, so that it cannot reach the agent.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_PASSED_ON = frozenset(
    (
        # Where programs and their libraries are found, the language, the zone, and what the system trusts.
        "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "LANG", "LANGUAGE", "TZ",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
        "NIX_SSL_CERT_FILE",
        # Where version managers keep what they installed: their shims find it below HOME else.
        "PYENV_ROOT", "NVM_DIR", "VOLTA_HOME", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "FNM_DIR", "NODENV_ROOT",
    )
)  # fmt: skip
_PASSED_ON_BEGINNING = "LC_"

_SWITCHES = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    # Nobody is there to page, to edit, or to type a password.
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "BROWSER": "true",
    "DEBIAN_FRONTEND": "noninteractive",
    # https://consoledonottrack.com, and what npm, pip and Claude Code document. CI is left out: it changes what agents
    # do (prompts, colours, whole modes), and the user's own runs are without it.
    "DO_NOT_TRACK": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "NO_UPDATE_NOTIFIER": "1",
    "npm_config_update_notifier": "false",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    # Else a pipe holds output back until it is full, and an agent that works looks silent.
    "PYTHONUNBUFFERED": "1",
    # Else Python writes beside the agent's modules, in the user's installation.
    "PYTHONDONTWRITEBYTECODE": "1",
}
_AUTHOR, _ADDRESS = "stacktap pairing", "pairing@localhost"


@dataclass(frozen=True, slots=True)
class ScratchPlaces:
    """The folders of a scratch: ``root`` holds the others; ``work`` is the agent's own."""

    root: Path
    work: Path
    home: Path
    temporary: Path
    runtime: Path


def agent_variables(
    user: Mapping[str, str], places: ScratchPlaces, keep: Iterable[str] = (), *, shell: str = "/bin/sh"
) -> dict[str, str]:
    """The variables of an agent: those of ``user`` that are passed on or named in ``keep``, the scratch folders,
    switches. Raises ValueError where ``keep`` names one that a scratch sets itself.
    """
    own = {**_folders(places), **_git(places), **_SWITCHES, "SHELL": shell, "USER": "agent", "LOGNAME": "agent"}
    kept = tuple(keep)
    for name in kept:
        if name in _folders(places):
            raise ValueError(f"{name} cannot be kept: in a pairing it names a folder of the scratch")
    passed = {
        name: value
        for name, value in user.items()
        if name in _PASSED_ON or name in kept or name.startswith(_PASSED_ON_BEGINNING)
    }
    own.update(passed)
    own["PATH"] = _absolute_only(own.get("PATH", "")) or "/usr/local/bin:/usr/bin:/bin"
    own.setdefault("LANG", "C.UTF-8")
    return own


def _absolute_only(path: str) -> str:
    """A search path without relative entries: they would mean other folders in the agent's."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if os.path.isabs(entry))


def _folders(places: ScratchPlaces) -> dict[str, str]:
    home = places.home
    found = {
        "HOME": home,
        "XDG_CONFIG_HOME": home / ".config",
        "XDG_DATA_HOME": home / ".local" / "share",
        "XDG_STATE_HOME": home / ".local" / "state",
        "XDG_CACHE_HOME": home / ".cache",
        "XDG_RUNTIME_DIR": places.runtime,
        "TMPDIR": places.temporary,
        "TMP": places.temporary,
        "TEMP": places.temporary,
        "PWD": places.work,
    }
    return {name: str(path) for name, path in found.items()}


def _git(places: ScratchPlaces) -> dict[str, str]:
    """Nobody's configuration, an identity, and no search for a repository above the scratch folder (git(1))."""
    identity = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", _AUTHOR), ("EMAIL", _ADDRESS))
    }
    return {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(places.home / ".gitconfig"),
        "GIT_CEILING_DIRECTORIES": str(places.root),
        **identity,
    }
