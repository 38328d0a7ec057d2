"""Starting a stack with a canary: flags, context, names, and the call format that its parser claims."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from probe.canary import BuiltCanary, selfdriving
from probe.pairing.serving.serving_canary import (
    MODEL_NAME,
    ServedStack,
    call_format_for,
    canary_template,
    filled_flags,
    launch_options,
    model_path,
    served_name,
    stack_from,
)
from stacks.formats import formats
from stacks.launching.launch import RECIPES, LaunchError
from stacks.serving.mlx_server import inferred_parser


@pytest.fixture
def canary(tmp_path: Path) -> BuiltCanary:
    return BuiltCanary(tmp_path / "canary", {}, selfdriving("bash", "command"))


def test_a_stack_is_written_with_its_flags_as_in_a_shell() -> None:
    assert stack_from("llama-server") == ServedStack("llamacpp")
    served = stack_from("vllm:--enable-auto-tool-choice --tool-call-parser hermes")
    assert served == ServedStack("vllm", ("--enable-auto-tool-choice", "--tool-call-parser", "hermes"))
    assert stack_from("mlx:--chat-template '{{ a: b }}'").flags == ("--chat-template", "{{ a: b }}")
    with pytest.raises(LaunchError, match="cannot start this stack"):
        stack_from("ollama")
    with pytest.raises(ValueError, match="no shell words"):
        stack_from("vllm:--x 'open")


@pytest.mark.parametrize("stack", ["vllm", "sglang"])
def test_every_parser_that_a_format_names_gets_a_canary_of_a_format_it_reads(stack: str) -> None:
    tried = 0
    for entry in formats():
        for parser in entry.parsers.get(stack, ()):
            chosen = call_format_for(stack, ("--tool-call-parser", parser))
            assert parser in next(each for each in formats() if each.name == chosen.name).parsers[stack]
            assert parser in chosen.why
            tried += 1
    assert tried > 20


def test_without_a_parser_the_format_is_hermes_and_says_why() -> None:
    assert call_format_for("vllm", ()).name == "hermes"
    assert "without a tool call parser" in call_format_for("sglang", ()).why
    assert call_format_for("llamacpp", ()).name == "hermes"
    unknown = call_format_for("vllm", ("--tool-call-parser=of_tomorrow",))
    assert unknown.name == "hermes"
    assert "of_tomorrow" in unknown.why


def test_mlx_infers_its_parser_from_a_template_among_the_flags() -> None:
    chosen = call_format_for("mlx_server", ("--chat-template", canary_template("qwen_xml")))
    assert chosen.name == "qwen_xml"
    assert call_format_for("mlx_server", ()).name == "hermes"


def test_placeholders_become_templates(tmp_path: Path) -> None:
    flags = ("--chat-template-file", "{template:qwen_xml}", "{template-text:glm}", "{respelled}", "{other:x}", "{")
    filled = filled_flags(flags, "hermes", tmp_path / "made")
    assert Path(filled[1]).read_text() == canary_template("qwen_xml")
    assert filled[2] == canary_template("glm")
    assert inferred_parser(canary_template("hermes")) is not None
    assert inferred_parser(filled[3]) is None
    assert filled[4:] == ("{other:x}", "{")


def test_a_server_is_named_and_given_room_for_the_agent(canary: BuiltCanary) -> None:
    assert launch_options(ServedStack("vllm"), canary, "hermes").flags == ("--served-model-name", MODEL_NAME)
    assert launch_options(ServedStack("llamacpp"), canary, "hermes").flags[:2] == ("-t", "1")
    threads = launch_options(ServedStack("llamacpp", ("--threads", "4")), canary, "hermes").flags
    assert threads == ("--alias", MODEL_NAME, "--threads", "4")
    python = launch_options(ServedStack("llamacpp_python"), canary, "hermes")
    assert python.context_length == canary.spec.context
    assert launch_options(ServedStack("vllm"), canary, "hermes").context_length is None
    assert launch_options(ServedStack("sglang", context=4096), canary, "hermes").context_length == 4096
    own = ServedStack("llamacpp_python", ("--n_ctx", "2048", "--model_alias", "mine", "--n_threads", "2"))
    assert launch_options(own, canary, "hermes").context_length is None
    assert launch_options(own, canary, "hermes").flags == own.flags
    assert served_name(own) == "mine"
    assert served_name(ServedStack("mlx_server")) == "default_model"


def test_a_context_that_cannot_be_set_is_refused(canary: BuiltCanary) -> None:
    with pytest.raises(LaunchError, match="no context length"):
        launch_options(ServedStack("mlx_server", context=4096), canary, "hermes")
    with pytest.raises(LaunchError, match="named twice"):
        launch_options(ServedStack("llamacpp", ("-c", "512"), 4096), canary, "hermes")


def test_every_stack_that_can_be_started_is_given_the_form_it_loads(canary: BuiltCanary) -> None:
    for recipe in RECIPES:
        served = ServedStack(recipe.name)
        path = model_path(served, canary)
        assert (path == canary.gguf) == recipe.name.startswith("llamacpp")
        options = launch_options(served, canary, "hermes")
        assert not [flag for flag in options.flags if flag in recipe.own_flags]
        assert dataclasses.replace(served, context=None) == served
