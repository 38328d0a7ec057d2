"""`episodes.jsonl`: durable line by line, cut cleanly after a kill, one writer, nothing twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.episode_journal import EPISODES, EpisodeJournalError, EpisodeReader, EpisodeWriter
from results.episodes import CellPlan, Header, encode_episode_line
from results.manifest import known
from tests.support.episodes import CELL, episode

ROOT = Path(__file__).resolve().parents[2]
PLAN = CellPlan(cell=CELL, seeds=(0, 1, 2))


def written(folder: Path, count: int = 3) -> bytes:
    writer = EpisodeWriter(folder, "run-1")
    writer.append(PLAN)
    for seed in range(count):
        writer.append(episode("vf", seed=seed, plan=PLAN.digest))
    writer.close()
    return (folder / EPISODES).read_bytes()


def seeds(folder: Path) -> tuple[list[int], EpisodeReader]:
    reader = EpisodeReader(folder)
    return [one.seed for one in reader], reader


def test_written_and_read(tmp_path: Path) -> None:
    written(tmp_path)
    found, reader = seeds(tmp_path)
    assert found == [0, 1, 2]
    assert (reader.run, reader.plans) == ("run-1", {CELL: PLAN})
    assert reader.problems.said() == []
    assert (tmp_path / EPISODES).stat().st_mode & 0o777 == 0o600
    assert list(reader) == list(reader)


def test_every_line_is_synced_before_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync, sizes = os.fsync, []

    def spy(descriptor: int) -> None:
        sizes.append(os.fstat(descriptor).st_size if descriptor >= 0 else 0)
        sync(descriptor)

    writer = EpisodeWriter(tmp_path, "run-1")
    monkeypatch.setattr(os, "fsync", spy)
    for seed in range(3):
        writer.append(episode("v", seed=seed))
        assert (len(sizes), sizes[-1]) == (seed + 1, (tmp_path / EPISODES).stat().st_size)
    writer.close()


def test_carried_on_by_the_next_writer(tmp_path: Path) -> None:
    written(tmp_path)
    other = CellPlan(cell=CELL, seeds=(0, 1, 2, 3), facts={"model": known("b", "file")})
    writer = EpisodeWriter(tmp_path, "run-1")
    writer.append(other)
    writer.append(episode("v", seed=3))
    writer.close()
    found, reader = seeds(tmp_path)
    assert found == [0, 1, 2, 3]
    assert reader.plans == {CELL: other}
    assert reader.earlier_plans == {PLAN.digest: PLAN, other.digest: other}


@given(st.data())
def test_a_file_cut_anywhere_is_read_up_to_there_and_carried_on(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("run")
    whole = written(folder)
    cut = data.draw(st.integers(whole.index(b"\n") + 1, len(whole)))
    (folder / EPISODES).write_bytes(whole[:cut])
    lines = whole[:cut].split(b"\n")
    found, reader = seeds(folder)
    assert found == [0, 1, 2][: max(0, len(lines) - 3)]
    assert reader.problems.torn == bool(lines[-1])
    writer = EpisodeWriter(folder, "run-1")
    assert writer.cut_bytes == len(lines[-1])
    writer.append(episode("v", seed=9))
    writer.close()
    found_later, later = seeds(folder)
    assert found_later == [*found, 9]
    assert later.problems.said() == []


@pytest.mark.parametrize("cut", [0, 1, 9, 20, 40])
def test_a_torn_first_line_is_begun_anew(tmp_path: Path, cut: int) -> None:
    (tmp_path / EPISODES).write_bytes(encode_episode_line(Header(1, "run-1", 5))[:cut])
    assert len(written(tmp_path).splitlines()) == 5
    assert seeds(tmp_path)[0] == [0, 1, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"something of the user's", "does not begin with a header"),
        (b'{"event":"header","schema":9,"run":"run-1","epoch_us":1}\n', "schema version 9"),
        (b'{"event":"header","schema":1,"run":"other","epoch_us":1}\n', "belongs to run other"),
        (b'{"event":"cell"}\n', "does not begin with a header"),
        (b"[]\n", "does not begin with a header"),
    ],
)
def test_what_is_not_ours_stays_as_it_is(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / EPISODES).write_bytes(content)
    with pytest.raises(EpisodeJournalError, match=message):
        EpisodeWriter(tmp_path, "run-1")
    assert (tmp_path / EPISODES).read_bytes() == content


def test_reading_what_is_not_there_or_newer(tmp_path: Path) -> None:
    with pytest.raises(EpisodeJournalError, match="cannot read"):
        seeds(tmp_path)
    (tmp_path / EPISODES).write_bytes(b'{"event":"header","schema":2}\n')
    with pytest.raises(EpisodeJournalError, match="update stacktap"):
        seeds(tmp_path)


def test_damage_and_repeats_are_counted(tmp_path: Path) -> None:
    whole = written(tmp_path)
    again = encode_episode_line(episode("p", seed=1))
    (tmp_path / EPISODES).write_bytes(whole + b"\x00\xff{}\n" + again + b'{"event":"episode"}\n')
    reader = EpisodeReader(tmp_path)
    assert [len(one.turns) for one in reader] == [2, 2, 2]
    assert reader.problems.said() == [
        "2 damaged lines were skipped",
        "1 episodes were there already (same cell, seed and repeat); the first counts",
    ]


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    first = EpisodeWriter(tmp_path, "run-1")
    with pytest.raises(EpisodeJournalError, match="another process"):
        EpisodeWriter(tmp_path, "run-1")
    first.close()
    EpisodeWriter(tmp_path, "run-1").close()


FULL = """
import resource, signal, sys
from pathlib import Path
from results.episode_journal import EpisodeJournalError, EpisodeWriter
from tests.support.episodes import episode
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
writer, kept, refused = EpisodeWriter(Path(sys.argv[1]), "run-1"), [], []
for seed in range(12):
    try:
        writer.append(episode("v" * (1 + 4 * (seed % 3)), seed=seed))
        kept.append(seed)
    except EpisodeJournalError as error:
        assert "will run again" in str(error)
        refused.append(seed)
print(kept, refused, sep="|")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_full_disk_keeps_whole_lines(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    kept, refused = done.stdout.strip().split("|")
    assert refused != "[]"
    found, reader = seeds(tmp_path)
    assert str(found) == kept
    assert reader.problems.said() == []


ENDLESS = """
import sys
from pathlib import Path
from results.episode_journal import EpisodeWriter
from tests.support.episodes import episode
writer = EpisodeWriter(Path(sys.argv[1]), "run-1")
for seed in range(10_000_000):
    writer.append(episode("vvvv", seed=seed))
    print(seed, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kills with a signal")
def test_a_kill_loses_nothing_that_was_said_to_be_kept(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    said = [int(child.stdout.readline()) for _ in range(20)]
    os.kill(child.pid, signal.SIGKILL)
    said += [int(line) for line in child.stdout.read().split("\n")[:-1]]
    child.stdout.close()
    child.wait()
    found, _ = seeds(tmp_path)
    assert found[: len(said)] == said == list(range(len(said)))
    assert len(found) <= len(said) + 1
    EpisodeWriter(tmp_path, "run-1").close()
