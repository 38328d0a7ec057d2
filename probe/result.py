"""What one probe found: whether it ran, what the server supports, the value, and what that rests on. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["ran", "failed", "skipped", "not_applicable"]
"""Execution: `failed` means the probe itself got no usable answer; `skipped` that it was not allowed or paid for."""

Support = Literal["yes", "no", "partial", "ignored", "refused", "unknown", "not_applicable"]
"""Capability: `ignored` means accepted and without effect, `refused` an error that names it."""


@dataclass(frozen=True, slots=True)
class ProbeEvidence:
    """A citation: wire bytes `start` to `end` of a direction of an attempt of the probe's run, and what they say."""

    attempt: int
    direction: str
    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """One finding. `name` is `probe.item` (`tool_choice.required`); `source` says how it was found out."""

    name: str
    status: Status
    support: Support = "unknown"
    value: Any = None
    source: str = ""
    why: str = ""
    outcome: str = ""
    """`layer.code` of the exchange that decided it, where one did."""
    evidence: tuple[ProbeEvidence, ...] = ()

    def facts(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)
