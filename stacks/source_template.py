"""The chat template of the model that was converted, read from its own files: one rendering for every backend.

A converted file may carry another template than its source; rendering both backends' prompts from this one keeps a
difference between templates from being taken for one between weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stacks.chat_template import render_adapted, render_template, template_hash
from stacks.engine import Message, RenderError, Tool
from stacks.gguf_header import gguf_texts
from stacks.model_files import read_json

_USER = "A question."
_PROBE = {
    "type": "function",
    "function": {"name": "zqtool", "description": "It does.", "parameters": {"type": "object", "properties": {}}},
}


@dataclass(frozen=True, slots=True)
class SourceTemplate:
    """A template's text and the special tokens it may write. ``tool_text`` is the variant for requests with tools."""

    text: str
    variables: Mapping[str, Any] = field(default_factory=dict)
    tool_text: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the template's text."""
        return template_hash(self.text)

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] | None = None, **more: Any) -> str:
        """Render as the engines do, generation prompt included. Raises ``stacks.engine.RenderError``."""
        source = self.tool_text if tools and self.tool_text else self.text
        variables = {**self.variables, **more}
        offered = list(tools) if tools else None
        return render_adapted(messages, lambda adapted: render_template(source, adapted, offered, variables))[0]

    @property
    def takes_tools(self) -> bool:
        """Whether tools stand in a rendered prompt at all."""
        return self.shows([_PROBE])

    def shows(self, tools: Sequence[Tool]) -> bool:
        """Whether the tools' names stand in a rendered prompt: many templates take tools and drop them."""
        names = [str((tool.get("function") or tool).get("name", "")) for tool in tools]
        try:
            rendered = self.render([{"role": "user", "content": _USER}], tools)
        except RenderError:
            return False
        return all(name in rendered for name in names)


def template_of(model: Path) -> SourceTemplate:
    """The template in a model folder (``chat_template.jinja`` or ``tokenizer_config.json``) or in a GGUF file.

    Raises :class:`RenderError` where there is none, OSError or ValueError for files that cannot be read.
    """
    return _in_folder(model) if model.is_dir() else _in_gguf(model)


def _in_folder(folder: Path) -> SourceTemplate:
    configured = read_json(folder / "tokenizer_config.json")
    variables = {
        name: content
        for name in ("bos_token", "eos_token", "unk_token", "pad_token")
        if (content := _content(configured.get(name))) is not None
    }
    file = folder / "chat_template.jinja"
    if file.is_file():
        return SourceTemplate(file.read_text(encoding="utf-8"), variables)
    found = configured.get("chat_template")
    if isinstance(found, list):
        named = {str(each.get("name")): str(each.get("template", "")) for each in found if isinstance(each, dict)}
        if named.get("default"):
            return SourceTemplate(named["default"], variables, named.get("tool_use", ""))
    if isinstance(found, str) and found:
        return SourceTemplate(found, variables)
    raise RenderError(f"the model {folder} has no chat template")


def _content(token: Any) -> str | None:
    """A special token is its text, or an object that holds it."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


def _in_gguf(file: Path) -> SourceTemplate:
    texts = gguf_texts(file)
    text = texts.get("tokenizer.chat_template")
    if not text:
        raise RenderError(f"the model {file} has no chat template")
    variables = {f"{name}_token": texts[f"{name}_token"] for name in ("bos", "eos") if f"{name}_token" in texts}
    return SourceTemplate(text, variables, texts.get("tokenizer.chat_template.tool_use", ""))
