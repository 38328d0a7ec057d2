"""What a request to an Ollama server means, as far as the answer depends on it. Pure.

Which fields Ollama reads, and which it never does, is read from its source (`api/types.go`, `openai/openai.go`,
`server/routes.go` of v0.33.0-rc2) and was measured on 0.30.8 and 0.32.15 (`tool_choice` and `max_completion_tokens`).
A canary's text is chosen by the latest trigger in the prompt and by nothing else; a tool result is a trigger too.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

_READ = (
    "suffix",
    "template",
    "images",
    "context",
    "logprobs",
    "top_logprobs",
    "stop",
    "truncate",
    "shift",
    "raw",
    "functions",
    "previous_response_id",
    "text",
)
"""Fields besides those handled below that change the answer: they must be equal."""
_TEXT_FIELDS = ("system", "instructions", "prompt")
_BUDGETS = ("max_tokens", "max_output_tokens")
_SAMPLING = frozenset(
    {
        "temperature",
        "top_k",
        "top_p",
        "min_p",
        "typical_p",
        "repeat_penalty",
        "repeat_last_n",
        "presence_penalty",
        "frequency_penalty",
        "seed",
        "num_predict",
        "num_ctx",
    }
)
_WORDLESS = frozenset({"description", "title", "default", "additionalProperties", "strict", "$schema", "examples"})
"""Parts of a tool that are words, or that Ollama's Go types drop before the model sees them."""
_TRIGGER = re.compile(r"\[\[(\w+)\]\]|<tool_response>")
AFTER_TOOL_RESULT = "answer"
_DURATION = re.compile(r"-?(?:\d+(?:\.\d+)?(?:ns|us|ms|s|m|h))+|-?\d+")


@dataclass(frozen=True, slots=True)
class Meaning:
    """A request by meaning. `must` are facts that must be equal, by name; `triggers` all triggers in the order of the
    prompt; `text` everything a model reads in words; `shape` the roles and kinds of content of the messages, `shape_
    without_system` the same without a leading system message. `budget` and `context` are tokens, None where unset.
    """

    method: str
    path: str
    model: str | None
    must: tuple[tuple[str, str], ...]
    triggers: tuple[str, ...] = ()
    text: str = ""
    shape: str = ""
    shape_without_system: str = ""
    tools: str = ""
    budget: int | None = None
    context: int | None = None
    render: bool = False
    value: Any = None

    @property
    def streams(self) -> bool:
        """Whether a streamed answer was asked for."""
        return ("stream", "true") in self.must

    @property
    def offers_tools(self) -> bool:
        """Whether the request offers at least one tool."""
        return self.tools not in ("", "[]", "null")


def meaning_of(method: str, path: str, body: bytes) -> Meaning:
    """The meaning of a request; a body that is no JSON object stands for itself."""
    path = path.split("?", 1)[0]
    if not body.strip():
        return Meaning(method, path, None, (("body", "empty"),) if method == "POST" else ())
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as wrong:
        return Meaning(method, path, None, (("body", _broken(body, wrong)),))
    if not isinstance(value, dict):
        return Meaning(method, path, None, (("body", type(value).__name__),), value=value)
    try:
        return _of_object(method, path, value)
    except RecursionError:
        return Meaning(method, path, None, (("body", "nested too deeply"),))


def _of_object(method: str, path: str, value: dict[str, Any]) -> Meaning:
    name = value.get("model")
    model = plain_name(name) if isinstance(name, str) and name else None
    messages = value.get("messages", value.get("input"))
    kinds = [_kind(one) for one in messages] if isinstance(messages, list) else [_json(messages)]
    words = _words(value)
    return Meaning(
        method,
        path,
        model,
        tuple(sorted(_musts(value, path, model).items())),
        triggers=_triggers(words),
        text="\n".join(word for word, _ in words),
        shape=_json(kinds if isinstance(messages, list) else type(messages).__name__),
        shape_without_system=_json(_without_system(kinds) if isinstance(messages, list) else type(messages).__name__),
        tools=_json(canonical_tools(value.get("tools"))),
        budget=_budget(value),
        context=_whole(_options(value).get("num_ctx")),
        render=value.get("_debug_render_only") is True,
        value=value,
    )


def plain_name(name: str) -> str:
    """A model's name without the default tag."""
    return name.removesuffix(":latest")


def canonical_tools(tools: Any) -> Any:
    """Tools without words and without what Ollama's types drop; no tools at all where the list is empty."""
    return [_without_words(tool) for tool in tools] if isinstance(tools, list) else tools


