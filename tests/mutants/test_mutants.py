"""The mutator: what it changes, what it leaves alone, and that a fault is noticed or survives as the tests have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants import run
from tests.mutants.mutate import Mutant, mutants
from tests.mutants.plan import chosen

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


@pytest.mark.parametrize(("text", "survives"), [("value <= 0", False), ("(value < 0)", True)])
def test_a_fault_is_noticed_or_survives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, survives: bool
) -> None:
    for name in run.FOLDERS:
        (tmp_path / "root" / name).mkdir(parents=True)
    (tmp_path / "root" / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\npythonpath = ["."]\nmarkers = ["slow", "real"]'
    )
    source = b"def negative(value):\n    return value < 0\n"
    (tmp_path / "root" / "stacks" / "sign.py").write_bytes(source)
    (tmp_path / "root" / "tests" / "test_sign.py").write_text(
        "from stacks.sign import negative\n\ndef test_zero():\n    assert not negative(0)\n"
    )
    monkeypatch.setattr(run, "ROOT", tmp_path / "root")
    tree = run.Tree(tmp_path / "copy")
    start = source.index(b"value < 0")
    mutant = Mutant("stacks/sign.py", 2, start, start + 9, "value < 0", text, "comparison")
    assert tree.survives(mutant, ("tests/test_sign.py",))[0] is survives
    assert (tmp_path / "copy" / "stacks" / "sign.py").read_bytes() == source
