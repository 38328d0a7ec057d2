"""Of 200 mutants the linter names nine of ten that change a verdict; on 200 sound checks it says nothing."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from harness.packs.lint.judging import units_of
from harness.packs.lint.linting import lint_task
from harness.packs.lint.model import Finding
from harness.packs.model import PackTask
from tests.support.mutated_checks import Mutant, changes_a_verdict, mutants, with_check
from tests.support.sound_checks import FAMILIES, Sound, sound_checks

SEED = 20261201
USUAL = {"anchor", "lines", "case", "quotes"}
"""Slips that packs are known for: an anchor left out, a dot or an anchor that stops at a line, case, quotes."""


def named(task: PackTask) -> list[Finding]:
    return lint_task(task, units_of(task), "stacktap", repairs=False)


def drawn(seed: int, most: int) -> list[tuple[Sound, Mutant]]:
    """Mutants of two checks of each family that change a verdict, out of `most` in an order drawn by the seed."""
    sound = list(islice(sound_checks(seed), 2 * len(FAMILIES)))
    every = [(one, mutant) for one in sound for mutant in mutants(one.check)]
    random.Random(seed).shuffle(every)
    assert len(every) >= most
    return [(one, mutant) for one, mutant in every[:most] if changes_a_verdict(one, mutant.check)]


def missed(pairs: list[tuple[Sound, Mutant]]) -> list[Mutant]:
    return [mutant for one, mutant in pairs if not named(with_check(one.task, mutant.check))]


def test_no_false_alarm_on_200_sound_checks() -> None:
    sound = list(islice(sound_checks(SEED), 210))
    assert len({str(one.task) for one in sound}) >= 150
    alarms = [(one.check, found) for one in sound if (found := named(one.task))]
    assert alarms == []


def test_nine_of_ten_of_200_mutants_that_change_a_verdict_are_named() -> None:
    changing = drawn(SEED, 200)
    assert len(changing) >= 90
    unnamed = missed(changing)
    assert len(unnamed) <= 0.1 * len(changing), unnamed
    usual = [mutant for _, mutant in changing if mutant.slip in USUAL]
    assert {mutant.slip for mutant in usual} == USUAL
    assert len([mutant for mutant in unnamed if mutant.slip in USUAL]) <= 0.1 * len(usual), unnamed


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_same_with_other_seeds(seed: int) -> None:
    changing = drawn(seed, 450)
    assert len(missed(changing)) <= 0.1 * len(changing)
    assert not [one.check for one in islice(sound_checks(seed), 63) if named(one.task)]


def test_a_mutant_that_is_its_original_would_be_seen_to_change_nothing() -> None:
    for one in islice(sound_checks(SEED), len(FAMILIES)):
        assert not changes_a_verdict(one, one.check)
        assert any(changes_a_verdict(one, mutant.check) for mutant in mutants(one.check))
