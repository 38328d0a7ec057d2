"""The closed list of outcomes: each layer and code with its meaning, who is usually at fault and whether the model ran.

Layers stand in the order of a request's way through a stack; an attempt gets the first one that stopped it. The list
may grow; a name once published is never changed. It is data: the classifier, the tables, the documents and the
translations into other taxonomies all read it from here.
"""

from __future__ import annotations

from dataclasses import dataclass

LAYERS = (
    "transport",
    "gate",
    "request",
    "template",
    "engine",
    "nonresponse",
    "truncation",
    "parser",
    "protocol",
    "model",
    "task",
    "ok",
    "checker",
    "not_run",
)
"""Layers in the order of a request's way; the last two are for packs and for episodes that never began."""

FAULTS = ("config", "stack", "client", "model", "network", "undetermined", "none")
"""Who is at fault. `none` belongs to `ok` outcomes; `undetermined` says that the wire does not tell."""

RAN = ("yes", "no", "unknown")

DELIVERIES = (
    "intact",
    "left_as_text",
    "dropped",
    "altered",
    "repaired",
    "in_reasoning",
    "refused",
    "cut",
    "phantom",
    "constrained",
    "unknown",
)
"""What the stack did to what the model wrote. `intact` includes an answer that is text and came as text."""

WROTE = (
    "valid_call",
    "malformed_call",
    "unknown_tool",
    "invalid_arguments",
    "prose",
    "nothing",
    "unknown",
)
"""What the model is known to have written, where that is known at all (from the wire or from outside)."""


@dataclass(frozen=True, slots=True)
class CodeInfo:
    """One `layer.code`. `reached` says whether model output reached the harness as a turn (the paper's produced turn);
    `cut` marks outcomes that carry partial text, which some taxonomies count as a turn and some do not."""

    layer: str
    code: str
    meaning: str
    usual_fault: str
    model_ran: str
    reached: bool = False
    cut: bool = False

    @property
    def name(self) -> str:
        """`layer.code`."""
        return f"{self.layer}.{self.code}"


