"""What the mutation check showed to be untested."""

from __future__ import annotations

import pytest

from tests.proxy.classify.exchanges import CALL, chat, message, verdict


@pytest.mark.parametrize("end", ["not_http", "opaque"])
def test_a_connection_that_turned_into_something_else(end: str) -> None:
    view = chat(message("hi"))
    view.end = end
    assert verdict(view).name == "transport.not_http"


def test_a_call_in_the_reasoning_alone_says_so() -> None:
    outcome = verdict(chat(message(None, reasoning_content=CALL)))
    assert (outcome.name, outcome.delivery) == ("parser.in_reasoning", "in_reasoning")
    assert outcome.wrote == "valid_call"
