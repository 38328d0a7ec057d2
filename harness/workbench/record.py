"""A run of the workbench as data: what a report is a pure function of. Shares are in [0, 1], sizes in bytes.

Everything that a report prints stands here: the cases with their verdicts, and the intervals that were drawn from them
(`collecting` draws them again from the same cases and gets the same).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from harness.structured.layers import Layer

RUN_SCHEMA = 1
"""Version of the shape of a run's JSON."""
METRIC, DECISION_TIER = "content_correct", "lenient"
"""What decides, and under which parser."""


class RunError(Exception):
    """A run that cannot be read or is of a newer version; the message says which and what to do."""


class Share(msgspec.Struct, frozen=True, array_like=True):
    """A share of cases, and the ends of its interval."""

    value: float
    low: float
    high: float

    def text(self) -> str:
        """`0.76 [0.71, 0.82]`."""
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


class Difference(msgspec.Struct, frozen=True):
    """A paired difference. `cases` may be fewer than the cell's: `without` names the kinds that were left out."""

    value: float
    low: float
    high: float
    cases: int
    gained: int
    lost: int
    verdict: str
    without: tuple[str, ...] = ()

    def text(self) -> str:
        """`-0.26 [-0.32, -0.20]`."""
        return f"{self.value:+.2f} [{self.low:+.2f}, {self.high:+.2f}]"


class CaseRow(msgspec.Struct, frozen=True, array_like=True):
    """One case of a cell. `at` is its place in the pack."""

    at: int
    strict: Layer
    lenient: Layer
    extractor: str
    tool: str
    finish: str
    tokens: int
    seconds: float
    grammar: str = "off"


class DepthPoint(msgspec.Struct, frozen=True):
    """One point of a decay curve: `form` is `turns`, or `length` (the same words in one turn)."""

    form: str
    depth: int
    cases: int
    right: int
    share: Share


class Cost(msgspec.Struct, frozen=True):
    """What a cell cost: of a case on average. `tokens_per_second` counts what was generated over all seconds."""

    seconds: float
    tokens: float
    tokens_per_second: float


class RungRun(msgspec.Struct, frozen=True, kw_only=True):
    """One cell: a tier under one rung. `shares[parser][layer]`; `died[parser][layer]` counts; `against_baseline` is by
    parser, empty for the baseline itself and where it cannot be said; `moved` counts where cases died under the
    baseline and here (lenient); `kinds[kind]` is cases, right (lenient), parsed (strict)."""

    rung: str
    cases: tuple[CaseRow, ...]
    shares: dict[str, dict[str, Share]]
    died: dict[str, dict[str, int]]
    kinds: dict[str, tuple[int, int, int]]
    cost: Cost
    coverage: dict[str, int] = {}
    against_baseline: dict[str, Difference] = {}
    moved: dict[str, int] = {}
    depth: tuple[DepthPoint, ...] = ()
    tools_right: tuple[int, int] = (0, 0)


class WeightsRow(msgspec.Struct, frozen=True, kw_only=True):
    """A tier's weights as measured from its files' headers. `types` counts tensors by type."""

    tensor_bits: float
    file_bits: float
    file_bytes: int
    weights: int
    types: dict[str, int]
    sha256: str
    note: str = ""


class TierRun(msgspec.Struct, frozen=True, kw_only=True):
    """One tier: its weights, what its numbers are bound to, its cells."""

    tier: str
    weights: WeightsRow
    bound_to: dict[str, str]
    rungs: tuple[RungRun, ...]

    def rung(self, name: str) -> RungRun | None:
        """A cell by its rung."""
        return next((one for one in self.rungs if one.rung == name), None)


class GuardRow(msgspec.Struct, frozen=True):
    """One guard: `ok`, `recorded` (it differs, and that is on record), `failed` (the tier is excluded), `not done`."""

    name: str
    state: str
    reason: str


class ChainRun(msgspec.Struct, frozen=True, kw_only=True):
    """One conversion chain, by itself. `excluded` are tiers that a guard refused, with the reason."""

    name: str
    ecosystem: str
    made_by: str
    baseline: str
    baseline_note: str
    tier_note: str
    cases: int
    detectable: float
    software: dict[str, str]
    guards: tuple[GuardRow, ...]
    tiers: tuple[TierRun, ...]
    excluded: dict[str, str] = {}

    def tier(self, name: str) -> TierRun | None:
        """A tier by its name."""
        return next((one for one in self.tiers if one.tier == name), None)


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """The member of the registry that was measured."""

    name: str
    family: str
    source: str
    parameters: str
    envelope: str
    note: str = ""
    towers: str = ""


