"""The guards of a tier, before any number of it: `harness.structured.guards` on a loaded engine and on the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.structured.guards import (
    Guard,
    gguf_template_drift,
    template_fidelity,
    tensor_count_parity,
    tokenizer_equivalence,
)
from harness.workbench.record import GuardRow
from stacks.engine import Engine, Message, RenderError, Tool
from stacks.source_template import SourceTemplate, template_of


def guards_of(
    engine: Engine,
    place: Path,
    template: SourceTemplate,
    source_tokens: Mapping[str, Sequence[int]],
    baseline_tensors: Mapping[str, int],
) -> list[Guard]:
    """All four. `source_tokens` are the ids that the chain's baseline makes of texts; `baseline_tensors` its tensors.

    Raises `stacks.weights.WeightsError`, OSError.
    """
    from stacks.language_weights import logical_weights  # noqa: PLC0415 - reads files, which the other guards do not

    embedded = _embedded(place)
    same = embedded is not None and embedded.text == template.text

    def by_engine(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
        # A file that holds another template, or none, has nothing to render the source's one with.
        return engine.render(messages, tools or None).text if same else template.render(messages, tools or None)

    return [
        tokenizer_equivalence(source_tokens.__getitem__, engine.encode, tuple(source_tokens)),
        template_fidelity(template, by_engine),
        gguf_template_drift(template, embedded)
        if place.is_file()
        else Guard("gguf_template_drift", "ok", "no GGUF file"),
        tensor_count_parity(dict(baseline_tensors), logical_weights(place)),
    ]


def _embedded(place: Path) -> SourceTemplate | None:
    try:
        return template_of(place)
    except (RenderError, ValueError):
        return None


def guard_rows(by_tier: Mapping[str, Sequence[Guard]]) -> tuple[GuardRow, ...]:
    """What a report says of all tiers' guards: one row for each guard and verdict, naming the tiers."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for tier, guards in by_tier.items():
        for guard in guards:
            rows.setdefault((guard.name, guard.state, guard.reason), []).append(tier)
    total = len(by_tier)
    return tuple(
        GuardRow(name, state, reason if len(tiers) == total else f"{', '.join(tiers)}: {reason}")
        for (name, state, reason), tiers in rows.items()
    )
