"""What a report on items says, as data: `dense.json`. Numbers only; words are the page's."""

from __future__ import annotations

import msgspec

EXPERIMENT_VERSION = 1
"""Version of `dense.json`."""


class Share(msgspec.Struct, frozen=True, omit_defaults=True):
    """`hits` of `runs` with Wilson's interval; without runs there is none, and `word` is `rej`, `n/r` or `none`."""

    hits: int
    runs: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    word: str = ""


class Pass(msgspec.Struct, frozen=True):
    """pass^k with its 95 % interval (bootstrap of the runs within each task)."""

    k: int
    value: float
    low: float
    high: float


class Weights(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a configuration's weights. `fake`: quantised and dequantised again, so that their values are
    those of the width but their kernels and memory are not. Bits per weight are by tensors' bytes."""

    label: str = ""
    fake: bool = False
    values: str = ""
    bits: float | None = None
    tensor_bits: float | None = None
    tensor_bytes: int | None = None
    held_bytes: int | None = None
    sha256: str = ""
    source: str = ""
    commands: tuple[tuple[str, ...], ...] = ()


class Memory(msgspec.Struct, frozen=True, omit_defaults=True):
    """Bytes. `peak`: the largest that an episode's process reported of the engine, over `episodes` that did;
    `estimate`: the same with the tensors' bytes as quantised in the place of those that were loaded."""

    peak: int
    episodes: int
    estimate: int | None = None


class Configuration(msgspec.Struct, frozen=True, omit_defaults=True):
    """One configuration: model, stack, condition. Counts are of its runs; `modes` are Dense Bench's seven and
    `success`, `apart` those without a word of their own, `not_run` and `served` by layer and by cause. `steps` are
    assistant steps by outcome, `calls` by verdict; `failing` counts failed runs by the user turn (from 0) that went
    wrong first. `near_misses` of our own items: (right_tool_wrong_args, of these nothing missing but going there).
    `rates` are medians over episodes. `identical`: every task's runs wrote the same bytes."""

    name: str
    model: str
    stack: str
    condition: str
    engine: str
    completion: Share
    weights: Weights
    tasks: dict[str, Share]
    declared: int = 0
    episodes: int = 0
    in_process: bool = False
    modes: dict[str, int] = {}
    apart: dict[str, int] = {}
    not_run: dict[str, int] = {}
    served: dict[str, int] = {}
    steps: dict[str, int] = {}
    calls: dict[str, int] = {}
    failing: dict[str, int] = {}
    near_misses: tuple[int, int] = (0, 0)
    memory: Memory | None = None
    rates: dict[str, float] = {}
    passes: tuple[Pass, ...] = ()
    no_passes: str = ""
    task_passes: dict[str, float] = {}
    identical: tuple[str, ...] = ()


class Floor(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a task that nobody completed was not: over all configurations its runs, their modes, assistant steps by
    outcome, runs without any call, and failed runs by the user turn (from 0) that went wrong first; `turns` is how many
    the task has, None where that is not known here."""

    task: str
    runs: int
    modes: dict[str, int] = {}
    steps: dict[str, int] = {}
    silent: int = 0
    failing: dict[str, int] = {}
    turns: int | None = None


class Family(msgspec.Struct, frozen=True):
    """Configurations of one model family in the order of their width (`bits`, `names`), and how completion moves with
    more bits: `up`, `down`, `level` or `mixed`; `shown` whether some interval pair of it is apart."""

    name: str
    bits: tuple[float, ...]
    names: tuple[str, ...]
    values: tuple[float, ...]
    direction: str
    shown: bool


class Experiment(msgspec.Struct, frozen=True):
    """A whole run. `settings` are what all cells are bound to alike, `host` and `tools` what the recordings' manifests
    say; `overlapping` and `apart` are pairs of configuration names; `runs_each` the fewest and the most runs of a cell;
    `resolves` the smallest difference of two completions around one half that so many runs would show."""

    run: str
    stacktap: str
    configurations: tuple[Configuration, ...]
    tasks: tuple[str, ...]
    floors: tuple[Floor, ...]
    overlapping: tuple[tuple[str, str], ...]
    apart: tuple[tuple[str, str], ...]
    runs_each: tuple[int, int]
    families: tuple[Family, ...] = ()
    resolves: float | None = None
    underpowered: bool = False
    baselines: tuple[str, ...] = ()
    settings: dict[str, str] = {}
    host: dict[str, str] = {}
    tools: dict[str, str] = {}
    findings: tuple[str, ...] = ()
    budget: int | None = None
    version: int = EXPERIMENT_VERSION
