"""What a run's memory keeps between two readings is what it gives back."""

from __future__ import annotations

import pytest

from proxy.classify.memory import RunMemory
from results.outcomes import Evidence

CITED = Evidence(attempt=3, direction="response", start=1, end=9, quote="x \ud800")


def test_a_memory_restored_answers_as_before() -> None:
    memory = RunMemory()
    memory.remember("up", "m", 3, "engine.crash", (CITED,))
    memory.remember("up", "other", 4, "ok.native_call", (), took_tools=True)
    memory.tell("up", "m", "{{ template }}", "hermes")
    again = RunMemory.restored(memory.state())
    assert again == memory
    assert again.fault_before("up", "m") == memory.fault_before("up", "m") is not None
    assert again.answered_before("up", "other") is not None
    assert again.told("up", "m:latest") == ("{{ template }}", "hermes")
    again.remember("up", "m", 5, "ok.native_call", ())
    assert again.fault_before("up", "m") is None


@pytest.mark.parametrize("state", [b"", b"\x90", b"nonsense", b"\x94\x90\x90\x80"])
def test_what_is_no_memory_is_refused(state: bytes) -> None:
    with pytest.raises(ValueError):
        RunMemory.restored(state)
