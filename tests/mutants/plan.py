"""Which modules get faults, and which tests have to notice them: the fast ones that say what the module does."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path

from tests.mutants.mutate import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]

_VERDICTS = ("tests/golden", "tests/proxy/classify", "tests/cases", "tests/captures")
_DIALECTS = ("tests/golden", "tests/stacks/dialects", "tests/cases")
TESTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("proxy/classify/", _VERDICTS),
    ("proxy/exchange_view.py", _VERDICTS),
    ("stacks/dialects/", _DIALECTS),
    ("stacks/formats/", ("tests/golden", "tests/stacks/formats", "tests/stacks/test_recipes.py", "tests/cases")),
    ("stacks/sse.py", ("tests/stacks/test_sse.py", *_DIALECTS)),
    ("stacks/ndjson.py", ("tests/stacks/test_ndjson.py", *_DIALECTS)),
    ("stacks/strictjson.py", ("tests/stacks/test_strictjson.py", *_DIALECTS)),
    ("stacks/jsontext.py", ("tests/stacks/test_strictjson.py", "tests/stacks/test_jsonspans.py", *_DIALECTS)),
    ("stacks/jsonspans.py", ("tests/stacks/test_jsonspans.py", "tests/stacks/test_locate.py", *_DIALECTS)),
    ("stacks/locate.py", ("tests/stacks/test_locate.py", *_DIALECTS)),
    ("stacks/errors.py", ("tests/stacks/test_errors.py", *_DIALECTS)),
    ("stacks/turn.py", _DIALECTS),
)
"""Beginning of a module's path, and its tests: they run for a fault in a table, a constant or a default."""
EVERY = (
    "tests/golden",
    "tests/cases",
    "tests/captures",
    "tests/proxy/classify",
    "tests/proxy/test_exchange_files.py",
    "tests/proxy/test_explain.py",
    "tests/stacks/dialects",
    "tests/stacks/formats",
    "tests/stacks/test_errors.py",
    "tests/stacks/test_jsonspans.py",
    "tests/stacks/test_locate.py",
    "tests/stacks/test_ndjson.py",
    "tests/stacks/test_sse.py",
    "tests/stacks/test_strictjson.py",
)
"""The fast tests that run code of these modules: for a fault inside a function, those of them that call it."""

LONG = (
    "tests/stacks/formats/test_round_trips.py",
    "tests/stacks/dialects/test_scale.py",
    "tests/stacks/dialects/test_captures.py",
    "tests/stacks/dialects/test_requests.py::test_no_request_raises",
    "tests/proxy/classify/test_bad_input.py",
)
"""Of those, the ones that take most of the time. `--quick` leaves them out: a lower bound of what is noticed."""


def modules() -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Every module that gets faults, with its tests."""
    for start, tests in TESTS:
        place = ROOT / start
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            yield path, tests


def chosen(count: int, seed: int) -> list[tuple[Mutant, tuple[str, ...]]]:
    """A random choice of faults, the same for the same seed and code; each with the tests that must notice it."""
    sources = {path: path.read_bytes() for path, _ in modules()}
    every = [
        (mutant, tests, path)
        for path, tests in modules()
        for mutant in mutants(path.relative_to(ROOT).as_posix(), sources[path])
    ]
    # By hash and not by place, so that a change elsewhere in the code leaves the choice nearly as it was.
    every.sort(key=lambda entry: sha256(f"{seed}:{entry[0].id}".encode()).digest())
    parsing = ((mutant, tests) for mutant, tests, path in every if mutant.parses(sources[path]))
    return list(islice(parsing, count))
