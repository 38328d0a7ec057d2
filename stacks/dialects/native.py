"""Answers of native completion routes, read as far as a text and its counts: llama.cpp /completion and SGLang
/generate. Their dialect is "other"; the turn has content, finish and usage only.

Source of the form: llama.cpp tools/server/README.md ("POST /completion"); SGLang docs, "Native APIs" (/generate).
"""

from __future__ import annotations

from stacks.dialects.base import Context, Pieces, integer, text_of
from stacks.dialects.exchange import Event
from stacks.turn import Turn, Usage

_FINISH = {"eos": "stop", "word": "stop", "limit": "length", "stop": "stop", "length": "length", "abort": "aborted"}


class NativeAssembler:
    """Assembler of one native completion, plain or streamed. llama.cpp streams pieces of text, SGLang the whole text
    so far in every event."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._turn = Turn()
        self._pieces = Pieces()
        self._whole: tuple[str, int] | None = None
        self._finished = False

    @property
    def ended(self) -> bool | None:
        """Whether the closing event came."""
        return self._finished if self._context.streamed else None

    def done(self, event: Event) -> None:
        """Take the end mark that SGLang sends."""
        self._finished = True

    def add(self, event: Event, value: dict[str, object]) -> None:
        """Take an event or the plain body."""
        text, meta = value.get("content"), value.get("meta_info")
        if isinstance(meta, dict):
            whole = value.get("text")
            if isinstance(whole, str):
                self._whole = (whole, event.number)
            reason = meta.get("finish_reason")
            self._finish(reason.get("type") if isinstance(reason, dict) else reason, event.number)
            self._usage(meta.get("prompt_tokens"), meta.get("completion_tokens"), meta)
        elif isinstance(text, str):
            self._pieces.add(text, event.number, ("content",))
            self._turn.model = text_of(value.get("model")) or self._turn.model
            if value.get("stop") is True:
                self._finished = True
                self._finish(value.get("stop_type", "stop"), event.number)
                self._usage(value.get("tokens_evaluated"), value.get("tokens_predicted"), {})
        self._turn.extra.update(value)

    def _finish(self, reason: object, event: int) -> None:
        if isinstance(reason, str):
            self._turn.finish_raw, self._turn.finish = reason, _FINISH.get(reason, "other")
            self._turn.where_finish = ((event, ()),)

    def _usage(self, prompt: object, completion: object, raw: dict[str, object]) -> None:
        self._turn.usage = Usage(integer(prompt), integer(completion), raw=raw)

    def finish(self, failed: bool) -> list[Turn]:
        """The one turn."""
        turn = self._turn
        if self._whole is not None:
            turn.content, turn.where_content = self._whole[0], ((self._whole[1], ("text",)),)
        else:
            turn.content, turn.where_content = self._pieces.text(), tuple(self._pieces.where)
        return [turn] if turn.has_payload or not failed else []
