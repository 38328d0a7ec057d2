"""The packs that come with stacktap: where they lie. Each is a folder with a `pack.yaml`."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent


def shipped_packs() -> list[Path]:
    """Folders of the shipped packs, in the order of their names."""
    return sorted(entry.parent for entry in HERE.glob("*/pack.yaml"))
