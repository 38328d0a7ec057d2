"""Serving conditions: how a task's tools are put to a server, and how calls come back.

`native`: tools in the request, nothing in the prompt. `native+hint`: both. `text-tools`: no tools in the request, the
same text in the prompt, calls read from the answer's text. `constrained`: as text-tools, and the answer is forced into
the form of a call by a JSON Schema, in the field that each stack takes it in. Sources: S2-09 to S2-11 of the paper's
facts; the literal texts are ours, and their hash goes into every record.

`raw` is for a model in this process: nothing parses what it writes but the harness, by the declared call formats. Its
tools are rendered by the model's own template, or (`tools: prompt`) written into the prompt where that renders none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.tools import ToolSpec
from stacks.formats import ParsedCall, Span, format_named

Name = Literal["native", "native+hint", "text-tools", "constrained", "raw"]
Hint = Literal["full", "no-names"]
"""Strength of the text: with the list of allowed names at its end, or without (S2-23)."""

ToolsIn = Literal["request", "prompt"]

TEXTS_VERSION = "1"
_LEAD = "You can act only by calling a tool. These are the tools:"
_PROTOCOL = (
    "To call one, answer with exactly one JSON object and nothing else:\n"
    "```json\n"
    '{"name": "TOOL", "arguments": {"ARGUMENT": "VALUE"}}\n'
    "```\n"
    "The result comes back in the next message; then you make the next call."
)
_NAMES = "The name must be one of: {names}. Do not make up other names, and add no words around the object."
_RESULT = "Result of {name}:\n{text}"
_RAW_PROTOCOL = (
    "To call one, write exactly this and nothing else:\n"
    "{example}\n"
    "The result comes back in the next message. When everything is done, answer in words, without a call."
)
_MORE = "These tools are there now, too:"


@dataclass(frozen=True, slots=True)
class Condition:
    """One serving condition, and how strong its hint is where it has one."""

    name: Name
    hint: Hint = "full"
    formats: tuple[str, ...] = ()
    """Of `raw`: the call formats that the model is known to write (names in `stacks.formats`), the first one first."""
    tools_in: ToolsIn = "request"
    """Of `raw`."""

    @property
    def label(self) -> str:
        """How it is named in cells and tables."""
        if self.name == "raw":
            return f"raw/{'+'.join(self.formats)}" + ("/prompt" if self.tools_in == "prompt" else "")
        return self.name if self.hint == "full" or self.name == "native" else f"{self.name}/{self.hint}"

    @property
    def sends_tools(self) -> bool:
        """Whether tools stand in the request."""
        return self.name.startswith("native") or (self.name == "raw" and self.tools_in == "request")

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of its literal texts and schema, for an example tool: a changed word is another condition."""
        example = ToolSpec("example", "An example.")
        parts = [TEXTS_VERSION, self.label, self.prompt("TASK", [example]), call_schema([example])]
        parts += [self.added("TASK", [example])] if self.name == "raw" else []
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def prompt(self, task: str, tools: Sequence[ToolSpec]) -> str:
        """The user's message."""
        if self.name == "native" or (self.name == "raw" and self.tools_in == "request"):
            return task
        parts = [task, "", _LEAD, *(_described(tool) for tool in tools), "", self._protocol()]
        if self.hint == "full" and self.name != "raw":
            parts.append(_NAMES.format(names=", ".join(tool.name for tool in tools)))
        return "\n".join(parts)

    def _protocol(self) -> str:
        if self.name != "raw":
            return _PROTOCOL
        none = Span(0, 0)
        example = ParsedCall("TOOL", {"ARGUMENT": "VALUE"}, "", none, none, none)
        return _RAW_PROTOCOL.format(example=format_named(self.formats[0]).render([example]))

    def added(self, said: str, tools: Sequence[ToolSpec]) -> str:
        """A later message of the user with which tools become available; where requests carry them, they say so."""
        if self.sends_tools or not tools:
            return said
        return "\n".join([said, "", _MORE, *(_described(tool) for tool in tools)])


def _described(tool: ToolSpec) -> str:
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", ())
    lines = [f"- {tool.name}: {tool.description}"]
    for name, schema in properties.items():
        need = "required" if name in required else "optional"
        lines.append(f"    {name} ({schema.get('type', 'any')}, {need}): {schema.get('description', '')}".rstrip(": "))
    return "\n".join([*lines, *([] if properties else ["    (no arguments)"])])


