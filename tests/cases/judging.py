"""The labelled cases through the real pipeline: bytes into a journal, the journal into outcomes, against labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxy.classify import classify
from proxy.exchange_files import from_case
from proxy.exchange_view import view_of
from results.outcomes import Outcome
from tests.support.journalled import Raw, record
from tests.support.reading_back import reads_back

LAYERS = {
    "transport": "transport",
    "gate_rejection": "gate",
    "request_rejection": "request",
    "template_error": "template",
    "engine_error": "engine",
    "non_response": "nonresponse",
    "truncation": "truncation",
    "parse_failure": "parser",
    "protocol_violation": "protocol",
    "model_no_call": "model.no_call",
    "model_malformed_call": "model.malformed_call",
    "model_unknown_tool": "model.unknown_tool",
    "model_invalid_arguments": "model.invalid_arguments",
    "ok": "ok",
}


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case against its label. `good`: the layer is right or acceptable, or the wire cannot tell and the verdict
    says so with a fitting `decide_by`."""

    id: str
    wanted: tuple[str, ...]
    needs: str
    outcome: Outcome
    good: bool
    model_wronged: bool
    reads_back: bool


def judge_cases(cases: Iterable[dict[str, Any]], folder: Path, *, told_stack: bool = True) -> list[CaseResult]:
    """Record every case, read the journal back, judge each exchange alone."""
    known = list(cases)
    raws = [Raw(loaded.request_raw, loaded.response_raw, _how(case)) for case in known if (loaded := from_case(case))]
    exchanges = record(folder, raws)
    assert len(exchanges) == len(known)
    results = []
    for case, exchange in zip(known, exchanges, strict=True):
        view = view_of(exchange, case["stack"] if told_stack else "", case["stack_version"] or "" if told_stack else "")
        view.prompt_tokens_estimate = case["request"].get("prompt_token_estimate")
        outcome = classify(view)
        cited = all(reads_back(each, exchange.wire(each.direction)) for each in outcome.evidence)
        results.append(_against(case, outcome, cited and bool(outcome.evidence)))
    return results


def _how(case: dict[str, Any]) -> str:
    said = (case["response"].get("transport_error") or "").lower()
    if "timeout" in said or "timed out" in said:
        return "client"
    if "refused" in said or "enotfound" in said:
        return "refused"
    return "rst" if case["response"].get("disconnect") else "fin"


def _against(case: dict[str, Any], outcome: Outcome, cited: bool) -> CaseResult:
    label = case["label"]
    wanted = tuple(LAYERS[name] for name in (label["layer"], *(label.get("also_acceptable") or ())))
    right = any(outcome.name == name if "." in name else outcome.layer == name for name in wanted)
    needs = label["evidence_needed"]
    open_question = needs != "wire" and outcome.undetermined and (outcome.decide_by or "").startswith(needs)
    wronged = outcome.at_fault == "model" and label["is_model_failure"] is False
    return CaseResult(case["id"], wanted, needs, outcome, right or open_question, wronged, cited)


def confusion(results: list[CaseResult]) -> str:
    """Wanted layer by layer given, as a table."""
    counts = Counter((result.wanted[0].partition(".")[0], result.outcome.layer) for result in results)
    rows = sorted(
        {wanted for wanted, _ in counts}, key=list(dict.fromkeys(v.partition(".")[0] for v in LAYERS.values())).index
    )
    columns = sorted({given for _, given in counts}, key=lambda name: (name not in rows, name))
    width = max(len(name) for name in (*rows, *columns)) + 1
    lines = ["wanted \\ given".ljust(width + 4) + "".join(name.rjust(width) for name in columns)]
    for row in rows:
        cells = "".join(
            (str(counts[(row, column)]) if counts[(row, column)] else ".").rjust(width) for column in columns
        )
        lines.append(row.ljust(width + 4) + cells)
    return "\n".join(lines)
