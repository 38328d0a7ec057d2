"""kill -9 at any moment: the journal is a gap-free prefix of what was put, and lacks at most the last 50 ms."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from results.reader import RunReader

ROUNDS = int(os.environ.get("STACKTAP_KILLS", "8"))
"""How often to kill; 200 for the full proof."""

EVENTS = 400_000
LAG_MS = 50.0
SLACK_MS = 50.0 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
"""A busy machine's scheduler lets threads wait for their turn: with the load, the more."""

CHILD = Path(__file__).with_name("recording_child.py")
TOKEN = re.compile(rb"#([0-9]{8});")


def kill_once(folder: Path, side: Path, seconds: float) -> tuple[list[int], np.ndarray, int]:
    """(numbers found in the journal, put times, time of the kill)."""
    side.write_bytes(b"\0" * 8 * EVENTS)
    root = str(Path(__file__).parents[2])
    child = subprocess.Popen(
        [sys.executable, str(CHILD), str(folder), str(side)], env={**os.environ, "PYTHONPATH": root}
    )
    try:
        deadline = time.monotonic() + 30
        with open(side, "rb", buffering=0) as file:
            while not any(file.read(8)):
                assert child.poll() is None, "the recording process ended by itself"
                assert time.monotonic() < deadline
                time.sleep(0.005)
                file.seek(0)
        time.sleep(seconds)
        killed = time.monotonic_ns()
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    reader = RunReader(folder)
    numbers: list[int] = []
    for exchange in reader:
        assert not exchange.damaged, exchange.damage
        assert exchange.end in ("complete", "recorder_killed", "upstream_closed", "relay_stopped")
        for direction in (exchange.wire("request"), exchange.wire("response")):
            numbers.extend(int(found) for found in TOKEN.findall(direction))
    assert reader.problems.corrupt_lines == 0
    assert reader.problems.missing_segments == []
    assert reader.problems.torn_tail <= 1
    return sorted(numbers), np.fromfile(side, dtype=np.uint64), killed


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_journal_survives_kill_at_random_moments(tmp_path: Path) -> None:
    draw = random.Random(os.environ.get("STACKTAP_KILL_SEED", "1"))
    lacking: list[float] = []
    segments = 0
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        numbers, times, killed = kill_once(folder, tmp_path / "side", draw.uniform(0.02, 0.7))
        assert numbers == list(range(len(numbers))), "the journal has a gap or repeats something"
        put = times[(times > 0) & (times <= killed)]
        missing = put[len(numbers) :]
        lacking.append((killed - int(missing[0])) / 1e6 if len(missing) else 0.0)
        segments += len(list(folder.glob("wire.0*")))
    print(f"{ROUNDS} kills: lacking {max(lacking):.1f} ms at most, {np.median(lacking):.1f} ms in the median")
    assert max(lacking) <= LAG_MS + SLACK_MS
    assert np.median(lacking) <= LAG_MS
    assert segments > 0, "no rotation happened"
