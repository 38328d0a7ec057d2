"""A file that is written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from checklists.exports.selection import ExportError
from results.runs import is_own_file
from results.whole_files import is_special


@contextlib.contextmanager
def whole_file(out: Path, run_folder: Path, mode: int = 0o600) -> Iterator[Path]:
    """A path to write to, in a private folder beside `out`; its file takes the place of `out` if no error is raised.
    A device or a pipe (`/dev/stdout`) is written to and stays.

    Raises ExportError where `out` is a file of the run itself, or is none that can be written.
    """
    refuse_own(out, run_folder)
    if is_special(out):
        yield out
        return
    try:
        with tempfile.TemporaryDirectory(prefix=".stacktap-export-", dir=out.parent) as scratch:
            temporary = Path(scratch) / "export"
            yield temporary
            temporary.chmod(mode)
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            temporary.replace(out)
    except OSError as failure:
        where = failure.filename if failure.filename not in (None, str(out)) else out
        raise ExportError(
            f"cannot write {out}: {failure.strerror or failure} ({where}); choose another --out, nothing was left there"
        ) from failure


def refuse_own(out: Path, run_folder: Path) -> None:
    """Raise ExportError where `out` is a folder, or one of the files that a run consists of."""
    if out.is_dir():
        raise ExportError(f"{out} is a folder; name a file in it with --out")
    # Path.resolve raises RuntimeError on a loop of links.
    inside = Path(os.path.realpath(out)).is_relative_to(os.path.realpath(run_folder))
    if inside and is_own_file(out.name):
        raise ExportError(f"{out} is a file of the run itself; choose another --out")


def write_pieces(pieces: Iterable[bytes], path: Path) -> int:
    """Write a file from its pieces; its size in bytes."""
    size = 0
    with path.open("wb") as file:
        for piece in pieces:
            size += file.write(piece)
    return size