def call_schema(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The JSON Schema of one call to one of the tools: the name enumerated, the arguments any object (S2-11)."""
    return {
        "type": "object",
        "properties": {
            "name": {"type": "string", "enum": [tool.name for tool in tools]},
            "arguments": {"type": "object"},
        },
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


@dataclass(frozen=True, slots=True)
class Sampling:
    """How answers are drawn, and how long they may be. The paper's: temperature 1, top_p 1."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 1024
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go and in which dialect: `openai` (chat completions) or `ollama` (/api/chat); `schema_field` is
    where this stack takes a JSON Schema for the answer."""

    model: str
    dialect: Literal["openai", "ollama"] = "openai"
    schema_field: Literal["json_schema", "json_object", "format"] = "json_schema"
    route: str = ""
    """Another route than the dialect's own, where a server has one."""

    @property
    def path(self) -> str:
        """The route."""
        if self.route:
            return self.route
        return "/api/chat" if self.dialect == "ollama" else "/v1/chat/completions"


def endpoint_for(stack: str, model: str, *, native_ollama: bool = False) -> Endpoint:
    """The endpoint of a stack (its name in `stacks.serving`): llama-cpp-python takes a schema inside `json_object`,
    Ollama's own API in `format`, all others in `response_format` of type `json_schema`."""
    if stack == "ollama" and native_ollama:
        return Endpoint(model, "ollama", "format")
    return Endpoint(model, "openai", "json_object" if stack == "llamacpp_python" else "json_schema")


def request_body(
    endpoint: Endpoint,
    condition: Condition,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[ToolSpec],
    sampling: Sampling,
) -> dict[str, Any]:
    """The body of one request. Conditions differ in `tools`, in the first message, and in the schema field alone."""
    body: dict[str, Any] = {"model": endpoint.model, "messages": list(messages), "stream": False}
    if condition.sends_tools:
        body["tools"] = [tool.as_function() for tool in tools]
    if condition.name == "constrained":
        body |= _schema_field(endpoint, call_schema(tools))
    drawn: dict[str, Any] = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    if sampling.seed is not None:
        drawn["seed"] = sampling.seed
    if endpoint.dialect == "ollama":
        body["options"] = {**drawn, "num_predict": sampling.max_tokens}
    else:
        body |= {**drawn, "max_tokens": sampling.max_tokens}
    return body


def _schema_field(endpoint: Endpoint, schema: dict[str, Any]) -> dict[str, Any]:
    if endpoint.schema_field == "format":
        return {"format": schema}
    if endpoint.schema_field == "json_object":
        return {"response_format": {"type": "json_object", "schema": schema}}
    named = {"name": "call", "schema": schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


@dataclass(frozen=True, slots=True)
class Called:
    """One call as it goes back into the history, with its result."""

    id: str
    name: str
    arguments: str
    result: str


def history_after(
    endpoint: Endpoint, condition: Condition, text: str | None, calls: Sequence[Called], *, as_text: bool
) -> list[dict[str, Any]]:
    """The messages that follow an assistant's turn: what it said, and what its calls gave.

    `as_text`: the calls were read from the text; then their results go back as one user message. Under `raw` the text
    itself holds the calls, and each result is a message of a tool where the template knows tools.
    """
    if condition.name == "raw" and condition.sends_tools:
        results = [{"role": "tool", "name": call.name, "content": call.result} for call in calls]
        return [{"role": "assistant", "content": text or ""}, *results]
    if as_text or not condition.sends_tools:
        said = "\n\n".join(_RESULT.format(name=call.name, text=call.result) for call in calls)
        return [{"role": "assistant", "content": text or ""}, {"role": "user", "content": said}]
    native = endpoint.dialect == "ollama"
    entries = [_history_call(call, native=native) for call in calls]
    results = [_history_result(call, native=native) for call in calls]
    return [{"role": "assistant", "content": text or "", "tool_calls": entries}, *results]


def _history_call(call: Called, *, native: bool) -> dict[str, Any]:
    """Ollama's own API wants arguments as an object, chat completions as a string."""
    if native:
        return {"function": {"name": call.name, "arguments": json.loads(call.arguments)}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _history_result(call: Called, *, native: bool) -> dict[str, Any]:
    if native:
        return {"role": "tool", "tool_name": call.name, "content": call.result}
    return {"role": "tool", "tool_call_id": call.id, "content": call.result}
