"""The wheel `bfcl-eval`: fetched by name and version through the user's own package index, checked, never installed.

Version and SHA-256 are pinned: its file system and data are byte-identical to commit 6ea57973 of the Gorilla
repository, which Dense Bench names. Whatever fails leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from stacks.launching.made_folder import InstallError, create_environment
from stacks.locations import bfcl_folder

NAME, VERSION = "bfcl-eval", "2026.3.23"
FILE = "bfcl_eval-2026.3.23-py3-none-any.whl"
SHA256 = "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a"
MOST_BYTES = 64 << 20
_SECONDS = 300
Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


class BfclError(Exception):
    """BFCL cannot be had or is not what it should be; the message says what to do."""


def wheel_path() -> Path:
    """Where the wheel lies once it is fetched."""
    return bfcl_folder() / FILE


def fetched_wheel() -> Path:
    """The wheel, checked anew. Raises BfclError where it is not there, or is another file than it should be."""
    path = wheel_path()
    if not path.is_file():
        raise BfclError(f"BFCL is not here ({path})\n  -> stacktap bfcl fetch")
    _check(path, f"{path}\n  -> remove it, then: stacktap bfcl fetch")
    return path


def fetch_wheel(given: Path | None = None, run: Run | None = None) -> tuple[Path, bool]:
    """Fetch the wheel, or take a file that the user has; returns where it is and whether it is new. A file that is
    given is checked even where the wheel is there: nobody shall think that another one was taken.

    Raises BfclError: no network, no such package on the index, another file than expected.
    """
    path = wheel_path()
    there = path.is_file() and _digest(path) == SHA256
    if there and given is None:
        return path, False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".fetching-") as scratch:
            found = _copied(given, Path(scratch)) if given else _downloaded(Path(scratch), run or _run)
            _check(found, f"what {'you gave' if given else 'the package index sent'}; it is not kept")
            if not there:
                os.replace(found, path)
    except OSError as error:
        raise BfclError(f"cannot keep the wheel in {path.parent}: {error.strerror or error}") from error
    return path, not there


def _copied(given: Path, folder: Path) -> Path:
    try:
        with given.open("rb") as source:
            content = source.read(MOST_BYTES + 1)
    except OSError as error:
        raise BfclError(f"cannot read {given}: {error.strerror or error}") from None
    copy = folder / FILE
    copy.write_bytes(content)
    return copy


def _downloaded(folder: Path, run: Run) -> Path:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    if find_spec("pip") is None:
        try:
            pip = create_environment(folder / "environment")
        except InstallError as error:
            raise BfclError(f"there is no pip to fetch {NAME} with: {error}") from error
    out = folder / "wheels"
    wanted = ["--no-deps", "--only-binary", ":all:", "--timeout", "20", "--retries", "1", "-d", str(out)]
    try:
        ended = run([*pip, "download", *wanted, f"{NAME}=={VERSION}"])
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BfclError(_not_had(f"{type(error).__name__}: {error}")) from error
    found = sorted(out.glob("*.whl")) if out.is_dir() else []
    if ended.returncode or len(found) != 1:
        raise BfclError(_not_had(_reason(ended)))
    return found[0]


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(command), capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
    )


def _reason(ended: subprocess.CompletedProcess[str]) -> str:
    """The first of pip's warnings that names a connection, else its last error."""
    lines = [line.strip() for line in (ended.stderr or "").splitlines() if line.strip()]
    for word in ("connection", "Connection", "timed out", "resolution"):
        for line in lines:
            if word in line:
                return line[:300]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or [f"pip ended with {ended.returncode}"])[-1][:300]


def _not_had(why: str) -> str:
    return (
        f"{NAME} {VERSION} could not be fetched: {why}\n"
        "  -> it comes from your package index (PIP_INDEX_URL); without a network, fetch it elsewhere with\n"
        f"     pip download --no-deps {NAME}=={VERSION}\n"
        f"     and give the file: stacktap bfcl fetch --wheel {FILE}"
    )


def _check(path: Path, what: str) -> None:
    try:
        found = _digest(path)
    except OSError as error:
        raise BfclError(f"cannot read {path}: {error.strerror or error}") from None
    if found != SHA256:
        raise BfclError(f"this is not {NAME} {VERSION}: SHA-256 {found}, expected {SHA256}: {what}")


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
