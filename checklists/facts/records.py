"""The facts of a report: everything that its Markdown and HTML forms say, and nothing that they compute besides.

`report.json` is a `Report` as JSON; `checklists/report/report.schema.json` is its schema. Times are microseconds unless
the name says otherwise; counts are of exchanges unless it says otherwise. All text of a recording is untrusted.
"""

from __future__ import annotations

import msgspec

from checklists.items.records import Checklist
from results.manifest import Fact

REPORT_SCHEMA = 1
"""Version of the shape of `Report`."""


class Ratio(msgspec.Struct, frozen=True):
    """`hits` of `trials`. `value` and the Wilson interval `low`..`high` (95 %) are None where `trials` is 0;
    `undefined` is then the word that stands there: rej, n/r or none."""

    hits: int
    trials: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    undefined: str = ""


class RateFacts(msgspec.Struct, frozen=True):
    """The named rates (`results.rates`), and what stayed outside of fidelity by layer. `without_tools` requests are in
    none of them: they offered no tools while others did."""

    fidelity: Ratio
    fidelity_open: Ratio
    cleared: Ratio
    naive: Ratio
    outside: dict[str, int]
    undetermined: int
    without_tools: int = 0
    cleared_open: Ratio = Ratio(0, 0, undefined="none")


class ServerFacts(msgspec.Struct, frozen=True):
    """One upstream as the manifest has it."""

    name: str
    url: str
    facts: dict[str, Fact]


class RecordingFacts(msgspec.Struct, frozen=True):
    """One journal: how much of it could be read, and what was wrong with it."""

    name: str
    exchanges: int
    open_attempts: int
    problems: tuple[str, ...] = ()
    manifest_problem: str = ""


class Counted(msgspec.Struct, frozen=True):
    """An outcome (`layer.code`), how often it came, its meaning in words, and the first attempt that has it."""

    name: str
    count: int
    meaning: str
    first_attempt: int
    recording: str = ""


class Station(msgspec.Struct, frozen=True):
    """One place on a request's way: `entered` exchanges came so far, `stopped` of them went no further, by outcome
    (`stops`) and by whose fault (`at_fault`)."""

    key: str
    title: str
    meaning: str
    entered: int
    stopped: int
    stops: dict[str, int]
    at_fault: dict[str, int]


class ShownBytes(msgspec.Struct, frozen=True):
    """Cited bytes as text with what stands around them. `before`, `cited` and `after` are decoded wire bytes; where
    the wire was not at hand, `cited` is the quote and `quoted` is true. `left_out` bytes are missing in the middle of
    `cited` (after `cited`, before `cited_end`)."""

    attempt: int
    direction: str
    start: int
    end: int
    why: str
    cited: str
    before: str = ""
    after: str = ""
    cited_end: str = ""
    left_out: int = 0
    quoted: bool = False


class Exemplar(msgspec.Struct, frozen=True):
    """One exchange of a group, with its bytes."""

    attempt: int
    recording: str
    upstream: str
    asked: str
    status: int | None
    detail: str
    evidence: tuple[ShownBytes, ...] = ()


class FaultGroup(msgspec.Struct, frozen=True):
    """Exchanges that failed alike: same outcome, fault, stack, signature and remedy. `said` is what that means for
    somebody whose agent does not work; `attempts` are the first few, as `attempt` or `recording/attempt`; `upstreams`
    counts them by server. `limits` are the output limits (tokens) that the requests sent, where one cut the answer."""

    outcome: str
    meaning: str
    said: str
    at_fault: str
    model_ran: str
    grade: str
    confidence: str
    delivery: str
    stack: str
    signature: str
    count: int
    attempts: tuple[str, ...]
    upstreams: dict[str, int]
    remedy: str
    decide_by: str
    exemplar: Exemplar
    limits: tuple[int, ...] = ()


class Spread(msgspec.Struct, frozen=True):
    """`n` values; percentiles by nearest rank, values rounded to three significant digits."""

    n: int
    lowest: int
    p50: int
    p90: int
    p99: int
    highest: int


class TimingFacts(msgspec.Struct, frozen=True):
    """Of one upstream: times in microseconds from the request's first byte, tokens as the server reported them. None
    where no exchange gave such a value. `first_token` is of streams alone: the first event that carries text, reasoning
    or a call. `without_usage` answers came without token counts."""

    upstream: str
    stack: str
    exchanges: int
    streamed: int
    first_byte: Spread | None
    first_token: Spread | None
    duration: Spread | None
    prompt_tokens: Spread | None
    completion_tokens: Spread | None
    without_usage: int


class CellFacts(msgspec.Struct, frozen=True):
    """Exchanges of one upstream, model and (where tagged) task of a recording: what came, and the three rates."""

    upstream: str
    stack: str
    model: str
    tags: dict[str, str]
    exchanges: int
    model_ran: dict[str, int]
    at_fault: dict[str, int]
    rates: RateFacts


