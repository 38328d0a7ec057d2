"""The explanation shows the bytes that a verdict rests on, marked, and cannot disturb a terminal."""

from __future__ import annotations

from proxy.explain import ANSI, PLAIN, explain, explained
from results.outcomes import Evidence, Judged, Outcome

WIRE = b'HTTP/1.1 400 Bad Request\r\n\r\n{"error":"x does not support tools"}\x1b[2J tail'
START = WIRE.index(b"x does")
END = START + len(b"x does not support tools")
JUDGED = Judged(
    attempt=7,
    method="POST",
    path="/api/chat",
    status=400,
    stack="ollama",
    outcome=Outcome(
        layer="gate",
        code="tools_unsupported",
        at_fault="config",
        model_ran="no",
        remedy="use another model",
        flags=("protocol.usage_absent",),
        evidence=(
            Evidence(
                attempt=7, direction="response", start=START, end=END, quote="x does not support tools", why="the error"
            ),
            Evidence(attempt=5, direction="response", start=0, end=4, quote="gone", why="an earlier attempt"),
            Evidence(attempt=7, direction="response", start=0, end=0, quote="no response"),
        ),
    ),
)


def wire(attempt: int, direction: str) -> bytes | None:
    return WIRE if (attempt, direction) == (7, "response") else None


def test_text() -> None:
    text = explain(JUDGED, wire)
    assert text.startswith("attempt 7: gate.tools_unsupported")
    assert '"error":"' + PLAIN.open + "x does not support tools" + PLAIN.close + '"}' in text
    assert "at fault   config" in text
    assert "use another model" in text
    assert "'gone' (the bytes are not at hand)" in text
    assert "no response" in text
    assert "protocol.usage_absent" in text


def test_control_characters_are_written_out() -> None:
    assert "\x1b" not in explain(JUDGED, wire)
    assert "\\x1b[2J" in explain(JUDGED, wire)
    assert ANSI.open in explain(JUDGED, wire, ANSI)


def test_long_citations_are_shortened() -> None:
    data = b"a" * 5000
    cited = Evidence(attempt=1, direction="response", start=0, end=5000, quote="a")
    judged = Judged(
        attempt=1, outcome=Outcome(layer="ok", code="service", at_fault="none", model_ran="no", evidence=(cited,))
    )
    assert "[...]" in explain(judged, lambda attempt, direction: data)
    assert len(explain(judged, lambda attempt, direction: data)) < 1500


def test_data() -> None:
    data = explained(JUDGED, wire)
    assert data["outcome"]["layer"] == "gate"
    assert {"code", "at_fault", "model_ran", "confidence", "grade", "evidence", "remedy", "decide_by", "flags"} <= set(
        data["outcome"]
    )
    assert data["cited"][0]["text"] == "x does not support tools"
    assert len(data["cited"]) == 2
