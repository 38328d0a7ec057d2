"""Requests to the in-process surface: OpenAI chat-completions and completions bodies, checked and made plain. No I/O.

What is asked for and cannot be done is refused in the OpenAI error shape, never quietly left undone; fields that change
nothing here are listed in ``ignored``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from stacks.engine import Sampling

_SHARED = {
    "model", "stream", "stream_options", "max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k",
    "min_p", "seed", "stop", "n",
}  # fmt: skip
_CHAT = _SHARED | {"messages", "tools", "tool_choice", "response_format", "chat_template_kwargs"}
_COMPLETION = _SHARED | {"prompt"}
# What the surface itself hands to a template; a request that sets them would render something else than it says.
_RESERVED_TEMPLATE = {"messages", "tools", "tokenize", "return_dict", "return_tensors", "conversation", "chat_template"}


class RequestError(Exception):
    """A request that is refused: HTTP status, message, and the OpenAI error fields ``param`` and ``code``."""

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        """``status`` is the HTTP status to answer with."""
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
        self.status = status

    def body(self) -> dict[str, Any]:
        """Return the error object to send."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """Messages and tools to be rendered by the model's template."""

    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...]
    template: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RawPrompt:
    """A prompt that is evaluated as it is: text, or token ids."""

    text: str | None
    token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """A checked request. ``ignored`` names the fields that were sent and have no effect, sorted."""

    prompt: ChatPrompt | RawPrompt
    sampling: Sampling
    stop: tuple[str, ...]
    stream: bool
    include_usage: bool
    ignored: tuple[str, ...]
    render_only: bool = False
    """Nothing is generated: the prompt is all that is wanted."""


def parse_chat_request(body: bytes) -> GenerationRequest:
    """Check the body of ``POST /v1/chat/completions``; raise :class:`RequestError`."""
    fields = _read_object(body)
    tools = _tools(fields)
    choice = fields.get("tool_choice", "auto" if tools else "none")
    if choice not in ("auto", "none"):
        _refuse_tool_choice(choice)
    _check_response_format(fields.get("response_format"))
    prompt = ChatPrompt(_messages(fields), () if choice == "none" else tools, _template(fields))
    return _request(fields, prompt, _CHAT)


def parse_completion_request(body: bytes) -> GenerationRequest:
    """Check the body of ``POST /v1/completions``; raise :class:`RequestError`."""
    fields = _read_object(body)
    return _request(fields, _raw_prompt(fields.get("prompt")), _COMPLETION)


def _request(fields: Mapping[str, Any], prompt: ChatPrompt | RawPrompt, known: set[str]) -> GenerationRequest:
    n = _integer(fields, "n", 1)
    if n not in (None, 1):
        raise RequestError("one choice is generated per request: leave n out", param="n", code="unsupported_value")
    options = fields.get("stream_options", {})
    if not isinstance(options, dict):
        raise _wrong_type("stream_options", "an object")
    return GenerationRequest(
        prompt=prompt,
        sampling=_sampling(fields),
        stop=_stop(fields.get("stop")),
        stream=_boolean(fields, "stream"),
        include_usage=_boolean(options, "include_usage"),
        ignored=tuple(sorted(k for k, v in fields.items() if k not in known and v is not None)),
    )


