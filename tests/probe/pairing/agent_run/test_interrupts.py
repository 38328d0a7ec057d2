"""Ctrl-C as a call: overlapping blocks are all told, and everything is as before afterwards."""

import asyncio
import os
import signal
import threading

import pytest

from probe.pairing.agent_run.interrupts import interrupts


async def test_overlapping_blocks_are_all_told():
    before = signal.getsignal(signal.SIGINT)
    told = []
    with interrupts(lambda: told.append("outer")):
        with interrupts(lambda: told.append("inner")):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.05)
    assert told == ["outer", "inner", "outer"]
    assert signal.getsignal(signal.SIGINT) is before


async def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        told = []
        with interrupts(lambda: told.append(1)):
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.05)
        assert told == []
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_after_the_block_is_an_exception_again():
    async def block():
        with interrupts(lambda: None):
            await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(5)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(block())


def test_in_another_thread_nothing_is_changed():
    before = signal.getsignal(signal.SIGINT)

    async def block():
        with interrupts(lambda: None):
            return signal.getsignal(signal.SIGINT) is before

    found = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(block())))
    thread.start()
    thread.join()
    assert found == [True]
