"""Ollama as a running server: what its answers tell, on true captures of 0.30.8 and 0.32.15 in every mode."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.replay.framing import payload, split_head
from proxy.replay.ollama import OllamaReplay
from results.taxonomy import LAYERS
from stacks.serving.base import Answer, Ask, Steps, T
from stacks.serving.fingerprint import ASKS, fingerprint
from stacks.serving.ollama import Ollama, native_request
from stacks.serving.ollama_modes import call_tag, mode_of, parameters_of
from stacks.serving.ollama_remedies import REMEDIES, remedy_for
from tests.support.replayed import MODES, VERSIONS, ollama_captures

OLLAMA = Ollama()
ASKED = ("/", "/v1/models", "/props", "/version", "/api/version", "/api/tags", "/openapi.json", "/no-such-route")


def answer(server: OllamaReplay, ask: Ask, number: int = 1) -> Answer:
    body = b"" if ask.body is None else json.dumps(ask.body).encode()
    found = server.find(ask.method, ask.path, body)
    if found is None:
        return Answer(ask, 501, (("x-stacktap-error", "not_recorded"),), b'{"error": {"message": "uncovered"}}')
    raw = b"".join(data for _, data in found[0].pieces)
    head, _ = split_head(raw)
    lines = head.decode("latin-1").split("\r\n")
    headers = tuple((name, value) for line in lines[1:-2] for name, value in [line.split(": ", 1)])
    return Answer(ask, int(lines[0].split()[1]), headers, payload(raw), number=number)


def follow(steps: Steps[T], server: OllamaReplay) -> T:
    number = 1
    try:
        ask = next(steps)
        while True:
            ask, number = steps.send(answer(server, ask, number)), number + 1
    except StopIteration as done:
        result: T = done.value
        return result


@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_is_recognised_by_several_pieces_of_evidence(version: str) -> None:
    server = OllamaReplay(ollama_captures(), version)
    clues = OLLAMA.clues({path: answer(server, Ask("GET", path)) for path in ASKED})
    assert sum(clue.weight for clue in clues) >= 15
    assert {clue.version for clue in clues} == {"", version}
    assert all(clue.stack == "ollama" for clue in clues)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_fingerprint_of_a_replay_says_that_it_is_one(version: str) -> None:
    server = OllamaReplay(ollama_captures(), version)
    found = fingerprint({ask.path: answer(server, ask) for ask in ASKS})
    assert (found.stack, found.version.value, found.confidence) == ("ollama", version, "high")
    assert any(note.startswith("replayed: ") for note in found.notes)


def test_an_imitation_of_its_routes_is_not_enough() -> None:
    def said(path: str, body: Any, server: str = "uvicorn") -> Answer:
        return Answer(Ask("GET", path), 200, (("server", server),), json.dumps(body).encode())

    tags = {"models": [{"name": "m", "digest": "sha256:sglang" + "0" * 50}]}
    sglang = {
        "/": said("/", "SGLang is running"),
        "/api/tags": said("/api/tags", tags),
        "/v1/models": said("/v1/models", {"data": [{"id": "m", "owned_by": "sglang"}]}),
    }
    assert sum(clue.weight for clue in OLLAMA.clues(sglang)) < 0
    kobold = {"/api/version": said("/api/version", {"version": "0.7.0"}, "KoboldCppServer")}
    assert sum(clue.weight for clue in OLLAMA.clues(kobold)) < 0
    assert OLLAMA.clues({}) == []


EXPECTED_MODES = {
    "native": ("native", "", True),
    "notools": ("native", "", True),
    "gotools": ("go_range", "{", True),
    "gothink": ("go_range", "{", True),
    "gotoolsif": ("go_if", "<tool_call>", True),
    "qwen3coder": ("builtin", "", True),
    "bare": ("none", "", False),
    "nogate": ("go_no_calls", "{", False),
}


@pytest.mark.parametrize("mode", sorted(MODES))
@pytest.mark.parametrize("version", VERSIONS)
def test_the_mode_in_force_is_read_from_the_models_files(version: str, mode: str) -> None:
    server = OllamaReplay(ollama_captures(), version)
    shown = answer(server, Ask("POST", "/api/show", {"model": MODES[mode]})).object
    found = mode_of(shown)
    way, tag, tools = EXPECTED_MODES[mode]
    assert (found.way, found.tag) == (way, tag)
    assert (found.names_tools or way == "builtin") == tools
    identity = follow(OLLAMA.identity(MODES[mode]), server)
    assert identity.tools.value is tools
    assert identity.tools.source == "/api/show capabilities"
    assert len(str(identity.digest.value)) == 64
    assert identity.context_trained.value == 8192
    assert identity.architecture.value == "llama"
    assert identity.parameters.value == 557824
    assert identity.quantization.unknown
    assert identity.context_length.unknown
    assert "OLLAMA_CONTEXT_LENGTH" in identity.context_length.unknown
    if way == "builtin":
        assert identity.parser.value == "qwen3-coder (PARSER)"
        assert identity.template.unknown
        assert "built-in renderer qwen3-coder" in identity.template.unknown
    else:
        assert identity.template_hash.value == hashlib.sha256(str(identity.template.value).encode()).hexdigest()
    assert (identity.reasoning_parser.value == "none") == (mode != "gothink")
    assert identity.asks == (1, 2, 3)


def test_the_context_in_force_is_the_loaded_runners() -> None:
    server = OllamaReplay(ollama_captures(), "0.30.8")
    body = {"model": "canary-qwen3coder", "messages": [{"role": "user", "content": "[[answer]]"}], "stream": False}
    answer(server, Ask("POST", "/api/chat", {**body, "options": {"num_predict": 64, "num_ctx": 2048}}))
    identity = follow(OLLAMA.identity("canary-qwen3coder"), server)
    assert (identity.context_length.value, identity.context_length.source) == (2048, "/api/ps")


def test_the_context_and_sampling_of_the_modelfile() -> None:
    shown = {
        "template": "{{ .Prompt }}",
        "parameters": 'num_ctx                        32768\ntemperature  0.6\nstop "<|im_end|>"\nstop "a b"\nx true',
        "model_info": {
            "general.architecture": "qwen3",
            "qwen3.context_length": 16384,
            "general.parameter_count": 8_000_000_000,
        },
        "details": {"quantization_level": "Q4_K_M", "parameter_size": "8.2B"},
    }
    replies = [shown, {"models": []}, {"models": [{"name": "q:latest", "digest": "d" * 64, "size": 4_850_000_000}]}]
    steps = OLLAMA.identity("q")
    ask = next(steps)
    try:
        for reply in replies:
            ask = steps.send(Answer(ask, 200, (), json.dumps(reply).encode()))
        raise AssertionError(ask)
    except StopIteration as done:
        identity = done.value
    assert (identity.context_length.value, identity.context_trained.value) == (16384, 16384)
    assert identity.sampling.value["temperature"] == 0.6
    assert identity.sampling.value["top_k"] == 40
    assert identity.sampling.value["stop"] == ["<|im_end|>", "a b"]
    assert (identity.quantization.value, identity.parameters.value) == ("Q4_K_M", 8_000_000_000)
    assert identity.bits_per_weight.value == 4.85
    assert identity.digest.value == "d" * 64
    assert identity.tools.unknown


def test_a_server_that_refuses_everything_leaves_every_fact_unknown() -> None:
    steps = OLLAMA.identity("m")
    ask = next(steps)
    try:
        while True:
            ask = steps.send(Answer(ask, 404, (), b'{"error": "model \'m\' not found"}'))
    except StopIteration as done:
        identity = done.value
    for name in ("digest", "template", "template_hash", "tools", "parser", "sampling", "context_trained"):
        assert getattr(identity, name).unknown, name
    assert "model 'm' not found" in identity.template.unknown


def test_models_are_listed_with_what_is_loaded() -> None:
    server = OllamaReplay(ollama_captures(), "0.32.15")
    body = {"model": "canary-gotools", "messages": [{"role": "user", "content": "[[answer]]"}], "stream": False}
    answer(server, Ask("POST", "/api/chat", {**body, "options": {"num_predict": 64}}))
    models = follow(OLLAMA.models(), server)
    assert {model.name for model in models if model.loaded} == {"canary-gotools:latest"}
    assert len(models) > 20
    assert all(len(model.digest) == 64 for model in models)


TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@pytest.mark.parametrize("mode", ["native", "gotools", "gotoolsif", "gothink", "qwen3coder"])
@pytest.mark.parametrize("version", VERSIONS)
def test_prompts_are_rendered_and_completed_raw(version: str, mode: str) -> None:
    server = OllamaReplay(ollama_captures(), version)
    request = {"model": MODES[mode], "messages": [{"role": "user", "content": "[[good]]"}], "tools": [TOOL]}
    rendered = follow(OLLAMA.render(request), server)
    assert rendered.text is not None
    assert rendered.text.endswith("<|im_start|>assistant\n")
    assert "get_weather" in rendered.text
    assert "[[good]]" in rendered.text
    assert follow(OLLAMA.render({**request, "tools": []}), server).text != rendered.text
    written = follow(OLLAMA.complete_raw(MODES[mode], rendered.text, 64), server)
    assert written.text == '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
    assert (written.finish, written.tokens) == ("stop", 10)


def test_a_refused_rendering_says_why() -> None:
    server = OllamaReplay(ollama_captures(), "0.30.8")
    request = {"model": "canary-bare", "messages": [{"role": "user", "content": "hi"}], "tools": [TOOL]}
    rendered = follow(OLLAMA.render(request), server)
    assert rendered.text is None
    assert "does not support tools" in rendered.why
    steps = OLLAMA.render(request)
    old = b'{"model": "m", "message": {"role": "assistant", "content": "x"}, "done": true}'
    ask = next(steps)
    assert ask.body is not None
    assert ask.body["options"]["num_predict"] == 1
    with pytest.raises(StopIteration) as done:
        steps.send(Answer(ask, 200, (), old))
    assert "does not know _debug_render_only" in done.value.value.why


def test_a_request_in_openais_form_becomes_ollamas_own() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
    native = native_request(
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"role": "assistant", "content": None, "tool_calls": [call], "reasoning": "hm"},
                {"role": "tool", "tool_call_id": "c1", "content": "18 C"},
            ],
            "tools": [TOOL],
            "max_tokens": 5,
        }
    )
    assert native["messages"] == [
        {"role": "user", "content": "a\nb"},
        {
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}],
        },
        {"role": "tool", "content": "18 C", "tool_name": "get_weather"},
    ]
    assert set(native) == {"model", "messages", "tools"}


@pytest.mark.parametrize(
    ("template", "tag"),
    [
        ("{{ if .ToolCalls }}<tool_call>\n{{ range .ToolCalls }}{}{{ end }}{{ end }}", "<tool_call>"),
        ('{{- if and .X .ToolCalls }}{{ range .ToolCalls }}[TOOL_CALLS] [{"n"}]{{ end }}{{ end }}', "[TOOL_CALLS] ["),
        ('{{ if .ToolCalls }}{{ range .ToolCalls }}{"name": 1}{{ end }}{{ end }}', "{"),
        ("{{ range .ToolCalls }}<tool_call>{}{{ end }}", "{"),
        ("no calls", "{"),
    ],
)
def test_the_tag_that_opens_a_call(template: str, tag: str) -> None:
    assert call_tag(template) == tag


def test_remedies_name_outcomes_that_exist_and_are_filled() -> None:
    facts = {"model": "phi3", "format": "hermes", "tokens": "9000", "context": "4096"}
    for outcome in REMEDIES:
        assert outcome.partition(".")[0] in LAYERS
        text = OLLAMA.remedy(outcome, facts)
        assert text
        assert not any("{" + name + "}" in text for name in ("model", "parser", "format", "context", "tokens"))
    assert OLLAMA.remedy("ok.native_call", facts) is None
    wedged = OLLAMA.remedy("engine.wedged", facts)
    assert wedged is not None
    assert "0.32.15" in wedged
    assert "ollama stop phi3" in wedged
    gate = OLLAMA.remedy("gate.tools_unsupported", facts)
    assert gate is not None
    assert "ollama show --modelfile phi3" in gate
    assert "{{ if .ToolCalls }}" in gate
    text = remedy_for("parser.left_as_text", {**facts, "mode": "go_range"})
    assert text is not None
    assert "only `range .ToolCalls`" in text
    server_error = remedy_for("parser.server_error", facts)
    assert server_error is not None
    assert "PARSER qwen3" in server_error
    unread = remedy_for("parser.server_error", {"model": "phi3"})
    assert unread is not None
    assert "see what the model writes" in unread
    assert "{" not in unread.replace("{{", "")


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "models",
                    "name",
                    "digest",
                    "details",
                    "template",
                    "modelfile",
                    "parameters",
                    "capabilities",
                    "model_info",
                    "role",
                    "content",
                    "tool_calls",
                    "function",
                    "arguments",
                    "id",
                    "messages",
                    "error",
                    "data",
                    "version",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(_ANY, st.sampled_from([200, 400, 500]))
def test_any_answer_is_survived(value: Any, status: int) -> None:
    body = json.dumps(value).encode()
    told: Mapping[str, Answer] = {path: Answer(Ask("GET", path), status, (), body) for path in ASKED}
    OLLAMA.clues(told)
    for steps in (
        OLLAMA.models(),
        OLLAMA.identity("m"),
        OLLAMA.render({"messages": value}),
        OLLAMA.complete_raw("m", "p", 1),
    ):
        try:
            ask = next(steps)
            while True:
                ask = steps.send(Answer(ask, status, (), body))
        except StopIteration:
            continue
    parameters_of({"parameters": value})
