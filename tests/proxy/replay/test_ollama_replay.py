"""The stand-in for Ollama: the right true capture for what a request means, and a refusal for what none covers."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probe.known_answer import weather_request
from proxy.replay.ollama import DIFFERS, REPLAYED, OllamaReplay
from proxy.replay.ollama_captures import CapturesError, Taken, taken_from
from proxy.replay.ollama_match import families_of
from tests.support.replayed import MODES, VERSIONS, ollama_captures

TOOL = weather_request("m", stream=False)["tools"][0]


@functools.cache
def _replay(version: str) -> OllamaReplay:
    return OllamaReplay(ollama_captures(), version)


def replay(version: str = "0.30.8") -> OllamaReplay:
    server = _replay(version)
    server.restart()
    return server


def raw(server: OllamaReplay, body: dict[str, Any], path: str = "/api/chat") -> bytes:
    found = server.find("POST", path, json.dumps(body).encode())
    return b"".join(data for _, data in found[0].pieces) if found else b"not covered"


def chat(model: str, text: str = "[[good]]", **more: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": text}], "stream": False}
    return {**body, "tools": [TOOL], "options": {"num_predict": 64, "temperature": 0}, **more}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_captured_request_gets_its_own_answer(version: str) -> None:
    server = replay(version)
    served = 0
    for one in server.answers[::11]:
        if one.stuck or not one.whole or one.meaning.path == "/api/ps":
            continue
        server.restart()
        found = server.find(one.meaning.method, one.meaning.path, one.body)
        assert found is not None, one.source
        answer = next(other for other in server.answers if other.source == found[0].source)
        assert answer.body == one.body, one.source
        served += 1
    assert served > 280


@functools.cache
def askable() -> list[Taken]:
    return [
        one
        for one in ollama_captures()
        if one.status == 200
        and one.whole
        and not one.cut
        and one.meaning.path in ("/api/chat", "/v1/chat/completions")
        and ("-canary-" in one.source or "-parser-" in one.source)
        and one.meaning.triggers
        and not one.meaning.render
        and "logprobs" not in dict(one.meaning.must)
    ]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_other_words_sampling_and_descriptions_find_the_same_text(data: st.DataObject) -> None:
    one = data.draw(st.sampled_from(askable()))
    body = json.loads(one.body)
    words = data.draw(st.text(alphabet="abc def?äöü", max_size=30))
    body["messages"][-1]["content"] = words + body["messages"][-1]["content"]
    for tool in body.get("tools", []):
        tool["function"]["description"] = data.draw(st.text(max_size=10))
    body.setdefault("options", {})["seed"] = 7
    body["tool_choice"] = data.draw(st.sampled_from(["auto", "none", "required"]))
    body["top_p" if "max_tokens" in body else "unheard_of"] = 0.5
    server = replay(one.version)
    found = server.find("POST", one.meaning.path, json.dumps(body).encode())
    assert found is not None
    served = next(other for other in server.answers if other.source == found[0].source)
    assert served.meaning.triggers == one.meaning.triggers
    assert (served.status, served.meaning.model, served.meaning.streams) == (
        200,
        one.meaning.model,
        one.meaning.streams,
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("mode", sorted(MODES))
@pytest.mark.parametrize("version", VERSIONS)
def test_the_known_answer_probe_is_answered_in_every_mode(version: str, mode: str, stream: bool) -> None:
    model = MODES[mode]
    server = replay(version)
    triggers = ["", *(f"[[{name}]]" for name in sorted(families_of(server.answers)[model].triggers))]
    for trigger in triggers:
        server.restart()
        body = weather_request(model, stream=stream, trigger=trigger)
        answer = raw(server, body, "/v1/chat/completions")
        assert REPLAYED.encode() + b": ollama-" + version.encode() in answer, trigger
        assert DIFFERS.encode() + b": " in answer


PARSERS = "cogito functiongemma gemma4 glm47 harmony lfm2 olmo3think passthrough qwen3 qwen35 qwen3coder qwen3think"


@pytest.mark.parametrize("version", VERSIONS)
def test_every_parser_is_asked_for_every_call_format(version: str) -> None:
    server = replay(version)
    models = [f"fmt-{name}" for name in [*PARSERS.split(), "qwen3vlthink"]]
    assert len(models) == 13
    for model in models:
        family = families_of(server.answers)[model]
        assert len(family.triggers) >= 46
        for trigger in sorted(family.triggers):
            for stream in (False, True):
                answer = raw(server, chat(model, f"Well? [[{trigger}]]", stream=stream))
                assert b": ollama-" + version.encode() + b"-parser-" in answer, (model, trigger)
        assert b"PARSER " in raw(server, {"model": model}, "/api/show")


def test_what_decides_the_answer_is_never_passed_over() -> None:
    server = replay()
    two = {**TOOL, "function": {**TOOL["function"], "name": "get_time"}}
    other = {**TOOL, "function": {**TOOL["function"], "parameters": {"type": "object", "properties": {}}}}
    uncovered = [
        chat("canary-gotools", "[[never_built]]"),
        chat("canary-gotools", tools=[TOOL, two]),
        chat("canary-gotools", tools=[other]),
        chat("canary-gotools", options={"num_predict": 2}),
        chat("canary-gotools", "[[loop]]", options={"num_predict": 200}),
        chat("canary-gotoolsif", format={"type": "object", "properties": {"a": {"type": "string"}}}),
        chat("canary-gotoolsif", think=True),
        chat("canary-gotools", "[[good]] " + "word " * 900),
        chat("canary-gotools", options={"num_predict": 64, "num_ctx": 128}),
        chat("canary-gotools", options={"num_predict": 64, "stop": ["x"]}),
        chat("fmt-nemotron"),
        chat("smol", "another question", tools=[]),
        chat("canary-gotools", "say [[good]]", _debug_render_only=True),
        chat("canary-gotools", messages=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]),
        {"name": "x", "model": "x", "from": "canary-native"},
    ]
    for number, body in enumerate(uncovered):
        path = "/api/create" if "from" in body else "/api/chat"
        assert raw(server, body, path) == b"not covered", number
        message = server.nearest("POST", path, json.dumps(body).encode())
        assert "no capture of Ollama 0.30.8 covers POST" in message


def test_budgets_and_contexts_that_hold_the_answer_are_as_good() -> None:
    server = replay()
    for options in ({}, {"num_predict": -1}, {"num_predict": 4000}, {"num_predict": 64, "num_ctx": 2048}):
        assert b'"tool_calls"' in raw(server, chat("canary-gotoolsif", options=options)), options
        server.restart()
    assert b'"content":""' in raw(server, chat("canary-gotoolsif", "[[trunc]]", options={}))
    five = raw(server, chat("canary-gotoolsif", options={"num_predict": 5, "temperature": 1}))
    assert b"limits/canary-gotoolsif-predict-5-plain" in five


@pytest.mark.parametrize("version", VERSIONS)
def test_the_gate_looks_only_at_whether_there_are_tools(version: str) -> None:
    server = replay(version)
    many = [{"type": "function", "function": {"name": f"tool_{number}"}} for number in range(30)]
    answer = raw(server, chat("canary-bare", "anything at all", tools=many, options={"num_predict": 3}))
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"does not support tools" in answer
    assert b"200 OK" in raw(server, chat("canary-bare", "[[good]]"[:0] + "What is the weather in Paris?", tools=[]))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_parser_error_leaves_the_runner_stuck_before_0_32_15_only(version: str) -> None:
    server = replay(version)
    coder = chat("canary-qwen3coder", "[[answer]] please")
    assert b"18 degrees" in raw(server, coder)
    assert b'{"error":"EOF"}' in raw(server, chat("canary-qwen3coder"))
    if version == "0.30.8":
        for body in (coder, chat("canary-native", "[[answer]]", tools=[]), chat("canary-gothink")):
            found = server.find("POST", "/api/chat", json.dumps(body).encode())
            assert found is not None
            assert found[1] == "stuck"
            assert found[0].ended == "hang"
            assert not found[0].pieces
    else:
        assert b"18 degrees" in raw(server, coder)
    assert b"200 OK" in raw(server, {"model": "smol", **json.loads(_smol(server))})
    assert b'"done_reason":"unload"' in raw(server, {"model": "canary-qwen3coder", "keep_alive": 0})
    assert b"18 degrees" in raw(server, coder)


def _smol(server: OllamaReplay) -> bytes:
    return next(one.body for one in server.answers if one.source.endswith("wedge/6-other-model"))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_model_loaded_first_decides_for_the_others_of_its_file(version: str) -> None:
    server = replay(version)
    native, template = chat("canary-native"), chat("canary-gotoolsif")
    assert b'"tool_calls"' in raw(server, native)
    assert b'"tool_calls"' in raw(server, template)
    assert b'"tool_calls"' in raw(server, native)
    server.restart()
    assert b'"tool_calls"' in raw(server, template)
    assert b"requires --jinja flag" in raw(server, native)
    assert b"200 OK" in raw(server, chat("canary-native", tools=[]))
    assert b"200 OK" in raw(server, {"model": "canary-gotoolsif", "keep_alive": 0})
    assert b'"tool_calls"' in raw(server, native)


def test_what_is_loaded_is_told_as_captured_or_built() -> None:
    server = replay()

    def ps() -> tuple[bytes, Any]:
        found = server.find("GET", "/api/ps", b"")
        assert found is not None
        answer = found[0].pieces[0][1]
        return answer, json.loads(answer.split(b"\r\n\r\n")[1])["models"]

    assert REPLAYED.encode() in ps()[0]
    assert ps()[1] == []
    raw(server, chat("canary-gotools"))
    answer, models = ps()
    assert REPLAYED.encode() in answer
    assert models[0]["context_length"] == 4096
    raw(server, chat("canary-gotools", options={"num_predict": 64, "num_ctx": 2048}))
    answer, models = ps()
    assert b"x-stacktap-built: " in answer
    assert REPLAYED.encode() not in answer
    assert (models[0]["model"], models[0]["context_length"]) == ("canary-gotools:latest", 2048)


def test_models_are_shown_as_captured_or_built_with_their_parser() -> None:
    server = replay()
    assert b"RENDERER qwen3-coder" in raw(server, {"model": "canary-qwen3coder"}, "/api/show")
    built = raw(server, {"model": "fmt-glm47:latest"}, "/api/show")
    assert b"x-stacktap-built: " in built
    assert b"PARSER glm-4.7" in built
    assert REPLAYED.encode() not in built
    assert raw(server, {"model": "fmt-nemotron"}, "/api/show") == b"not covered"


def test_an_unknown_model_and_a_body_that_ends_early() -> None:
    server = replay()
    answer = raw(server, chat("who-is-that:7b", options={}))
    assert answer.startswith(b"HTTP/1.1 404")
    assert b"not found" in answer
    assert b": model" in answer
    found = server.find("POST", "/v1/chat/completions", b'{"model": "canary-native", "messages": [{"role')
    assert found is not None
    assert b"unexpected EOF" in found[0].pieces[0][1]
    assert server.find("POST", "/v1/chat/completions", b"{nonsense") is None


def test_a_file_that_holds_no_captures_names_the_line() -> None:
    with pytest.raises(CapturesError, match="here, line 2: not a captured exchange"):
        taken_from(['{"kind": "meta", "version": "1"}', '{"request": {"method": "GET"}}'], "here")
    with pytest.raises(CapturesError, match="here, line 1"):
        taken_from(["no json"], "here")


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=60), st.sampled_from(["/api/chat", "/v1/chat/completions", "/api/show", "/api/ps", "/x"]))
def test_any_body_is_answered_or_refused(body: bytes, path: str) -> None:
    server = replay()
    if server.find("POST", path, body) is None:
        assert server.nearest("POST", path, body)


@pytest.mark.parametrize("depth", [200, 490, 900, 100_000])
def test_a_body_nested_very_deeply_is_refused(depth: int) -> None:
    body = b'{"model": "canary-native", "tools": ' + b"[" * depth + b"]" * depth + b"}"
    server = replay()
    assert server.find("POST", "/api/chat", body) is None
    assert server.nearest("POST", "/api/chat", body)


@pytest.mark.parametrize("number", ["Infinity", "NaN", "1e999", "-1e999", "10" * 200])
def test_numbers_that_are_none_and_text_that_is_no_utf8(number: str) -> None:
    server = replay()
    options = f'{{"num_predict": {number}, "num_ctx": {number}}}'
    messages = '[{"role": "user", "content": "\\ud800 [[good]]"}]'
    body = f'{{"model": "canary-native", "messages": {messages}, "options": {options}}}'
    if server.find("POST", "/api/chat", body.encode()) is None:
        assert server.nearest("POST", "/api/chat", body.encode())


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "function", "arguments", "name", "type", "text"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None)
@given(
    st.fixed_dictionaries(
        {"model": st.just("canary-native") | _JSON},
        optional={
            "messages": _JSON,
            "tools": _JSON,
            "stream": _JSON,
            "options": _JSON,
            "keep_alive": _JSON,
            "input": _JSON,
            "max_tokens": _JSON,
            "prompt": _JSON,
            "format": _JSON,
        },
    )
)
def test_any_json_is_answered_or_refused(body: dict[str, Any]) -> None:
    server = replay()
    for path in ("/api/chat", "/v1/responses", "/api/generate"):
        if server.find("POST", path, json.dumps(body).encode()) is None:
            assert server.nearest("POST", path, json.dumps(body).encode())
