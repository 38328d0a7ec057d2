"""A short fuzzing run in the unit tests, every finding of longer ones, and the machinery itself."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from tests.fuzz import damage_json, minimise, worker
from tests.fuzz.material import originals
from tests.fuzz.mutate import Input, from_json, fuzzed
from tests.fuzz.splits import every_single_split
from tests.fuzz.trial import SlowError, limited, tried

FINDINGS = Path(__file__).resolve().parents[1] / "data" / "fuzz"


@pytest.mark.parametrize("path", sorted(FINDINGS.glob("*.json")), ids=lambda path: path.stem)
def test_findings_stay_fixed(path: Path) -> None:
    with limited():
        tried(from_json(path.read_bytes()))


def test_mutated_inputs_get_an_outcome_or_a_note() -> None:
    pool = originals()
    names = set()
    for number in range(600):
        with limited():
            names.update(tried(fuzzed(31, number, pool)))
    assert len(names) > 25


def test_undamaged_material_goes_through() -> None:
    for item in originals()[::40]:
        with limited():
            assert tried(Input("record", item.request, item.response, item.end, item.known_text))


def test_damaging_one_text_changes_nothing_for_the_next() -> None:
    before = repr(damage_json.ODD)
    dice = Random(5)
    for _ in range(3000):
        damage_json.damaged(dice, b'{"a": {"b": [1, {"c": "d"}]}, "e": [[], {}]}')
    assert repr(damage_json.ODD) == before


def test_an_input_is_the_same_each_time() -> None:
    pool = originals()
    assert [fuzzed(5, number, pool) for number in range(50)] == [fuzzed(5, number, pool) for number in range(50)]
    assert fuzzed(5, 1, pool) != fuzzed(6, 1, pool)


def test_an_input_survives_its_file() -> None:
    made = fuzzed(5, 3, originals())
    assert from_json(made.as_json()) == made


def test_a_slow_input_is_stopped() -> None:
    def spin() -> None:
        begun = time.process_time()
        while time.process_time() - begun < 5:
            pass

    with pytest.raises(SlowError), limited(0.05):
        spin()


def test_a_failing_input_is_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(made: Input) -> list[str]:
        if b"{x}" in made.response:
            raise ValueError("found")
        return []

    monkeypatch.setattr(minimise, "tried", fails)
    small = minimise.minimised(Input("record", b"request", b"a" * 500 + b"{x}" + b"b" * 700, cuts=(1, 2)))
    assert small == Input("record", b"", b"{x}")


def test_a_run_is_resumed_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(worker, "_one", lambda share, number, pool, state: seen.append(number))
    monkeypatch.setattr(worker, "resource", _NoLimits)
    worker.work(worker.Share(1, 6, 1, 2, tmp_path))
    worker.work(worker.Share(1, 12, 1, 2, tmp_path))
    assert seen == [1, 3, 5, 7, 9, 11]


class _NoLimits:
    """Stands for `resource`: the limit of a worker must not come to hold for the tests' own process."""

    RLIMIT_AS = 0

    @staticmethod
    def setrlimit(*_: object) -> None: ...

    @staticmethod
    def getrlimit(*_: object) -> tuple[int, int]:
        return 0, 0

    @staticmethod
    def getpagesize() -> int:
        return 4096


def test_short_streams_split_at_every_place() -> None:
    streams, places = every_single_split(8)
    assert streams == 8
    assert places > 300
