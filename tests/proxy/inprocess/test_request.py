"""Checking of in-process requests."""

import contextlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.inprocess.request import ChatPrompt, RawPrompt, RequestError, parse_chat_request, parse_completion_request

USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "f"}}


def chat(**fields):
    return parse_chat_request(json.dumps({"messages": [USER], **fields}).encode())


def test_defaults():
    request = chat()
    assert isinstance(request.prompt, ChatPrompt)
    assert request.prompt.messages == (USER,)
    assert (request.sampling.temperature, request.sampling.max_tokens, request.stream) == (0.0, None, False)
    assert request.ignored == ()


def test_null_is_as_good_as_absent():
    names = ["temperature", "tools", "tool_choice", "stop", "n", "stream", "stream_options", "response_format", "seed"]
    assert chat(**dict.fromkeys([*names, "user"])) == chat()


def test_settings_are_taken_over():
    request = chat(
        temperature=1, top_p=0.5, top_k=-1, min_p=0.1, seed=-4, max_tokens=9, max_completion_tokens=7, stop=["a", ""]
    )
    assert request.sampling.temperature == 1.0
    assert request.sampling.top_k == 0
    assert request.sampling.seed == -4
    assert request.sampling.max_tokens == 7
    assert request.stop == ("a",)
    assert chat(stop="x").stop == ("x",)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [1]}, "messages[0]"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [USER, {"role": "user", "content": 5}]}, "messages[1].content"),
        ({"messages": [{"role": "assistant", "tool_calls": "x"}]}, "messages[0].tool_calls"),
        ({"tools": {}}, "tools"),
        ({"tools": [{"type": "function"}]}, "tools[0]"),
        ({"tools": [TOOL], "tool_choice": "required"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice"),
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"temperature": -1}, "temperature"),
        ({"top_p": 1.5}, "top_p"),
        ({"top_k": 1.5}, "top_k"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"seed": "a"}, "seed"),
        ({"stop": [1]}, "stop"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": []}, "stream_options"),
        ({"stream_options": [1]}, "stream_options"),
        ({"n": 2}, "n"),
        ({"chat_template_kwargs": {"tokenize": True}}, "chat_template_kwargs"),
        ({"chat_template_kwargs": 3}, "chat_template_kwargs"),
    ],
)
def test_faulty_fields_are_named(fields, param):
    with pytest.raises(RequestError) as caught:
        chat(**fields)
    assert caught.value.status == 400
    assert caught.value.body()["error"]["param"] == param
    assert caught.value.body()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"null", b'"x"', b"\xff", b'{"messages": NaN}'])
def test_bodies_that_are_no_json_object(body):
    for parse in (parse_chat_request, parse_completion_request):
        with pytest.raises(RequestError) as caught:
            parse(body)
        assert caught.value.code == "invalid_json"


@pytest.mark.parametrize(
    ("prompt", "parsed"),
    [
        ("hi", RawPrompt("hi", ())),
        (["hi"], RawPrompt("hi", ())),
        ([1, 2], RawPrompt(None, (1, 2))),
        ([[1, 2]], RawPrompt(None, (1, 2))),
    ],
)
def test_prompts(prompt, parsed):
    assert parse_completion_request(json.dumps({"prompt": prompt}).encode()).prompt == parsed


@pytest.mark.parametrize("prompt", [None, 3, [], ["a", "b"], [[1], [2]], [True], {"a": 1}, [1.5]])
def test_faulty_prompts(prompt):
    with pytest.raises(RequestError) as caught:
        parse_completion_request(json.dumps({"prompt": prompt}).encode())
    assert caught.value.param == "prompt"


WORDS = st.text("ab:{ é", max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
NAMES = ["messages", "tools", "tool_choice", "stop", "stream", "stream_options", "temperature", "top_k", "prompt", "n",
         "response_format", "chat_template_kwargs", "max_tokens", "seed", "other"]  # fmt: skip


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(NAMES), JSON))
def test_any_json_is_parsed_or_refused(fields):
    body = json.dumps(fields).encode()
    for parse in (parse_chat_request, parse_completion_request):
        with contextlib.suppress(RequestError):
            request = parse(body)
            assert request.sampling.temperature >= 0
            assert request.ignored == tuple(sorted(request.ignored))
