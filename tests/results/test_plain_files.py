"""Pipes, devices and folders where a file should be are refused at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from results.plain_files import is_plain, open_plain, read_plain
from results.segments import LineSource

STRANGE: dict[str, Callable[[Path], Any]] = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path),
    "nothing": lambda path: None,
}


@pytest.mark.parametrize("kind", list(STRANGE))
@pytest.mark.timeout(5)
def test_anything_but_a_file_is_an_error(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    STRANGE[kind](path)
    for read in (open_plain, read_plain, LineSource):
        with pytest.raises(OSError, match=r"x'"):
            read(path)
    assert not is_plain(path)


def test_a_file_and_a_link_to_one_are_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    (tmp_path / "y").symlink_to(tmp_path / "x")
    assert read_plain(tmp_path / "y", 5) == b"12345"
    assert is_plain(tmp_path / "y")
    with pytest.raises(OSError, match="more than 4 bytes"):
        read_plain(tmp_path / "x", 4)


def test_lines_over_many_blocks_come_whole(tmp_path: Path) -> None:
    lines = [b"a" * size for size in (0, 3 << 20, 1, (1 << 20) - 1, 1 << 20, 5)]
    (tmp_path / "x").write_bytes(b"\n".join(lines))
    source = LineSource(tmp_path / "x")
    assert list(source) == lines
    assert source.torn
    (tmp_path / "x").write_bytes(b"\n".join(lines) + b"\n")
    source = LineSource(tmp_path / "x")
    assert list(source) == lines
    assert not source.torn
