"""One writer at a time in a run folder: an advisory lock that the system drops when the process dies."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


LOCK_NAME = "lock"
_TRIES = 4
_PAUSE_S = 0.005


class FolderLock:
    """The lock of a run folder (`lock` in it, empty; `name` for a second journal). Opening may raise OSError."""

    def __init__(self, folder: Path, name: str = LOCK_NAME) -> None:
        self._descriptor = os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o600)

    def acquire(self) -> bool:
        """Take the lock; False if another process (or another writer of this one) has it.

        A few tries: somebody asking `is_locked` holds it for an instant.
        """
        for _ in range(_TRIES):
            try:
                _lock(self._descriptor)
            except OSError:
                time.sleep(_PAUSE_S)
            else:
                return True
        self.release()
        return False

    def release(self) -> None:
        """Let go of the lock; harmless if it is not held."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def is_locked(folder: Path, name: str = LOCK_NAME) -> bool:
    """Whether a writer is at work in this folder right now."""
    if not (folder / name).exists():
        return False
    try:
        lock = FolderLock(folder, name)
    except OSError:
        return False
    if not lock.acquire():
        return True
    lock.release()
    return False
