"""What each stack's module reads out of answers: models, identity, prompt, raw text, launch flags."""

from __future__ import annotations

from typing import Any

import pytest

from results.manifest import Fact, known
from stacks.serving.base import Answer, Ask, ModelIdentity, with_flags
from stacks.serving.mlx_server import inferred_parser, spelled
from stacks.serving.reading import flag_value, has_flag, number_flag
from stacks.serving.registry import STACKS, all_stacks, serving_stack
from tests.support.serving import LM_STUDIO_V0, LM_STUDIO_V1, answer, drive, recorded, replies

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [], "tool_choice": "none", "n": 1}
CANARY_TEMPLATE = "3fa48df854ca5696143d66c3970367e3533d7dd57b998431e5933a1c82e23f71"


def unreadable(identity: ModelIdentity) -> set[str]:
    """The facts that are unknown; each must say why."""
    facts = {
        name: getattr(identity, name)
        for name in identity.__dataclass_fields__
        if isinstance(getattr(identity, name), Fact)
    }
    missing = {name for name, fact in facts.items() if fact.unknown is not None}
    assert all(facts[name].unknown for name in missing)
    assert all(fact.source for name, fact in facts.items() if name not in missing)
    return missing


def test_llama_server_tells_template_context_and_sampling() -> None:
    stack = serving_stack("llama.cpp")
    models, _ = drive(stack.models(), replies(recorded("llamacpp")))
    assert [(model.name, model.loaded) for model in models] == [("/srv/models/hermes/model.gguf", True)]
    identity, asked = drive(stack.identity(models[0].name), replies(recorded("llamacpp")))
    assert [ask.path for ask in asked] == ["/props", "/v1/models"]
    assert identity.template_hash.value == CANARY_TEMPLATE
    assert (identity.context_length.value, identity.context_trained.value) == (65536, 65536)
    assert (identity.quantization.value, identity.parameters.value) == ("all F32", 2228992)
    assert identity.bits_per_weight.value == 32.0
    assert identity.tools.value is True
    assert identity.sampling.value["temperature"] == 0.8
    assert unreadable(identity) == {"digest", "architecture", "reasoning_parser"}
    assert identity.asks


def test_llama_server_with_a_key_says_what_it_refused() -> None:
    refused = {"error": {"code": 401, "message": "Invalid API Key", "type": "authentication_error"}}
    answers = {**recorded("llamacpp"), "/props": answer(Ask("GET", "/props"), refused, 401)}
    identity, _ = drive(serving_stack("llamacpp").identity("m"), replies(answers))
    assert identity.template.unknown == "/props: 401 Invalid API Key"
    assert identity.context_length.value == 65536  # the model list is public


def test_llama_server_keeps_special_tokens_and_drops_the_end_token() -> None:
    def reply(ask: Ask) -> Answer:
        if ask.path == "/completion":
            assert ask.body is not None
            assert ask.body["return_tokens"]
            assert ask.generates
            body = {"content": "call x", "tokens": [7, 8, 9], "stop_type": "eos", "tokens_predicted": 3}
            return answer(ask, body)
        assert (ask.path, ask.body) == ("/detokenize", {"tokens": [7, 8]})
        return answer(ask, {"content": "<|call|>call x"})

    raw, _ = drive(serving_stack("llamacpp").complete_raw("m", "p", 9), reply)
    assert (raw.text, raw.finish, raw.tokens) == ("<|call|>call x", "stop", 3)


def test_vllm_renders_by_tokens_and_takes_only_the_fields_of_that_route() -> None:
    def reply(ask: Ask) -> Answer:
        assert ask.body is not None
        if ask.path == "/tokenize":
            assert "n" not in ask.body
            assert "tool_choice" not in ask.body
            return answer(ask, {"count": 2, "tokens": [1, 2]})
        assert ask.body == {"model": "m", "tokens": [1, 2]}
        return answer(ask, {"prompt": "<s>hi"})

    rendered, asked = drive(serving_stack("vllm").render(CHAT), reply)
    assert (rendered.text, rendered.tokens) == ("<s>hi", 2)
    assert not any(ask.generates for ask in asked)


