"""Everything the layer rules look at, worked out once per exchange and only when asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from proxy.classify.history import BrokenTurn, broken_turns
from proxy.classify.memory import RunMemory
from proxy.classify.view import ExchangeView
from results.outcomes import MAX_QUOTE, Evidence
from stacks.dialects import Assembled, assemble, header
from stacks.errors import ErrorObject
from stacks.formats import CallCheck, CallScan, OfferedTools, check_call, find_calls, offered_tools
from stacks.irregular import Irregularity
from stacks.locate import ranges, request_range, text_ranges
from stacks.turn import CanonicalRequest, Fragment, ToolCall, Turn, Usage

GENERATES = frozenset(
    {
        "openai_chat",
        "openai_completions",
        "openai_responses",
        "ollama_chat",
        "ollama_generate",
        "anthropic_messages",
    }
)
_GENERATING_ROUTES = frozenset({"llamacpp_completion", "sglang_generate", "lmstudio_chat", "infill"})


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """A delivered call and what is wrong with it: `verdict` is ok, unknown_tool, invalid_arguments, not_json (its
    arguments are no JSON) or no_name."""

    call: ToolCall
    verdict: str
    reason: str = ""
    path: str = ""


class Facts:
    """Facts about one exchange. Pure: reads the view and the memory, changes neither."""

    def __init__(self, view: ExchangeView, memory: RunMemory | None = None) -> None:
        self.view = view
        self.memory = memory if memory is not None else RunMemory()
        self.assembled: Assembled = assemble(view.wire)

    # ------------------------------------------------------------------ what was asked
    @property
    def status(self) -> int:
        """Status code; 0 where none was received."""
        return self.view.wire.status

    @cached_property
    def request(self) -> CanonicalRequest:
        """The request in its canonical form (an empty one where the body says nothing)."""
        known = self.assembled.request
        if known is not None:
            return known
        return CanonicalRequest(self.assembled.dialect, self.assembled.route, self.view.wire.method)

    @cached_property
    def generates(self) -> bool:
        """Whether the request asks for generation at all (a model list or a health check does not)."""
        request = self.request
        if request.extra.get("_debug_render_only") is True:
            return False
        if self.view.wire.method.upper() not in ("POST", ""):
            return False
        if request.dialect in GENERATES or request.route in _GENERATING_ROUTES:
            return True
        return self.assembled.turn is not None and request.dialect == "other" and not self.view.wire.target

    @cached_property
    def tools(self) -> OfferedTools:
        """The tools offered; known and empty where the request offers none."""
        if any(tool.name is None for tool in self.request.tools):
            return offered_tools(None)
        return offered_tools([tool.raw for tool in self.request.tools])

    @property
    def offers(self) -> bool:
        """Whether any tool was offered."""
        return bool(self.request.tools)

    @property
    def choice(self) -> str:
        """The tool choice: auto where tools are offered and nothing is said, none where no tools are offered."""
        if self.request.tool_choice is not None:
            return self.request.tool_choice.mode
        return "auto" if self.offers else "none"

    @cached_property
    def history(self) -> list[BrokenTurn]:
        """Broken turns of the replayed history."""
        return broken_turns(self.request)

    @property
    def upstream(self) -> str:
        """The server that was asked, as the record names it."""
        return self.view.upstream

    # ------------------------------------------------------------------ what came
    @property
    def turn(self) -> Turn | None:
        """The answer's first turn, or None where the body holds no answer."""
        return self.assembled.turn

    @cached_property
    def text(self) -> str:
        """The answer's text, "" where there is none."""
        turn = self.turn
        return (turn.content or "") + (turn.refusal or "") if turn is not None else ""

    @cached_property
    def reasoning(self) -> str:
        """The answer's reasoning field, "" where there is none."""
        return (self.turn.reasoning or "") if self.turn is not None else ""

    @cached_property
    def calls(self) -> list[JudgedCall]:
        """Every delivered call with its verdict against what was offered."""
        return [self._judge(call) for call in self.turn.tool_calls] if self.turn is not None else []

    def _judge(self, call: ToolCall) -> JudgedCall:
        if not call.name:
            return JudgedCall(call, "no_name", "the call has no name")
        if not self.offers:
            return JudgedCall(call, "unknown_tool", f"{call.name!r} was called and no tool was offered")
        if not self.tools.offers(call.name):
            return JudgedCall(call, *_verdict(check_call(_Named(call.name, {}), self.tools)))
        if call.arguments_error is not None or not call.arguments_valid:
            empty = not call.arguments_text.strip()
            if (not empty and isinstance(call.arguments, (list, str, int, float, bool))) or call.arguments is None:
                return JudgedCall(call, "invalid_arguments", "the arguments are JSON but no object", "$")
            return JudgedCall(call, "not_json", call.arguments_error or "the arguments are not JSON")
        return JudgedCall(call, *_verdict(check_call(_Named(call.name, call.arguments), self.tools)))

    @cached_property
    def scan(self) -> CallScan:
        """Calls written in the answer's text. Where no tool is offered, any name counts as one."""
        return find_calls(self.text, self.tools if self.offers else None)

    @cached_property
    def reasoning_scan(self) -> CallScan:
        """Calls written in the reasoning field."""
        return find_calls(self.reasoning, self.tools if self.offers else None)

    @property
    def usage(self) -> Usage | None:
        """Token counts, where the answer has any."""
        return self.turn.usage if self.turn is not None else None

    @property
    def completion_tokens(self) -> int | None:
        """Tokens generated, where the answer says."""
        return self.usage.completion if self.usage is not None else None

    @property
    def prompt_tokens(self) -> int | None:
        """Tokens of the prompt, where the answer says."""
        return self.usage.prompt if self.usage is not None else None

    @property
    def limit_reached(self) -> bool:
        """Whether the answer used up the request's own output limit, or the finish reason says that a limit ended it."""
        if self.turn is not None and self.turn.finish == "length":
            return True
        limit, spent = self.request.max_tokens, self.completion_tokens
        return limit is not None and limit > 0 and spent is not None and spent >= limit

    @property
    def failed(self) -> bool:
        """Whether the answer is an error, whatever its status."""
        return self.status >= 400 or bool(self.assembled.errors)

    @property
    def error(self) -> ErrorObject | None:
        """The first error found in the body."""
        return self.assembled.errors[0] if self.assembled.errors else None

    @cached_property
    def error_text(self) -> str:
        """The innermost message of the error, or the body's text where the status alone says error."""
        if self.error is not None:
            return self.error.innermost or self.error.message
        if self.status >= 400:
            return self.view.wire.response_body[:4096].decode("utf-8", "replace")
        return ""

    @cached_property
    def error_messages(self) -> list[str]:
        """Every message of the error, the innermost first, those in its other members last."""
        if self.error is None:
            return [self.error_text] if self.error_text else []
        texts = [*reversed(self.error.chain)] or [self.error.message]
        return list(dict.fromkeys((*texts, *deep_messages(self.error.raw))))

    @cached_property
    def all_error_text(self) -> str:
        """Every message of the error, for words that stand in an outer one."""
        return "\n".join(self.error_messages)

    def irregular(self, *codes: str) -> Irregularity | None:
        """The first irregularity of one of these codes."""
        return next((item for item in self.assembled.irregularities if item.code in codes), None)

    @property
    def no_response(self) -> bool:
        """Whether not one byte of an HTTP answer came."""
        return self.status == 0 and not self.view.unreadable

    # ------------------------------------------------------------------ who answered
    @cached_property
    def stack(self) -> str:
        """The serving stack: as told from outside, else by its fingerprint in this exchange, else ""."""
        return self.view.stack or fingerprint(self)

    def server(self) -> str:
        """The `Server` header, "" where there is none."""
        return header(self.view.wire.response_headers, "server") or ""

    @cached_property
    def constrains(self) -> bool:
        """Whether this server is known to constrain a call while it is generated: llama-server with tools, Ollama in its
        native mode (its call ids are 32 letters), and a forced choice anywhere that is obeyed."""
        if not self.offers:
            return False
        if self.stack == "llama.cpp":
            return True
        if self.choice in ("required", "named") and self.stack in ("vllm", "sglang", "llama-cpp-python"):
            return True
        turn = self.turn
        return (
            turn is not None
            and self.stack == "ollama"
            and any(re.fullmatch(r"[A-Za-z0-9]{32}", call.id or "") for call in turn.tool_calls)
        )

    # ------------------------------------------------------------------ citing
    def cite(self, start: int, end: int, why: str = "") -> Evidence:
        """Evidence at decoded response body offsets."""
        body = self.view.wire.response_body
        first, last = self.view.response_map.wire(start, end)
        quote = body[start : min(end, start + 4 * MAX_QUOTE)].decode("utf-8", "replace")[:MAX_QUOTE]
        return Evidence(attempt=self.view.attempt, direction="response", start=first, end=last, quote=quote, why=why)

    def cite_request(self, path: tuple[str | int, ...], why: str = "") -> Evidence:
        """Evidence at a value of the request body (the whole body where it cannot be found)."""
        body = self.view.wire.request_body
        found = request_range(body, path) if path else None
        start, end = found if found is not None else (0, len(body))
        first, last = self.view.request_map.wire(start, end)
        quote = body[start : min(end, start + 4 * MAX_QUOTE)].decode("utf-8", "replace")[:MAX_QUOTE]
        return Evidence(attempt=self.view.attempt, direction="request", start=first, end=last, quote=quote, why=why)

    def cite_head(self, why: str = "") -> Evidence:
        """Evidence at the response's head (an empty range where there is none)."""
        start, end = self.view.response_head
        quote = f"status {self.status}" if self.status else "no response"
        return Evidence(attempt=self.view.attempt, direction="response", start=start, end=end, quote=quote, why=why)

    def cite_body(self, why: str = "") -> Evidence:
        """Evidence at the whole response body, or at the head where it has none."""
        body = self.view.wire.response_body
        return self.cite(0, len(body), why) if body else self.cite_head(why)

    def cite_error(self, why: str = "") -> Evidence:
        """Evidence at the innermost error message."""
        error = self.error
        if error is None:
            return self.cite_body(why)
        if error.inner_end > error.inner_start:
            return self.cite(error.inner_start, error.inner_end, why)
        return self.cite(error.start, error.end, why)

    def cite_fragments(self, fragments: tuple[Fragment, ...], why: str = "") -> Evidence:
        """Evidence from the first to the last fragment of a value that came in pieces."""
        found = ranges(self.assembled, fragments) if fragments else []
        if not found:
            return self.cite_body(why)
        return self.cite(min(start for start, _ in found), max(end for _, end in found), why)

    def cite_text(self, first: int, last: int, why: str = "", *, reasoning: bool = False) -> Evidence:
        """Evidence at characters first..last of the answer's text (or of its reasoning)."""
        turn = self.turn
        if turn is None:
            return self.cite_body(why)
        fragments = turn.where_reasoning if reasoning else (*turn.where_content, *turn.where_refusal)
        found = text_ranges(self.assembled, fragments, first, last)
        if not found:
            return self.cite_fragments(fragments, why)
        cited = self.cite(min(start for start, _ in found), max(end for _, end in found), why)
        said = (self.reasoning if reasoning else self.text)[first:last][:MAX_QUOTE]
        return Evidence(
            attempt=cited.attempt, direction="response", start=cited.start, end=cited.end, quote=said, why=why
        )

    def cite_call(self, call: ToolCall, why: str = "") -> Evidence:
        """Evidence at a delivered call."""
        return self.cite_fragments(call.where or call.where_arguments or call.where_name, why)

    def cite_irregular(self, item: Irregularity) -> Evidence:
        """Evidence at an irregularity."""
        if item.end > item.start:
            return self.cite(item.start, item.end, item.message)
        return self.cite_body(item.message)

    def cite_usage(self, why: str = "") -> Evidence:
        """Evidence at the token counts."""
        return self.cite_fragments(self.usage.where if self.usage is not None else (), why)


