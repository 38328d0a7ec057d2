"""What the plans of cells and the manifests of recordings say: engine, weights, settings, machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.abandoned import recordings_of
from harness.dense.experiment.records import Weights
from results.episodes import CellPlan
from results.manifest import Fact, Manifest, ManifestError, read_manifest
from stacks.stack_names import stack_name

_ALIKE = ("temperature", "top_p", "max_tokens", "decoder_seed", "turns", "retries", "system_prompt", "context_length")


def _fact(plan: CellPlan, name: str) -> Any:
    fact = plan.facts.get(name)
    return None if fact is None else fact.value


def engine_of(plans: Sequence[CellPlan]) -> str:
    found = [str(value) for plan in plans if (value := _fact(plan, "stack"))]
    return (stack_name(found[0]) or found[0]) if found else ""


def made_of(plan: CellPlan) -> Mapping[str, Any]:
    """The fact `weights_made`: what the manifest of `quant make` says of the model."""
    value = _fact(plan, "weights_made")
    return value if isinstance(value, dict) else {}


def weights_of(plans: Sequence[CellPlan]) -> Weights:
    if not plans:
        return Weights()
    made = made_of(plans[0])
    quantization = _fact(plans[0], "quantization")
    measured = _number(_fact(plans[0], "bits_per_weight"))
    commands = made.get("commands")
    return Weights(
        label=str(made.get("label") or (quantization if isinstance(quantization, str) else "")),
        fake=bool(made.get("fake")),
        values=str(made.get("values") or ""),
        bits=_number(made.get("bits")),
        tensor_bits=_number(made.get("tensor_bits")) or (None if made.get("fake") else measured),
        tensor_bytes=_whole(made.get("tensor_bytes")),
        held_bytes=_whole(made.get("held_bytes")),
        sha256=str(made.get("sha256") or _fact(plans[0], "model_digest") or ""),
        source=str(made.get("source") or ""),
        commands=tuple(tuple(str(word) for word in one) for one in commands if isinstance(one, list | tuple))
        if isinstance(commands, list | tuple)
        else (),
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def settings_of(plans: Sequence[CellPlan]) -> dict[str, str]:
    """What all cells are bound to alike, as words; what differs between tasks is named so."""
    said: dict[str, str] = {}
    for name in _ALIKE:
        values = sorted({_word(plan.facts.get(name)) for plan in plans})
        if values:
            said[name] = values[0] if len(values) == 1 else "not alike in all cells: " + ", ".join(values)
    if plans:
        said["seeds"] = "; ".join(sorted({", ".join(map(str, plan.seeds)) for plan in plans}))
        said["repeats"] = ", ".join(sorted({str(plan.repeats) for plan in plans}))
    return said


def _word(fact: Fact | None) -> str:
    if fact is None:
        return "not stated"
    return "unknown" if fact.unknown is not None else str(fact.value)


def manifests_of(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Machine and packages, by the manifests of the recordings that are kept; the load is left out."""
    host: dict[str, set[str]] = {}
    tools: dict[str, set[str]] = {}
    for recording in recordings_of(folder):
        try:
            manifest: Manifest = read_manifest(recording)
        except ManifestError:
            continue
        for into, facts in ((host, manifest.host), (tools, manifest.tools)):
            for name, fact in facts.items():
                if fact.unknown is None and name != "load":
                    into.setdefault(name, set()).add(str(fact.value))
    return tuple({name: ", ".join(sorted(values)) for name, values in sorted(one.items())} for one in (host, tools))  # type: ignore[return-value]
