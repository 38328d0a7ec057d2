"""Outcome records: round trip, rules, and a document that says what the data says."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from results.labels import translation_table
from results.outcomes import VERSION, Evidence, Judged, Outcome, check, decode_judged, decode_outcome, encode
from results.taxonomy import CODES, FAULTS, LAYERS, RAN, info

ROOT = Path(__file__).resolve().parents[2]
GOOD = Outcome(
    layer="parser",
    code="left_as_text",
    at_fault="stack",
    model_ran="yes",
    evidence=(Evidence(attempt=3, direction="response", start=10, end=20, quote="<tool_call>"),),
    flags=("protocol.usage_absent",),
)


def changed(**fields: object) -> Outcome:
    return msgspec.structs.replace(GOOD, **fields)


def test_round_trip() -> None:
    judged = Judged(attempt=3, outcome=GOOD, method="POST", path="/api/chat", status=200, tags={"task": "a"})
    assert decode_judged(encode(judged)) == judged
    assert decode_outcome(encode(GOOD)) == GOOD


def test_unknown_fields_are_read_over() -> None:
    line = encode(GOOD)[:-1] + b',"later":1}'
    assert decode_outcome(line) == GOOD


def test_a_newer_version_is_refused() -> None:
    with pytest.raises(ValueError, match="newer"):
        decode_outcome(encode(changed(version=VERSION + 1)))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"code": "nonsense"}, "unknown outcome"),
        ({"flags": ("no.such",)}, "unknown flag"),
        ({"at_fault": "undetermined"}, "decide_by"),
        ({"decide_by": "server_log: x"}, "decide_by"),
        ({"at_fault": "undetermined", "decide_by": "a hunch"}, "begins with one of"),
        ({"at_fault": "none"}, "nobody's fault"),
        ({"at_fault": "model", "model_ran": "no"}, "did not run"),
    ],
)
def test_rules(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check(changed(**fields))


def test_a_good_one_passes() -> None:
    check(GOOD)
    check(changed(at_fault="undetermined", decide_by="comparison_request: the same without tools"))
    assert changed(at_fault="undetermined", decide_by="wire: x").undetermined
    assert GOOD.reached
    assert GOOD.name == "parser.left_as_text"


def test_the_table_is_closed_and_consistent() -> None:
    for name, code in CODES.items():
        assert code.name == name
        assert code.layer in LAYERS
        assert code.usual_fault in FAULTS
        assert code.model_ran in RAN
        assert (code.usual_fault == "none") == (code.layer == "ok")
        assert code.model_ran != "no" or not code.reached
    assert info("not_run.gate").layer == "not_run"
    with pytest.raises(KeyError):
        info("gate.nonsense")


def test_binding_names_are_there() -> None:
    binding = {
        "transport": "connect timeout_connect timeout_read reset stream_truncated auth rate_limited gateway "
        "wrong_route loading queue_full",
        "gate": "tools_unsupported parser_not_configured template_flag_missing tool_choice_unsupported model_not_found",
        "request": "invalid_json invalid_schema invalid_param bad_history context_exceeded",
        "template": "render_error role_rejected tools_absent system_dropped drift",
        "engine": "crash wedged grammar_compile grammar_deadlock degenerate error_in_stream oom constrained",
        "nonresponse": "empty reasoning_only load_only swallowed",
        "truncation": "output_budget context_cut_silently cut_inside_call",
        "parser": "left_as_text server_error dropped altered repaired phantom in_reasoning marker_leak stream_differs",
        "protocol": "delta_index delta_id arguments_type finish_contradicts done_missing usage_absent choice_ignored "
        "duplicate_id",
        "model": "no_call malformed_call unknown_tool withheld_tool invalid_arguments loop degenerate_repeat",
        "task": "wrong_tool wrong_args missing_step state_mismatch premature_done no_stop restraint_violation "
        "guessed_missing_param value_mismatch check_failed",
        "ok": "native_call text_call final_answer no_call_needed task_done",
        "checker": "config_error unsatisfiable unknown_type",
    }
    assert not [
        f"{layer}.{code}"
        for layer, codes in binding.items()
        for code in codes.split()
        if f"{layer}.{code}" not in CODES
    ]


def test_the_document_says_what_the_data_says() -> None:
    text = (ROOT / "docs" / "outcomes.md").read_text(encoding="utf-8")
    rows = [
        tuple(cell.strip().strip("`") for cell in line.strip("|").split("|"))
        for line in text.splitlines()
        if line.startswith("| `")
    ]
    meanings = {
        (row.name, row.meaning, row.usual_fault, row.model_ran, "cut" if row.cut else "yes" if row.reached else "no")
        for row in CODES.values()
    }
    assert meanings <= set(rows)
    assert set(translation_table()) <= set(rows)
    assert len(rows) == 2 * len(CODES)
    assert not re.search(r"TODO|TBD", text)
