"""Remedies name what there is: outcomes of the taxonomy, flags of the stack, parsers that read the format."""

from __future__ import annotations

import re

import pytest

from results.taxonomy import CODES
from stacks.formats.registry import formats
from stacks.serving.registry import STACKS, serving_stack

OWN = [name for name in STACKS if name != "ollama"]
FACTS = {"format": "hermes", "model": "Qwen2.5-7B", "context": "4096", "tokens": "9000"}
LEFT_AS_TEXT = {
    "vllm": "--enable-auto-tool-choice --tool-call-parser hermes",
    "sglang": "--tool-call-parser qwen`",
    "llamacpp": "--chat-template-file",
    "llamacpp_python": "--chat_format chatml-function-calling",
    "mlx_server": "`<tool_call>` and `tool_call.name` must stand in it",
    "mlx_inprocess": "stacktap's own",
    "lmstudio": "trained_for_tool_use",
    "openai": "parser",
}


@pytest.mark.parametrize("stack", OWN)
def test_remedies_are_for_outcomes_that_exist_and_have_no_places_left(stack: str) -> None:
    serving = serving_stack(stack)
    given = {name: serving.remedy(name, FACTS) for name in CODES}
    assert any(given.values())
    for name, text in given.items():
        assert text is None or not re.search(r"\{[a-z]+\}", text), (name, text)
    bare = [serving.remedy(name, {}) for name in CODES]
    assert [text is None for text in bare] == [text is None for text in given.values()]
    assert serving.remedy("no.such_outcome", FACTS) is None
    module = __import__(f"stacks.serving.{stack}", fromlist=["REMEDIES"])
    assert set(module.REMEDIES) <= set(CODES)


@pytest.mark.parametrize("stack", OWN)
def test_a_call_left_as_text_has_a_remedy_in_the_stacks_own_words(stack: str) -> None:
    said = serving_stack(stack).remedy("parser.left_as_text", FACTS)
    assert said is not None
    assert LEFT_AS_TEXT[stack] in said


@pytest.mark.parametrize("stack", ["vllm", "sglang", "mlx_server"])
@pytest.mark.parametrize("written", [entry.name for entry in formats()])
def test_the_parser_that_is_named_reads_the_format(stack: str, written: str) -> None:
    said = serving_stack(stack).remedy("parser.left_as_text", {"format": written})
    assert said is not None
    names = [
        name
        for entry in formats()
        if entry.name == written
        for name in entry.parsers.get(stack, ())
        if name != "required"
    ]
    if not names:
        assert "parse the text in the client" in said
        return
    found = re.search(r"--tool-call-parser ([\w.-]+)|\"tool_parser_type\": \"(\w+)\"", said)
    assert found is not None
    assert (found.group(1) or found.group(2)) in names


@pytest.mark.parametrize(
    ("stack", "model", "parser"),
    [
        ("vllm", "zai-org/GLM-4.7-Flash", "glm47"),
        ("vllm", "zai-org/GLM-4.5-Air", "glm45"),
        ("sglang", "GLM-4.7", "glm47"),
        ("vllm", "something", "glm45"),
    ],
)
def test_the_models_name_chooses_among_parsers(stack: str, model: str, parser: str) -> None:
    said = serving_stack(stack).remedy("gate.parser_not_configured", {"format": "glm", "model": model})
    assert said is not None
    assert f"--tool-call-parser {parser}`" in said


def test_a_parser_that_is_given_is_taken() -> None:
    said = serving_stack("vllm").remedy("gate.parser_not_configured", {"parser": "qwen3_coder", "format": "hermes"})
    assert said is not None
    assert "qwen3_coder" in said


def test_context_remedies_name_the_size_that_is_needed() -> None:
    for stack, flag in (("llamacpp", "-c 9000"), ("vllm", "--max-model-len 9000"), ("llamacpp_python", "--n_ctx 9000")):
        said = serving_stack(stack).remedy("request.context_exceeded", FACTS)
        assert said is not None
        assert flag in said


def test_a_crash_with_a_small_context_is_laid_on_the_context() -> None:
    stack = serving_stack("llamacpp_python")
    assert "larger `--n_ctx`" in (stack.remedy("engine.crash", {"context": "128"}) or "")
    for facts in ({}, {"context": "65536"}, {"context": "none"}):
        assert "larger `--n_ctx`" not in (stack.remedy("engine.crash", facts) or "")
