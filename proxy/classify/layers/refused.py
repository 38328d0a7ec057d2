"""Gate, request and template: the server refused before the model ran. What they have in common is the diagnosis."""

from __future__ import annotations

from proxy.classify.judged import Judgement
from proxy.classify.verdict import Verdict


def gate(judgement: Judgement) -> Verdict | None:
    """The server refuses the feature, the tools or the model."""
    verdict = _mine(judgement, "gate")
    if verdict is not None:
        facts = judgement.facts
        before = facts.memory.answered_before(facts.upstream, facts.request.model or "")
        loaded = facts.memory.loaded(facts.upstream)
        if before is not None and verdict.name in ("gate.template_flag_missing", "gate.tools_unsupported"):
            _by_load_order(verdict, before.attempt, loaded.attempt if loaded else None, loaded.model if loaded else "")
            verdict.evidence.extend(before.evidence[:1])
            if loaded is not None and loaded.attempt != before.attempt:
                verdict.evidence.extend(loaded.evidence[:1])
    return verdict


def _by_load_order(verdict: Verdict, before: int, loaded: int | None, model: str) -> None:
    verdict.fault = "stack"
    verdict.detail = f"this model took tools in attempt {before}; the refusal depends on what was loaded before" + (
        f" ({model!r} in attempt {loaded})" if loaded is not None and model else ""
    )
    verdict.remedy = (
        "unload the model that was loaded first (Ollama: `keep_alive: 0`), or give each name its own weights"
    )


def request(judgement: Judgement) -> Verdict | None:
    """The server refuses the request itself: its JSON, a schema, a field, a turn of its history, or its size."""
    return _mine(judgement, "request")


def template(judgement: Judgement) -> Verdict | None:
    """The chat template failed on this request."""
    return _mine(judgement, "template")


def _mine(judgement: Judgement, layer: str) -> Verdict | None:
    diagnosis = judgement.diagnosis
    return diagnosis if diagnosis is not None and diagnosis.name.partition(".")[0] == layer else None
