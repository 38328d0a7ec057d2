"""Replies of the in-process surface in the OpenAI shapes, and the note that keeps the raw truth. Pure."""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from stacks.engine import EngineIdentity, GenerationReport, Rendered

# OpenAI knows no other reasons for text; the note keeps ours.
_FINISH = {"stop": "stop", "stop_string": "stop", "length": "length", "context": "length"}


@dataclass(frozen=True, slots=True)
class ReplyHead:
    """What is the same in every piece of one reply. ``chat`` tells chat-completions from completions."""

    model: str
    engine: str
    chat: bool
    id: str = field(default_factory=lambda: secrets.token_hex(12))
    created: int = field(default_factory=lambda: int(time.time()))

    def fields(self, *, chunk: bool) -> dict[str, Any]:
        """Return the leading fields of a whole reply or of one chunk."""
        kind = ("chat.completion.chunk" if chunk else "chat.completion") if self.chat else "text_completion"
        return {
            "id": ("chatcmpl-" if self.chat else "cmpl-") + self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": f"stacktap-{self.engine}",
        }


def finish_reason(report: GenerationReport) -> str:
    """Return the OpenAI ``finish_reason`` for a generation that was not cut by an error or a cancel."""
    return _FINISH.get(report.finish_reason, "stop")


def usage(report: GenerationReport) -> dict[str, int]:
    """Return the OpenAI usage object; the final end token counts as a completion token, for it was generated."""
    prompt, completion = len(report.prompt_token_ids), len(report.token_ids)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def whole_reply(head: ReplyHead, report: GenerationReport) -> dict[str, Any]:
    """Return the body of a reply that is not streamed: the model's text is the content, as it is."""
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish_reason(report), "logprobs": None}
    if head.chat:
        choice["message"] = {"role": "assistant", "content": report.text}
    else:
        choice["text"] = report.text
    return {**head.fields(chunk=False), "choices": [choice], "usage": usage(report)}


def opening_chunk(head: ReplyHead) -> bytes | None:
    """Return the first event of a stream, which carries the role; completions have none."""
    return _event(head, {"delta": {"role": "assistant", "content": ""}}) if head.chat else None


def text_chunk(head: ReplyHead, text: str) -> bytes:
    """Return the event for a piece of text."""
    return _event(head, {"delta": {"content": text}} if head.chat else {"text": text})


def closing_chunks(head: ReplyHead, report: GenerationReport, *, include_usage: bool) -> bytes:
    """Return the last events: the finish reason, the usage, ``[DONE]``.

    The usage has an event of its own when the client asked for one, else it rides on the event with the finish reason.
    """
    last: dict[str, Any] = {"delta": {}} if head.chat else {"text": ""}
    last["finish_reason"] = finish_reason(report)
    if not include_usage:
        return _event(head, last, usage(report)) + b"data: [DONE]\n\n"
    counted = {**head.fields(chunk=True), "choices": [], "usage": usage(report)}
    return _event(head, last) + _data(counted) + b"data: [DONE]\n\n"


def error_event(body: Mapping[str, Any]) -> bytes:
    """Return the event for an error after the stream has begun; nothing follows it."""
    return _data(body)


def _event(head: ReplyHead, choice: Mapping[str, Any], counted: Mapping[str, int] | None = None) -> bytes:
    full = {"index": 0, "finish_reason": None, "logprobs": None, **choice}
    body = {**head.fields(chunk=True), "choices": [full]}
    return _data({**body, "usage": counted} if counted else body)


def _data(body: Mapping[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"


def generation_note(
    identity: EngineIdentity,
    rendered: Rendered | None,
    report: GenerationReport | None,
    *,
    stop: Sequence[str],
    ignored: Sequence[str],
    queued_seconds: float,
    error: str | None,
) -> dict[str, Any]:
    """Return the record of one generation: what the model was given, what it wrote, byte for byte, and under what.

    ``rendered`` is None when rendering failed or never began, ``report`` when no token was asked of the model; then
    ``finish_reason`` is ``not_started``. ``raw_base64`` is there only where the raw bytes are not valid UTF-8;
    ``ended_with`` is the text of the end token (no name of a field may look like that of a secret, or it is masked).
    ``prompt_sha256`` is over the rendered text in UTF-8; rates are tokens a second, that of the prompt without what was
    kept of the one before it (``kept_prompt_tokens``), that of the generation without its first token;
    ``ttft_seconds`` runs from the beginning of the prompt to the first token, inside the engine.
    """
    note: dict[str, Any] = {
        "kind": "generation",
        "engine": asdict(identity),
        "prompt_text": rendered.text if rendered else None,
        "prompt_sha256": _digest(rendered) if rendered else None,
        "prompt_token_ids": list(rendered.token_ids) if rendered else None,
        "prompt_adaptations": list(rendered.adaptations) if rendered else [],
        "stop": list(stop),
        "ignored_fields": list(ignored),
        "queued_seconds": round(queued_seconds, 6),
        "finish_reason": report.finish_reason if report else "not_started",
        "error": error,
    }
    if report is None:
        return note
    raw_text = report.raw.decode("utf-8", "replace")
    note |= {
        "raw_text": raw_text,
        "delivered_text": report.text,
        "token_ids": list(report.token_ids),
        "ended_with": report.end_token,
        "prompt_tokens": len(report.prompt_token_ids),
        "completion_tokens": len(report.token_ids),
        "prompt_seconds": round(report.prompt_seconds, 6),
        "evaluation_seconds": round(report.evaluation_seconds, 6),
        "ttft_seconds": None if report.first_token_seconds is None else round(report.first_token_seconds, 6),
        "kept_prompt_tokens": report.kept_prompt_tokens,
        "prompt_rate": _rate(len(report.prompt_token_ids) - report.kept_prompt_tokens, report.prompt_seconds),
        "generation_rate": _rate(len(report.token_ids) - 1, _after_first(report)),
        "peak_memory_bytes": report.peak_memory_bytes,
        "sampling": asdict(report.sampling),
    }
    if raw_text.encode() != report.raw:
        note["raw_base64"] = base64.b64encode(report.raw).decode()
    return note


def _digest(rendered: Rendered) -> str:
    return hashlib.sha256(rendered.text.encode("utf-8", "surrogatepass")).hexdigest()


def _rate(tokens: int, seconds: float) -> float | None:
    return round(tokens / seconds, 3) if tokens > 0 and seconds > 0 else None


def _after_first(report: GenerationReport) -> float:
    return report.prompt_seconds + report.evaluation_seconds - (report.first_token_seconds or 0.0)
