"""What the request readers of all dialects share: limits, sampling, tools, history calls, and the reading of a body."""

from __future__ import annotations

from collections.abc import Iterable

from stacks.dialects.base import compact, integer
from stacks.strictjson import UNPARSED, Path, load, read
from stacks.turn import CanonicalRequest, OfferedTool, ToolCall, ToolChoice, json_type

REQUEST = -1
"""The event number of a fragment that lies in the request body."""

SAMPLING = frozenset(
    ("temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty", "repeat_penalty",
     "repetition_penalty", "typical_p", "repeat_last_n", "mirostat", "mirostat_eta", "mirostat_tau", "tfs_z",
     "logit_bias", "dynatemp_range", "xtc_probability", "xtc_threshold")
)  # fmt: skip
THINKING = ("think", "reasoning_effort", "reasoning", "thinking", "enable_thinking", "thinking_budget_tokens",
            "reasoning_budget_tokens", "reasoning_format")  # fmt: skip
FORMATS = ("response_format", "format", "grammar", "json_schema", "structured_outputs", "guided_json", "guided_regex",
           "guided_choice", "guided_grammar", "regex", "ebnf", "structural_tag")  # fmt: skip


_FORMAT_OR_THINKING = frozenset((*FORMATS, *THINKING, "chat_template_kwargs"))


def read_body(body: bytes) -> tuple[object, str | None]:
    """(value, error) of a request body. A body with duplicate keys or trailing bytes is read as a lenient server
    would and the fault told; an empty one gives (UNPARSED, None)."""
    if not body.strip():
        return UNPARSED, None
    value = load(body)
    if value is not UNPARSED:
        return value, None
    reading = read(body)
    faults = "; ".join(f"{note.message} (byte {note.start})" for note in reading.notes[:4])
    return reading.value, faults or None


def common_fields(request: CanonicalRequest, body: dict[str, object], known: frozenset[str]) -> None:
    """Fill model, sampling, stop, response format, thinking, and keep what is unknown."""
    model = body.get("model")
    request.model = model if isinstance(model, str) else None
    for key in body.keys() & SAMPLING:
        request.sampling[key] = body[key]
    request.stop = body.get("stop")
    stream = body.get("stream")
    if isinstance(stream, bool):
        request.stream = request.stream_stated = stream
    if not _FORMAT_OR_THINKING.isdisjoint(body):
        _format_and_thinking(request, body)
    for key in body.keys() - known - SAMPLING:
        request.extra[key] = body[key]


def _format_and_thinking(request: CanonicalRequest, body: dict[str, object]) -> None:
    for name in FORMATS:
        if body.get(name) is not None:
            request.response_format, request.response_format_field = body[name], name
            break
    for name in THINKING:
        if body.get(name) is not None:
            request.thinking, request.thinking_field = body[name], name
            break
    if request.thinking is None:
        template = body.get("chat_template_kwargs")
        if isinstance(template, dict) and "enable_thinking" in template:
            request.thinking, request.thinking_field = (
                template["enable_thinking"],
                "chat_template_kwargs.enable_thinking",
            )


def set_limit(request: CanonicalRequest, body: dict[str, object], names: Iterable[str]) -> None:
    """Take the output limit from the first of the fields that is a number."""
    for name in names:
        value = integer(body.get(name))
        if value is not None:
            request.max_tokens, request.max_tokens_field = value, name
            return


def tools_of(
    request: CanonicalRequest, body: dict[str, object], field: str = "tools"
) -> list[tuple[Path, dict[str, object]]]:
    """Set `tools_state`; returns (path, entry) of every tool entry that is an object."""
    if field not in body:
        return []
    raw = body[field]
    if raw is None:
        request.tools_state = "null"
    elif not isinstance(raw, list):
        request.tools_state = "invalid"
    else:
        request.tools_state = "list" if raw else "empty"
        return [((field, position), entry) for position, entry in enumerate(raw) if isinstance(entry, dict)]
    return []


def function_tool(entry: dict[str, object], path: Path) -> OfferedTool:
    """An OpenAI-style tool: the function under `function`, or (leniently) its fields in the entry itself."""
    function = entry.get("function")
    kind = entry.get("type")
    if not isinstance(function, dict):
        custom = entry.get("custom")
        function = custom if isinstance(custom, dict) else entry
    parameters = function.get("parameters", function.get("input_schema"))
    name, description = function.get("name"), function.get("description")
    return OfferedTool(
        name if isinstance(name, str) else None,
        description if isinstance(description, str) else None,
        parameters,
        kind if isinstance(kind, str) else "function",
        path,
        entry,
    )


def tool_choice_of(raw: object) -> ToolChoice:
    """OpenAI-style tool choice: a word, or an object naming a function; Anthropic's words are understood too."""
    if isinstance(raw, str):
        modes = {"auto": "auto", "none": "none", "required": "required", "any": "required"}
        return ToolChoice(modes.get(raw, "other"), None, raw)
    if isinstance(raw, dict):
        function = raw.get("function") if isinstance(raw.get("function"), dict) else raw.get("custom")
        source = function if isinstance(function, dict) else raw
        name = source.get("name")
        if isinstance(name, str) and name:
            return ToolChoice("named", name, raw)
        kind = raw.get("type")
        if kind in ("auto", "none"):
            return ToolChoice(str(kind), None, raw)
        if kind in ("any", "required"):
            return ToolChoice("required", None, raw)
        if kind == "allowed_tools" and raw.get("mode") in ("auto", "required"):
            return ToolChoice(str(raw["mode"]), None, raw)
    return ToolChoice("other", None, raw)


def joined_text(content: object, kinds: tuple[str, ...] = ("text", "input_text", "output_text")) -> str | None:
    """Text of a content value: the string, or its text parts joined; None where there is none."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts: list[str] = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and part.get("type", "text") in kinds and isinstance(part.get("text"), str):
            texts.append(part["text"])
    return "".join(texts) if texts else None


def content_type_of(message: dict[str, object]) -> str:
    """JSON type of a message's content on the wire."""
    return json_type(message["content"]) if "content" in message else "absent"


def history_call(  # noqa: PLR0917
    name: object, call_id: object, arguments: object, path: Path, arguments_path: Path, kind: str = "function"
) -> ToolCall:
    """A tool call in the history, its arguments read without a complaint (`arguments_error` tells)."""
    call = ToolCall(kind=kind, where=((REQUEST, path),), where_arguments=((REQUEST, arguments_path),))
    call.name = name if isinstance(name, str) else None
    call.id = call_id if isinstance(call_id, str) else None
    call.arguments_type = json_type(arguments) if arguments is not None else "null"
    if isinstance(arguments, str):
        call.arguments_text = arguments
        encoded = arguments.encode("utf-8", "surrogatepass")
        call.arguments = load(encoded)
        if call.arguments is UNPARSED:
            reading = read(encoded)
            if reading.valid:
                call.arguments = reading.value
            else:
                call.arguments_error = "; ".join(note.message for note in reading.notes[:3]) or "empty"
    elif arguments is not None:
        call.arguments, call.arguments_text = arguments, compact(arguments)
    else:
        call.arguments_error = "missing"
    return call
