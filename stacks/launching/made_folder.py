"""Folders that an installation makes: marked while in progress, marked when whole, cleared only when they are ours."""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stacks.launching.install_progress import Progress
from stacks.launching.recipe import INCOMPLETE_MARK


class InstallError(Exception):
    """An installation did not come to its end; ``str()`` says what to do."""


def is_whole_folder(folder: Path, marker: str, fingerprint: str) -> bool:
    """Return whether the folder's ``marker`` file (JSON) says that it was finished from this ``fingerprint``."""
    if (folder / INCOMPLETE_MARK).exists():
        return False
    try:
        found = json.loads((folder / marker).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("fingerprint") == fingerprint


def clear(folder: Path, marker: str, *, also: str = "", elsewhere: str = "--env DIR") -> None:
    """Empty a folder that stacktap made; raise :class:`InstallError` for one that it did not make.

    ``also`` is a pattern of other files that only stacktap leaves there (marks of earlier versions), ``elsewhere`` how
    the user names another place.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InstallError(f"{folder} is not a folder\n  -> choose another with {elsewhere}")
    ours = (folder / marker).exists() or (folder / INCOMPLETE_MARK).exists() or bool(also and any(folder.glob(also)))
    if not ours and any(folder.iterdir()):
        raise InstallError(f"{folder} was not made by stacktap and is not empty\n  -> choose another with {elsewhere}")
    # The mark goes in first and out last: a removal that is interrupted is still known as ours, and as not whole.
    mark = folder / INCOMPLETE_MARK
    mark.touch()
    for entry in folder.iterdir():
        if entry == mark:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def create_environment(folder: Path) -> list[str]:
    """Make a virtual environment of this Python in ``folder`` and return the beginning of its pip's command line.

    Raises :class:`InstallError` where this Python cannot.
    """
    try:
        venv.create(folder, with_pip=True, symlinks=True)
    except subprocess.CalledProcessError as error:
        said = (error.output or b"").decode("utf-8", "replace").strip()
        raise InstallError(
            f"{sys.executable} cannot make a virtual environment with pip: {said or error}\n"
            "  -> Debian and Ubuntu have it in a package of its own: apt-get install python3-venv"
        ) from error
    return [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]


def finish(folder: Path, marker: str, content: Mapping[str, Any]) -> None:
    """Write the ``marker`` in one step, then take the mark of work in progress away."""
    partial = folder / (marker + ".partial")
    partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    partial.replace(folder / marker)
    (folder / INCOMPLETE_MARK).unlink()


@contextlib.contextmanager
def only_one(folder: Path, progress: Progress) -> Iterator[None]:
    """Hold the lock beside ``folder``; wait, and say so, while another installation holds it."""
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.say(f"another installation of {folder} is running; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
