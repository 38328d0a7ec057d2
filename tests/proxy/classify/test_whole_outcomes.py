"""Whole outcomes, one exchange of each kind: layer and code, fault, whether the model ran, how sure, what was
delivered, the evidence with its reason, what to change, what would decide it, and the flags. Not the code alone: a
right name with a wrong fault, or without what to do next, is a wrong answer. The rows stand in `outcome_rows`.
"""

from __future__ import annotations

import pytest

from results.outcomes import DECIDERS, Outcome, check
from tests.proxy.classify.exchanges import CALL, chat, message, verdict
from tests.proxy.classify.outcome_rows import (
    gate,
    model_ok,
    nonresponse_truncation,
    parser,
    protocol,
    request,
    template_engine,
    transport,
)
from tests.proxy.classify.outcome_rows.row import GOOD, Row

ROWS: list[Row] = [
    *transport.ROWS,
    *gate.ROWS,
    *request.ROWS,
    *template_engine.ROWS,
    *nonresponse_truncation.ROWS,
    *parser.ROWS,
    *protocol.ROWS,
    *model_ok.ROWS,
]


def short(text: str) -> str:
    return " ".join(text.split())[:36]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.about)
def test_outcome(row: Row) -> None:
    outcome: Outcome = verdict(row.view)
    check(outcome)
    assert f"{outcome.name} {outcome.at_fault}" == row.name
    state = f"ran {outcome.model_ran}, {outcome.confidence}, {outcome.delivery}, wrote {outcome.wrote}"
    assert state == row.state
    assert [f"{each.direction}: {short(each.quote)} ({each.why})" for each in outcome.evidence] == row.evidence
    assert (outcome.remedy or "").startswith(row.remedy)
    assert bool(outcome.remedy) == bool(row.remedy)
    assert (outcome.decide_by or "").partition(":")[0] == row.ask
    assert list(outcome.flags) == row.flags
    assert outcome.grade == "observed"


def test_what_is_left_open_says_what_would_decide_it() -> None:
    for row in ROWS:
        assert (row.ask != "") == row.name.endswith(" undetermined"), row.about
        assert row.ask in {"", *DECIDERS}, row.about


def test_the_model_is_blamed_for_what_it_wrote_only() -> None:
    for row in ROWS:
        if row.name.endswith(" model"):
            assert row.name.startswith("model."), row.about
            assert "ran yes" in row.state, row.about
            assert not row.state.endswith("wrote unknown"), row.about


def test_evidence_stands_in_the_message() -> None:
    for row in ROWS:
        for each in verdict(row.view).evidence:
            assert 0 <= each.start <= each.end, row.about
            if each.direction == "response" and each.quote and row.view.wire.response_body:
                assert each.end <= max(len(row.view.wire.response_body), row.view.response_length), row.about


def test_a_call_in_the_text_beside_a_delivered_one_is_no_call_left_behind() -> None:
    outcome = verdict(chat(message(CALL, GOOD)))
    assert (outcome.name, outcome.at_fault) == ("ok.native_call", "none")
