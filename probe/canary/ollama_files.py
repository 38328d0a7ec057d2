"""A canary for Ollama: one way to the model each, as Modelfiles beside the GGUF, and as what its API takes.

Ollama has several ways to the same weights, and the same text fares differently in each (`stacks.serving.ollama_modes`
says how they are told apart). The Go templates say the same as the canary's jinja template.
Sources: Ollama's Modelfile reference (FROM, TEMPLATE, RENDERER, PARSER, PARAMETER), `server/create.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from probe.canary.build import BuiltCanary
from probe.canary.files import encode_gguf
from probe.canary.members import hermes_template
from probe.canary.model import assemble, gguf_tensors, gguf_values

BARE_GGUF = "model-no-template.gguf"
_DATA = Path(__file__).parent / "data" / "ollama"


@dataclass(frozen=True, slots=True)
class OllamaWay:
    """One way to install a canary on Ollama. `template`: a Go template of the data folder, "" for the model's own;
    `bare`: from the GGUF that holds no chat template (a jinja one with tools would win over a Go one without)."""

    name: str
    about: str
    template: str = ""
    renderer: str = ""
    parser: str = ""
    bare: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def template_text(self) -> str:
        """The Go template; empty where the model's own is used."""
        return _template(self.template) if self.template else ""

    @property
    def gguf(self) -> str:
        """The name of the GGUF it is made from."""
        return BARE_GGUF if self.bare else "model.gguf"


_OWN_RENDERER = frozenset(
    {"qwen3-coder", "qwen3-vl-instruct", "qwen3-vl-thinking", "qwen3.5", "cogito", "olmo3", "olmo3-think", "gemma4"}
    | {"functiongemma", "glm-4.7", "lfm2", "lfm2-thinking", "laguna", "poolside-v1", "cohere", "glimmer"}
    | {"nemotron-3-nano", "nemotron-3.5-nano"}
)
"""Parsers that have a renderer of the same name (`model/renderers/renderer.go`)."""


def parser_way(parser: str) -> OllamaWay:
    """A canary behind one of Ollama's built-in parsers. What it writes does not depend on the prompt's form, so that a
    parser without a renderer of its own gets one that ends its prompts as the canary wants them."""
    renderer = {"deepseek3": "deepseek3.1"}.get(parser, parser if parser in _OWN_RENDERER else "qwen3-coder")
    return OllamaWay(parser, f"built-in parser {parser}", renderer=renderer, parser=parser)


WAYS: Mapping[str, OllamaWay] = {
    way.name: way
    for way in (
        OllamaWay("native", "jinja template of the GGUF, llama.cpp's parser"),
        OllamaWay("tools-if", "Go template with `if .ToolCalls`: calls open with <tool_call>", "tools-if.txt"),
        OllamaWay("tools-range", "Go template with only `range .ToolCalls`: no tag is found", "tools-range.txt"),
        OllamaWay("thinking", "Go template that knows thinking", "thinking.txt"),
        OllamaWay("no-tools", "no template knows tools: refused at the gate", "no-tools.txt", bare=True),
        parser_way("qwen3-coder"),
        parser_way("qwen3"),
    )
}
"""Every way by name."""


@cache
def _template(file: str) -> str:
    return (_DATA / file).read_text(encoding="utf-8")


def modelfile(way: OllamaWay) -> str:
    """The Modelfile of a way, for `ollama create NAME -f Modelfile.WAY` in the canary's folder."""
    lines = [f"# {way.about}", f"FROM ./{way.gguf}"]
    if way.template:
        lines.append(f'TEMPLATE """{way.template_text}"""')
    lines += [f"{word} {name}" for word, name in (("RENDERER", way.renderer), ("PARSER", way.parser)) if name]
    lines += [f"PARAMETER {name} {value}" for name, value in way.parameters.items()]
    return "\n".join(lines) + "\n"


def bare_gguf(canary: BuiltCanary) -> bytes:
    """The canary's GGUF without a chat template in it."""
    assembled = assemble(canary.spec)
    values = {name: value for name, value in gguf_values(assembled).items() if name != "tokenizer.chat_template"}
    return encode_gguf(values, gguf_tensors(assembled))


def write_ollama_files(canary: BuiltCanary) -> list[Path]:
    """Write `Modelfile.WAY` for every way, and the GGUF without a template, beside the canary's GGUF.

    Existing ones are written anew. The Go templates announce the Hermes format: a canary of another template gets none
    of these files. Raises OSError.
    """
    if canary.spec.template != hermes_template():
        return []
    contents = {f"Modelfile.{name}": modelfile(way).encode() for name, way in WAYS.items()}
    contents[BARE_GGUF] = bare_gguf(canary)
    written = []
    for name, content in contents.items():
        path = canary.folder / name
        partial = path.with_name(name + ".partial")
        partial.write_bytes(content)
        partial.replace(path)
        written.append(path)
    return written
