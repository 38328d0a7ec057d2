"""What should have happened instead, for each outcome: a sentence for the report. Pure data.

Where a dialect's own description says it, the sentence says which: OpenAI's API reference (chat completions, streaming,
function calling), Ollama's API documentation, RFC 9110 (HTTP), RFC 9112 (HTTP/1.1), RFC 8259 (JSON).
"""

from __future__ import annotations

_LAYERS = {
    "transport": "The request reaches the server, and its whole answer comes back.",
    "gate": "The server serves the request, or says in its documentation and its model list that it does not.",
    "request": "A request of the documented form is taken; one that is not is refused with a 400 that names the field.",
    "template": "The prompt that the model is given holds the messages and the tools of the request.",
    "engine": "The model runs to the end of its answer, or the server says in an error what went wrong.",
    "nonresponse": "An answer with a success status holds what the model wrote: text, reasoning, or calls.",
    "truncation": "The answer is whole, or its finish reason says that a limit ended it.",
    "parser": "What the model wrote is delivered: calls in `tool_calls`, text in `content`, nothing added.",
    "protocol": "The answer has the form that the API's reference gives.",
    "model": "The model writes a valid call to one of the tools that it was offered.",
    "task": "The task's goal is reached.",
    "checker": "The check can be met.",
    "not_run": "The episode runs.",
    "ok": "What came back is what was expected.",
}

_CODES = {
    "transport.stream_truncated": "The stream goes on to its end mark; a fault while generating is told in the stream.",
    "transport.reset": "The server answers, with an error status if it cannot serve the request (RFC 9110, 15).",
    "transport.buffered": "Each piece of a stream is passed on when it comes.",
    "transport.not_http": "The port answers in HTTP, in the form of its API.",
    "transport.loading": "Once the model is loaded, the same request is served.",
    "transport.queue_full": "Once the queue has room, the same request is served.",
    "gate.tools_unsupported": "A request with tools is served where the model's template can render tools.",
    "gate.tool_choice_unsupported": "Each tool choice of the API's reference is served, or refused with the reason.",
    "request.invalid_json": "The body is valid JSON (RFC 8259) and is taken as such.",
    "request.invalid_schema": "A tool with a valid JSON Schema is taken.",
    "request.invalid_param": "A documented field with a documented value is taken.",
    "request.bad_history": "A history in the documented form (a call of the assistant, then its result) is taken back.",
    "request.context_exceeded": "The prompt fits into the context, or the client makes it shorter.",
    "template.render_error": "The chat template renders this request.",
    "template.role_rejected": "The chat template takes these roles in this order, or the client sends them in another.",
    "template.tools_absent": "The offered tools stand in the prompt that the model is given.",
    "template.system_dropped": "The system message stands in the prompt that the model is given.",
    "engine.crash": "The server lives on, whatever one request asks.",
    "engine.wedged": "After a fault the next request is served.",
    "engine.oom": "The server refuses what does not fit into memory, and lives on.",
    "engine.grammar_compile": "The grammar that the server makes of the tools compiles.",
    "engine.grammar_deadlock": "The grammar leaves the model a way to an end at every token.",
    "engine.error_in_stream": "The stream holds the answer; a fault is told before it with an error status.",
    "engine.response_invalid": "The server's own answer passes its own checks.",
    "engine.degenerate": "The model's weights and sampling give text, not noise.",
    "nonresponse.empty": "The answer holds text or a call.",
    "nonresponse.reasoning_only": "After its reasoning the answer holds text or a call.",
    "nonresponse.swallowed": "The tokens that were generated (and counted) are delivered.",
    "truncation.context_cut_silently": "A prompt that does not fit is refused; nothing is cut off it in silence.",
    "truncation.cut_inside_call": "The call is whole, or its beginning is delivered with the finish reason `length`.",
    "parser.left_as_text": "The call comes in `tool_calls` (for this API the field for calls), not as text.",
    "parser.server_error": "Valid output of the model is delivered; output that cannot be read comes as text.",
    "parser.dropped": "The call that the model wrote comes in `tool_calls`.",
    "parser.altered": "The call that is delivered is the call that the model wrote.",
    "parser.repaired": "The model's broken call is delivered as it was written, as text.",
    "parser.phantom": "Only calls that the model wrote are delivered.",
    "parser.in_reasoning": "The call comes in `tool_calls`, the answer in `content`; only reasoning in its field.",
    "parser.marker_leak": "The marks of the model's call format are taken off text and arguments.",
    "parser.stream_differs": "Streamed and whole, one text gives the same calls and the same content.",
    "protocol.delta_index": "Each streamed call has an `index` of its own; all its pieces carry it.",
    "protocol.delta_id": "Each call has an `id`, in its first piece at the latest.",
    "protocol.arguments_type": "`arguments` is of the type that the API says: JSON in a string for OpenAI's, "
    "an object for Ollama's.",
    "protocol.finish_contradicts": "The finish reason says how the answer ended: `tool_calls` with calls, else `stop`.",
    "protocol.done_missing": "The stream ends with its end mark (`data: [DONE]`, or `done: true`).",
    "protocol.usage_absent": "The token counts that were asked for come.",
    "protocol.choice_ignored": "A field of the request that is accepted is obeyed.",
    "protocol.duplicate_id": "No two calls carry one `id`.",
}

_CLIENTS = {
    "request": "The client sends requests of the form that the API's reference gives.",
    "request.invalid_json": "The client sends valid JSON (RFC 8259).",
    "request.invalid_schema": "The client offers tools with a name and a valid JSON Schema that the server can use.",
    "request.invalid_param": "The client sends only fields and values that the server's API has.",
    "request.bad_history": "The client sends back a history in the documented form: each call of the assistant as it "
    "came, then its result, with the same id.",
    "request.context_exceeded": "The client keeps its prompt within the server's context.",
    "template.role_rejected": "The client sends roles in an order that the model's chat template takes.",
    "gate": "The client asks only for what the server says that it serves.",
    "transport": "The client sends its request where, and as, the server expects it.",
}


def expected(outcome: str, at_fault: str = "stack") -> str:
    """What should have happened instead of `layer.code`, said of whoever is at fault."""
    layer = outcome.partition(".")[0]
    if at_fault == "client" and (outcome in _CLIENTS or layer in _CLIENTS):
        return _CLIENTS.get(outcome) or _CLIENTS[layer]
    return _CODES.get(outcome) or _LAYERS.get(outcome.partition(".")[0], _LAYERS["ok"])


def has_own_sentence(outcome: str) -> bool:
    """Whether an outcome has a sentence of its own, not only that of its layer."""
    return outcome in _CODES
