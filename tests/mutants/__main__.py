"""`python -m tests.mutants`: random mutants of the classifier and the parsers against the fast tests.

A mutant is one small change of the source: a comparison turned round, `and` for `or`, a `not` taken away, a number or
text changed, a result replaced by None, a condition made constant. Each is tried in a copy of the repository with the
tests of its package; one that no test notices has survived, and is printed with its line, to be looked at.
"""

from __future__ import annotations

import argparse
import ast
import copy
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUITES: dict[str, tuple[str, ...]] = {
    "proxy/classify": ("tests/proxy/classify", "tests/cases", "tests/captures"),
    "proxy/wire_message.py": ("tests/proxy",),
    "proxy/exchange_files.py": ("tests/proxy", "tests/cases"),
    "proxy/exchange_view.py": ("tests/proxy/classify", "tests/cases"),
    "results/rates.py": ("tests/results",),
    "results/labels.py": ("tests/results",),
    "stacks/formats": ("tests/stacks/formats", "tests/proxy/classify"),
    "stacks/dialects": ("tests/stacks/dialects", "tests/proxy/classify"),
}
COPIED = ("results", "stacks", "proxy", "probe", "stacktap", "tests", "docs", "pyproject.toml")
_TURNED = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: the file, the line, what was done, and the new source."""

    path: Path
    line: int
    what: str
    source: str


def sites(tree: ast.Module) -> Iterator[ast.AST]:
    """Nodes that can be mutated; documentation, types and defaults of records are left alone."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        yield from (node for node in ast.walk(function) if _mutable(node))


def _mutable(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    if isinstance(node, ast.Return):
        return node.value is not None and not isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and not isinstance(node.value, bool)
    return isinstance(node, (ast.Compare, ast.BoolOp, ast.If, ast.IfExp))


def mutate(node: ast.AST, dice: random.Random) -> str:
    """Change a node in place; says what was done."""
    if isinstance(node, ast.Compare):
        place = dice.randrange(len(node.ops))
        new = _TURNED[type(node.ops[place])]
        node.ops[place] = new()
        return f"comparison became {new.__name__}"
    if isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return f"became {type(node.op).__name__}"
    if isinstance(node, (ast.If, ast.IfExp)):
        value = dice.random() < 0.5
        node.test = ast.Constant(value)
        return f"condition became {value}"
    if isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd()
        node.operand = ast.Call(ast.Name("bool", ast.Load()), [node.operand], [])
        return "`not` taken away"
    if isinstance(node, ast.Return):
        node.value = ast.Constant(None)
        return "returns None"
    assert isinstance(node, ast.Constant)
    node.value = int(node.value) + dice.choice((-1, 1))
    return f"number became {node.value}"


def draw(files: list[Path], dice: random.Random) -> Mutant:
    """A random mutant of one of the files, files weighted by their sites."""
    while True:
        path = dice.choice(files)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found = list(sites(tree))
        if not found:
            continue
        chosen = dice.randrange(len(found))
        changed = copy.deepcopy(tree)
        node = list(sites(changed))[chosen]
        what = mutate(node, dice)
        return Mutant(path, getattr(node, "lineno", 0), what, ast.unparse(ast.fix_missing_locations(changed)))


def survives(mutant: Mutant, copy_root: Path, suite: tuple[str, ...], seconds: float) -> bool:
    """Whether the suite passes with the mutant in place."""
    target = copy_root / mutant.path.relative_to(ROOT)
    original = target.read_text(encoding="utf-8")
    target.write_text(mutant.source, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:randomly", "--no-header", *suite]
    try:
        done = subprocess.run(command, cwd=copy_root, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return False
    finally:
        target.write_text(original, encoding="utf-8")
    return done.returncode == 0


def main() -> int:
    """Try the wanted number of mutants within the wanted time; exit code 1 under the wanted share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="a prefix of the paths to mutate")
    parser.add_argument("--share", type=float, default=0.85)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    areas = {
        place: suite for place, suite in SUITES.items() if place.startswith(options.only) and (ROOT / place).exists()
    }
    pool = [(path, suite) for place, suite in areas.items() for path in _files(ROOT / place)]
    killed = tried = 0
    ends = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        copy_root = Path(folder)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy_root / name, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy(source, copy_root / name)
        while tried < options.mutants and time.monotonic() < ends:
            weights = [path.stat().st_size for path, _ in pool]
            path, suite = dice.choices(pool, weights)[0]
            mutant = draw([path], dice)
            tried += 1
            if survives(mutant, copy_root, suite, 300):
                print(f"survived: {path.relative_to(ROOT)}:{mutant.line} {mutant.what}", flush=True)
            else:
                killed += 1
    print(f"{killed} of {tried} mutants noticed ({100 * killed / max(1, tried):.0f} %)")
    return 0 if killed >= options.share * tried else 1


def _files(place: Path) -> list[Path]:
    return [place] if place.is_file() else sorted(path for path in place.rglob("*.py") if path.name != "__init__.py")


if __name__ == "__main__":
    sys.exit(main())
