from __future__ import annotations

import pytest

from harness.looping import RULE, goes_in_circles


@pytest.mark.parametrize(
    ("letters", "circles"),
    [
        ("", False),
        ("aa", False),
        ("aaa", True),
        ("baaa", True),
        ("abab", False),
        ("ababab", True),
        ("abcabcabc", True),
        ("abcabcab", False),
        ("abcdabcdabcd", False),
        ("abacadae", False),
        ("aabb" * 2, False),
    ],
)
def test_cycles(letters: str, circles: bool) -> None:
    assert goes_in_circles([(letter, "{}") for letter in letters]) is circles


def test_other_arguments_are_another_call() -> None:
    assert not goes_in_circles([("read", str(number)) for number in range(50)])


def test_many_calls_of_which_none_is_new() -> None:
    calls = [("read", str(number * number % 5)) for number in range(3 + RULE.standstill)]
    aperiodic = [("read", letter) for letter in "abcde" + "acebdacbedba"[: RULE.standstill]]
    assert goes_in_circles(aperiodic)
    assert not goes_in_circles(aperiodic[:-1])
    assert goes_in_circles(calls)
