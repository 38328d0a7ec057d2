"""Which exchanges are exported, what is said of those that are not there, and files written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from checklists.exports.selection import ExportError, attempt_name, place_of
from checklists.exports.written import whole_file, write_pieces
from tests.support.exported import every_kind, opened
from tests.support.recorded import Script, answer


def grid(folder: Path) -> None:
    for name in ("001", "002"):
        script = Script(folder / "recordings" / name)
        script.chat(answer(content="x"))
        script.chat(answer(content="y"))
        script.run()


def test_named_attempts_alone_are_given_with_verdicts_of_the_whole_run(tmp_path: Path) -> None:
    run = every_kind(tmp_path)
    whole = {place_of(seen): seen.judged for seen in run}
    chosen = list(opened(tmp_path, ["6", "2"]))
    assert [place_of(seen) for seen in chosen] == ["2", "6"]
    # Its words name attempt 2, which came before.
    assert [seen.judged for seen in chosen] == [whole["2"], whole["6"]]


def test_attempts_of_a_grid_are_named_with_their_recording(tmp_path: Path) -> None:
    grid(tmp_path)
    assert [place_of(seen) for seen in opened(tmp_path, ["002/1", "001/2"])] == ["001/2", "002/1"]
    assert len(list(opened(tmp_path))) == 4
    with pytest.raises(ExportError, match="--attempt 001/1"):
        opened(tmp_path, ["1"])
    with pytest.raises(ExportError, match="it has: 001, 002"):
        opened(tmp_path, ["003/1"])


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "1/2/3", "../1", "1.5", "١", "9" * 40, "001/"])
def test_what_names_no_attempt_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no attempt"):
        attempt_name(text)


def test_a_missing_attempt_and_an_empty_run_are_told(tmp_path: Path) -> None:
    every_kind(tmp_path / "a")
    with pytest.raises(ExportError, match="no finished attempt 98, 99"):
        list(opened(tmp_path / "a", ["99", "1", "98"]))
    Script(tmp_path / "b").run()
    with pytest.raises(ExportError, match="nothing to export"):
        list(opened(tmp_path / "b"))


def test_damage_is_told(tmp_path: Path) -> None:
    every_kind(tmp_path)
    with (tmp_path / "wire.jsonl").open("ab") as journal:
        journal.write(b"{not json}\n")
    run = opened(tmp_path)
    assert len(list(run)) == 7
    assert "1 corrupt lines" in run.problems()[0]


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("before")
    with pytest.raises(RuntimeError), whole_file(out, tmp_path / "run") as temporary:  # noqa: PT012
        write_pieces([b"half"], temporary)
        raise RuntimeError
    assert out.read_text() == "before"
    with whole_file(out, tmp_path / "run") as temporary:
        assert write_pieces([b"a", b"bc"], temporary) == 3
    assert out.read_text() == "abc"
    assert out.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_of_the_run_is_never_written_over(tmp_path: Path) -> None:
    for name in ("wire.jsonl", "run.json", "recordings/001/wire.jsonl"):
        with pytest.raises(ExportError, match="a file of the run itself"), whole_file(tmp_path / name, tmp_path):
            pass
    (tmp_path / "folder").mkdir()
    with pytest.raises(ExportError, match="is a folder"), whole_file(tmp_path / "folder", tmp_path):
        pass
    with pytest.raises(ExportError, match="cannot write"), whole_file(tmp_path / "no" / "such", tmp_path):
        pass