def test_sglang_renders_with_the_tool_choice_and_asks_for_special_tokens() -> None:
    def reply(ask: Ask) -> Answer:
        assert ask.body is not None
        if ask.path == "/tokenize":
            assert ask.body["tool_choice"] == "none"
            return answer(ask, {"count": 2, "tokens": [1, 2]})
        assert ask.body["skip_special_tokens"] is False
        return answer(ask, {"text": "<s>hi"})

    rendered, _ = drive(serving_stack("sglang").render(CHAT), reply)
    assert (rendered.text, rendered.tokens) == ("<s>hi", 2)


def test_vllm_and_sglang_tell_context_and_what_cannot_be_read() -> None:
    vllm, _ = drive(serving_stack("vllm").identity("/srv/models/canary"), replies(recorded("vllm")))
    assert vllm.context_length.value == 8192
    assert {"parser", "template", "template_hash", "reasoning_parser"} <= unreadable(vllm)
    sglang, asked = drive(serving_stack("sglang").identity("canary"), replies(recorded("sglang")))
    assert (sglang.parser.value, sglang.reasoning_parser.value) == ("hermes", "none")
    assert (sglang.context_length.value, sglang.architecture.value) == (4096, "LlamaForCausalLM")
    assert "template" in unreadable(sglang)
    assert len(asked) == 3


def test_an_older_sglang_is_asked_by_its_older_names() -> None:
    old = {"/get_server_info": recorded("sglang")["/server_info"], "/get_model_info": recorded("sglang")["/model_info"]}
    identity, asked = drive(serving_stack("sglang").identity("canary"), replies(old))
    assert identity.parser.value == "hermes"
    assert [ask.path for ask in asked][:2] == ["/server_info", "/get_server_info"]


@pytest.mark.parametrize(
    ("routes", "model", "context", "trained", "tools"),
    [
        ({"/api/v1/models": LM_STUDIO_V1}, "gemma-3-270m-it-qat", 4096, 32768, False),
        ({"/api/v0/models": LM_STUDIO_V0}, "meta-llama-3.1-8b-instruct", None, 131072, None),
        ({}, "gone", None, None, None),
    ],
)
def test_lm_studio_tells_what_is_loaded(routes: Any, model: str, context: Any, trained: Any, tools: Any) -> None:
    answers = {path: answer(Ask("GET", path), body) for path, body in routes.items()}
    models, _ = drive(serving_stack("LM Studio").models(), replies(answers))
    assert [each.name for each in models] == ([model] if routes else [])
    identity, _ = drive(serving_stack("lmstudio").identity(model), replies(answers))
    assert (identity.context_length.value, identity.context_trained.value, identity.tools.value) == (
        context,
        trained,
        tools,
    )
    assert "template" in unreadable(identity)


def test_the_in_process_surface_tells_its_engine() -> None:
    identity, _ = drive(serving_stack("mlx_inprocess").identity("hermes"), replies(recorded("mlx_inprocess")))
    assert identity.template_hash.value == CANARY_TEMPLATE
    assert identity.digest.value.startswith("sha256:")
    assert identity.context_length.value == 65536
    assert identity.parser.value == "none"


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("said", [b"", b"[]", b"{}", b"null", b"<html>", b'{"data": 7, "models": 7, "tokens": {}}'])
@pytest.mark.parametrize("status", [200, 404, 500])
def test_odd_answers_leave_facts_unknown_with_a_reason(stack: str, said: bytes, status: int) -> None:
    def reply(ask: Ask) -> Answer:
        return answer(ask, said, status)

    serving = serving_stack(stack)
    identity, asked = drive(serving.identity("m"), reply)
    unreadable(identity)
    assert not any(ask.changes or ask.generates for ask in asked)
    assert drive(serving.models(), reply)[0] == []
    rendered, _ = drive(serving.render(CHAT), reply)
    assert rendered.text is None
    assert rendered.why
    raw, _ = drive(serving.complete_raw("m", "p", 5), reply)
    assert raw.text is None
    assert raw.why


