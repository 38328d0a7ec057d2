"""The canonical forms every wire dialect is read into: what was asked (`CanonicalRequest`) and what came (`Turn`).

Nothing here depends on a dialect, nothing is judged. `None` always means "the wire does not say", never zero or empty.
Fields the dialect does not document are kept in `extra`. Where a value stands on the wire is told by `Fragment`s,
which `stacks.locate` turns into byte ranges on demand.
"""

from __future__ import annotations

import msgspec

from stacks.strictjson import UNPARSED, Path

Fragment = tuple[int, Path]
"""One piece of a value: (number of the event it came in, path of the JSON value inside that event's data)."""

FINISH_REASONS = (
    "stop",
    "length",
    "tool_calls",
    "content_filter",
    "error",
    "aborted",
    "load",
    "unload",
    "pause",
    "other",
)
"""Canonical finish reasons; the dialect's own word stays in `finish_raw`."""


class ToolCall(msgspec.Struct):
    """One tool call as the wire gave it.

    `arguments_text` is the JSON text of the arguments: the string on the wire, or a compact rendering of the object
    where the dialect sends objects. `arguments` is its value, UNPARSED where the text is no JSON. `arguments_type`
    is the JSON type on the wire (string, object, array, number, boolean, null, absent). `index` is the one stated.
    """

    index: int | None = None
    id: str | None = None
    name: str | None = None
    arguments_text: str = ""
    arguments: object = UNPARSED
    arguments_type: str = "absent"
    arguments_error: str | None = None
    kind: str = "function"
    where: tuple[Fragment, ...] = ()
    where_name: tuple[Fragment, ...] = ()
    where_arguments: tuple[Fragment, ...] = ()
    extra: dict[str, object] = msgspec.field(default_factory=dict)

    @property
    def arguments_valid(self) -> bool:
        """Whether the arguments are a JSON object."""
        return isinstance(self.arguments, dict)


class Usage(msgspec.Struct):
    """Token counts. `cached` counts prompt tokens taken from a cache, `reasoning` the output tokens spent thinking;
    `raw` is the object they were read from."""

    prompt: int | None = None
    completion: int | None = None
    total: int | None = None
    reasoning: int | None = None
    cached: int | None = None
    raw: dict[str, object] = msgspec.field(default_factory=dict)
    where: tuple[Fragment, ...] = ()


class ErrorObject(msgspec.Struct):
    """An error found in a body. `message` is the outer text, `innermost` the text of the last error nested in it
    (the same where none is nested), `chain` all messages from the outside in. `start`/`end` is the body range of the
    outer message (or of the object), `inner_start`/`inner_end` that of the innermost message."""

    message: str
    type: str | None = None
    code: str | int | None = None
    param: str | None = None
    innermost: str = ""
    chain: tuple[str, ...] = ()
    shape: str = "object"
    raw: object = None
    event: int = -1
    start: int = 0
    end: int = 0
    inner_start: int = 0
    inner_end: int = 0


class Turn(msgspec.Struct):
    """What one answer says, rebuilt from a plain body or a stream.

    `content` is None where no text field was sent or it was null, "" where an empty text was sent. `reasoning_field`
    names the field the reasoning came in. `finish` is one of FINISH_REASONS, None where the wire gave none.
    `parts` keeps content blocks or output items of other types than text, reasoning and call.
    """

    role: str | None = None
    content: str | None = None
    reasoning: str | None = None
    reasoning_field: str | None = None
    tool_calls: list[ToolCall] = msgspec.field(default_factory=list)
    refusal: str | None = None
    finish: str | None = None
    finish_raw: str | None = None
    stop_detail: object = None
    usage: Usage | None = None
    model: str | None = None
    response_id: str | None = None
    fingerprint: str | None = None
    index: int = 0
    parts: list[dict[str, object]] = msgspec.field(default_factory=list)
    where_content: tuple[Fragment, ...] = ()
    where_reasoning: tuple[Fragment, ...] = ()
    where_refusal: tuple[Fragment, ...] = ()
    where_finish: tuple[Fragment, ...] = ()
    extra: dict[str, object] = msgspec.field(default_factory=dict)

    @property
    def has_payload(self) -> bool:
        """Whether anything reached the client: text, reasoning, a refusal, a call or another part."""
        return bool(self.content or self.reasoning or self.tool_calls or self.refusal or self.parts)