class SeedMeanFacts(msgspec.Struct, frozen=True):
    """Mean of the rates of the seeds; `low`..`high` is the interval that comparisons use, of the kind `interval`."""

    value: float | None
    low: float | None
    high: float | None
    interval: str
    seeds_used: int
    seeds: int
    undefined: str = ""


class GridCellFacts(msgspec.Struct, frozen=True):
    """One cell of a grid (`results.statistics.cells`). Counts are of turns, of episodes in `ended_by`, `completed` and
    `not_run`."""

    model: str
    stack: str
    condition: str
    task: str
    per_seed: SeedMeanFacts
    per_seed_open: SeedMeanFacts
    pooled: Ratio
    naive: Ratio
    cleared: Ratio
    first_turn: Ratio
    completed: Ratio
    produced: int
    nonresponses: dict[str, int]
    ended_by: dict[str, int]
    not_run: dict[str, int]
    missing: int
    channels: dict[str, int]
    labels: dict[str, int]
    retries: int
    warnings: tuple[str, ...] = ()


class GridFacts(msgspec.Struct, frozen=True):
    """The episodes of a grid: its cells, what may and may not be ranked, what is owed to the stack, and what is wrong
    with the run."""

    episodes: int
    succeeded: int
    cells: tuple[GridCellFacts, ...]
    cells_left_out: int
    rankings: tuple[str, ...]
    owed: str
    findings: tuple[str, ...]
    ended_by: dict[str, int]


class AskedServer(msgspec.Struct, frozen=True):
    """One upstream that was asked: `asked` exchanges, `good` of which ended as they should."""

    name: str
    asked: int
    good: int


class Beside(msgspec.Struct, frozen=True):
    """A verdict that a command of stacktap left beside the journal, by experiment: `by` is `diagnose` or `pair`.
    It is better founded than what the record shows by itself; `grade` is empty where no fault was found. `kind` is as
    in `Verdict`. Of a pairing: `agent`, the server's `stack` and `version`, the step at which it broke (`step` of
    `steps`, counted from 1; 0 where it broke at none) with what is done there, and the server's own words (`quote`)."""

    by: str
    headline: str
    kind: str = "faults"
    outcome: str = ""
    meaning: str = ""
    at_fault: str = ""
    model_ran: str = ""
    grade: str = ""
    remedy: str = ""
    decide_by: str = ""
    explained: tuple[str, ...] = ()
    agent: str = ""
    stack: str = ""
    version: str = ""
    step: int = 0
    steps: int = 0
    doing: str = ""
    quote: str = ""


class Change(msgspec.Struct, frozen=True):
    """What to change (or, with `decides`, what to ask), for how many exchanges, and which outcome it would mend, the
    commonest first where it is several (`also`). `where` names servers; `client` is true where nothing is to be changed
    on a server but in the program that asks."""

    change: str
    count: int
    outcome: str
    why: str
    where: str = ""
    decides: bool = False
    also: tuple[str, ...] = ()
    client: bool = False


class Verdict(msgspec.Struct, frozen=True):
    """The first screen. `kind`: nothing (no request asked a model), clean, faults, open (faults, none of them
    decided). `headline` is one or two sentences, `sentences` what follows from the rates, `changes` in the order of
    how much they mend."""

    kind: str
    headline: str
    sentences: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()


class OpenQuestion(msgspec.Struct, frozen=True):
    """What could not be known, why, and which command or request would tell."""

    what: str
    why: str
    tell: str


class RunFacts(msgspec.Struct, frozen=True):
    """Everything said of one run. `asked` exchanges asked a model for something, `service` did not (model lists, health
    checks); `offered` of the asked ones offered tools. `good` ended as they should, `offered_good` of those with tools;
    `offered_ran` is `model_ran` of those with tools. `replayed` names the recordings out of which answers were served,
    with counts. Dicts are sorted by key or by the
    order of the taxonomy. `cells_left_out` stops counting at 300 cells beyond those that were kept."""

    run: str
    kind: str
    created_us: int | None
    command: str
    stacktap: str
    facts: dict[str, Fact]
    host: dict[str, Fact]
    servers: tuple[ServerFacts, ...]
    recordings: tuple[RecordingFacts, ...]
    exchanges: int
    asked: int
    service: int
    offered: int
    good: int
    by_server: tuple[AskedServer, ...]
    verdict: Verdict
    beside: tuple[Beside, ...]
    rates: RateFacts
    model_ran: dict[str, int]
    at_fault: dict[str, int]
    path: tuple[Station, ...]
    outcomes: tuple[Counted, ...]
    flags: tuple[Counted, ...]
    groups: tuple[FaultGroup, ...]
    groups_left_out: int
    cells: tuple[CellFacts, ...]
    cells_left_out: int
    grid: GridFacts | None
    timings: tuple[TimingFacts, ...]
    checklist: Checklist | None
    unknown: tuple[OpenQuestion, ...]
    offered_good: int = 0
    offered_ran: dict[str, int] = {}
    replayed: dict[str, int] = {}


class Report(msgspec.Struct, frozen=True):
    """One report on one or several runs. `stacktap` is the version that made it."""

    schema: int
    stacktap: str
    runs: tuple[RunFacts, ...]
