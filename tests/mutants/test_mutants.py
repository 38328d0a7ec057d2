"""The mutator: what it changes, what it leaves alone, and that a fault is noticed or survives as the tests have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants import run
from tests.mutants.mutate import Mutant, mutants
from tests.mutants.plan import chosen
from tests.mutants.worker import changed

SOURCE = '''"""Words."""

import re

LIMIT = 3
PATTERN = re.compile("a+")


def clip(value: int, low: int = 0) -> int:
    """Words."""
    if value < low and not LIMIT == 4:
        raise ValueError("too low")
    return min(value, LIMIT)
'''


def changes() -> set[tuple[str, str]]:
    return {(mutant.old, mutant.text) for mutant in mutants("x.py", SOURCE.encode())}


def test_each_kind_of_slip_is_there() -> None:
    assert changes() >= {
        ("3", "4"),
        ("0", "1"),
        ("value < low", "(value <= low)"),
        ("LIMIT == 4", "(LIMIT != 4)"),
        ("not LIMIT == 4", "(LIMIT == 4)"),
        ("value < low and not LIMIT == 4", "(value < low or not LIMIT == 4)"),
        ("value < low and not LIMIT == 4", "(value < low)"),
        ("return min(value, LIMIT)", "return None"),
        ("min(value, LIMIT)", "(max(value, LIMIT))"),
    }


def test_words_patterns_and_errors_are_left_alone() -> None:
    old = {before for before, _ in changes()}
    assert not old & {'"a+"', '"too low"', '"""Words."""'}


def test_how_much_of_a_long_text_is_looked_at_is_left_alone() -> None:
    found = {(mutant.old, mutant.text) for mutant in mutants("x.py", b"a = text[:4000]\nb = text[1:3]\nc = 4000\n")}
    assert found == {("1", "2"), ("3", "4"), ("4000", "4001")}


def test_none_for_false_is_no_fault() -> None:
    found = {(mutant.old, mutant.text) for mutant in mutants("x.py", b"def f():\n    return False\n")}
    assert found == {("False", "True")}
    assert len(mutants("x.py", b"def f():\n    return 0\n")) == 2


def test_every_mutant_differs_and_parses() -> None:
    source = SOURCE.encode()
    for mutant in mutants("x.py", source):
        assert mutant.applied(source) != source
        compile(mutant.applied(source), "x.py", "exec")


def test_the_choice_is_the_same_each_time() -> None:
    first = chosen(5, 1)
    assert first == chosen(5, 1)
    assert len({mutant.id for mutant, _ in first}) == 5
    assert first != chosen(5, 2)


SIGN = """LIMIT = 0


def negative(value):
    return value < LIMIT


def unused(value):
    return value + 1
"""
SIGN_TESTS = """import pytest
from stacks.sign import negative


@pytest.fixture(scope="module")
def zero():
    return negative(0)


def test_something_else():
    assert True


def test_zero(zero):
    assert not zero


def test_that_fails():
    assert negative(1)
"""


def fault(old: str, text: str) -> Mutant:
    start = SIGN.index(old)
    return Mutant("stacks/sign.py", SIGN.count("\n", 0, start) + 1, start, start + len(old), old, text, "x")


def test_faults_are_noticed_or_survive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in run.FOLDERS:
        (tmp_path / "root" / name).mkdir(parents=True)
    (tmp_path / "root" / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\npythonpath = ["."]\nmarkers = ["slow", "real"]'
    )
    (tmp_path / "root" / "stacks" / "sign.py").write_text(SIGN)
    (tmp_path / "root" / "tests" / "test_sign.py").write_text(SIGN_TESTS)
    monkeypatch.setattr(run, "ROOT", tmp_path / "root")
    monkeypatch.setattr(run, "FOREIGN", "")
    tests = ("tests/test_sign.py",)
    tree = run.Tree(tmp_path / "copy", tests, slack=1)
    assert tree.sound() == ["tests/test_sign.py::test_that_fails"]
    found = {}
    for old, text in (
        ("value < LIMIT", "value <= LIMIT"),
        ("value < LIMIT", "(value < LIMIT)"),
        ("value + 1", "value - 1"),
        ("0", "1"),
        ("0", "-1"),
        ("return value < LIMIT", "while True: pass"),
    ):
        survived, _, said = tree.survives(fault(old, text), tests)
        found[text] = survived, said
    tree.close()
    assert [survived for survived, _ in found.values()] == [False, True, True, False, True, False]
    assert found["value <= LIMIT"][1] == found["1"][1] == "tests/test_sign.py::test_zero"
    assert (tmp_path / "copy" / "stacks" / "sign.py").read_text() == SIGN


@pytest.mark.parametrize(
    ("old", "text", "names"),
    [
        ("value < LIMIT", "value <= LIMIT", ["negative"]),
        ("value + 1", "value - 1", ["unused"]),
        ("0", "1", None),
        ("value < LIMIT", "(value < LIMIT)", ["negative"]),
    ],
)
def test_which_functions_a_fault_changes(old: str, text: str, names: list[str] | None) -> None:
    found = changed("sign.py", SIGN.encode(), fault(old, text).applied(SIGN.encode()))
    assert (list(found) if found is not None else None) == names


def test_faults_in_classes_defaults_and_comprehensions() -> None:
    source = b"class A:\n    size = 3\n    def f(self, n=5):\n        return n + 1\nROWS = [n * 7 for n in (1, 2)]\n"
    for old, new, names in ((b"3", b"4", None), (b"5", b"6", None), (b"7", b"8", None), (b"n + 1", b"n", ["A.f"])):
        found = changed("a.py", source, source.replace(old, new))
        assert (list(found) if found is not None else None) == names


def test_what_follows_a_fault_stays_on_its_line() -> None:
    source = b"def f(a, b):\n    return (a or\n        b)\n\ndef g():\n    return 1\n"
    mutant = Mutant("x.py", 2, source.index(b"a or"), source.index(b"b)\n") + 1, "a or\n        b", "(a and b)", "x")
    assert mutant.applied(source).splitlines()[4:] == source.splitlines()[4:]
    assert list(changed("x.py", source, mutant.applied(source)) or ()) == ["f"]
