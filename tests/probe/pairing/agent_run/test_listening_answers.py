"""The answers in every dialect, read by our own readers: nothing irregular, the sentence whole."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.pairing.agent_run.listening_answers import SENTENCE, error_answer, sentence_answer
from stacks.dialects.assemble import assemble, read_request
from stacks.dialects.exchange import WireExchange
from stacks.dialects.recognise import DIALECTS

MESSAGES = [{"role": "user", "content": "hello"}]
ASKED = {
    "/v1/chat/completions": {"model": "m", "messages": MESSAGES},
    "/v1/completions": {"model": "m", "prompt": "hello"},
    "/v1/responses": {"model": "m", "input": "hello"},
    "/v1/messages": {"model": "m", "max_tokens": 9, "messages": MESSAGES},
    "/api/chat": {"model": "m", "messages": MESSAGES},
    "/api/generate": {"model": "m", "prompt": "hello"},
}


def exchange(target, body, text=SENTENCE):
    data = json.dumps(body).encode()
    request = read_request("POST", target, data)
    answer = sentence_answer(request, "canary", len(data), text)
    headers = [("content-type", answer.content_type)]
    return answer, assemble(WireExchange("POST", target, data, answer.status, headers, answer.body))


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("target", ASKED)
def test_every_dialect_streamed_and_not(target, stream):
    answer, found = exchange(target, {**ASKED[target], "stream": stream})
    assert found.irregularities == []
    assert found.errors == []
    assert found.streamed is stream
    assert len(answer.pieces) > 1 if stream else len(answer.pieces) == 1
    assert found.turn.content == SENTENCE
    assert (found.turn.finish, found.turn.tool_calls, found.turn.model) == ("stop", [], "m")
    assert found.done_mark is (True if stream else None)


@pytest.mark.parametrize("target", ["/v1/chat/completions", "/v1/completions"])
def test_usage_in_a_stream_only_where_it_is_asked_for(target):
    _, without = exchange(target, {**ASKED[target], "stream": True})
    _, asked = exchange(target, {**ASKED[target], "stream": True, "stream_options": {"include_usage": True}})
    assert without.turn.usage is None
    assert asked.turn.usage.total == asked.turn.usage.prompt + asked.turn.usage.completion


def test_all_dialects_are_covered():
    assert {read_request("POST", target, b"{}").dialect for target in ASKED} == set(DIALECTS)


@pytest.mark.parametrize("target", ["/api/chat", "/api/generate"])
def test_ollama_without_a_question_only_loads(target):
    answer, _ = exchange(target, {"model": "m"})
    said = json.loads(answer.body)
    assert (said["done"], said["done_reason"]) == (True, "load")
    assert SENTENCE not in answer.body.decode()


@given(st.sampled_from(sorted(ASKED)), st.booleans(), st.text(min_size=1).filter(str.strip))
def test_any_text_comes_back_whole(target, stream, text):
    text = text.encode("utf-8", "replace").decode()
    _, found = exchange(target, {**ASKED[target], "stream": stream}, text)
    assert found.turn.content == text


@given(
    st.sampled_from(sorted(ASKED)),
    st.dictionaries(
        st.sampled_from(
            [
                "model",
                "messages",
                "prompt",
                "input",
                "tools",
                "tool_choice",
                "temperature",
                "metadata",
                "text",
                "stream",
            ]
        ),
        st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.none() | st.text()) | st.just({}),
    ),
)
def test_any_body_is_answered(target, body):
    answer, _ = exchange(target, body)
    assert answer.status == 200
    assert answer.body


@pytest.mark.parametrize(
    ("dialect", "form"),
    [
        ("openai_chat", {"error": {"message": "no", "type": "not_found_error", "param": None, "code": None}}),
        ("other", {"error": {"message": "no", "type": "not_found_error", "param": None, "code": None}}),
        ("anthropic_messages", {"type": "error", "error": {"type": "not_found_error", "message": "no"}}),
        ("ollama_chat", {"error": "no"}),
        ("ollama_generate", {"error": "no"}),
    ],
)
def test_errors_in_each_clients_form(dialect, form):
    answer = error_answer(dialect, 404, "no")
    assert answer.status == 404
    assert json.loads(answer.body) == form
