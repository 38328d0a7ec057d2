"""Everything the layer rules look at, worked out once per exchange and only when asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from proxy.classify.citing import Citing
from proxy.classify.fingerprint import deep_messages, fingerprint
from proxy.classify.history import BrokenTurn, broken_turns
from proxy.classify.memory import RunMemory
from proxy.classify.view import ExchangeView
from stacks.dialects import Assembled, assemble
from stacks.formats import CallCheck, CallScan, OfferedTools, check_call, find_calls, offered_tools
from stacks.irregular import Irregularity
from stacks.stack_names import stack_name
from stacks.turn import CanonicalRequest, ErrorObject, ToolCall, Turn, Usage

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


class Facts(Citing):
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
            empty = call.arguments_text.strip() in ("", "null")
            if empty and check_call(_Named(call.name, {}), self.tools).ok:
                return JudgedCall(call, "ok", "no arguments, and the tool needs none")
            if (not empty and isinstance(call.arguments, (list, str, int, float, bool))) or call.arguments is None:
                return JudgedCall(call, "invalid_arguments", "the arguments are JSON but no object", "$")
            return JudgedCall(call, "not_json", call.arguments_error or "the arguments are not JSON")
        return JudgedCall(call, *_verdict(check_call(_Named(call.name, call.arguments), self.tools)))

    @cached_property
    def scan(self) -> CallScan:
        """Calls written in the answer's text. Where no tool is offered, any name counts as one."""
        return _scan(self.text, self.tools if self.offers else None)

    @cached_property
    def reasoning_scan(self) -> CallScan:
        """Calls written in the reasoning field."""
        return _scan(self.reasoning, self.tools if self.offers else None)

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
        """Whether the answer used up the request's own output limit, or its finish reason says so."""
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
        """The serving stack by its one name: as told from outside, else by its fingerprint, else ""."""
        return stack_name(self.view.stack) or fingerprint(self.view.wire, self.assembled)

    @cached_property
    def constrains(self) -> bool:
        """Whether this server is known to constrain a call while it is generated: llama-server with tools, Ollama in
        its native mode (its call ids are 32 letters), a forced choice or a strict tool where those are obeyed."""
        if not self.offers:
            return False
        if self.stack == "llamacpp":
            return True
        if self.choice in ("required", "named") and self.stack in ("vllm", "sglang", "llamacpp_python"):
            return True
        if self.stack in ("vllm", "sglang") and any(_is_strict(tool.raw) for tool in self.request.tools):
            return True
        turn = self.turn
        return (
            turn is not None
            and self.stack == "ollama"
            and any(re.fullmatch(r"[A-Za-z0-9]{32}", call.id or "") for call in turn.tool_calls)
        )

    @cached_property
    def forced_format(self) -> bool:
        """Whether the request asks for a form of the answer's text: JSON mode, a schema, a grammar, a pattern."""
        wanted = self.request.response_format
        if isinstance(wanted, dict):
            return bool(wanted) and wanted.get("type") != "text"
        return bool(wanted) and wanted != "text"

    @cached_property
    def forced(self) -> bool:
        """Whether the form of what came may have been forced while it was generated. (A server that constrains calls
        alone leaves text that is none as it is.)"""
        if self.forced_format:
            return True
        return self.constrains and (self.choice in ("required", "named") or bool(self.calls) or not self.text.strip())


def _is_strict(tool: object) -> bool:
    inner = tool.get("function", tool) if isinstance(tool, dict) else None
    return isinstance(inner, dict) and inner.get("strict") is True


_SIGNS = re.compile(r"[{\[<(]")
_NOTHING = find_calls("")


def _scan(text: str, tools: OfferedTools | None) -> CallScan:
    """`find_calls`, which need not look at text without any sign that a call of any format begins with."""
    return find_calls(text, tools) if _SIGNS.search(text) else _NOTHING


@dataclass(frozen=True, slots=True)
class _Named:
    name: str
    arguments: object


def _verdict(check: CallCheck) -> tuple[str, str, str]:
    return check.verdict, check.reason, check.path
