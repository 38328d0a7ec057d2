"""Where runs live, how they are named, found, and removed. A run is a folder, private to its user."""

from __future__ import annotations

import calendar
import os
import re
import secrets
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from results.locks import LOCK_NAME, is_locked
from results.segments import has_journal, lost_lines

EPISODES = "episodes.jsonl"
EPISODES_LOCK = "episodes.lock"
RECORDINGS = "recordings"
"""A run of a grid keeps its episodes in `EPISODES`, and its traffic in recorded runs of their own below this folder."""
Kind = Literal["recording", "grid"]
_RUN_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{4,}\Z")
_OWN_FILES = re.compile(
    r"(?:wire\.(?:[0-9]{6,}\.|next\.)?jsonl(?:\.zst)?(?:\.tmp)?|run\.json(?:\.tmp)?|status\.json|outcomes\.jsonl(?:\.tmp)?"
    rf"|report\.(?:md|html|json)(?:\.tmp)?|pairing\.json(?:\.tmp)?|diagnosis\.json|abandoned\.json(?:\.tmp)?|{LOCK_NAME}"
    rf"|{re.escape(EPISODES)}|{re.escape(EPISODES_LOCK)})\Z"
)
_OWN_FOLDERS = frozenset({"plots"})


class RunNotFoundError(Exception):
    """No run, or more than one, goes by this name."""


class RunFolderError(Exception):
    """A folder cannot be used for, or removed as, a run."""


@dataclass(frozen=True)
class RunInfo:
    """A run on disk: `size` in bytes, `created` in seconds since the epoch, `live` while it is being recorded,
    `lost` lines that could not be written (full disk). `kind`: a recording, or a grid with recordings in it."""

    run: str
    path: Path
    created: float
    size: int
    live: bool
    lost: int = 0
    kind: Kind = "recording"


def runs_folder(environment: Mapping[str, str] | None = None) -> Path:
    """`$XDG_DATA_HOME/stacktap/runs`, by default under `~/.local/share`."""
    variables = os.environ if environment is None else environment
    home = variables.get("XDG_DATA_HOME", "")
    base = Path(home) if home and Path(home).is_absolute() else Path.home() / ".local" / "share"
    return base / "stacktap" / "runs"


def new_run_id(now: float | None = None) -> str:
    """A name that sorts by time: `YYYYMMDD-HHMMSS-xxxx` (UTC and four random hex digits)."""
    moment = time.gmtime(time.time() if now is None else now)
    return f"{time.strftime('%Y%m%d-%H%M%S', moment)}-{secrets.token_hex(2)}"


def create(out: Path | None = None, *, base: Path | None = None) -> tuple[str, Path]:
    """Make a run folder (0700) and name the run: (id, folder).

    `out` may be an existing folder that holds no journal. Raises RunFolderError.
    """
    try:
        if out is not None:
            if has_journal(out):
                raise RunFolderError(
                    f"{out} already holds a recorded run; nothing was overwritten. Choose another --out"
                )
            if out.is_dir() and any(os.scandir(out)):
                raise RunFolderError(f"{out} holds other files; choose a new or an empty folder for --out")
            out.mkdir(mode=0o700, parents=True, exist_ok=True)
            out.chmod(0o700)
            return new_run_id(), out
        folder = base or runs_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            run = new_run_id()
            try:
                (folder / run).mkdir(mode=0o700)
            except FileExistsError:
                continue
            return run, folder / run
    except OSError as error:
        where = out or base or runs_folder()
        raise RunFolderError(f"cannot make a run folder at {where}: {error.strerror or error}") from error


