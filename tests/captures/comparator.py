"""The fact about a capture, worked out without the classifier: what the model is known to write, what came back, and
what the stack therefore did to it.

It shares no code with the project: its own reading of the wire (loose, by line), its own labels of the known texts
(`known_texts.py`, by hand), its own comparison.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from typing import Any

from tests.captures import known_texts as known

Call = tuple[str, Any]
SERVICE = re.compile(
    r"/api/(?:show|ps|tags|version|embed)|/models|/health|/metrics|tokenize|count_tokens|render|/batch"
)
AFTER_MODEL = re.compile(
    r"\bEOF\b|XML syntax|failed to parse (?:JSON|XML)|invalid character|error parsing tool call|grammar stack|"
    r"returned invalid tool call arguments|does not match the expected"
)


@dataclass
class Came:
    """What came back: text, reasoning, calls (arguments parsed where they are JSON), finish word, error text."""

    status: int = 0
    error: str = ""
    text: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)
    finish: str = ""
    ended: bool = False
    objects: int = 0
    body: bool = False
    pieces: str = ""
    spent: int = -1
    ids: list[str] = field(default_factory=list)


@dataclass
class Asked:
    """What the request says, as far as the comparison needs it."""

    path: str
    names: list[str]
    choice: str
    limit: int | None
    format: Any
    stream: bool
    parallel: Any
    strict: bool
    debug: bool = False


def asked_of(record: dict[str, Any]) -> Asked:
    """Read the request of a capture line."""
    request = record["request"]
    try:
        body = json.loads(request.get("body") or "{}")
    except ValueError:
        body = {}
    body = body if isinstance(body, dict) else {}
    tools = body.get("tools") if isinstance(body.get("tools"), list) else []
    tools += body.get("functions") if isinstance(body.get("functions"), list) else []
    names = []
    for tool in tools:
        inner = tool.get("function", tool) if isinstance(tool, dict) else {}
        names.append(inner.get("name", "") if isinstance(inner, dict) else "")
    choice = body.get("tool_choice", "auto")
    if isinstance(choice, dict):
        choice = {"auto": "auto", "any": "required", "none": "none"}.get(str(choice.get("type")), "named")
    choice = {"any": "required"}.get(str(choice), str(choice))
    limit = next(
        (body[key] for key in ("max_tokens", "max_completion_tokens", "max_output_tokens") if key in body), None
    )
    if limit is None and isinstance(body.get("options"), dict):
        limit = body["options"].get("num_predict")
    shape = next((body[key] for key in ("response_format", "format", "structured_outputs", "text", "grammar", "regex",
                                        "ebnf", "json_schema") if body.get(key)), None)  # fmt: skip
    path = request["path"]
    native = path.startswith("/api/")
    return Asked(
        path, names, choice, limit if isinstance(limit, int) else None, shape, body.get("stream", native) is True,
        body.get("parallel_tool_calls"), '"strict": true' in json.dumps(tools), bool(body.get("_debug_render_only")),
    )  # fmt: skip


def came_of(record: dict[str, Any]) -> Came:
    """Read the response of a capture line."""
    raw = record.get("response_raw")
    data = base64.b64decode(record["response_raw_base64"]) if raw is None else raw.encode("utf-8", "surrogatepass")
    came = Came()
    status = re.match(rb"HTTP/1\.\d (\d{3})", data)
    if status is None:
        return came
    came.status = int(status[1])
    head, _, body = data.partition(b"\r\n\r\n")
    if re.search(rb"(?i)transfer-encoding: chunked", head):
        body = re.sub(rb"\r\n[0-9a-fA-F]+\r\n", b"", b"\r\n" + body)
    text = body.decode("utf-8", "replace").strip()
    came.ended = "[DONE]" in text
    objects = _objects(text)
    came.objects, came.body = len(objects), bool(text.strip("0\r\n "))
    calls: dict[Any, list[str]] = {}
    for item in objects:
        _take(came, item, calls)
    if came.pieces and not came.text:
        came.text = came.pieces
    came.ids = re.findall(r'"(?:id|call_id)":\s*"([A-Za-z0-9_-]+)"', text)
    came.calls += [(name, _value(arguments)) for name, arguments in calls.values()]
    if came.status >= 400 and not came.error:
        came.error = text[:500] or "empty"
    return came


def _objects(text: str) -> list[dict[str, Any]]:
    try:
        whole = json.loads(text)
        return [whole] if isinstance(whole, dict) else []
    except ValueError:
        pass
    found = []
    for line in text.splitlines():
        line = line.removeprefix("data:").strip()  # noqa: PLW2901
        if line.startswith("{"):
            try:
                item = json.loads(line)
            except ValueError:
                continue
            if isinstance(item, dict):
                found.append(item)
    return found


def _error_text(value: Any) -> str:
    if isinstance(value, dict):
        inner = value.get("message") or value.get("error") or value.get("detail")
        return _error_text(inner) if inner else json.dumps(value)
    return str(value)


def _take(came: Came, item: dict[str, Any], calls: dict[Any, list[str]]) -> None:
    if item.get("error") or item.get("object") == "error" or item.get("type") == "error":
        came.error = came.error or _error_text(item.get("error") or item)
        return
    usage = item.get("usage")
    if isinstance(usage, dict):
        came.spent = usage.get("completion_tokens") or came.spent
    for choice in [each for each in item.get("choices") or [] if each.get("index", 0) == 0][:1]:
        part = choice.get("delta") or choice.get("message") or {}
        came.text += part.get("content") or choice.get("text") or ""
        came.reasoning += part.get("reasoning_content") or part.get("reasoning") or ""
        _chat_calls(part.get("tool_calls") or [], calls)
        came.finish = choice.get("finish_reason") or came.finish
    message = item.get("message")
    if isinstance(message, dict) and "choices" not in item:
        came.text += message.get("content") or ""
        came.reasoning += message.get("thinking") or ""
        for call in message.get("tool_calls") or []:
            came.calls.append((call["function"]["name"], call["function"].get("arguments")))
    came.finish = item.get("done_reason") or came.finish
    if isinstance(item.get("response"), str):
        came.text += item["response"]
        came.reasoning += item.get("thinking") or ""
    _anthropic(came, item, calls)
    _responses(came, item)


def _chat_calls(entries: list[Any], calls: dict[Any, list[str]]) -> None:
    for number, entry in enumerate(entries):
        function = entry.get("function") or {}
        key = entry.get("index", number)
        if function.get("name") and key in calls and calls[key][0]:
            key = (key, len(calls))
        slot = calls.setdefault(key, ["", ""])
        slot[0] = slot[0] or function.get("name") or ""
        slot[1] += function.get("arguments") or ""


def _anthropic(came: Came, item: dict[str, Any], calls: dict[Any, list[str]]) -> None:
    content = item.get("content") if item.get("type") == "message" else None
    for block in content or []:
        kind = block.get("type")
        if kind == "text":
            came.text += block["text"]
        elif kind == "thinking":
            came.reasoning += block["thinking"]
        elif kind == "tool_use":
            came.calls.append((block["name"], block["input"]))
    if item.get("type") == "content_block_start" and item["content_block"].get("type") == "tool_use":
        calls[("a", item["index"])] = [item["content_block"]["name"], ""]
    if item.get("type") == "content_block_delta":
        delta = item["delta"]
        came.text += delta.get("text") or ""
        came.reasoning += delta.get("thinking") or ""
        if "partial_json" in delta and ("a", item["index"]) in calls:
            calls[("a", item["index"])][1] += delta["partial_json"]
    stop = (
        item.get("stop_reason") or (item.get("delta") or {}).get("stop_reason")
        if isinstance(item.get("delta") or {}, dict)
        else None
    )
    came.finish = stop or came.finish


def _responses(came: Came, item: dict[str, Any]) -> None:
    if item.get("type") == "response.output_text.delta":
        came.pieces += str(item.get("delta") or "")
    whole = item if item.get("object") == "response" else None
    if item.get("type") in ("response.completed", "response.incomplete"):
        whole = item["response"]
    if whole is None:
        return
    for part in whole.get("output") or []:
        if part.get("type") == "message":
            came.text += "".join(piece.get("text") or "" for piece in part.get("content") or [])
        elif part.get("type") == "function_call":
            came.calls.append((part["name"], _value(part["arguments"])))
        elif part.get("type") == "reasoning":
            pieces = [*(part.get("summary") or []), *(part.get("content") or [])]
            came.reasoning += "".join(piece.get("text") or "" for piece in pieces)
    came.finish = "length" if whole.get("status") == "incomplete" else "stop"
    came.error = came.error or _error_text(whole["error"]) if whole.get("error") else came.error


def _value(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments) if arguments.strip() else None
    except ValueError:
        return ("not json", arguments)


def squeeze(text: str) -> str:
    """Text without blanks."""
    return re.sub(r"\s+", "", text)


_MARK = re.compile(
    r"</?(?:think|tool_call|function_calls|minimax:tool_call)>|<\|[^|>]*\|>|<\|?/?tool_call\|?>|<[｜|][^>]*[｜|]>|"
    r"<(?:start|end)_function_call>|\[TOOL_CALLS\]|\[ARGS\]|</?think>"
)


def bare(text: str) -> str:
    """Text without blanks and without markers."""
    return squeeze(_MARK.sub("", text))


def labelled(text: str) -> tuple[str, list[Call], str]:
    """(kind, calls, prose) of a known text. Raises KeyError for a text that nobody labelled."""
    if text == "":
        return "nothing", [], ""
    if text in known.VALID:
        calls, prose = known.VALID[text]
        return "valid_call", list(calls), prose
    for kind, table in (("malformed_call", known.MALFORMED), ("invalid_arguments", known.INVALID),
                        ("unknown_tool", known.UNKNOWN), ("open_thought_call", known.OPEN_THOUGHT)):  # fmt: skip
        if text in table:
            return kind, list(table[text]), ""
    if text in known.PROSE:
        return "prose", [], known.PROSE[text]
    if text in known.THOUGHTS:
        return "thoughts", [], ""
    return "endless_" + known.ENDLESS[text], [], ""


@dataclass
class Fact:
    """What may be said of an exchange with known text: `outcomes` are the names, `deliveries` the words; `lost` is true
    where a good call was lost or refused, `faithful` where an answer came as it was written."""

    outcomes: set[str]
    deliveries: set[str]
    why: str
    lost: bool = False
    faithful: bool = False


MODEL = {
    "malformed_call": "model.malformed_call",
    "invalid_arguments": "model.invalid_arguments",
    "unknown_tool": "model.unknown_tool",
}


def fact_of(record: dict[str, Any], server: str) -> Fact | None:
    """The fact about one capture line; None where the line is no generation or its text is not known."""
    asked, came = asked_of(record), came_of(record)
    text = record.get("canary_text")
    method = record["request"]["method"]
    if text is None or method != "POST" or SERVICE.search(asked.path) or asked.debug or asked.path.endswith("nope"):
        return None
    kind, calls, prose = labelled(text)
    if came.status == 200 and not (came.error or came.objects or came.body):
        return Fact({"nonresponse.empty", "transport.*"}, {"unknown"}, "an answer without a single byte or event")
    offered = bool(asked.names) and asked.choice != "none"
    if came.status == 0 or came.error:
        return _stopped(asked, came, kind, server)
    if kind == "unknown_tool" and "launch_rocket" in asked.names:
        kind = "valid_call"
    if kind == "valid_call" and offered and calls[0][0] not in asked.names and all(asked.names):
        kind = "unknown_tool"
    if not offered:
        return _no_tools(asked, came, text, kind)
    return _with_tools(asked, came, (kind, calls, prose, text), server)


def _stopped(asked: Asked, came: Came, kind: str, server: str) -> Fact:
    """An error, or no answer at all."""
    lost = kind in ("valid_call", "open_thought_call")
    if came.status == 0:
        return Fact(
            {"transport.*", "engine.wedged", "protocol.done_missing"}, {"unknown", "cut", "refused"}, "silence", lost
        )
    if not AFTER_MODEL.search(came.error):
        return Fact(
            {"gate.*", "request.*", "template.*", "transport.*", "engine.*"}, {"refused", "unknown"}, "refused", lost
        )
    if kind in MODEL:
        names = {MODEL[kind]} if asked.names else {MODEL[kind], "parser.server_error"}
        return Fact(names, {"refused"}, "a bad call, answered with an error")
    if kind.startswith("endless"):
        return Fact({"truncation.cut_inside_call", "truncation.output_budget"}, {"refused"}, "cut, then an error")
    if "unexpected end of JSON" in came.error and asked.limit is not None and asked.limit <= 16:
        return Fact({"truncation.cut_inside_call"}, {"refused"}, "cut, then an error", lost)
    return Fact(
        {"parser.server_error", "engine.grammar_deadlock"}, {"refused"}, "good text, answered with an error", lost
    )


def _is_cut(came: Came, text: str) -> bool:
    return came.finish in ("length", "max_tokens") and squeeze(text) not in squeeze(came.reasoning + came.text)


def _ran_on(asked: Asked, came: Came, text: str) -> bool:
    """Whether a form was forced, a limit ended it, and what came is the known text and more."""
    forced = asked.format is not None or asked.choice in ("required", "named")
    return forced and came.finish in ("length", "max_tokens") and squeeze(text) not in ("", squeeze(came.text))


def _cut_words(came: Came, text: str, *, forced: bool) -> set[str]:
    """A limit ended it; where a form was forced and what came is no beginning of the known text, both are true."""
    partial = "".join(
        arguments[1] if isinstance(arguments, tuple) else json.dumps(arguments) for _, arguments in came.calls
    )
    begun = "@-" in text or squeeze(came.text + partial) in squeeze(text)
    return {"cut"} if begun or not forced else {"cut", "constrained"}


def _no_tools(asked: Asked, came: Came, text: str, kind: str) -> Fact:
    """No call was asked for: the text itself is the answer."""
    if came.calls:
        name = "protocol.choice_ignored" if asked.names else "parser.phantom"
        return Fact({name}, {"phantom"}, "a call was made of text that was asked for")
    if kind == "nothing":
        return Fact({"nonresponse.empty"}, {"intact"}, "nothing was written")
    if kind.startswith("endless") or _is_cut(came, text):
        words = _cut_words(came, text, forced=asked.format is not None)
        return Fact({"truncation.output_budget", "truncation.cut_inside_call"}, words, "a limit ended it")
    return _text_only(asked, came, text, kind)


def _text_only(asked: Asked, came: Came, text: str, kind: str) -> Fact:
    if _ran_on(asked, came, text) and squeeze(text) in squeeze(came.text):
        return Fact({"truncation.output_budget", "truncation.cut_inside_call"}, {"constrained"}, "forced to run on")
    if asked.format is not None and "<tool_call>" in text and "<tool_call>" not in came.text + came.reasoning:
        words = {"constrained"} if bare(text) == bare(came.text) else {"constrained", "cut"}
        return Fact({"ok.final_answer", "truncation.output_budget"}, words, "a format without the tags was forced")
    if squeeze(text) in squeeze(came.text) or (bare(text) and bare(text) == bare(came.text)):
        return Fact({"ok.final_answer", "ok.text_call"}, {"intact"}, "came as written", faithful=True)
    tail = known.PROSE.get(text, "")
    if tail and squeeze(tail) in squeeze(came.text):
        return Fact({"ok.final_answer"}, {"intact"}, "came as written, reasoning apart", faithful=True)
    after = text.partition("</think>")[2]
    if after and squeeze(after) == squeeze(came.text):
        return Fact({"ok.final_answer", "ok.text_call"}, {"intact"}, "came as written, reasoning apart", faithful=True)
    if asked.format is not None:
        return Fact(
            {"ok.final_answer", "truncation.output_budget"}, {"constrained", "cut"}, "another format was forced"
        )
    if bare(text) == bare(came.reasoning):
        name = "nonresponse.reasoning_only" if kind == "thoughts" else "parser.in_reasoning"
        return Fact({name}, {"intact"} if kind == "thoughts" else {"in_reasoning"}, "came as reasoning")
    if not came.text.strip() and not came.reasoning.strip():
        name = "nonresponse.swallowed" if kind in ("prose", "thoughts") else "parser.dropped"
        return Fact({name}, {"dropped"}, "was lost")
    return Fact(
        {"parser.altered", "nonresponse.swallowed", "parser.dropped"}, {"altered", "dropped"}, "came as other text"
    )


def _constrained(asked: Asked, came: Came, server: str) -> bool:
    if (
        ("llama-server" in server and "python" not in server)
        or asked.choice in ("required", "named")
        or asked.format is not None
    ):
        return True
    if asked.strict and server.startswith(("vLLM", "SGLang")):
        return True
    return server.startswith("Ollama") and any(re.fullmatch(r"[A-Za-z0-9]{32}", each) for each in came.ids)


def _as_written(asked: Asked, came: Came, text: str, prose: str, server: str) -> Fact:
    """The calls came as written; the text beside them may not have."""
    if not prose or squeeze(prose) in squeeze(came.text + came.reasoning):
        return Fact({"ok.native_call"}, {"intact"}, "delivered as written")
    after = bool(text.rpartition("</tool_call>")[2].strip())
    words = {"constrained"} if after and _constrained(asked, came, server) else {"altered"}
    return Fact({"ok.native_call"}, words, "the call as written, and the text beside it lost")


def _with_tools(asked: Asked, came: Came, written: tuple[str, list[Call], str, str], server: str) -> Fact:
    kind, calls, prose, text = written
    lost = kind in ("valid_call", "open_thought_call")
    if came.calls and came.calls == calls and kind in ("valid_call", "open_thought_call"):
        return _as_written(asked, came, text, prose, server)
    whole = bool(text) and squeeze(text) in squeeze(came.reasoning + came.text) and not _ran_on(asked, came, text)
    limited = came.finish in ("length", "max_tokens") or (came.spent == asked.limit and _broken(came))
    if kind.startswith("endless") or (limited and not whole and came.calls != calls):
        words = _cut_words(came, text, forced=_constrained(asked, came, server))
        return Fact({"truncation.output_budget", "truncation.cut_inside_call"}, words, "a limit ended it", lost)
    if came.calls:
        return _delivered(asked, came, written, server)
    if kind == "nothing":
        return Fact({"nonresponse.empty"}, {"intact"}, "nothing was written")
    if kind in ("prose", "thoughts"):
        return _text_only(asked, came, text, kind)
    where = _where(came, text, prose)
    if kind in MODEL:
        return Fact({MODEL[kind]}, {where}, "a bad call")
    if where == "left_as_text":
        names = {"parser.left_as_text"} if kind == "valid_call" else {"parser.in_reasoning"}
        return Fact(names, {where}, "a good call, left as text", lost)
    if asked.format is not None and where != "in_reasoning":
        return Fact({"ok.final_answer"}, {"constrained"}, "another format was forced")
    name = {"in_reasoning": "parser.in_reasoning", "dropped": "parser.dropped", "altered": "parser.altered"}[where]
    return Fact({name}, {where}, "a good call, lost", lost)


def _broken(came: Came) -> bool:
    return any(isinstance(arguments, tuple) for _, arguments in came.calls)


def _where(came: Came, text: str, prose: str) -> str:
    if squeeze(text) in squeeze(came.text) or (bare(text) and bare(text) == bare(came.text)):
        return "left_as_text"
    after = text.partition("</think>")[2]
    if after and squeeze(after) in squeeze(came.text):
        return "left_as_text"
    if bare(text) and bare(text) == bare(came.reasoning + came.text) and not came.text.strip():
        return "in_reasoning"
    if squeeze(text) in squeeze(came.reasoning):
        return "in_reasoning"
    left = squeeze(came.text)
    if not left or left == squeeze(prose) or (prose and left in squeeze(prose)):
        return "dropped"
    piece = left in squeeze(text) and any(mark in left for mark in "{}")
    return "altered" if "get_weather" in left or "arguments" in left or piece else "dropped"


def _delivered(asked: Asked, came: Came, written: tuple[str, list[Call], str, str], server: str) -> Fact:
    """Calls came, and they are not simply the good ones."""
    kind, calls, _, _ = written
    constrained = _constrained(asked, came, server)
    if kind in MODEL:
        if came.calls == calls:
            words = {"intact"} if kind != "malformed_call" else {"constrained"} if constrained else {"repaired"}
            return Fact({MODEL[kind]}, words, "a bad call, delivered")
        words = (
            {"constrained"}
            if constrained and not server.startswith("Ollama")
            else {"altered", "repaired", "constrained"}
        )
        return Fact({MODEL[kind]}, words, "a bad call, changed")
    if kind in ("prose", "thoughts", "nothing") or kind.startswith("endless"):
        if constrained:
            return Fact({"ok.native_call", "parser.altered"}, {"constrained"}, "a call was forced")
        return Fact({"parser.phantom"}, {"phantom"}, "no call was written")
    if asked.parallel is False and came.calls == calls[:1]:
        return Fact({"ok.native_call"}, {"constrained"}, "one call, as asked")
    if constrained:
        return Fact(
            {"ok.native_call", "parser.altered", "parser.dropped"}, {"constrained", "altered", "dropped"}, "forced"
        )
    if all(call in calls for call in came.calls):
        return Fact({"parser.dropped"}, {"dropped"}, "some calls are missing", True)
    return Fact({"parser.altered", "parser.marker_leak"}, {"altered"}, "a good call, changed", True)
