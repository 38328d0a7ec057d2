"""The projections are total, keep to their words, and agree with the rules they are taken from."""

from __future__ import annotations

import pytest

from results.compat import TurnText, aqbe_compat, dense_compat, fallback_has_calls, paper_compat
from results.labels import AQBE, DENSE, MICROANT, PAPER, PROJECTIONS, aqbe, dense, microant, paper, translation_table
from results.outcomes import Outcome
from results.taxonomy import CODES


def of(name: str) -> Outcome:
    layer, code = name.split(".")
    return Outcome(layer=layer, code=code, at_fault="stack", model_ran="unknown")


def test_total_and_closed() -> None:
    words = {"paper": PAPER, "dense": DENSE, "microant": MICROANT, "aqbe": AQBE}
    for taxonomy, project in PROJECTIONS.items():
        assert {project(of(name)) for name in CODES} <= set(words[taxonomy]), taxonomy
    assert len(translation_table()) == len(CODES)
    assert paper(of("not_run.gate")) == "non-response"
    assert dense(of("not_run.gate")) == "excluded"


def test_what_never_reached_the_harness_is_a_non_response() -> None:
    for name, code in CODES.items():
        if not code.reached and code.layer != "ok":
            assert paper(of(name)) == "non-response", name
            assert dense(of(name)) == "excluded", name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ok.native_call", ("valid", "success", "schema_valid", "scored")),
        ("model.invalid_arguments", ("valid", "right_tool_wrong_args", "parse_ok", "json_missing")),
        ("model.unknown_tool", ("hallucinated", "hallucinated_tool", "parse_ok", "scored")),
        ("model.malformed_call", ("unparseable", "malformed_json", "parse_failed", "json_error")),
        ("ok.final_answer", ("prose", "success", "parse_failed", "scored")),
        ("gate.tools_unsupported", ("non-response", "excluded", "excluded", "error")),
        ("engine.grammar_compile", ("non-response", "excluded", "compile_failed", "error")),
        ("truncation.output_budget", ("non-response", "excluded", "truncated", "json_error")),
        ("task.no_stop", ("valid", "failure_to_stop", "schema_valid", "scored")),
        ("checker.unknown_type", ("non-response", "excluded", "excluded", "unknown_type")),
    ],
)
def test_words(name: str, words: tuple[str, str, str, str]) -> None:
    outcome = of(name)
    assert (paper(outcome), dense(outcome), microant(outcome), aqbe(outcome)) == words


@pytest.mark.parametrize(
    ("turn", "label"),
    [
        (TurnText("Failed to get response after 3 tries"), "non-response"),
        (TurnText("", has_calls=True, first_result="ok"), "valid"),
        (TurnText("", has_calls=True, first_result="Tool 'x' not found"), "hallucinated"),
        (TurnText("", has_calls=True, first_result="file not found: a.txt"), "hallucinated"),
        (TurnText("```\nls\n```"), "unparseable"),
        (TurnText('{"name" : "x"'), "unparseable"),
        (TurnText("I will call the function now"), "unparseable"),
        (TurnText("functional programming"), "prose"),
        (TurnText("  "), None),
    ],
)
def test_paper_compat(turn: TurnText, label: str | None) -> None:
    assert paper_compat(turn) == label


def test_fallback_parser_of_the_paper() -> None:
    assert fallback_has_calls('x ```json\n{"name": "a"}\n``` y')
    assert fallback_has_calls('text {"name": "a", "arguments": {}} text')
    assert not fallback_has_calls('{"name": "a"}')
    assert not fallback_has_calls("no braces")


def test_the_other_originals() -> None:
    assert dense_compat(of("model.no_call")) == "right_tool_wrong_args"
    assert dense_compat(of("gate.tools_unsupported")) == "excluded"
    error = aqbe_compat(of("transport.connect"))
    assert error is not None
    assert (error.points, error.possible) == (0, 10)
    unknown = aqbe_compat(of("checker.unknown_type"))
    assert unknown is not None
    assert unknown.possible == 2
    assert aqbe_compat(of("ok.native_call")) is None
