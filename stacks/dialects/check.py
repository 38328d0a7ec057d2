"""The response body as a whole, compared with what was asked for and with what its headers say."""

from __future__ import annotations

from stacks.dialects.base import Context
from stacks.dialects.exchange import Assembled, WireExchange
from stacks.dialects.recognise import OTHER, STREAM_BY_DEFAULT
from stacks.turn import CanonicalRequest

_CLAIMS = {"event-stream": ("sse",), "ndjson": ("ndjson", "json"), "json": ("json",), "html": ("html",)}


def check_body(result: Assembled, context: Context, exchange: WireExchange, understood: bool) -> None:
    """Compare what came with what was asked and with what the headers say."""
    kind, body, request = result.body_kind, result.body, result.request
    context.event = None
    if not exchange.response_complete and body:
        context.absent("body_truncated", "the connection ended before the body did")
    success = 200 <= exchange.status < 300
    if kind == "empty":
        if success and result.dialect != OTHER and exchange.method.upper() == "POST":
            code = "stream_empty" if request is not None and request.stream else "body_empty"
            context.log.add(code, "a success status and nothing in the body", 0, len(body))
        return
    _check_content_type(result, context)
    if result.dialect == OTHER or not success or request is None:
        if result.turns and exchange.status >= 400:
            context.absent("answer_under_error", f"an answer under status {exchange.status}")
        return
    if kind in ("html", "xml", "text", "binary"):
        code = "body_not_text" if kind == "binary" else "body_not_json"
        context.log.add(code, f"the body is {kind}", 0, len(body))
    elif all(event.kind == "done" for event in result.events):
        context.log.add("stream_empty", "the stream carries no event (but, at most, its end mark)", 0, len(body))
    elif not understood and not context.log.items:
        context.log.add("shape_unknown", "the body is JSON of no known shape", 0, len(body))
    if result.turns or not result.errors:
        _check_form(result, request, context)


def _check_form(result: Assembled, request: CanonicalRequest, context: Context) -> None:
    """Compare the form of an answer, stream or plain, with what was asked for."""
    kind, length = result.body_kind, len(result.body)
    if result.streamed and (kind == "ndjson") != (result.dialect in STREAM_BY_DEFAULT):
        context.log.add("frame_differs", f"{result.dialect} streamed as {kind}", 0, length)
    if not isinstance(request.raw, dict):
        return  # nothing is known of what was asked
    if request.stream and not result.streamed and kind == "json":
        if not (request.dialect in STREAM_BY_DEFAULT and request.stream_stated is None):
            context.log.add("plain_for_stream_request", "a stream was asked for, a plain body came", 0, length)
    elif result.streamed and not request.stream:
        context.log.add("stream_for_plain_request", "a plain body was asked for, a stream came", 0, length)


def _check_content_type(result: Assembled, context: Context) -> None:
    stated = (result.content_type or "").lower()
    for word, kinds in _CLAIMS.items():
        if word in stated:
            if result.body_kind not in kinds and not (word == "json" and result.body_kind == "ndjson"):
                context.log.add(
                    "content_type_lies", f"{stated!r} announced, {result.body_kind} came", 0, len(result.body)
                )
            return
