"""What an episode took, by the notes of its steps."""

from __future__ import annotations

import math

from harness.dense.measured import measured, taken


def test_the_largest_peak_the_first_wait_and_rates_over_all_steps() -> None:
    first = {
        "prompt_tokens": 100,
        "kept_prompt_tokens": 0,
        "completion_tokens": 11,
        "ttft_seconds": 2.0,
        "prompt_rate": 50.0,
        "generation_rate": 10.0,
        "peak_memory_bytes": 900,
        "raw_text": "kept in the journal only",
    }
    second = {**first, "prompt_tokens": 160, "kept_prompt_tokens": 100, "ttft_seconds": 1.0, "prompt_rate": 20.0}
    second |= {"completion_tokens": 31, "generation_rate": 30.0, "peak_memory_bytes": 1200}
    notes = [*taken(first), *taken(None), *taken(second)]
    assert "raw_text" not in notes[0]
    found = measured(notes)
    assert found["peak_memory_bytes"] == 1200
    assert (found["prompt_tokens"], found["generated_tokens"], found["ttft_seconds"]) == (260, 42, 2.0)
    assert math.isclose(found["prompt_rate"], 160 / (100 / 50 + 60 / 20))
    assert math.isclose(found["generation_rate"], 40 / (10 / 10 + 30 / 30))


def test_what_is_not_said_is_left_out() -> None:
    assert measured([]) == {}
    assert measured([{"completion_tokens": 1, "generation_rate": None, "peak_memory_bytes": None}]) == {
        "generated_tokens": 1
    }
    assert measured([{"peak_memory_bytes": "much", "ttft_seconds": True, "prompt_rate": -1}]) == {}
