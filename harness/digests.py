"""SHA-256 of a model's file or folder: what a cell's numbers are bound to where the server tells no digest."""

from __future__ import annotations

import hashlib
from pathlib import Path

from results.manifest import Fact, known, unknown

_BLOCK = 1 << 20


def model_digest(path: Path) -> Fact:
    """Of a file its bytes; of a folder the names and digests of its files."""
    try:
        if path.is_dir():
            files = sorted(entry for entry in path.iterdir() if entry.is_file())
            listed = "".join(f"{entry.name} {_file(entry)}\n" for entry in files)
            return known(hashlib.sha256(listed.encode()).hexdigest(), "SHA-256 over the files of the model's folder")
        return known(_file(path), "SHA-256 of the model's file")
    except OSError as error:
        return unknown(f"the model cannot be read: {error.strerror or error}")


def _file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
