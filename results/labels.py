"""The other taxonomies as total functions of an outcome: the paper's turn labels, Dense Bench's failure modes,
MicroAnt's nested checks and AQBE's notes.

Each projection is defined for every name in `results.taxonomy.CODES`; what a taxonomy has no word for is kept out of
its denominators by the labels `excluded` or `none`, never forced into a word that it has not. An attempt is read as an
episode of one turn here; the harness adds what only an episode shows (loops, caps, recovery).
"""

from __future__ import annotations

from collections.abc import Callable

from results.outcomes import Outcome
from results.taxonomy import CODES, CodeInfo, info

PAPER = ("valid", "hallucinated", "unparseable", "prose", "non-response")
DENSE = (
    "success",
    "malformed_json",
    "hallucinated_tool",
    "wrong_tool",
    "right_tool_wrong_args",
    "tool_call_loop",
    "failure_to_stop",
    "parse_recovery_triggered",
    "none",
    "excluded",
)
MICROANT = (
    "content_correct",
    "schema_valid",
    "parse_ok",
    "parse_failed",
    "build_unexpressible",
    "compile_failed",
    "truncated",
    "excluded",
)
AQBE = (
    "scored",
    "no_json",
    "json_error",
    "json_missing",
    "json_value",
    "pattern",
    "numeric",
    "error",
    "unknown_type",
    "excluded",
)

_PAPER_EXACT = {
    "ok.native_call": "valid",
    "ok.text_call": "valid",
    "ok.task_done": "valid",
    "ok.final_answer": "prose",
    "ok.no_call_needed": "prose",
    "ok.service": "non-response",
    "model.no_call": "prose",
    "model.malformed_call": "unparseable",
    "model.unknown_tool": "hallucinated",
    "model.withheld_tool": "hallucinated",
    "model.invalid_arguments": "valid",
    "model.loop": "valid",
    "model.degenerate_repeat": "unparseable",
    "parser.left_as_text": "unparseable",
    "parser.in_reasoning": "unparseable",
    "parser.marker_leak": "unparseable",
    "parser.phantom": "hallucinated",
    "parser.altered": "valid",
    "parser.repaired": "valid",
    "parser.stream_differs": "unparseable",
    "engine.constrained": "valid",
}


def paper(outcome: Outcome) -> str:
    """One of `PAPER`. A schema violation is valid there (the call parses and names a known tool); whatever did not
    reach the harness is a non-response; partial text at the end of a budget likewise."""
    return _paper(outcome.name)


def _paper(name: str) -> str:
    known = _PAPER_EXACT.get(name)
    if known is not None:
        return known
    code = info(name)
    if code.layer == "task":
        return "valid"
    return "unparseable" if code.layer == "protocol" else "non-response"


_DENSE_EXACT = {
    "ok.task_done": "success",
    "ok.native_call": "success",
    "ok.text_call": "parse_recovery_triggered",
    "ok.final_answer": "success",
    "ok.no_call_needed": "success",
    "ok.service": "excluded",
    "model.malformed_call": "malformed_json",
    "model.degenerate_repeat": "failure_to_stop",
    "model.unknown_tool": "hallucinated_tool",
    "model.withheld_tool": "wrong_tool",
    "model.invalid_arguments": "right_tool_wrong_args",
    "model.loop": "tool_call_loop",
    "model.no_call": "none",
    "parser.left_as_text": "malformed_json",
    "parser.in_reasoning": "malformed_json",
    "parser.marker_leak": "malformed_json",
    "parser.stream_differs": "malformed_json",
    "parser.repaired": "parse_recovery_triggered",
    "parser.altered": "right_tool_wrong_args",
    "parser.phantom": "hallucinated_tool",
    "engine.constrained": "success",
    "task.no_stop": "failure_to_stop",
    "task.wrong_tool": "wrong_tool",
    "task.restraint_violation": "wrong_tool",
    "task.premature_done": "none",
}


