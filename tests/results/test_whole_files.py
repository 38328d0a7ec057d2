"""A file is written whole or not at all, and nothing else is written through a link in its place."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from results.whole_files import create_new, is_special, write_where_told, write_whole


def test_the_old_file_gives_way_to_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["x"]


def test_a_link_in_its_place_or_in_that_of_the_temporary_file_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"kept")
    for name in ("x", "x.tmp"):
        (tmp_path / name).symlink_to(victim)
    write_whole(tmp_path / "x", b"new")
    assert victim.read_bytes() == b"kept"
    assert (tmp_path / "x").read_bytes() == b"new"
    assert not (tmp_path / "x").is_symlink()


def test_what_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "y").write_bytes(b"old")
    (tmp_path / "y.tmp").mkdir()
    for name in ("x", "y", "no/such"):
        with pytest.raises(OSError):
            write_whole(tmp_path / name, b"new")
    assert (tmp_path / "y").read_bytes() == b"old"
    assert not (tmp_path / "x.tmp").exists()


def test_a_new_file_is_new(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"leftover of a longer one")
    with open(create_new(tmp_path / "x"), "wb") as file:
        file.write(b"short")
    assert (tmp_path / "x").read_bytes() == b"short"


def test_a_place_that_a_user_named(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_where_told(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(OSError, match="space"):
        write_where_told(tmp_path / "full", b"new")
    assert (tmp_path / "full").is_symlink()
    os.mkfifo(tmp_path / "pipe")
    assert is_special(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_where_told(tmp_path / "pipe", b"through")
    reader.join(5)
    assert read == [b"through"]
