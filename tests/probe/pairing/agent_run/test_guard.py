"""The guard by itself: what it reports, and how it does where it cannot adopt orphans."""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from probe.pairing.agent_run import guard

BY_GROUP = (
    "import sys; sys.path.insert(0, sys.argv.pop(1))\n"
    "from probe.pairing.agent_run import guard\n"
    "guard.adopt_orphans = lambda: False\n"
    "sys.exit(guard.main(sys.argv[1:]))"
)
"""As it does on macOS."""


class Guarded:
    def __init__(self, command, *, by_group=False, grace=0.3):
        orders, self.orders = os.pipe()
        self.reports, reports = os.pipe()
        root = str(Path(guard.__file__).parents[3])
        start = ["-c", BY_GROUP, root] if by_group else ["-I", "-S", guard.__file__]
        words = [sys.executable, *start, str(orders), str(reports), str(grace), command[0], *command]
        self.process = subprocess.Popen(words, pass_fds=(orders, reports), start_new_session=True)
        os.close(orders)
        os.close(reports)
        self.text = ""

    def line(self, seconds=10.0):
        deadline = time.monotonic() + seconds
        while "\n" not in self.text:
            assert select.select([self.reports], [], [], max(0, deadline - time.monotonic()))[0], "no report came"
            data = os.read(self.reports, 1000)
            assert data, "the guard has ended"
            self.text += data.decode()
        line, _, self.text = self.text.partition("\n")
        return line

    def leave(self):
        if self.orders >= 0:
            os.close(self.orders)
        self.orders = -1

    def close(self):
        self.leave()
        assert self.process.wait(10) == 0
        os.close(self.reports)


@pytest.fixture(params=[False, True], ids=["adopting", "by_group"])
def start(request):
    started = []

    def starting(command, **more):
        started.append(Guarded(command, by_group=request.param, **more))
        return started[-1]

    yield starting
    for one in started:
        one.close()


def test_an_end_by_itself(start):
    guarded = start(["/bin/sh", "-c", "exit 5"])
    assert guarded.line().startswith("started ")
    assert [guarded.line(), guarded.line()] == ["ended 5", "cleared 0"]


def test_a_program_that_is_none(start):
    assert start(["/no/such/program"]).line().startswith("failed No such file")


def test_what_is_left_in_the_group_is_ended(start):
    guarded = start(["/bin/sh", "-c", "trap '' TERM; sleep 60 & echo; exit 0"])
    agent = int(guarded.line().split()[1])
    assert [guarded.line(), guarded.line()] == ["ended 0", "cleared 1"]
    with pytest.raises(ProcessLookupError):
        os.killpg(agent, 0)


def test_an_order_ends_it_and_a_second_at_once(start):
    guarded = start(["/bin/sh", "-c", "exec sleep 60"])
    guarded.line()
    os.write(guarded.orders, b"t")
    assert guarded.line() == f"ended {-signal.SIGTERM}"
    stubborn = start(["/bin/sh", "-c", "trap '' TERM; sleep 60; sleep 60"], grace=30)
    stubborn.line()
    time.sleep(0.2)
    os.write(stubborn.orders, b"t")
    time.sleep(0.2)
    begun = time.monotonic()
    os.write(stubborn.orders, b"k")
    assert stubborn.line() == f"ended {-signal.SIGKILL}"
    assert time.monotonic() - begun < 12


def test_the_end_of_the_orders_ends_it_too(start):
    guarded = start(["/bin/sh", "-c", "exec sleep 60"])
    agent = int(guarded.line().split()[1])
    guarded.leave()
    assert guarded.line() == f"ended {-signal.SIGTERM}"
    with pytest.raises(ProcessLookupError):
        os.kill(agent, 0)


def test_signals_do_not_end_the_guard(start):
    guarded = start(["/bin/sh", "-c", "sleep 0.5; exit 6"])
    guarded.line()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        guarded.process.send_signal(number)
    assert guarded.line() == "ended 6"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_descendants_are_found_and_no_others():
    with subprocess.Popen(["/bin/sh", "-c", "sleep 60 & wait"]) as child:
        deadline = time.monotonic() + 5
        while len(guard.descendants(child.pid)) < 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        below = guard.descendants(child.pid)
        assert len(below) == 1
        assert {child.pid, *below} <= guard.descendants(os.getpid())
        assert os.getpid() not in guard.descendants(os.getpid())
        for pid in (child.pid, *below):
            os.kill(pid, signal.SIGKILL)
