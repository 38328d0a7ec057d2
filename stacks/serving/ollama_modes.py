"""Which of Ollama's ways to a model is in force, read from what `/api/show` tells. Pure.

The same weights fare differently in each: jinja of the GGUF with llama.cpp's parser (native), a Go template whose tag
Ollama's generic parser derives from the text behind `if .ToolCalls`, one with only `range .ToolCalls` (no tag is found:
`{` is assumed, and only bare JSON is parsed), and a built-in RENDERER/PARSER pair.
Sources: `server/routes.go` (chatModeForModel), `server/images.go` (shouldPreferChatTemplate, Capabilities),
`tools/template.go` of Ollama v0.33.0-rc2; measured on 0.30.8 and 0.32.15. `/api/show` shows jinja text where the
GGUF's own template was chosen, and Go text otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Way = Literal["native", "go_if", "go_range", "go_no_calls", "builtin", "none", "unknown"]
_LINE = re.compile(r"^(RENDERER|PARSER)[ \t]+(\S+)", re.MULTILINE)
_IF_CALLS = re.compile(r"\{\{-?\s*(?:else\s+)?if\b[^}]*\.ToolCalls\b[^}]*\}\}")
_RANGE_CALLS = re.compile(r"\{\{-?\s*range\b[^}]*\.ToolCalls\b[^}]*\}\}")
_ACTION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_HARMONY_FAMILIES = ("gptoss", "gpt-oss")
BUILT_IN = " (PARSER)"
"""How `OllamaMode.reads` ends where a parser of Ollama's own is in force."""
ONLY_RANGE = "the Go template has only `range .ToolCalls`"
_BARE = "{{ .Prompt }}"


@dataclass(frozen=True, slots=True)
class OllamaMode:
    """How a model's prompts are made and its calls are read. `tag` is what opens a call for the generic parser;
    `names_tools`: whether the template mentions tools at all."""

    way: Way
    renderer: str = ""
    parser: str = ""
    tag: str = ""
    names_tools: bool = False
    thinks: bool = False

    @property
    def reads(self) -> str:
        """The tool-call parser in force, in words."""
        return {
            "native": "llama.cpp's, made from the jinja template of the GGUF",
            "go_if": f"Ollama's generic one, calls open with {self.tag!r} (from the Go template)",
            "go_range": f"Ollama's generic one, calls open with '{{' ({ONLY_RANGE})",
            "go_no_calls": "Ollama's generic one, calls open with '{' (the Go template shows no calls)",
            "builtin": f"{self.parser or 'none'}{BUILT_IN}",
            "none": "none (the model has no chat template)",
            "unknown": "unknown",
        }[self.way]


def mode_of(shown: Mapping[str, Any]) -> OllamaMode:
    """The mode of a model by its `/api/show` answer; `unknown` where that has neither template nor modelfile."""
    template, modelfile = shown.get("template"), shown.get("modelfile")
    if not isinstance(template, str) and not isinstance(modelfile, str):
        return OllamaMode("unknown")
    text = template if isinstance(template, str) else ""
    thinks = "thinking" in capabilities(shown)
    # The lines stand behind TEMPLATE; a template may itself hold such a line.
    lines = dict(_LINE.findall(str(modelfile or "").replace(text, "") if text else str(modelfile or "")))
    if lines:
        return OllamaMode("builtin", lines.get("RENDERER", ""), lines.get("PARSER", ""), thinks=thinks)
    if family_of(shown) in _HARMONY_FAMILIES:
        return OllamaMode("builtin", "harmony", "harmony", thinks=thinks)
    if "{%" in text:
        named = "tools" in text or "tool_call" in text
        return OllamaMode("native", names_tools=named, thinks=thinks)
    if text.strip() in ("", _BARE):
        return OllamaMode("none", thinks=thinks)
    named = bool(re.search(r"\.Tools\b", text))
    if _IF_CALLS.search(text):
        return OllamaMode("go_if", tag=call_tag(text), names_tools=named, thinks=thinks)
    way: Way = "go_range" if _RANGE_CALLS.search(text) else "go_no_calls"
    return OllamaMode(way, tag="{", names_tools=named, thinks=thinks)


def call_tag(template: str) -> str:
    """What opens a call for the generic parser: the first text behind `if .ToolCalls`, cut at a brace; else `{`."""
    found = _IF_CALLS.search(template)
    if found is None:
        return "{"
    for text in _ACTION.split(template[found.end() :]):
        if text.strip():
            return text.partition("{")[0].strip() or "{"
    return "{"


def capabilities(shown: Mapping[str, Any]) -> tuple[str, ...]:
    """What the model can do by Ollama's own reckoning; empty where it does not tell."""
    found = shown.get("capabilities")
    return tuple(str(each) for each in found) if isinstance(found, list) else ()


def family_of(shown: Mapping[str, Any]) -> str:
    """The architecture's name."""
    information, details = shown.get("model_info"), shown.get("details")
    name = information.get("general.architecture") if isinstance(information, dict) else None
    name = name or (details.get("family") if isinstance(details, dict) else None)
    return name if isinstance(name, str) else ""


def parameters_of(shown: Mapping[str, Any]) -> dict[str, Any]:
    """The PARAMETER lines of a model (`parameters` is text: a name, blanks, a value; `stop` may repeat)."""
    found: dict[str, Any] = {}
    for line in str(shown.get("parameters") or "").splitlines():
        name, _, rest = line.strip().partition(" ")
        value = _value(rest.strip())
        if name == "stop":
            found.setdefault(name, []).append(value)
        elif name:
            found[name] = value
    return found


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if text in ("true", "false"):
        return text == "true"
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
