"""OpenAI chat completions: plain bodies, and streams of `chat.completion.chunk` closed by `data: [DONE]`.

Source of the form: OpenAI API reference, "Create chat completion" and "The chat completion chunk object"; the extra
fields of local servers (reasoning, reasoning_content, stop_reason, matched_stop, timings ...) are kept or read.
"""

from __future__ import annotations

from stacks.dialects.base import Context, Pieces, check_counts, read_usage
from stacks.dialects.chat_calls import CallBuilder
from stacks.dialects.exchange import Event
from stacks.strictjson import Path
from stacks.turn import Fragment, Turn, Usage, json_type

FINISH = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "abort": "aborted",
    "error": "error",
}
_EXTENSIONS = frozenset(("abort", "error"))
_TOP_FIELDS = frozenset(("id", "object", "created", "model", "choices", "usage", "system_fingerprint", "error"))
_CHOICE_FIELDS = frozenset(("index", "delta", "message", "finish_reason"))
_MESSAGE_FIELDS = frozenset(
    ("role", "content", "tool_calls", "function_call", "refusal", "reasoning", "reasoning_content", "thinking")
)
_REASONING = ("reasoning_content", "reasoning", "thinking")


class _Choice:
    """One choice while it comes."""

    __slots__ = ("calls", "content", "extra", "finish_raw", "index", "legacy", "parts", "path", "paths", "reasoning",
                 "reasoning_field", "refusal", "role", "stop_detail", "where_finish")  # fmt: skip

    def __init__(self, index: int, context: Context) -> None:
        self.index = index
        self.content = Pieces()
        self.reasoning = Pieces()
        self.reasoning_field: str | None = None
        self.refusal = Pieces()
        self.calls = CallBuilder(context)
        self.legacy = False
        self.role: str | None = None
        self.finish_raw: str | None = None
        self.where_finish: list[Fragment] = []
        self.stop_detail: object = None
        self.parts: list[dict[str, object]] = []
        self.extra: dict[str, object] = {}

    def payload(self) -> bool:
        """Whether anything but a role came."""
        return bool(self.content or self.reasoning or self.refusal or self.calls or self.parts)


