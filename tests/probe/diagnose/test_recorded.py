"""What a recorded run says by itself, and the result as text and data."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from probe.diagnose.diagnosis import Diagnosis, Step, text
from probe.diagnose.recorded import run_said
from probe.diagnose.words import cited_lines, headline
from results.outcomes import Evidence, Judged, Outcome
from results.taxonomy import CODES


def judged(attempt: int, name: str, **more: Any) -> Judged:
    info = CODES[name]
    fault = info.usual_fault
    fields = {"decide_by": "wire: more"} if fault == "undetermined" else {}
    outcome = Outcome(layer=info.layer, code=info.code, at_fault=fault, model_ran=info.model_ran, **fields, **more)  # type: ignore[arg-type]
    return Judged(attempt=attempt, outcome=outcome)


def test_a_run_of_refusals_has_no_rate() -> None:
    said = run_said(judged(n, "gate.tools_unsupported") for n in range(12))
    assert said.sentences()[0] == "12 of 12 requests were refused before inference; the model never ran."
    assert any("undefined, not 0 %" in sentence for sentence in said.sentences())
    assert said.exemplar is not None
    assert said.exemplar.attempt == 0


def test_a_mixture_is_told_apart() -> None:
    said = run_said(
        [judged(1, "gate.tools_unsupported"), judged(2, "parser.left_as_text"), judged(3, "parser.left_as_text")]
    )
    assert said.exemplar is not None
    assert said.exemplar.attempt == 2
    words = " ".join(said.sentences())
    assert "1 of 3 requests ended before inference" in words
    assert "In 2 of 3" in words
    assert "A careless harness prints 0 %" in words


def test_a_tie_goes_to_the_earlier_layer() -> None:
    said = run_said([judged(1, "model.no_call"), judged(2, "gate.model_not_found")])
    assert said.exemplar is not None
    assert said.exemplar.outcome.name == "gate.model_not_found"


def test_services_do_not_count_and_a_good_run_has_no_exemplar() -> None:
    said = run_said([judged(1, "ok.service"), judged(2, "ok.native_call")])
    assert (said.attempts, said.valid_calls, said.exemplar) == (1, 1, None)
    assert run_said([]).sentences() == ["The run holds no request that asks a model for anything."]


def test_prose_alone_is_no_failure_of_calls() -> None:
    assert any("No call was due" in sentence for sentence in run_said([judged(1, "ok.final_answer")]).sentences())


def test_every_outcome_has_a_headline() -> None:
    for name in CODES:
        if not name.startswith(("ok.", "task.", "checker.", "not_run.")):
            assert headline(judged(1, name).outcome), name


def test_text_and_json_hold_verdict_evidence_and_remedy() -> None:
    outcome = judged(3, "parser.left_as_text").outcome
    cited = Evidence(attempt=3, direction="response", start=10, end=20, quote="<tool_call> " * 40, why="the call")
    outcome = msgspec.structs.replace(outcome, evidence=(cited,))
    found = Diagnosis(
        "http://h", "m", "vLLM", "0.32", outcome, "The call is text.", "start with `--x`", before="gate.model_not_found"
    )
    found.steps = [
        Step("asked", "text came", "parser.left_as_text"),
        Step("looked", "nothing"),
        Step("fine", "x", "ok.native_call"),
    ]
    found.cited = cited_lines(outcome)
    shown = text(found)
    assert "!! asked" in shown
    assert " - looked" in shown
    assert "ok fine" in shown
    assert "attempt 3, response bytes 10-20 (the call)" in shown
    assert "change     start with `--x`" in shown
    assert "before: gate.model_not_found; now: parser.left_as_text" in shown
    facts = json.loads(json.dumps(found.facts()))
    assert facts["version"] == 1
    assert facts["stack_version"] == "0.32"
    assert facts["outcome"]["code"] == "left_as_text"
    assert facts["healthy"] is False
    assert found.exit_code == 1
