"""OpenAI chat completions: plain bodies, and streams of `chat.completion.chunk`.

Source of the form: OpenAI API reference, "Create chat completion" and "The chat completion chunk object"; reasoning is
read from the fields local servers use for it (reasoning, reasoning_content, thinking).
"""

from __future__ import annotations

from stacks.dialects.choices import Choice, ChoicesAssembler
from stacks.strictjson import Path
from stacks.turn import json_type

_MESSAGE_FIELDS = frozenset(
    ("role", "content", "tool_calls", "function_call", "refusal", "reasoning", "reasoning_content", "thinking")
)
_REASONING = ("reasoning_content", "reasoning", "thinking")


class ChatAssembler(ChoicesAssembler):
    """Assembler of one chat completion, plain or streamed."""

    objects = ("chat.completion", "chat.completion.chunk")
    fields = frozenset(("index", "delta", "message", "finish_reason"))

    def _body(self, state: Choice, event: int, position: int, choice: dict[str, object]) -> bool:
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
        return payload

    def _message(self, state: Choice, event: int, path: Path, message: dict[str, object], streamed: bool) -> bool:
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

    def _role(self, state: Choice, role: object) -> None:
        if not isinstance(role, str) or role != "assistant":
            self._context.flag("role_unexpected", f"the role is {role!r}")
        if state.role is None and state.payload():
            self._context.flag("role_late", "the role came after payload")
        if isinstance(role, str):
            state.role = role

    def _content(self, state: Choice, content: object, event: int, path: Path) -> bool:
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

    def _reasoning(self, state: Choice, name: str, text: object, event: int, path: Path) -> bool:
        """Take reasoning text; where a server sends it under two names at once, only the first name counts."""
        if not isinstance(text, str):
            state.extra[name] = text
            return False
        if state.reasoning_field is None or (state.reasoning_field != name and not state.reasoning):
            state.reasoning_field = name
        if state.reasoning_field != name:
            state.extra[name] = text
            return False
        state.reasoning.add(text, event, path)
        return bool(text)
