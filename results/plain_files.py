"""Files of a run folder opened for reading: ordinary files only.

A folder from elsewhere may hold a pipe, which is waited for without end, or a link to a device that has none. Both are
refused at once, as any file that cannot be read.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

MOST_BYTES = 64 << 20
"""Files that are read whole are smaller (64 MiB)."""


def open_plain(path: str | os.PathLike[str]) -> BufferedReader:
    """Open an ordinary file (or a link to one) for reading. Raises OSError, also where it is anything else."""
    # Without blocking: opening a pipe would wait for its writer. Ordinary files do not mind.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
        return open(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def read_plain(path: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """An ordinary file whole. Raises OSError, also where it has more than `most` bytes."""
    with open_plain(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes", str(path))
    return data


def is_plain(path: Path) -> bool:
    """Whether an ordinary file (or a link to one) is there."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False
