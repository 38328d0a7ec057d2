"""OpenAI completions: plain bodies and streams whose choices carry `text`.

Source of the form: OpenAI API reference, "The completion object".
"""

from __future__ import annotations

from stacks.dialects.choices import Choice, ChoicesAssembler
from stacks.turn import json_type


class CompletionsAssembler(ChoicesAssembler):
    """Assembler of one completion, plain or streamed. There is no role and there are no calls."""

    objects = ("text_completion", "text_completion")
    has_role = False
    fields = frozenset(("index", "text", "finish_reason"))

    def _body(self, state: Choice, event: int, position: int, choice: dict[str, object]) -> bool:
        text = choice.get("text")
        if isinstance(text, str):
            state.content.add(text, event, ("choices", position, "text"))
            return bool(text)
        if text is not None:
            self._context.flag("content_type", f"the text is a JSON {json_type(text)}")
        elif choice.get("finish_reason") is None:
            self._context.flag("message_missing", "a choice carries no text")
        for key in ("reasoning", "reasoning_content"):
            value = choice.get(key)
            if isinstance(value, str):
                state.reasoning_field = key
                state.reasoning.add(value, event, ("choices", position, key))
        return False