def _without_words(value: Any, *, names: bool = False) -> Any:
    """`names`: the keys are names of parameters, not words of the schema."""
    if isinstance(value, list):
        return [_without_words(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: item for key, item in value.items() if names or key not in _WORDLESS}
    return {
        key: _without_words(item, names=key in ("properties", "$defs") and isinstance(item, dict) and not names)
        for key, item in kept.items()
    }


def _musts(value: dict[str, Any], path: str, model: str | None) -> dict[str, str]:
    streams = value.get("stream")
    facts = {"stream": _json("/api/" in path if streams is None else streams)}
    if model is None:
        facts["model"] = _json(value.get("model")) if "model" in value else "missing"
    for name in _READ:
        if value.get(name) not in (None, [], ""):
            facts[name] = _json(value[name])
    asked = value.get("response_format") or value.get("format")
    if asked not in (None, "", {"type": "text"}):
        facts["format"] = _json(asked)
    for name in ("think", "reasoning_effort", "reasoning", "thinking"):
        if value.get(name) is not None:
            facts[name] = _json(value[name])
    if path.startswith("/v1/messages") and not any(name in value for name in _BUDGETS):
        facts["budget"] = "missing"
    if path in ("/api/chat", "/api/generate"):
        facts |= _residence(value)
    options = _options(value)
    odd = {key: item for key, item in options.items() if key not in _SAMPLING or not isinstance(item, int | float)}
    if odd:
        facts["options"] = _json(odd)
    return facts


def _residence(value: dict[str, Any]) -> dict[str, str]:
    """Requests that only load or unload, and a duration that is none."""
    keep = value.get("keep_alive")
    facts = {}
    if not value.get("messages") and not value.get("prompt"):
        facts["only"] = "unload" if keep in (0, "0", "0s") else "load"
    if keep is not None and not (isinstance(keep, int | float) or _DURATION.fullmatch(str(keep))):
        facts["keep_alive"] = _json(keep)
    return facts


def _options(value: dict[str, Any]) -> dict[str, Any]:
    options = value.get("options")
    return options if isinstance(options, dict) else {}


def _budget(value: dict[str, Any]) -> int | None:
    found = _whole(_options(value).get("num_predict"))
    if found is not None:
        return found if found > 0 else None  # 0 is no limit either (measured)
    for name in _BUDGETS:
        found = _whole(value.get(name)) if found is None else found
    return found


def _whole(value: Any) -> int | None:
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _kind(message: Any) -> Any:
    """The form of a message: role, kind of content, forms of its calls and of its links to calls."""
    if not isinstance(message, dict):
        return type(message).__name__
    content = _content(message["content"]) if "content" in message else "missing"
    form = [str(message.get("role", message.get("type"))), content]
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        form += [_call(call) for call in calls]
    links = [name for name in ("tool_call_id", "tool_name", "call_id", "arguments", "output") if name in message]
    return [*form, *links]


def _content(content: Any) -> Any:
    if isinstance(content, str):
        return "text"
    if isinstance(content, list):
        return [str(part.get("type")) if isinstance(part, dict) else type(part).__name__ for part in content]
    return type(content).__name__


def _call(call: Any) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    form = type(arguments).__name__
    if isinstance(arguments, str):
        try:
            form = "json" if isinstance(json.loads(arguments), dict) else "json, no object"
        except ValueError:
            form = "broken" if arguments else "empty"
    return form


def _without_system(kinds: list[Any]) -> list[Any]:
    leads = bool(kinds) and isinstance(kinds[0], list) and kinds[0][:2] in (["system", "text"], ["developer", "text"])
    return kinds[1:] if leads and len(kinds) > 1 else kinds


def _words(value: dict[str, Any]) -> list[tuple[str, bool]]:
    """All text of the prompt in order, each with whether it is a tool's result."""
    found = [(str(value[name]), False) for name in _TEXT_FIELDS if isinstance(value.get(name), str)]
    messages = value.get("messages", value.get("input"))
    for message in messages if isinstance(messages, list) else [messages]:
        if isinstance(message, str):
            found.append((message, False))
        elif isinstance(message, dict):
            result = message.get("role") == "tool" or message.get("type") == "function_call_output"
            content = message.get("content", message.get("output"))
            for part in content if isinstance(content, list) else [content]:
                inner = part.get("text", part.get("content")) if isinstance(part, dict) else part
                given = result or (isinstance(part, dict) and part.get("type") == "tool_result")
                if given or isinstance(inner, str):
                    found.append((inner if isinstance(inner, str) else "", given))
    return found


def _triggers(words: list[tuple[str, bool]]) -> tuple[str, ...]:
    found: list[str] = []
    for text, result in words:
        if result:
            found.append(AFTER_TOOL_RESULT)
        found += [hit.group(1) or AFTER_TOOL_RESULT for hit in _TRIGGER.finditer(text)]
    return tuple(found)


def _broken(body: bytes, wrong: Exception) -> str:
    """`cut` where a JSON text ends too early; anything else stands for itself."""
    text = body.decode("utf-8", "replace")
    ends_early = isinstance(wrong, json.JSONDecodeError) and (
        wrong.pos >= len(text.rstrip()) or wrong.msg.startswith("Unterminated string")
    )
    return "cut" if ends_early else text


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