def list_runs(base: Path | None = None) -> list[RunInfo]:
    """The runs in a folder, oldest first; other folders are passed over. Raises RunFolderError if it is unreadable."""
    folder = base or runs_folder()
    try:
        entries = [entry for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunFolderError(f"cannot read the runs in {folder}: {error.strerror or error}") from error
    found = [info for entry in entries if (info := inspect(Path(entry.path))) is not None]
    return sorted(found, key=lambda info: (info.created, info.run))


def inspect(path: Path) -> RunInfo | None:
    """What is known of one run folder; None where it is none (or cannot be read)."""
    try:
        if is_grid(path):
            return RunInfo(path.name, path, _created(path), _size(path), is_locked(path, EPISODES_LOCK), 0, "grid")
        if not has_journal(path):
            return None
        return RunInfo(path.name, path, _created(path), _size(path), is_locked(path), lost_lines(path))
    except OSError:
        return None


def is_grid(path: Path) -> bool:
    """Whether a folder holds a run of a grid (`stacktap run`)."""
    return (path / EPISODES).is_file()


def _created(path: Path) -> float:
    if _RUN_ID.match(path.name):
        try:
            return float(_seconds(path.name[:15]))
        except ValueError:
            pass
    return path.stat().st_mtime


def _seconds(stamp: str) -> int:
    return calendar.timegm(time.strptime(stamp, "%Y%m%d-%H%M%S"))


def _size(path: Path) -> int:
    total = 0
    for root, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_size
            except FileNotFoundError:
                continue
    return total


def find(reference: str, *, base: Path | None = None, kind: Kind | None = "recording") -> Path:
    """The run folder meant by `@last`, `@N` (N-th latest), a path, or the beginning of an id. `kind` of None: any.

    Raises RunNotFoundError.
    """
    folder = base or runs_folder()
    if reference.startswith("@"):
        return _latest(reference, folder, kind)
    path = Path(reference)
    try:
        found = inspect_path(path)
    except OSError as error:
        raise RunNotFoundError(f"cannot read {path}: {error.strerror or error}") from error
    if found is not None:
        return _of_kind(path, found, kind)
    if path.is_dir() and os.sep in reference:
        raise RunNotFoundError(f"{path} holds no journal: it is not a recorded run")
    matches = [info for info in list_runs(folder) if reference and info.run.startswith(reference)]
    exact = [info for info in matches if info.run == reference]
    if len(exact or matches) == 1:
        one = (exact or matches)[0]
        return _of_kind(one.path, one.kind, kind)
    if matches:
        names = ", ".join(info.run for info in matches[-5:])
        raise RunNotFoundError(f"{len(matches)} runs begin with {reference!r} ({names}): write more of the name")
    raise RunNotFoundError(f"no run is called {reference!r} in {folder} (`stacktap runs` lists them)")


def inspect_path(path: Path) -> Kind | None:
    """What kind of run a folder holds, None where it holds none. Raises OSError where it cannot be read."""
    return "grid" if is_grid(path) else "recording" if has_journal(path) else None


def _of_kind(path: Path, found: Kind, wanted: Kind | None) -> Path:
    if wanted is None or found == wanted:
        return path
    if found == "recording":
        raise RunNotFoundError(f"{path} is one recording, not a run of a grid: it holds no {EPISODES}")
    inside = sorted(entry for entry in (path / RECORDINGS).glob("*") if has_journal(entry))
    named = f"choose one of its recordings: {', '.join(map(str, inside[-3:]))}" if inside else "it has no recording"
    raise RunNotFoundError(f"{path} is a run of a grid (`stacktap validate` checks it); {named}")


def _latest(reference: str, folder: Path, kind: Kind | None) -> Path:
    runs = [info for info in list_runs(folder) if kind in (None, info.kind)]
    which = 1 if reference == "@last" else int(reference[1:]) if reference[1:].isdecimal() else 0
    if which < 1:
        raise RunNotFoundError(f"{reference!r} is no run: write @last, @2 for the one before it, an id, or a path")
    if which > len(runs):
        said = "runs of grids" if kind == "grid" else "runs"
        raise RunNotFoundError(f"there are {len(runs)} {said} in {folder}, so there is no {reference}")
    return runs[-which].path


def is_own_file(name: str) -> bool:
    """Whether a file of this name in a run's folder is part of the run."""
    return _OWN_FILES.match(name) is not None


def remove(path: Path) -> None:
    """Delete a run folder, and only what belongs to a run. Raises RunFolderError where it is none, or is in use."""
    if path.is_symlink():
        raise RunFolderError(f"{path} is a link; remove the run that it points to by its own path")
    try:
        if inspect_path(path) is None:
            raise RunFolderError(f"{path} holds no journal: it is not a run, nothing was removed")
        if is_locked(path) or is_locked(path, EPISODES_LOCK):
            raise RunFolderError(f"{path} is being recorded right now; nothing was removed")
        _remove_own(path)
    except OSError as error:
        raise RunFolderError(f"cannot remove {path}: {error.strerror or error}") from error


def _remove_own(path: Path) -> None:
    """Raises RunFolderError where other files are there, which stay."""
    foreign = []
    with os.scandir(path) as found:
        entries = list(found)
    for entry in entries:
        folder = entry.is_dir(follow_symlinks=False)
        if folder and entry.name in _OWN_FOLDERS:
            shutil.rmtree(entry.path)
        elif folder and entry.name == RECORDINGS:
            for recording in sorted(Path(entry.path).iterdir()):
                _remove_own(recording)
            os.rmdir(entry.path)
        elif _OWN_FILES.match(entry.name) and entry.is_file(follow_symlinks=False):
            os.unlink(entry.path)
        else:
            foreign.append(entry.name)
    if foreign:
        raise RunFolderError(
            f"the run in {path} was removed; other files there were left alone: {', '.join(sorted(foreign)[:5])}"
        )
    path.rmdir()


def prune(max_bytes: int, *, base: Path | None = None, keep: int = 1) -> list[RunInfo]:
    """Remove the oldest runs until all together take at most `max_bytes`; returns what was removed.

    Runs being recorded and the `keep` latest ones stay.
    """
    runs = list_runs(base)
    total = sum(info.size for info in runs)
    removed = []
    for info in runs[: max(0, len(runs) - keep)]:
        if total <= max_bytes:
            break
        if info.live:
            continue
        try:
            remove(info.path)
        except RunFolderError:
            continue
        total -= info.size
        removed.append(info)
    return removed