def _read_object(body: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(f"the body is not valid JSON: {error}", code="invalid_json") from error
    if not isinstance(value, dict):
        raise RequestError("the body must be a JSON object", code="invalid_json")
    return {k: v for k, v in value.items() if v is not None}


def _messages(fields: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestError("messages must be an array of at least one message", param="messages", code="invalid_type")
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        if not isinstance(message, dict):
            raise _wrong_type(where, "an object")
        if not isinstance(message.get("role"), str):
            raise _wrong_type(f"{where}.role", "a string")
        if not isinstance(message.get("content"), str | list | None):
            raise _wrong_type(f"{where}.content", "a string, an array of parts, or null")
        calls = message.get("tool_calls")
        if calls is not None and not (isinstance(calls, list) and all(isinstance(c, dict) for c in calls)):
            raise _wrong_type(f"{where}.tool_calls", "an array of objects")
    return tuple(messages)


def _tools(fields: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    tools = fields.get("tools", [])
    if not isinstance(tools, list):
        raise _wrong_type("tools", "an array")
    for place, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise RequestError(
                f"tools[{place}] must be an object with type 'function' and a function that has a name",
                param=f"tools[{place}]",
                code="invalid_type",
            )
    return tuple(tools)


def _template(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    variables = fields.get("chat_template_kwargs", {})
    if not isinstance(variables, dict):
        raise _wrong_type("chat_template_kwargs", "an object")
    reserved = sorted(_RESERVED_TEMPLATE & variables.keys())
    if reserved:
        raise RequestError(
            f"chat_template_kwargs may not set {reserved[0]!r}", param="chat_template_kwargs", code="unsupported_value"
        )
    return variables


def _refuse_tool_choice(choice: Any) -> None:
    if choice == "required" or isinstance(choice, dict):
        raise RequestError(
            f"tool_choice {choice!r} cannot be honoured: nothing constrains or parses what the model writes here; "
            "send 'auto' or 'none', or leave it out",
            param="tool_choice",
            code="unsupported_value",
        )
    raise RequestError("tool_choice must be 'auto' or 'none'", param="tool_choice", code="invalid_value")


def _check_response_format(value: Any) -> None:
    kind = value.get("type") if isinstance(value, dict) else value
    if kind not in (None, "text"):
        raise RequestError(
            f"response_format {kind!r} cannot be honoured: generation is not constrained here; leave it out",
            param="response_format",
            code="unsupported_value",
        )


def _raw_prompt(value: Any) -> RawPrompt:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str | list):
        value = value[0]
    if isinstance(value, str):
        return RawPrompt(value, ())
    if isinstance(value, list) and value and all(isinstance(i, int) and not isinstance(i, bool) for i in value):
        return RawPrompt(None, tuple(value))
    raise RequestError("prompt must be one string, or one array of token ids", param="prompt", code="invalid_type")


def _sampling(fields: Mapping[str, Any]) -> Sampling:
    top_k = _integer(fields, "top_k", -1) or 0
    limit = _integer(fields, "max_completion_tokens", 1)
    return Sampling(
        temperature=_number(fields, "temperature", 0.0, math.inf, 0.0),
        top_p=_number(fields, "top_p", 0.0, 1.0, 1.0),
        top_k=max(top_k, 0),
        min_p=_number(fields, "min_p", 0.0, 1.0, 0.0),
        seed=_integer(fields, "seed", None),
        max_tokens=limit if limit is not None else _integer(fields, "max_tokens", 1),
    )


def _stop(value: Any) -> tuple[str, ...]:
    strings = [value] if isinstance(value, str) else value if value is not None else []
    if not isinstance(strings, list) or not all(isinstance(s, str) for s in strings):
        raise _wrong_type("stop", "a string or an array of strings")
    return tuple(s for s in strings if s)


def _number(fields: Mapping[str, Any], name: str, low: float, high: float, default: float) -> float:
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong_type(name, "a number")
    if not low <= value <= high:
        raise RequestError(f"{name} must be from {low:g} to {high:g}, not {value}", param=name, code="invalid_value")
    return float(value)


def _integer(fields: Mapping[str, Any], name: str, low: int | None) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong_type(name, "an integer")
    if low is not None and value < low:
        raise RequestError(f"{name} must be at least {low}, not {value}", param=name, code="invalid_value")
    return value


def _boolean(fields: Mapping[str, Any], name: str) -> bool:
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise _wrong_type(name, "true or false")
    return bool(value)


def _wrong_type(name: str, wanted: str) -> RequestError:
    return RequestError(f"{name} must be {wanted}", param=name, code="invalid_type")
