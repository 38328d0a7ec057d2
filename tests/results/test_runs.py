"""Run folders: made private, found by what a user writes, removed only if they are runs."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from results.journal import JournalError, JournalWriter
from results.runs import (
    RunFolderError,
    RunNotFoundError,
    create,
    find,
    list_runs,
    new_run_id,
    prune,
    remove,
    runs_folder,
)


def make_run(base: Path, name: str, size: int = 0) -> Path:
    path = base / name
    path.mkdir(parents=True)
    (path / "wire.jsonl").write_bytes(b"x" * size)
    return path


def test_default_folder_follows_xdg(tmp_path: Path) -> None:
    assert runs_folder({"XDG_DATA_HOME": str(tmp_path)}) == tmp_path / "stacktap" / "runs"
    assert runs_folder({"XDG_DATA_HOME": "relative"}) == Path.home() / ".local/share/stacktap/runs"
    assert runs_folder({}) == Path.home() / ".local/share/stacktap/runs"


def test_created_folder_is_private_even_with_open_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        run, path = create(base=tmp_path / "runs")
        writer = JournalWriter(path, run)
        writer.append([b"{}\n"])
        writer.close()
    finally:
        os.umask(before)
    assert path.name == run
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.iterdir()} == {0o600}


def test_out_with_a_journal_is_refused(tmp_path: Path) -> None:
    path = make_run(tmp_path, "old", 5)
    with pytest.raises(RunFolderError, match="already holds"):
        create(path)
    with pytest.raises(JournalError, match="already holds"):
        JournalWriter(path, "new")
    assert (path / "wire.jsonl").read_bytes() == b"xxxxx"


def test_find_by_last_number_prefix_and_path(tmp_path: Path) -> None:
    one = make_run(tmp_path, "20260101-000000-aaaa")
    two = make_run(tmp_path, "20260101-000001-aabb")
    (tmp_path / "20260101-000002-cccc").mkdir()
    assert find("@last", base=tmp_path) == two
    assert find("@1", base=tmp_path) == two
    assert find("@2", base=tmp_path) == one
    assert find("20260101-000000", base=tmp_path) == one
    assert find(str(one), base=tmp_path) == one
    for wrong in ("2026", "@3", "@x", "@0", "", "nothing", str(tmp_path / "20260101-000002-cccc")):
        with pytest.raises(RunNotFoundError):
            find(wrong, base=tmp_path)


def test_remove_takes_runs_only(tmp_path: Path) -> None:
    run = make_run(tmp_path, "run")
    (run / "plots").mkdir()
    (run / "plots" / "a.png").write_bytes(b"")
    (run / "wire.000001.jsonl.zst").write_bytes(b"")
    (run / "pairing.json").write_bytes(b"")
    remove(run)
    assert not run.exists()
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious.txt").write_text("x")
    with pytest.raises(RunFolderError, match="no journal"):
        remove(other)
    mixed = make_run(tmp_path, "mixed")
    (mixed / "precious.txt").write_text("x")
    with pytest.raises(RunFolderError, match=r"precious\.txt"):
        remove(mixed)
    assert [path.name for path in mixed.iterdir()] == ["precious.txt"]
    link = tmp_path / "link"
    link.symlink_to(make_run(tmp_path, "target"))
    with pytest.raises(RunFolderError, match="link"):
        remove(link)


def test_a_run_being_recorded_stays(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "live", "live")
    try:
        assert [info.live for info in list_runs(tmp_path)] == [True]
        with pytest.raises(RunFolderError, match="right now"):
            remove(tmp_path / "live")
        with pytest.raises(JournalError, match="another process"):
            JournalWriter(tmp_path / "live", "second")
        make_run(tmp_path, "20260101-000000-aaaa", 10)
        assert [info.run for info in prune(0, base=tmp_path)] in ([], ["20260101-000000-aaaa"])
    finally:
        writer.close()
    assert [info.live for info in list_runs(tmp_path)][-1] is False


def test_prune_removes_the_oldest_until_it_fits(tmp_path: Path) -> None:
    for number in range(4):
        make_run(tmp_path, f"20260101-00000{number}-aaaa", 100)
    assert [info.run[14] for info in prune(250, base=tmp_path)] == ["0", "1"]
    assert [info.run[14] for info in prune(0, base=tmp_path)] == ["2"]
    assert [info.run[14] for info in list_runs(tmp_path)] == ["3"]


def test_ids_sort_by_time() -> None:
    assert new_run_id(0.0) < new_run_id(1.0) < new_run_id(1e9)


def make_grid(base: Path, name: str) -> Path:
    path = base / name
    make_run(path / "recordings", "001", 4)
    (path / "recordings" / "001" / "abandoned.json").write_text("{}")
    (path / "episodes.jsonl").write_text("{}\n")
    (path / "episodes.lock").write_text("")
    return path


def test_a_run_of_a_grid_is_listed_and_never_taken_for_a_recording(tmp_path: Path) -> None:
    recorded = make_run(tmp_path, "20260101-000000-aaaa")
    grid = make_grid(tmp_path, "20260102-000000-bbbb")
    assert [(run.run, run.kind, run.live) for run in list_runs(tmp_path)] == [
        (recorded.name, "recording", False),
        (grid.name, "grid", False),
    ]
    assert find("@last", base=tmp_path) == recorded
    assert find("@last", base=tmp_path, kind="grid") == grid
    assert find("@last", base=tmp_path, kind=None) == grid
    assert find("20260102", base=tmp_path, kind="grid") == grid
    assert find(str(grid / "recordings" / "001"), base=tmp_path) == grid / "recordings" / "001"
    for reference in (str(grid), "20260102"):
        with pytest.raises(RunNotFoundError, match=r"is a run of a grid.*recordings/001"):
            find(reference, base=tmp_path)
    with pytest.raises(RunNotFoundError, match="is one recording"):
        find(str(recorded), base=tmp_path, kind="grid")
    with pytest.raises(RunNotFoundError, match="1 runs of grids"):
        find("@2", base=tmp_path, kind="grid")


def test_a_run_of_a_grid_is_removed_with_its_recordings_and_nothing_else(tmp_path: Path) -> None:
    grid = make_grid(tmp_path, "g")
    remove(grid)
    assert not grid.exists()
    grid = make_grid(tmp_path, "g")
    (grid / "recordings" / "001" / "notes.txt").write_text("mine")
    with pytest.raises(RunFolderError, match=r"left alone: notes\.txt"):
        remove(grid)
    assert (grid / "recordings" / "001" / "notes.txt").read_text() == "mine"
