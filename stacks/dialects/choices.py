"""What OpenAI chat completions and completions share: choices with an index and a finish reason, usage, identity.

Source of the form: OpenAI API reference, "The chat completion object", "The chat completion chunk object", "The
completion object"; streams are closed by `data: [DONE]`. The extra fields of local servers are kept or read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from stacks.dialects.base import Context, Pieces, check_counts, check_finish, read_usage
from stacks.dialects.chat_calls import CallBuilder
from stacks.dialects.exchange import Event
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


class Choice:
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


class ChoicesAssembler(ABC):
    """Assembler of an answer that is a list of choices; what stands in a choice is left to the dialect."""

    objects = ("", "")
    """The object type of a plain body and of a chunk."""
    has_role = True
    """Whether an answer of this dialect has a role."""
    fields: frozenset[str] = frozenset()
    """The fields of a choice that are read."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._choices: dict[int, Choice] = {}
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
        if isinstance(kind, str) and kind != self.objects[self._context.streamed]:
            self._context.flag("object_mismatch", f"the object type is {kind!r}")
        for key in value.keys() - _TOP_FIELDS:
            self._extra[key] = value[key]

    def _choice(self, event: int, position: int, choice: dict[str, object]) -> None:
        stated = choice.get("index", position)
        index = stated if isinstance(stated, int) else position
        state = self._choices.get(index)
        if state is None:
            state = self._choices[index] = Choice(index, self._context)
        finished = state.finish_raw is not None
        payload = self._body(state, event, position, choice)
        if finished and payload:
            self._context.flag("payload_after_finish", "text or calls came after the finish reason", f"choice {index}")
        reason = choice.get("finish_reason")
        if reason is not None:
            self._finish_reason(state, reason, (event, ("choices", position, "finish_reason")))
        for key in choice.keys() - self.fields:
            self._choice_extra(state, key, choice[key])

    @staticmethod
    def _choice_extra(state: Choice, key: str, value: object) -> None:
        if key in ("stop_reason", "matched_stop") and value is not None:
            state.stop_detail = value
        if value is not None or key not in state.extra:
            state.extra[key] = value

    def _finish_reason(self, state: Choice, reason: object, where: Fragment) -> None:
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

    @abstractmethod
    def _body(self, state: Choice, event: int, position: int, choice: dict[str, object]) -> bool:
        """Read what a choice carries; returns whether there was payload. Given by each dialect."""

    def finish(self, failed: bool) -> list[Turn]:
        """The turns by choice index."""
        self._context.event = None
        turns = [self._turn(self._choices[index], failed) for index in sorted(self._choices)]
        if not turns and self._usage is not None:
            turns = [self._turn(Choice(0, self._context), failed=True)]
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

    def _turn(self, state: Choice, failed: bool) -> Turn:
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
        if turn.role is None and self.has_role:
            self._context.absent("role_missing", "no role was sent", f"choice {turn.index}")
        check_finish(turn, self._context, self._forced())

    def _forced(self) -> bool:
        """A call forced by name finishes with `stop` (OpenAI API reference, tool_choice)."""
        request = self._context.request
        return request is not None and request.tool_choice is not None and request.tool_choice.mode == "named"
