"""Modelfiles of a canary: every way of Ollama to a model, and what the server would tell of each."""

from __future__ import annotations

from pathlib import Path

import gguf
import pytest

from probe.canary import BuiltCanary, build, default_spec
from probe.canary.members import hermes_template
from probe.canary.ollama_files import BARE_GGUF, WAYS, modelfile, parser_way, write_ollama_files
from probe.canary.spec import CanarySpec
from stacks.serving.ollama_modes import mode_of


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    return build(default_spec(), tmp_path_factory.mktemp("ollama") / "canary")


@pytest.mark.parametrize(
    ("name", "way", "tag", "tools"),
    [
        ("tools-if", "go_if", "<tool_call>", True),
        ("tools-range", "go_range", "{", True),
        ("thinking", "go_range", "{", True),
        ("no-tools", "go_no_calls", "{", False),
    ],
)
def test_the_go_templates_are_of_the_kind_they_are_called(name: str, way: str, tag: str, tools: bool) -> None:
    text = WAYS[name].template_text
    found = mode_of({"template": text, "modelfile": modelfile(WAYS[name])})
    assert (found.way, found.tag, found.names_tools) == (way, tag, tools)
    assert text.count("{{") == text.count("}}")
    blocks = sum(text.count(word) for word in ("{{- if", "{{ if", "{{- range", "{{ range"))
    assert text.count("{{ end }}") + text.count("{{- end }}") == blocks
    assert "<|im_start|>assistant\n" in text[-120:]
    assert '"""' not in text


def test_the_models_own_template_and_the_built_in_parsers() -> None:
    native = modelfile(WAYS["native"])
    assert "TEMPLATE" not in native
    assert mode_of({"template": hermes_template(), "modelfile": native}).way == "native"
    for parser in ("qwen3-coder", "qwen3", "deepseek3"):
        found = mode_of({"template": "{{ .Prompt }}", "modelfile": modelfile(parser_way(parser))})
        assert (found.way, found.parser) == ("builtin", parser)
    assert parser_way("deepseek3").renderer == "deepseek3.1"
    assert parser_way("harmony").renderer == "qwen3-coder"


def test_files_are_written_beside_the_gguf(canary: BuiltCanary) -> None:
    names = {path.name for path in write_ollama_files(canary)}
    assert names == {f"Modelfile.{name}" for name in WAYS} | {BARE_GGUF}
    assert not list(canary.folder.glob("*.partial"))
    for name in WAYS:
        text = (canary.folder / f"Modelfile.{name}").read_text()
        source = next(line for line in text.splitlines() if line.startswith("FROM "))
        assert (canary.folder / source.removeprefix("FROM ")).is_file()
    whole, bare = gguf.GGUFReader(canary.gguf), gguf.GGUFReader(canary.folder / BARE_GGUF)
    assert "tokenizer.chat_template" in whole.fields
    assert set(whole.fields) - set(bare.fields) == {"tokenizer.chat_template"}
    for one, other in zip(whole.tensors, bare.tensors, strict=True):
        assert (one.name, one.data.tobytes()) == (other.name, other.data.tobytes())


def test_a_canary_of_another_template_gets_no_modelfiles(tmp_path: Path) -> None:
    spec = CanarySpec.from_dict({**default_spec().to_dict(), "template": "{{ messages }}"})
    assert write_ollama_files(build(spec, tmp_path / "other")) == []