class ChatAssembler:
    """Assembler of one chat completion, plain or streamed."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._choices: dict[int, _Choice] = {}
        self._extra: dict[str, object] = {}
        self._usage: Usage | None = None
        self._id: str | None = None
        self._model: str | None = None
        self._fingerprint: str | None = None
        self._done = False

    @property
    def ended(self) -> bool | None:
        """Whether `[DONE]` came."""
        return self._done if self._context.streamed else None

    def done(self, event: Event) -> None:
        """Take the end mark."""
        if self._done:
            self._context.flag("done_repeated", "[DONE] was sent again")
        self._done = True

    def add(self, event: Event, value: dict[str, object]) -> None:
        """Take a chunk or the plain body."""
        self._identity(value)
        usage = value.get("usage")
        if usage is not None:
            self._usage = read_usage(usage, event.number, ("usage",), self._context) or self._usage
        choices = value.get("choices")
        if isinstance(choices, list):
            if not choices and usage is None and "prompt_filter_results" not in value and "error" not in value:
                self._context.flag("choices_empty", "a chunk has no choices and no usage")
            for position, choice in enumerate(choices):
                if isinstance(choice, dict):
                    self._choice(event.number, position, choice)
                else:
                    self._context.flag("choices_type", f"a choice is a JSON {json_type(choice)}")
        elif "choices" in value:
            self._context.flag("choices_type", f"choices is a JSON {json_type(choices)}")
        elif usage is None:
            self._context.flag("choices_missing", "a chunk has no choices")

    def _identity(self, value: dict[str, object]) -> None:
        response_id, model, fingerprint = value.get("id"), value.get("model"), value.get("system_fingerprint")
        if isinstance(response_id, str):
            if self._id is None:
                self._id = response_id
            elif response_id != self._id:
                self._context.flag(
                    "response_id_changed", f"the response id changed from {self._id!r} to {response_id!r}"
                )
        if isinstance(model, str):
            if self._model is None:
                self._model = model
            elif model != self._model:
                self._context.flag("model_changed", f"the model changed from {self._model!r} to {model!r}")
        if isinstance(fingerprint, str):
            self._fingerprint = fingerprint
        kind = value.get("object")
        if isinstance(kind, str) and kind != ("chat.completion.chunk" if self._context.streamed else "chat.completion"):
            self._context.flag("object_mismatch", f"the object type is {kind!r}")
        for key in value.keys() - _TOP_FIELDS:
            self._extra[key] = value[key]

    def _choice(self, event: int, position: int, choice: dict[str, object]) -> None:
        stated = choice.get("index", 0)
        index = stated if isinstance(stated, int) else position
        state = self._choices.get(index)
        if state is None:
            state = self._choices[index] = _Choice(index, self._context)
        finished = state.finish_raw is not None
        delta = choice.get("delta")
        payload = False
        if isinstance(delta, dict):
            if not self._context.streamed:
                self._context.flag("delta_in_plain", "a plain body carries a delta")
            payload = self._message(state, event, ("choices", position, "delta"), delta, streamed=True)
        message = choice.get("message")
        if isinstance(message, dict):
            if self._context.streamed:
                self._context.flag("message_in_stream", "a chunk carries a whole message")
            payload |= self._message(state, event, ("choices", position, "message"), message, streamed=False)
        elif not isinstance(delta, dict) and choice.get("finish_reason") is None:
            self._context.flag("message_missing", "a choice carries neither message nor delta")
        if finished and payload:
            self._context.flag("payload_after_finish", "text or calls came after the finish reason", f"choice {index}")
        reason = choice.get("finish_reason")
        if reason is not None:
            self._finish_reason(state, reason, (event, ("choices", position, "finish_reason")))
        for key in choice.keys() - _CHOICE_FIELDS:
            self._choice_extra(state, key, choice[key])

    @staticmethod
    def _choice_extra(state: _Choice, key: str, value: object) -> None:
        if key in ("stop_reason", "matched_stop") and value is not None:
            state.stop_detail = value
        if value is not None or key not in state.extra:
            state.extra[key] = value

    def _finish_reason(self, state: _Choice, reason: object, where: Fragment) -> None:
        if not isinstance(reason, str):
            self._context.flag("finish_type", f"the finish reason is a JSON {json_type(reason)}")
            reason = reason.get("type") if isinstance(reason, dict) else None
            if not isinstance(reason, str):
                return
        if not reason:
            self._context.flag("finish_unknown", "the finish reason is the empty string")
            return
        if state.finish_raw is not None:
            code = "finish_repeated" if reason == state.finish_raw else "finish_changed"
            self._context.flag(code, f"finish reason {reason!r} after {state.finish_raw!r}")
        if reason not in FINISH or reason in _EXTENSIONS:
            self._context.flag("finish_unknown", f"the finish reason is {reason!r}", reason)
        state.finish_raw = reason
        state.where_finish.append(where)

    def _message(self, state: _Choice, event: int, path: Path, message: dict[str, object], streamed: bool) -> bool:
        """Take a delta or message; returns whether it held payload."""
        role = message.get("role")
        if role is not None:
            self._role(state, role)
        payload = False
        content = message.get("content")
        if content is not None:
            payload = self._content(state, content, event, (*path, "content"))
        for name in _REASONING:
            text = message.get(name)
            if text is not None:
                payload |= self._reasoning(state, name, text, event, (*path, name))
        refusal = message.get("refusal")
        if isinstance(refusal, str):
            state.refusal.add(refusal, event, (*path, "refusal"))
            payload |= bool(refusal)
        calls = message.get("tool_calls")
        if calls is not None:
            if streamed:
                payload |= state.calls.add_delta(calls, event, (*path, "tool_calls"))
            else:
                state.calls.add_whole(calls, event, (*path, "tool_calls"))
        legacy = message.get("function_call")
        if legacy is not None and not calls and (state.legacy or not state.calls):
            state.legacy = True
            payload |= state.calls.add_legacy(legacy, event, (*path, "function_call"))
        for key in message.keys() - _MESSAGE_FIELDS:
            if message[key] is not None or key not in state.extra:
                state.extra[key] = message[key]
        return payload

    def _role(self, state: _Choice, role: object) -> None:
        if not isinstance(role, str) or role != "assistant":
            self._context.flag("role_unexpected", f"the role is {role!r}")
        if state.role is None and state.payload():
            self._context.flag("role_late", "the role came after payload")
        if isinstance(role, str):
            state.role = role

    def _content(self, state: _Choice, content: object, event: int, path: Path) -> bool:
        if isinstance(content, str):
            state.content.add(content, event, path)
            return bool(content)
        self._context.flag("content_type", f"the content is a JSON {json_type(content)}")
        if not isinstance(content, list):
            return False
        for position, part in enumerate(content):
            text = part.get("text") if isinstance(part, dict) else part
            if isinstance(text, str):
                inner = (*path, position, "text") if isinstance(part, dict) else (*path, position)
                state.content.add(text, event, inner)
            elif isinstance(part, dict):
                state.parts.append(part)
        return bool(content)

    def _reasoning(self, state: _Choice, name: str, text: object, event: int, path: Path) -> bool:
        """Take reasoning text; where a server sends it under two names at once, only the first name counts."""
        if not isinstance(text, str):
            state.extra[name] = text
            return False
        if state.reasoning_field is None or (state.reasoning_field != name and not state.reasoning):
            state.reasoning_field = name
        if state.reasoning_field != name:
            return False
        state.reasoning.add(text, event, path)
        return bool(text)

    def finish(self, failed: bool) -> list[Turn]:
        """The turns by choice index."""
        self._context.event = None
        turns = [self._turn(self._choices[index], failed) for index in sorted(self._choices)]
        if not turns and self._usage is not None:
            turns = [self._turn(_Choice(0, self._context), failed=True)]
        if turns and not failed and self._context.complete:
            self._check_frame(turns)
        for turn in turns[:1]:
            check_counts(turn, self._context)
        return turns

    def _check_frame(self, turns: list[Turn]) -> None:
        context, request = self._context, self._context.request
        if self._usage is None and (not context.streamed or (request is not None and request.include_usage)):
            context.absent("usage_absent", "no usage came although it is due")
        if context.streamed and not self._done:
            context.absent("done_missing", "the stream ended without [DONE]")
        wanted = request.choices if request is not None else None
        if wanted is not None and wanted > 0 and wanted != len(turns):
            context.absent("choice_count", f"{wanted} choices were asked for, {len(turns)} came")

    def _turn(self, state: _Choice, failed: bool) -> Turn:
        calls = state.calls.finish()
        turn = Turn(
            role=state.role,
            content=state.content.text(),
            reasoning=state.reasoning.text(),
            reasoning_field=state.reasoning_field,
            tool_calls=calls,
            refusal=state.refusal.text(),
            finish=None if state.finish_raw is None else FINISH.get(state.finish_raw, "other"),
            finish_raw=state.finish_raw,
            stop_detail=state.stop_detail,
            usage=self._usage,
            model=self._model,
            response_id=self._id,
            fingerprint=self._fingerprint,
            index=state.index,
            parts=state.parts,
            where_content=tuple(state.content.where),
            where_reasoning=tuple(state.reasoning.where),
            where_refusal=tuple(state.refusal.where),
            where_finish=tuple(state.where_finish),
            extra={**self._extra, **state.extra},
        )
        if not failed:
            self._check_turn(turn)
        return turn

    def _check_turn(self, turn: Turn) -> None:
        context, subject = self._context, f"choice {turn.index}"
        if turn.role is None:
            context.absent("role_missing", "no role was sent", subject)
        if turn.finish_raw is None:
            if context.complete:
                context.absent("finish_missing", "the answer ended without a finish reason", subject)
        elif turn.finish == "tool_calls" and not turn.tool_calls:
            context.absent("finish_without_calls", f"finish reason {turn.finish_raw!r}, and no call", subject)
        elif turn.finish == "stop" and turn.tool_calls and not self._forced():
            context.absent("finish_hides_calls", "finish reason 'stop' although there are calls", subject)
        if turn.finish_raw is not None and not turn.has_payload:
            context.absent("finish_without_payload", f"finish reason {turn.finish_raw!r}, and nothing came", subject)

    def _forced(self) -> bool:
        """A call forced by name finishes with `stop` (OpenAI API reference, tool_choice)."""
        request = self._context.request
        return request is not None and request.tool_choice is not None and request.tool_choice.mode == "named"
