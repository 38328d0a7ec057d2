"""Labels of exchanges in every taxonomy that `--labels` takes, the originals' own predicates included."""

from __future__ import annotations

import pytest

from proxy.classify import judge
from proxy.exchange_view import LABELS, judged_of, label_of
from tests.proxy.classify.exchanges import CALL, chat, message

GOOD = [("get_weather", {"city": "Lyon"})]


@pytest.mark.parametrize(
    ("answer", "labels"),
    [
        (message(None, GOOD), ("valid", "success", "schema_valid", "scored", "valid", "success", "scored")),
        (
            message(CALL),
            (
                "unparseable",
                "malformed_json",
                "parse_failed",
                "json_error",
                "valid",
                "malformed_json",
                "0/2 JSON error",
            ),
        ),
        (message("```\nls\n```"), ("prose", "success", "parse_failed", "scored", "unparseable", "success", "scored")),
        (message("I say nothing."), ("prose", "success", "parse_failed", "scored", "prose", "success", "scored")),
    ],
)
def test_words(answer: dict[str, object], labels: tuple[str, ...]) -> None:
    classified = judge(chat(answer))
    found = tuple(label_of(name, classified.outcome, classified.facts) for name in LABELS)
    assert found == labels


def test_what_gave_the_harness_nothing() -> None:
    classified = judge(chat({"error": {"message": "x does not support tools"}}, status=400))
    assert label_of("paper-compat", classified.outcome, classified.facts) == "non-response"
    assert label_of("aqbe-compat", classified.outcome, classified.facts).startswith("0/10 ERROR")


def test_the_line_carries_the_label() -> None:
    classified = judge(chat(message(None, GOOD)))
    assert judged_of(classified, labels="paper").labels == {"paper": "valid"}
    assert judged_of(classified).labels == {}
    with pytest.raises(KeyError):
        label_of("nonsense", classified.outcome, classified.facts)