class PackRow(msgspec.Struct, frozen=True, kw_only=True):
    """The pack: `kinds` counts its cases; `tools_per_call` how many tools each function call declares."""

    name: str
    version: str
    sha256: str
    cases: int
    kinds: dict[str, int]
    tools_per_call: tuple[int, ...]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """`quant profile`: what each tier of each chain does to the cases, bare or under further rungs."""

    schema: int = RUN_SCHEMA
    kind: Literal["profile"] = "profile"
    model: ModelRow
    pack: PackRow
    machine: dict[str, str]
    chains: tuple[ChainRun, ...]
    stacktap: str

    def chain(self, name: str) -> ChainRun | None:
        """A chain by its name or ecosystem."""
        return next((one for one in self.chains if name in (one.name, one.ecosystem)), None)


class RungRow(msgspec.Struct, frozen=True, kw_only=True):
    """One rung on one half: lenient and strict share, coverage of the grammar, the difference from L0 on the cases that
    the grammar held, and right answers of cases by kind."""

    rung: str
    lenient: Share
    strict: Share
    cases: int
    coverage: str = ""
    against_bare: Difference | None = None
    kinds: dict[str, tuple[int, int]] = {}


class Prescribed(msgspec.Struct, frozen=True, kw_only=True):
    """What one tier was prescribed. `strength`: firm, tentative, none."""

    chain: str
    ecosystem: str
    tier: str
    tensor_bits: float
    rungs: tuple[RungRow, ...]
    rung: str
    strength: str


class _AgainstBar(msgspec.Struct, frozen=True, kw_only=True):
    """A run that holds rates against a bar. `registered` is the threshold that was in force before any number was seen;
    another one makes it post-hoc."""

    schema: int = RUN_SCHEMA
    stacktap: str
    model: ModelRow
    pack: PackRow
    software: dict[str, str]
    machine: dict[str, str]
    threshold: float
    registered: float

    @property
    def post_hoc(self) -> bool:
        """Whether the bar was moved after it had been set."""
        return self.threshold != self.registered


class Prescription(_AgainstBar, frozen=True, kw_only=True):
    """`quant prescribe`: the lowest rung that clears the bar, on the development half."""

    kind: Literal["prescribe"] = "prescribe"
    half: str
    cells: tuple[Prescribed, ...]


class Confirmed(msgspec.Struct, frozen=True, kw_only=True):
    """One prescribed rung measured on the held-out half. `looks` are the ledger's lines on that half, this one last."""

    chain: str
    ecosystem: str
    tier: str
    rung: str
    strength: str
    lenient: Share
    strict: Share
    cases: int
    held: bool
    coverage: str = ""


class LedgerRow(msgspec.Struct, frozen=True):
    """One look at the held-out half: when (UTC, ISO 8601), by which command, at what."""

    at: str
    command: str
    what: str


class Confirmation(_AgainstBar, frozen=True, kw_only=True):
    """`quant confirm`: whether each prescription holds."""

    kind: Literal["confirm"] = "confirm"
    cells: tuple[Confirmed, ...]
    ledger: tuple[LedgerRow, ...]


class ArmRow(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a comparison: a model, one of its tiers, a rung, and what it reached."""

    model: str
    parameters: str
    tier: str
    tensor_bits: float
    file_bytes: int
    rung: str
    lenient: Share
    strict: Share
    seconds: float
    coverage: str = ""
    note: str = ""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """`quant compare`: a small model with a scaffold against a large one without, in one ecosystem."""

    schema: int = RUN_SCHEMA
    kind: Literal["compare"] = "compare"
    ecosystem: str
    pack: PackRow
    software: dict[str, str]
    machine: dict[str, str]
    half: str
    small: ArmRow
    small_bare: ArmRow | None
    large: ArmRow
    difference: Difference
    stacktap: str


Run = Profile | Prescription | Confirmation | Comparison
_KINDS: Mapping[str, type[Run]] = {
    "profile": Profile,
    "prescribe": Prescription,
    "confirm": Confirmation,
    "compare": Comparison,
}


def encode_run(run: Run) -> bytes:
    """As JSON, one object; the order of members is that of the run."""
    return msgspec.json.encode(run) + b"\n"


def decode_run(raw: bytes) -> Run:
    """Parse a run. Raises RunError: no run, or of a newer version."""
    try:
        found = msgspec.json.decode(raw)
        head = found if isinstance(found, dict) else {}
        schema, kind = head.get("schema"), head.get("kind")
        if isinstance(schema, int) and schema > RUN_SCHEMA:
            raise RunError(f"the run has schema version {schema}, this stacktap reads {RUN_SCHEMA}: update stacktap")
        if not isinstance(kind, str) or kind not in _KINDS:
            raise RunError("no run of the workbench: profile, prescribe, confirm and compare write one")
        return msgspec.convert(found, _KINDS[kind])
    except (ValueError, RecursionError) as wrong:
        raise RunError(f"the run is damaged: {wrong}") from None
