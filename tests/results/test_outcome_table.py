"""The table of a run: layers in order, faults, rates, and the same as data."""

from __future__ import annotations

from results.outcome_table import tabulate
from results.outcomes import Judged, Outcome


def judged(attempt: int, name: str, fault: str, **more: object) -> Judged:
    layer, code = name.split(".")
    outcome = Outcome(layer=layer, code=code, at_fault=fault, model_ran="unknown", **more)  # type: ignore[arg-type]
    return Judged(attempt=attempt, outcome=outcome, labels={"paper": "valid"})


LINES = [
    judged(1, "ok.native_call", "none"),
    judged(2, "gate.tools_unsupported", "config"),
    judged(3, "ok.native_call", "none", flags=("protocol.usage_absent",)),
    judged(4, "parser.left_as_text", "stack", wrote="valid_call"),
]


def test_text() -> None:
    text = tabulate(LINES).text()
    order = [text.index(name) for name in ("gate.tools_unsupported", "parser.left_as_text", "ok.native_call")]
    assert order == sorted(order)
    assert "4 attempts" in text
    assert "at fault: config 1, stack 1, none 2" in text
    assert "protocol.usage_absent 1" in text
    assert "fidelity  66.7 %" in text
    assert "naive     50.0 %" in text
    assert "cleared   100.0 %" in text
    assert "paper: valid 4" in text


def test_data_says_the_same() -> None:
    data = tabulate(LINES).as_json()
    assert data["attempts"] == 4
    assert [row["outcome"] for row in data["outcomes"]] == [
        "gate.tools_unsupported",
        "parser.left_as_text",
        "ok.native_call",
    ]
    assert [row["first_attempt"] for row in data["outcomes"]] == [2, 4, 1]
    assert data["at_fault"] == {"config": 1, "stack": 1, "none": 2}
    assert data["rates"]["fidelity"]["trials"] == 3
    assert data["rates"]["outside"] == {"gate": 1}


def test_nothing() -> None:
    assert tabulate([]).text() == "no attempts"
    assert tabulate([]).as_json()["rates"]["fidelity"]["undefined"] == "none"


def test_all_refused() -> None:
    table = tabulate([judged(1, "gate.tools_unsupported", "config")])
    assert "fidelity  rej" in table.text()