@pytest.mark.parametrize(
    ("stack", "command", "facts"),
    [
        ("vllm", "vllm serve m --enable-auto-tool-choice --tool-call-parser hermes", {"parser": "hermes"}),
        ("vllm", "vllm serve m --tool-call-parser=hermes", {"parser": "none"}),
        ("vllm", "vllm serve m --max_model_len 2048", {"parser": "none", "context_length": 2048}),
        ("sglang", "sglang serve --tool-call-parser qwen --context-length 4096", {"parser": "qwen"}),
        ("llamacpp", "llama-server -m x -c 4096 -np 2", {"context_length": 2048}),
        ("llamacpp", "llama-server -m x --no-jinja", {"tools": False}),
        ("llamacpp_python", "python -m llama_cpp.server --model x", {"context_length": 2048, "parser": "none"}),
        (
            "llamacpp_python",
            "python -m llama_cpp.server --n_ctx 8192 --chat_format chatml-function-calling",
            {"context_length": 8192, "parser": "chatml-function-calling"},
        ),
        (
            "mlx_server",
            "mlx_lm.server --model x --chat-template <tool_call>{{tool_call.name}}",
            {"parser": "json_tools"},
        ),
        ("mlx_server", "mlx_lm.server --model x --chat-template {{messages}}", {"parser": "none", "tools": False}),
    ],
)
def test_launch_flags_tell_what_the_server_does_not(stack: str, command: str, facts: dict[str, Any]) -> None:
    told = serving_stack(stack).flags(command.split())
    assert {name: told[name].value for name in facts} == facts


def test_flags_fill_only_what_is_unknown() -> None:
    identity = ModelIdentity("m", context_length=known(4096, "asked"))
    filled = with_flags(identity, {"context_length": known(1, "flags"), "parser": known("hermes", "flags")})
    assert (filled.context_length.value, filled.parser.value) == (4096, "hermes")


@pytest.mark.parametrize(
    ("command", "name", "value"),
    [
        ("llama-server --skip-chat-parsing", "parser", "none (--skip-chat-parsing)"),
        ("llama-server --no-jinja", "tools", False),
    ],
)
def test_what_a_flag_switches_off_is_off_whatever_the_template_can(command: str, name: str, value: object) -> None:
    identity = ModelIdentity("m", parser=known("made from the chat template", "/props"), tools=known(True, "/props"))
    filled = with_flags(identity, serving_stack("llamacpp").flags(command.split()))
    assert getattr(filled, name).value == value


def test_flags_are_read_as_shells_pass_them() -> None:
    command = ["x", "--a-b", "1", "--a_b=2", "-c", "nope", "value"]
    assert flag_value(command, "--a_b") == "2"
    assert number_flag(command, "-c") is None
    assert not has_flag(command, "value", "--missing")
    assert flag_value(["--last"], "--last") is None


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["<tool_call>", "\u010a", "{\"a\":", "\u0120\"\u00c3\u00a9\"}"], '<tool_call>\n{"a": "é"}'),
        (["\u2581Hello", "<0x0A>", "\u2581w"], " Hello\n w"),
        (["\u65e5\u672c"], "\u65e5\u672c"),
    ],
)  # fmt: skip
def test_tokens_as_tokenizers_spell_them(tokens: list[str], text: str) -> None:
    assert spelled(tokens) == text


def test_the_parser_that_mlx_infers() -> None:
    assert inferred_parser("<tool_call>\\n<function=") == "qwen3_coder"
    assert inferred_parser("<tool_call> tool_call['name']") is None
    assert inferred_parser("") is None


def test_every_stack_has_one_module_and_one_name() -> None:
    assert {stack.name for stack in all_stacks()} == set(STACKS)
    assert serving_stack("mlx_lm.server") is serving_stack("mlx_server")
    with pytest.raises(KeyError, match="no serving stack"):
        serving_stack("nothing")


@pytest.mark.parametrize("stack", ["mlx_server", "llamacpp_python", "lmstudio", "openai"])
def test_where_nothing_renders_the_prompts_tokens_are_counted(stack: str) -> None:
    def reply(ask: Ask) -> Answer:
        assert ask.body is not None
        assert (ask.path, ask.body["max_tokens"], ask.generates) == ("/v1/chat/completions", 1, True)
        assert "stream_options" not in ask.body
        return answer(ask, {"usage": {"prompt_tokens": 17}})

    request = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
    rendered, _ = drive(serving_stack(stack).render(request), reply)
    assert (rendered.text, rendered.tokens) == (None, 17)
    assert rendered.why