class OfferedTool(msgspec.Struct):
    """One tool of a request. `parameters` is the schema as sent (any JSON value; None where absent); `kind` is the
    tool's type on the wire (function, custom, web_search ...); `path` its place in the request body."""

    name: str | None
    description: str | None
    parameters: object
    kind: str
    path: Path
    raw: object


class ToolChoice(msgspec.Struct):
    """`mode` is auto, none, required, named, or other (a value the dialect does not document); `name` of the named
    tool; `raw` as sent."""

    mode: str
    name: str | None
    raw: object


class Message(msgspec.Struct):
    """One message of the request's history. `content` joins its text parts; `parts` keeps the list form and
    `content_type` the JSON type of the content on the wire (string, array, null, absent, object ...). `path` is its
    place in the request body. A tool's result has role "tool" and the id (or name) of the call it answers."""

    role: str | None
    content: str | None
    path: Path
    content_type: str = "absent"
    parts: list[object] = msgspec.field(default_factory=list)
    reasoning: str | None = None
    tool_calls: list[ToolCall] = msgspec.field(default_factory=list)
    tool_call_id: str | None = None
    name: str | None = None
    is_error: bool | None = None
    extra: dict[str, object] = msgspec.field(default_factory=dict)
    raw: object = None


class CanonicalRequest(msgspec.Struct):
    """What the client asked, whatever the dialect.

    `tools_state` tells absent, null, empty, list and invalid apart. `max_tokens` is the output limit and
    `max_tokens_field` the field it came from; `context_length` is `num_ctx`. `sampling` holds temperature, top_p,
    top_k, min_p, seed, penalties under their usual names. `response_format` is the raw value of the field named by
    `response_format_field`. `thinking` likewise for think, reasoning, reasoning_effort, enable_thinking.
    `stream` is what the server will do: the dialect's default where the body is silent; `stream_stated` what it says.
    `body_error` says why the body could not be read; then everything else is empty.
    """

    dialect: str
    route: str
    method: str
    model: str | None = None
    messages: list[Message] = msgspec.field(default_factory=list)
    prompt: object = None
    tools: list[OfferedTool] = msgspec.field(default_factory=list)
    tools_state: str = "absent"
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_tokens: int | None = None
    max_tokens_field: str | None = None
    context_length: int | None = None
    choices: int | None = None
    sampling: dict[str, object] = msgspec.field(default_factory=dict)
    stop: object = None
    response_format: object = None
    response_format_field: str | None = None
    thinking: object = None
    thinking_field: str | None = None
    stream: bool = False
    stream_stated: bool | None = None
    include_usage: bool | None = None
    extra: dict[str, object] = msgspec.field(default_factory=dict)
    raw: object = None
    body_error: str | None = None

    @property
    def tool_names(self) -> tuple[str, ...]:
        """Names of the offered tools, in order."""
        return tuple(tool.name for tool in self.tools if tool.name is not None)

    def tool(self, name: str) -> OfferedTool | None:
        """The offered tool of that name, if any."""
        return next((tool for tool in self.tools if tool.name == name), None)

    @property
    def system(self) -> str | None:
        """The text of all system and developer messages, or None."""
        texts = [m.content for m in self.messages if m.role in ("system", "developer") and m.content is not None]
        return "\n\n".join(texts) if texts else None


def json_type(value: object) -> str:
    """The JSON type name of a parsed value."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "absent"
