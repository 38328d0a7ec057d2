"""A short run of the fuzzer with fixed seeds; `python -m tests.fuzz.bodies` runs a million."""

from __future__ import annotations

from proxy.classify import RunMemory
from tests.fuzz.bodies import body_of, one, seeds
from tests.support.corpus import cases


def test_a_short_run() -> None:
    views, memory = seeds()[: len(cases()) + 400], RunMemory()
    for seed in range(1500):
        assert body_of(one(seed, views, memory))