_TABLE: tuple[tuple[str, str, str, str, str], ...] = (
    # layer.code, usual fault, model ran, reached ("y"/"n"/"cut"), meaning
    ("transport.connect", "network", "no", "n", "no connection to the server could be opened"),
    ("transport.timeout_connect", "network", "no", "n", "opening the connection took longer than allowed"),
    ("transport.timeout_read", "network", "unknown", "n", "the server sent nothing for longer than the client waited"),
    ("transport.reset", "stack", "unknown", "n", "the connection ended before an answer began"),
    ("transport.stream_truncated", "stack", "yes", "n", "the connection ended in the middle of an answer"),
    ("transport.client_gone", "client", "unknown", "n", "the client left before the answer was complete"),
    ("transport.auth", "client", "no", "n", "the server wants a key that was not sent or not accepted"),
    ("transport.rate_limited", "network", "no", "n", "a limit on requests refused this one"),
    ("transport.gateway", "network", "unknown", "n", "a proxy or gateway in front of the server answered instead"),
    ("transport.buffered", "network", "yes", "y", "a stream was held back on its way and came all at once"),
    ("transport.wrong_route", "client", "no", "n", "the address or method is not one that this server serves"),
    ("transport.host_refused", "config", "no", "n", "the server refused the Host or Origin of the request"),
    ("transport.loading", "stack", "no", "n", "the server is up but the model is not loaded yet"),
    ("transport.queue_full", "stack", "no", "n", "the server's queue is full"),
    ("transport.not_http", "network", "unknown", "n", "what came back is not HTTP, or not of the shape of any API"),
    ("gate.tools_unsupported", "config", "no", "n", "the server refuses tools for this model or build"),
    ("gate.capability_unsupported", "config", "no", "n", "the server refuses another feature for this model"),
    ("gate.chat_unsupported", "config", "no", "n", "this model cannot chat"),
    ("gate.generate_unsupported", "config", "no", "n", "this model cannot generate text"),
    ("gate.thinking_unsupported", "client", "no", "n", "the server refuses thinking for this model"),
    ("gate.cloud_disabled", "config", "no", "n", "a cloud model was asked for where the cloud is switched off"),
    ("gate.grammar_backend_missing", "config", "no", "n", "the server was started without its grammar backend"),
    ("gate.parser_not_configured", "config", "no", "n", "the server was started without its tool-call parser"),
    ("gate.template_flag_missing", "config", "no", "n", "the server was started without its template engine"),
    ("gate.tool_choice_unsupported", "client", "no", "n", "this tool choice is not supported here"),
    ("gate.model_not_found", "client", "no", "n", "the server does not serve a model of that name"),
    ("request.invalid_json", "client", "no", "n", "the request body is not valid JSON"),
    ("request.invalid_schema", "client", "no", "n", "a tool or response schema is refused"),
    ("request.invalid_param", "client", "no", "n", "a field of the request is refused"),
    ("request.bad_history", "client", "no", "n", "a turn in the replayed history is refused"),
    ("request.context_exceeded", "config", "no", "n", "the prompt does not fit the context and was refused"),
    ("template.render_error", "config", "no", "n", "the chat template failed on this request"),
    ("template.role_rejected", "config", "no", "n", "the chat template refuses this order or kind of roles"),
    ("template.tools_absent", "config", "yes", "n", "tools were accepted but are not in the rendered prompt"),
    ("template.system_dropped", "config", "yes", "n", "the system message is not in the rendered prompt"),
    ("template.drift", "config", "yes", "n", "the rendered prompt is not what the request says"),
    ("engine.crash", "stack", "unknown", "n", "the engine process died or answered with an internal fault"),
    ("engine.wedged", "stack", "unknown", "n", "the engine is silent after an earlier fault"),
    ("engine.grammar_compile", "stack", "no", "n", "the grammar for tools or schema did not compile"),
    ("engine.grammar_deadlock", "stack", "yes", "n", "a grammar constraint ran into a dead end while generating"),
    ("engine.degenerate", "stack", "yes", "n", "the engine produced noise or endless repetition"),
    ("engine.error_in_stream", "stack", "unknown", "n", "an error event came inside a stream with status 200"),
    ("engine.response_invalid", "stack", "yes", "n", "the server's own answer fails its own checks"),
    ("engine.oom", "stack", "unknown", "n", "the engine ran out of memory"),
    ("engine.constrained", "stack", "yes", "y", "the server forced or rewrote the call while it was generated"),
    ("nonresponse.empty", "undetermined", "unknown", "n", "a success status with nothing in it"),
    ("nonresponse.reasoning_only", "undetermined", "yes", "n", "only reasoning came: no answer and no call"),
    ("nonresponse.load_only", "client", "no", "n", "the server only loaded or unloaded the model"),
    ("nonresponse.swallowed", "stack", "yes", "n", "tokens were generated and nothing of them was delivered"),
    ("truncation.output_budget", "config", "yes", "cut", "the token budget ended the answer"),
    ("truncation.context_cut_silently", "config", "yes", "cut", "the prompt was cut to fit, without an error"),
    ("truncation.cut_inside_call", "config", "yes", "cut", "the answer ends inside a call"),
    ("parser.left_as_text", "stack", "yes", "y", "a valid call to an offered tool stands in the text"),
    ("parser.server_error", "stack", "yes", "n", "the server failed while reading the model's output"),
    ("parser.dropped", "stack", "yes", "n", "a call that the model wrote is missing from the answer"),
    ("parser.altered", "stack", "yes", "y", "the call delivered is not the call written"),
    ("parser.repaired", "stack", "yes", "y", "a broken call was delivered as a valid one"),
    ("parser.phantom", "stack", "yes", "y", "a call was delivered that the model did not write"),
    ("parser.in_reasoning", "stack", "yes", "y", "a call or answer stands in the reasoning field"),
    ("parser.marker_leak", "stack", "yes", "y", "markers of the call format leaked into text or arguments"),
    ("parser.stream_differs", "stack", "yes", "y", "the stream and the plain answer differ for one text"),
    ("protocol.delta_index", "stack", "yes", "y", "streamed calls cannot be told apart by their index"),
    ("protocol.delta_id", "stack", "yes", "y", "a call has no usable id"),
    ("protocol.arguments_type", "stack", "yes", "y", "arguments are not of the type the dialect says"),
    ("protocol.finish_contradicts", "stack", "yes", "y", "the finish reason contradicts the payload"),
    ("protocol.done_missing", "stack", "yes", "y", "the stream ended without its end mark"),
    ("protocol.usage_absent", "stack", "yes", "y", "token counts that were asked for are missing"),
    ("protocol.choice_ignored", "stack", "yes", "y", "an accepted field of the request was not obeyed"),
    ("protocol.duplicate_id", "stack", "yes", "y", "two calls carry one id"),
    ("protocol.malformed_answer", "stack", "yes", "y", "the answer breaks its dialect in another way"),
    ("model.no_call", "model", "yes", "y", "a call was due and the model wrote none"),
    ("model.malformed_call", "model", "yes", "y", "the model wrote a call that does not parse"),
    ("model.unknown_tool", "model", "yes", "y", "the model called a tool that was not offered"),
    ("model.withheld_tool", "model", "yes", "y", "the model called a tool that was taken away for this turn"),
    ("model.invalid_arguments", "model", "yes", "y", "the model's arguments do not fit the tool's schema"),
    ("model.loop", "model", "yes", "y", "the model repeats the same call"),
    ("model.degenerate_repeat", "model", "yes", "cut", "the model repeats itself until the budget ends"),
    ("task.wrong_tool", "model", "yes", "y", "another tool than the task needs was called"),
    ("task.wrong_args", "model", "yes", "y", "the right tool was called with the wrong arguments"),
    ("task.missing_step", "model", "yes", "y", "a step that the task needs is missing"),
    ("task.state_mismatch", "model", "yes", "y", "the final state is not the one the task asks for"),
    ("task.premature_done", "model", "yes", "y", "the episode was declared done too early"),
    ("task.no_stop", "model", "yes", "y", "the episode did not end by itself"),
    ("task.restraint_violation", "model", "yes", "y", "a call was made where none was due"),
    ("task.guessed_missing_param", "model", "yes", "y", "a parameter that nobody gave was made up"),
    ("task.value_mismatch", "model", "yes", "y", "a value differs from the expected one"),
    ("task.check_failed", "model", "yes", "y", "a check of the pack failed"),
    ("ok.native_call", "none", "yes", "y", "a valid call came back in its field"),
    ("ok.text_call", "none", "yes", "y", "a valid call came back as text where text was asked for"),
    ("ok.final_answer", "none", "yes", "y", "an answer in text came back"),
    ("ok.no_call_needed", "none", "yes", "y", "text came back and no call was due"),
    ("ok.service", "none", "no", "n", "a request that asks for no generation was answered"),
    ("ok.task_done", "none", "yes", "y", "the episode reached its goal"),
    ("checker.config_error", "config", "unknown", "n", "a check of the pack is broken"),
    ("checker.unsatisfiable", "config", "unknown", "n", "a check of the pack cannot be met by any answer"),
    ("checker.unknown_type", "config", "unknown", "n", "a check of the pack has an unknown type"),
)


def _build() -> dict[str, CodeInfo]:
    table = {}
    for name, fault, ran, reached, meaning in _TABLE:
        layer, code = name.split(".")
        table[name] = CodeInfo(layer, code, meaning, fault, ran, reached in ("y", "cut"), reached == "cut")
    return table


CODES: dict[str, CodeInfo] = _build()
"""Every outcome by its name `layer.code`."""


def info(name: str) -> CodeInfo:
    """What is known about `layer.code`; `not_run.<code>` borrows from `<code>`'s layer. Raises KeyError otherwise."""
    if name in CODES:
        return CODES[name]
    layer, _, rest = name.partition(".")
    if layer == "not_run" and rest:
        return CodeInfo("not_run", rest, f"the episode did not run: {rest}", "undetermined", "no")
    raise KeyError(name)
