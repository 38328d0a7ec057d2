"""Shared memory that a server's processes leave behind when they are killed: on Linux, files that outlive them."""

from __future__ import annotations

import contextlib
from pathlib import Path

_FOLDER = "/dev/shm/"


def mapped_segments(session: int) -> set[Path]:
    """Return the shared-memory files that the processes of a session (the id of its leader) have mapped now.

    Those are files of their own making: what they inherited from us is not mapped any more after ``exec``. Empty where
    there is no ``/proc``. Another user's processes are passed over.
    """
    found: set[Path] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            # The name before the last parenthesis may hold anything; state, parent, group and session follow it.
            if int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[3]) == session:
                found |= _mapped_by(folder / "maps")
    return found


def _mapped_by(maps: Path) -> set[Path]:
    paths = (line.split(maxsplit=5)[-1] for line in maps.read_text(errors="replace").splitlines() if _FOLDER in line)
    return {Path(path) for path in paths if path.startswith(_FOLDER) and not path.endswith(" (deleted)")}


def remove_segments(segments: set[Path]) -> None:
    """Remove the files that are still there."""
    for segment in segments:
        with contextlib.suppress(OSError):
            segment.unlink()
