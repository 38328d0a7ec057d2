"""The files of the workbench's runs: read as untrusted, written whole."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from harness.packs.loading import load_pack
from harness.packs.model import Pack
from harness.workbench.record import Run, RunError, decode_run, encode_run
from results.plain_files import read_plain
from results.whole_files import write_whole

SHIPPED = "structured"


def pack_at(where: str) -> Pack:
    """A pack by its path, or the shipped pack `structured` by its name. Raises PackError."""
    if where == SHIPPED:
        with as_file(files("harness.workbench.structured")) as folder:
            return load_pack(folder)
    return load_pack(Path(where))


def run_at(path: Path) -> Run | None:
    """A run on disk, None where there is none. Raises RunError."""
    try:
        return decode_run(read_plain(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror or error}") from error
    except RunError as error:
        raise RunError(f"{path}: {error}") from None


def keep(path: Path, run: Run) -> None:
    """Write a run. Raises OSError."""
    write_whole(path, encode_run(run), mode=0o644)