def dense(outcome: Outcome) -> str:
    """One of `DENSE`. `none`: a failure for which the seven modes have no word; `excluded`: the model's output did not
    reach the harness, so the run is left out and counted."""
    return _dense(outcome.name)


def _dense(name: str) -> str:
    known = _DENSE_EXACT.get(name)
    if known is not None:
        return known
    code = info(name)
    if code.layer == "task":
        return "right_tool_wrong_args"
    return "malformed_json" if code.layer == "protocol" else "excluded"


_MICROANT_EXACT = {
    "ok.task_done": "content_correct",
    "ok.native_call": "schema_valid",
    "ok.text_call": "schema_valid",
    "ok.final_answer": "parse_failed",
    "ok.no_call_needed": "parse_failed",
    "ok.service": "excluded",
    "model.no_call": "parse_failed",
    "model.malformed_call": "parse_failed",
    "model.degenerate_repeat": "truncated",
    "model.loop": "schema_valid",
    "model.unknown_tool": "parse_ok",
    "model.withheld_tool": "parse_ok",
    "model.invalid_arguments": "parse_ok",
    "parser.altered": "parse_ok",
    "parser.phantom": "parse_ok",
    "parser.repaired": "schema_valid",
    "engine.constrained": "schema_valid",
    "engine.grammar_compile": "compile_failed",
    "engine.grammar_deadlock": "truncated",
    "checker.unsatisfiable": "build_unexpressible",
    "checker.config_error": "build_unexpressible",
}


def microant(outcome: Outcome) -> str:
    """One of `MICROANT`: the highest of its three nested checks that the attempt passes, or the state of the
    constraint that ended it."""
    return _microant(outcome.name)


def _microant(name: str) -> str:
    known = _MICROANT_EXACT.get(name)
    if known is not None:
        return known
    code = info(name)
    if code.layer == "task":
        return "schema_valid"
    if code.layer == "truncation":
        return "truncated"
    return "parse_failed" if code.layer in ("parser", "protocol") else "excluded"


_AQBE_EXACT = {
    "ok.service": "excluded",
    "model.malformed_call": "json_error",
    "model.no_call": "no_json",
    "model.invalid_arguments": "json_missing",
    "task.value_mismatch": "json_value",
    "task.wrong_args": "json_value",
    "task.check_failed": "pattern",
    "checker.unknown_type": "unknown_type",
    "checker.config_error": "excluded",
    "checker.unsatisfiable": "excluded",
}


def aqbe(outcome: Outcome) -> str:
    """One of `AQBE`. An attempt whose output never reached the harness is `error` and excluded from scores (the
    original scores it 0 of 10, see `results.compat`)."""
    return _aqbe(outcome.name)


def _aqbe(name: str) -> str:
    known = _AQBE_EXACT.get(name)
    if known is not None:
        return known
    code: CodeInfo = info(name)
    if code.layer in ("ok", "model", "task") or code.name in ("engine.constrained", "parser.repaired"):
        return "scored"
    if code.layer in ("parser", "truncation") and code.reached:
        return "json_error"
    return "scored" if code.layer == "protocol" else "error"


PROJECTIONS: dict[str, Callable[[Outcome], str]] = {
    "paper": paper,
    "dense": dense,
    "microant": microant,
    "aqbe": aqbe,
}
"""`--labels NAME` to its function."""

_BY_NAME: dict[str, Callable[[str], str]] = {"paper": _paper, "dense": _dense, "microant": _microant, "aqbe": _aqbe}


def translation_table() -> list[tuple[str, str, str, str, str]]:
    """Every outcome with its word in each taxonomy: (name, paper, dense, microant, aqbe)."""
    return [
        (name, _BY_NAME["paper"](name), _BY_NAME["dense"](name), _BY_NAME["microant"](name), _BY_NAME["aqbe"](name))
        for name in CODES
    ]
