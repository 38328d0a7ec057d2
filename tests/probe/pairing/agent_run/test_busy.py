"""Work is told from waiting by the processor time of a process and its children."""

import os
import subprocess
import sys
import time

import pytest

from probe.pairing.agent_run import busy
from probe.pairing.agent_run.busy import computed_seconds, is_work

STAT = b"7 (a b) c) S 1 7 7 0 -1 4194304 0 0 0 0 100 20 3 4 20 0 1 0 0"


def test_own_time_and_that_of_ended_children_is_counted(tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_bytes(STAT)
    (tmp_path / "8").mkdir()
    (tmp_path / "8" / "stat").write_bytes(b"nonsense")
    assert computed_seconds([7, 8, 9], tmp_path) == 127 / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_a_real_process():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        time.sleep(0.1)
        before = computed_seconds([child.pid])
        deadline = time.monotonic() + 20
        while computed_seconds([child.pid]) < before + 0.2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        child.kill()


@pytest.mark.parametrize(
    ("load", "computed", "work"),
    [(0.0, 0.6, True), (0.0, 0.4, False), (2.0, 0.4, False), (20.0, 0.06, True), (20.0, 0.04, False)],
)
def test_on_a_loaded_machine_less_is_work(monkeypatch, load, computed, work):
    monkeypatch.setattr(busy.os, "getloadavg", lambda: (load, 0, 0))
    monkeypatch.setattr(busy.os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    assert is_work(computed, 1.0) is work
