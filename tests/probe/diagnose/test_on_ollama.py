"""Which canary goes behind the user's template and parser, and how it is installed."""

from __future__ import annotations

import pytest

from probe.canary import canary_names
from probe.diagnose.on_ollama import canary_format, way_like
from stacks.serving.ollama_modes import OllamaMode, mode_of


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        (OllamaMode("native"), "hermes"),
        (OllamaMode("builtin", "qwen3-coder", "qwen3-coder"), "qwen_xml"),
        (OllamaMode("builtin", "qwen3", "qwen3"), "hermes"),
        (OllamaMode("builtin", "harmony", "harmony"), "harmony"),
        (OllamaMode("builtin", "x", "no-such-parser"), "hermes"),
        (OllamaMode("go_if", tag="<tool_call>"), "hermes"),
        (OllamaMode("go_if", tag="{"), "bare_json"),
        (OllamaMode("go_range", tag="{"), "bare_json"),
    ],
)
def test_the_canary_writes_what_the_way_reads(mode: OllamaMode, name: str) -> None:
    assert canary_format(mode) == name
    assert name in canary_names()


def test_it_is_installed_as_the_users_model_is() -> None:
    template = "{{ range .Tools }}{{ . }}{{ end }}{{ if .ToolCalls }}<tool_call>{{ end }}{{ .Prompt }}"
    mode = mode_of({"template": template, "modelfile": f'FROM x\nTEMPLATE """{template}"""'})
    way = way_like(mode, template)
    assert way.template_text == template
    assert way.bare
    assert (way.renderer, way.parser) == ("", "")
    mode = mode_of({"template": "{{ .Prompt }}", "modelfile": "FROM x\nRENDERER qwen3-coder\nPARSER qwen3-coder"})
    way = way_like(mode, "{{ .Prompt }}")
    assert (way.renderer, way.parser, way.template_text) == ("qwen3-coder", "qwen3-coder", "")
    assert not way.bare
