"""A call left in text: the configuration's fault, the stack's, or open, by the parser that was to read it."""

from __future__ import annotations

import pytest

from proxy.classify import ExchangeView, RunMemory, judge
from proxy.classify.memory import MAX_TOLD
from proxy.exchange_files import from_case
from results.outcomes import Outcome
from tests.proxy.classify.exchanges import CALL, chat, message, verdict

BARE = '{"name": "get_weather", "arguments": {"city": "Lyon"}}'
FENCE = f"```json\n{BARE}\n```"
QWEN = "<tool_call>\n<function=get_weather>\n<parameter=city>\nLyon\n</parameter>\n</function>\n</tool_call>"
MLX_TEMPLATE = "{% for tool_call in calls %}<tool_call>{{ tool_call.name }}</tool_call>{% endfor %}"


def left(text: str, stack: str, flags: tuple[str, ...] | None) -> ExchangeView:
    view = chat(message(text), stack=stack)
    view.launch_flags = flags
    return view


@pytest.mark.parametrize(
    ("stack", "flags", "text", "fault"),
    [
        ("vllm", ("--enable-auto-tool-choice", "--tool-call-parser", "hermes"), CALL, "stack"),
        ("vllm", ("--enable-auto-tool-choice", "--tool-call-parser=hermes"), CALL, "stack"),
        ("vllm", ("--tool-call-parser hermes",), QWEN, "config"),
        ("vllm", ("--tool-call-parser", "hermes"), FENCE, "undetermined"),
        ("vllm", ("--tool-call-parser", "llama3_json"), BARE, "stack"),
        ("vllm", ("--tool-call-parser", "mine"), CALL, "undetermined"),
        ("vllm", ("serve", "model"), CALL, "config"),
        ("vllm", None, CALL, "undetermined"),
        ("sglang", (), CALL, "config"),
        ("sglang", ("--tool-call-parser", "qwen3_coder"), QWEN, "stack"),
        ("sglang", ("--tool-call-parser", "qwen25"), QWEN, "config"),
        ("llama.cpp", ("--jinja", "--skip-chat-parsing"), CALL, "config"),
        ("llama.cpp", ("--jinja",), CALL, "undetermined"),
        ("llama.cpp", None, FENCE, "undetermined"),
        ("llama-cpp-python", None, CALL, "config"),
        ("llama-cpp-python", ("--chat_format", "chatml"), CALL, "config"),
        ("llama-cpp-python", ("--chat_format", "chatml-function-calling"), CALL, "undetermined"),
        ("mlx_lm", ("--chat-template", MLX_TEMPLATE), CALL, "stack"),
        ("mlx_lm", ("--chat-template", MLX_TEMPLATE.replace(".name", "['name']")), CALL, "config"),
        ("mlx_lm", ("--chat-template", MLX_TEMPLATE), FENCE, "undetermined"),
        ("mlx_lm", ("--model", "m"), CALL, "undetermined"),
        ("mlx_inprocess", None, CALL, "config"),
        ("ollama", None, CALL, "undetermined"),
        ("", None, CALL, "undetermined"),
    ],
)
def test_blind(stack: str, flags: tuple[str, ...] | None, text: str, fault: str) -> None:
    outcome = verdict(left(text, stack, flags))
    assert (outcome.name, outcome.at_fault, outcome.wrote) == ("parser.left_as_text", fault, "valid_call")
    assert (outcome.decide_by is not None) == (fault == "undetermined")
    assert outcome.confidence == ("medium" if fault == "undetermined" else "high")


@pytest.mark.parametrize(
    ("text", "fault"), [(CALL, "config"), (QWEN, "config"), (FENCE, "undetermined"), (BARE, "undetermined")]
)
def test_sighted_without_flags_is_never_the_stacks_alone(text: str, fault: str) -> None:
    outcome = verdict(left(text, "ollama", None), text)
    assert (outcome.name, outcome.at_fault, outcome.grade) == ("parser.left_as_text", fault, "known-answer")


def test_sighted_with_the_flags() -> None:
    def sighted(*flags: str) -> Outcome:
        return verdict(left(CALL, "vllm", flags), CALL)

    assert sighted("--tool-call-parser", "hermes").at_fault == "stack"
    assert sighted("--tool-call-parser", "mistral").at_fault == "config"


# ---------------------------------------------------------------------- what the server told earlier in the record
HERMES = "{% if tools %}Write <tool_call>{...}</tool_call>{% endif %}{{ messages }}"


def show(model: str, template: str, parser: str = "") -> ExchangeView:
    said = {"template": template, "modelfile": f"FROM x\nTEMPLATE y\n{parser}", "capabilities": ["tools"]}
    asked = {"method": "POST", "path": "/api/show", "body": {"model": model}}
    return from_case({"id": "s", "stack": "ollama", "request": asked, "response": {"status": 200, "body": said}}).view


def props(template: str) -> ExchangeView:
    asked = {"method": "GET", "path": "/props"}
    answer = {"status": 200, "body": {"chat_template": template, "total_slots": 1}}
    return from_case({"id": "p", "stack": "llama.cpp", "request": asked, "response": answer}).view


@pytest.mark.parametrize(
    ("said", "text", "fault"),
    [
        (show("m", HERMES), CALL, "stack"),
        (show("m:latest", HERMES), CALL, "stack"),
        (show("other", HERMES), CALL, "undetermined"),
        (show("m", HERMES), FENCE, "undetermined"),
        (show("m", "{{ .Prompt }}"), CALL, "config"),
        (show("m", "{{ range .Tools }}[TOOL_CALLS]{{ end }}"), CALL, "config"),
        (show("m", "{{ .Prompt }}", "PARSER qwen3-coder\n"), QWEN, "stack"),
        (show("m", "{{ .Prompt }}", "PARSER qwen3-coder\n"), CALL, "config"),
        (show("m", ""), CALL, "undetermined"),
        (props(HERMES), CALL, "stack"),
        (props("{{ messages }}"), BARE, "config"),
        (props(HERMES), BARE, "undetermined"),
    ],
)
def test_template_and_parser_told_in_the_record(said: ExchangeView, text: str, fault: str) -> None:
    memory = RunMemory()
    judge(said, memory).remember(memory)
    outcome = judge(chat(message(text), stack=said.stack), memory).outcome
    assert (outcome.name, outcome.at_fault) == ("parser.left_as_text", fault)


def test_templates_are_kept_within_bounds() -> None:
    memory = RunMemory()
    for number in range(MAX_TOLD + 5):
        memory.tell("u", f"m{number}", HERMES, "")
    assert memory.told("u", "m0") == ("", "")
    assert memory.told("u", f"m{MAX_TOLD}") == (HERMES, "")
    assert memory.told("v", f"m{MAX_TOLD}") == ("", "")
