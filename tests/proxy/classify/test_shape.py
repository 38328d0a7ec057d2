"""An exception of the server's own program: the request's shape, its history, or the template."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.classify.shape import misshapen
from tests.proxy.classify.exchanges import QUESTION, WEATHER, error

PYTHON = "'str' object has no attribute 'get'"


@pytest.mark.parametrize(
    "more",
    [
        {"messages": "hi"},
        {"messages": {"role": "user"}},
        {"messages": ["hi"]},
        {"messages": []},
        {"messages": [None]},
        {"messages": [QUESTION, {"role": "assistant", "tool_calls": "x"}]},
        {"messages": [QUESTION, {"role": "assistant", "tool_calls": ["x"]}]},
        {"tools": "get_weather"},
        {"tools": {"a": 1}},
        {"tools": ["get_weather"]},
        {"tools": [{"type": "function", "function": "get_weather"}]},
        {"response_format": "json"},
        {"stream_options": True},
        {"chat_template_kwargs": []},
    ],
)
@pytest.mark.parametrize(
    ("text", "status"),
    [
        (PYTHON, 400),
        ("string indices must be integers, not 'str'", 500),
        ("'NoneType' object is not iterable", 404),
        ("list object has no element 0", 500),
        ("list index out of range", 500),
        ("TypeError: Cannot read properties of undefined (reading 'map')", 500),
        ('can only concatenate str (not "dict") to str', 500),
    ],
)
def test_the_request_is_misshapen(more: dict[str, Any], text: str, status: int) -> None:
    outcome = error(text, status, **more)
    assert (outcome.name, outcome.at_fault, outcome.model_ran) == ("request.invalid_schema", "client", "no")
    assert outcome.delivery == "refused"
    assert outcome.evidence[0].direction == "request"


def test_a_good_shape_leaves_the_template() -> None:
    for text in (
        'can only concatenate str (not "dict") to str',
        "'dict object' has no attribute 'name'",
        "'tools' is undefined",
        "Error rendering template: 'str' object has no attribute 'items'",
    ):
        assert (error(text, 500).name, error(text, 500).at_fault) == ("template.render_error", "config"), text


def test_pythons_own_words_do_not_show_a_template() -> None:
    assert (error(PYTHON, 500).name, error(PYTHON, 500).at_fault) == ("template.render_error", "undetermined")
    null = [QUESTION, {"role": "assistant", "content": None}, {"role": "user", "content": "go on"}]
    assert error("'NoneType' object has no attribute 'strip'", 500, messages=null).name == "request.bad_history"


def test_a_wrong_shape_does_not_explain_every_error() -> None:
    assert error("CUDA error: device lost", 500, stream_options=True).layer == "engine"
    assert error("model 'm' not found", 404, messages=[]).name == "gate.model_not_found"


def test_where_it_is_wrong() -> None:
    def told(**body: Any) -> Any:
        found = misshapen(json.dumps(body).encode())
        return None if found is None else found[0]

    assert told(messages=[QUESTION, 5]) == ("messages", 1)
    assert told(messages=[QUESTION], tools=[WEATHER, []]) == ("tools", 1)
    assert told(messages=[QUESTION], tools=[WEATHER]) is None
    assert told(prompt="x") is None
    assert misshapen(b"[1]") == ((), "the body is no JSON object")
    assert misshapen(b"{") is None