@dataclass(frozen=True, slots=True)
class _Named:
    name: str
    arguments: object


def _verdict(check: CallCheck) -> tuple[str, str, str]:
    return check.verdict, check.reason, check.path


_MAX_DEEP = 40


def deep_messages(value: object) -> list[str]:
    """Every text under a `message`, `error` or `detail` member of an error object, at any depth (at most 40)."""
    found: list[str] = []
    pending: list[object] = [value]
    seen = 0
    while pending and len(found) < _MAX_DEEP and seen < 1000:
        current = pending.pop(0)
        seen += 1
        if isinstance(current, dict):
            for key, member in current.items():
                if isinstance(member, str) and key in ("message", "error", "detail", "msg", "reason"):
                    found.append(member)
                elif isinstance(member, (dict, list)):
                    pending.append(member)
        elif isinstance(current, list):
            pending.extend(item for item in current if isinstance(item, (dict, list)))
    return found


_LLAMA_BUILD = re.compile(r"\Ab\d+-[0-9a-f]{6,}\Z")
_MLX = re.compile(r"\A\d+\.\d+\.\d+-\d+\.\d+\.\d+-")


def fingerprint(facts: Facts) -> str:
    """The serving stack by what only it sends (sources: the stacks' own fingerprints, see docs/outcomes.md)."""
    server = facts.server()
    if server.startswith("llama.cpp"):
        return "llama.cpp"
    turn = facts.turn
    mark = (turn.fingerprint or "") if turn is not None else ""
    named = _by_mark(mark)
    if named:
        return named
    if server.startswith("BaseHTTP/"):
        return "mlx_lm"
    route = facts.assembled.route
    if route.startswith("api_") or b"registry.ollama.ai" in facts.view.wire.response_body[:2048]:
        return "ollama"
    if header(facts.view.wire.response_headers, "openai-processing-ms") and server == "uvicorn":
        return "llama-cpp-python"
    if turn is not None and "timings" in turn.extra:
        return "llama.cpp"
    return ""


def _by_mark(mark: str) -> str:
    if mark == "fp_ollama":
        return "ollama"
    if mark.startswith("vllm-"):
        return "vllm"
    if _LLAMA_BUILD.match(mark):
        return "llama.cpp"
    return "mlx_lm" if _MLX.match(mark) else ""
