"""Shared memory of killed processes is found while they live, and removed after them; other people's is not."""

import subprocess
import sys
from pathlib import Path

import pytest

from stacks.launching.shared_memory import mapped_segments, remove_segments

pytestmark = pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no /dev/shm on this system")

HOLDER = """
import sys, time
from multiprocessing import resource_tracker, shared_memory
resource_tracker.register = lambda *arguments: None
held = shared_memory.SharedMemory(create=True, size=4096)
print(held.name, flush=True)
time.sleep(600)
"""


@pytest.fixture
def holders():
    started = [
        subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True, start_new_session=True)
        for _ in range(2)
    ]
    paths = [Path("/dev/shm") / process.stdout.readline().strip().lstrip("/") for process in started]
    yield list(zip(started, paths, strict=True))
    for process, path in zip(started, paths, strict=True):
        process.kill()
        process.wait()
        process.stdout.close()
        path.unlink(missing_ok=True)


def test_only_what_the_session_s_processes_map_is_removed(holders):
    (one, of_one), (_, of_two) = holders
    segments = mapped_segments(one.pid)
    assert segments == {of_one}
    one.kill()
    one.wait()
    assert of_one.exists()
    remove_segments(segments)
    assert not of_one.exists()
    assert of_two.exists()
    remove_segments(segments)
    assert mapped_segments(one.pid) == set()
