"""Files written whole or not at all, without following what somebody may have put in their place."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


def create_new(path: str | os.PathLike[str], mode: int = 0o600) -> int:
    """Make a new file, in place of a leftover or a link of that name; its descriptor, for writing. Raises OSError.

    A name that can be foreseen (`report.md.tmp`) may be a link to a file of the user's in a folder from elsewhere.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.open(path, flags, mode)


def write_whole(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file by way of a temporary one beside it. Raises OSError; what was there before stays then.

    What stands at `path` is replaced, be it a link.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        with open(create_new(temporary, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def is_special(path: Path) -> bool:
    """Whether a device, a pipe or a socket (or a link to one) stands there: it is written to, never replaced."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def write_where_told(path: Path, data: bytes) -> None:
    """Write to a place that a user named: into a device or pipe as into any, a link's file in the link's place.
    Raises OSError; an ordinary file is as it was before then."""
    if is_special(path):
        with open(os.open(path, os.O_WRONLY), "wb") as file:
            file.write(data)
        return
    write_whole(Path(os.path.realpath(path)), data)
