"""What error texts say, by kind and not by product: the fallback for messages that no signature knows.

Each row is (layer.code, remedy, alternatives). Order matters: the first match wins. Statuses are looked at
elsewhere; a text means the same under any of them, since servers disagree about statuses.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Words(NamedTuple):
    """A kind of error text."""

    name: str
    pattern: re.Pattern[str]
    remedy: str


def _row(name: str, remedy: str, *alternatives: str) -> Words:
    return Words(name, re.compile("|".join(alternatives), re.IGNORECASE | re.DOTALL), remedy)


ROWS: tuple[Words, ...] = (
    _row(
        "transport.loading",
        "wait until the server is ready, then retry",
        r"\b(?:model is |still |currently )?loading(?: the)? model\b",
        r"model is (?:being|still) load",
    ),
    _row(
        "transport.queue_full",
        "send fewer requests at once, or raise the server's queue limit",
        r"server (?:is )?(?:busy|overloaded)",
        r"maximum pending requests",
        r"queue (?:is )?full",
        r"too many (?:pending|concurrent|queued) requests",
        r"at capacity",
        r"model limit reached, try again",
    ),
    _row(
        "transport.rate_limited",
        "slow down, or raise the limit",
        r"rate.?limit",
        r"too many requests",
        r"quota (?:exceeded|exhausted)",
    ),
    _row(
        "transport.auth",
        "send the key that the server was started with",
        r"(?:invalid|missing|incorrect|wrong|no|bad) (?:api[ _-]?key|token|credential)",
        r"unauthorized",
        r"authentication (?:failed|required)",
        r"not authenticated",
    ),
    _row(
        "gate.parser_not_configured",
        "start the server with its tool-call parser (vLLM: `--enable-auto-tool-choice --tool-call-parser NAME`)",
        r"tool.?choice\b.{0,80}requires? .{0,40}--(?:enable-auto-tool-choice|tool-call-parser)",
        r"requires? --tool-call-parser",
        r"no tool.?(?:call )?parser",
        r"tool parser is not (?:set|configured|available|enabled)",
    ),
    _row(
        "gate.template_flag_missing",
        "start llama-server with `--jinja`",
        r"requires? (?:the )?--jinja",
        r"--jinja (?:flag )?(?:is )?(?:required|needed)",
    ),
    _row(
        "gate.tools_unsupported",
        "use a model or template that the server accepts tools for, or send none and parse the text",
        r"(?:does|do|did)(?: not|n't) (?:currently )?(?:support|have|allow) (?:the )?(?:use of )?(?:tool|function)",
        r"(?:tool|function)(?:s|[ _-]?calls?|[ _-]?calling|[ _-]?use)* (?:is|are) not (?:supported|enabled|"
        r"available|allowed)",
        r"not support(?:ed)?(?: for| by| yet| here)?:? (?:the |any |native )?(?:tools?|function.?call\w*|"
        r"tool.?use|tool.?call\w*)\b(?! choice)",
        r"cannot use tools",
        r"tools? (?:cannot|can't|can not) be (?:used|combined)",
        r"unsupported\b.{0,30}\btools?\b(?!.? type)",
        r"no endpoints? found that supports? tool",
    ),
    _row(
        "gate.tool_choice_unsupported",
        "send a tool choice that this server supports (`auto`, or none at all)",
        r"tool.?choice\b.{0,120}(?:not supported|unsupported|must (?:either )?be|only .{0,60}supported|not "
        r"(?:valid|allowed)|invalid)",
        r"(?:invalid|unsupported|unknown)\b.{0,40}tool.?choice",
        r"(?:automatic|auto|streaming|forced|named|required)[\w ]{0,30} tool choice (?:is )?not supported",
        r"tool choice '.{0,80}' not found",
        r"only .{0,60} tool.?choice",
    ),
    _row(
        "request.bad_history",
        "repair or drop the turn of the history that the message names",
        r"assistant tool call function\.arguments",
        r"(?:failed to parse|(?<!returned )invalid|could not parse|malformed) tool.?calls? arguments?\b",
        r"invalid message content type",
        r"(?:failed to parse messages?:)",
        r"messages?\.tool_calls\.function\.arguments",
        r"messages?\.content of type",
        r"(?:all )?non-assistant messages must contain",
        r"tool.?call.?id\b.{0,60}(?:not found|missing|required|does not match)",
        r"tool (?:results?|messages?) must (?:follow|be preceded)",
        r"tool_result.{0,80}without",
        r"'role'.{0,30}(?:missing|required)",
        r"missing 'role'",
    ),
    _row(
        "gate.model_not_found",
        "ask for a model that the server lists",
        r"model\b.{0,160}?(?:not found|does ?n[o']t exist|is not (?:loaded|served|available)|no such|unknown)",
        r"(?:unknown|no such|invalid|cannot find|could not find|failed to load) model",
        r"model (?:name )?is (?:missing|required)",
        r"cached snapshot folder",
        r"repository not found",
        r"invalid model name",
        r"requested_model",
    ),
    _row(
        "gate.capability_unsupported",
        "leave the feature out, or use a model and launch flags that have it",
        r"(?:does not|doesn't|not) support(?:s|ed)? (?:thinking|chat|generate|insert|vision|image|audio|"
        r"multimodal|embedding|logprobs|parallel)",
        r"(?:image|audio|video|multimodal) (?:input|data)\w* (?:is |are )?not supported",
        r"not a multimodal",
        r"only supports? text",
        r"only 'text' content",
        r"start it with `?--",
        r"restart .{0,30} with --",
        r"multimodal data provided",
        r"endpoints? (?:is|are) disabled",
    ),
    _row(
        "truncation.output_budget",
        "raise the server's context length, or send less",
        r"context size has been exceeded",
        r"context shift is disabled",
        r"reached (?:the )?context length",
    ),
    _row(
        "request.context_exceeded",
        "raise the server's context length, or send less",
        r"exceeds? (?:the )?(?:available |model'?s? |maximum |max )*(?:context|sequence)",
        r"context (?:length|size|window) (?:exceeded|is only|of only)",
        r"maximum context length",
        r"longer than the (?:model'?s )?context",
        r"n_keep:? ?\d+ ?>= ?n_ctx",
        r"greater than the context length",
        r"prompt is too (?:long|large)",
        r"prompt is longer than",
        r"input is too long",
        r"too large to process",
        r"exceed_context_size",
        r"context_length_exceeded",
        r"tokens?\b.{0,60}context length of only",
        r"(?:input|prompt)\b.{0,60}\btokens?\b.{0,60}(?:exceed|longer|too (?:long|many))",
    ),
    _row(
        "template.role_rejected",
        "use a template that fits this request, or change the history to what the template accepts",
        r"roles? must alternate",
        r"must alternate user",
        r"system (?:role|message) (?:not supported|must be)",
        r"unexpected role",
        r"unknown role",
        r"invalid role",
        r"unsupported role",
        r"(?:only|first message).{0,60}\broles?\b.{0,60}supported",
        r"conversation must start",
        r"after the optional system message",
    ),
    _row(
        "template.render_error",
        "use a template that fits this request, or change the history to what the template accepts",
        r"jinja",
        r"\bchat.?template\b",
        r"error rendering prompt",
        r"can't evaluate field",
        r"template: ?:\d+",
        r"templateerror",
        r"undefinederror",
        r"undefinedvalue",
        r"raise_exception",
        r"while executing \w+ at line",
        r"can only concatenate",
        r"unable to generate parser for this template",
        r"no user query found",
        r"unsupported operand type",
        r"object is not (?:iterable|subscriptable|callable)",
        r"failed to apply.{0,30}template",
        r"'(?:none|undefined|dict|str|list)\w*' object has no",
    ),
    _row(
        "parser.server_error",
        "match the server's tool parser to the model's format, or upgrade the server",
        r"(?:error|failed|failure|unable|could not|cannot)\b.{0,20}\bpars(?:e|ing)\b.{0,20}\b(?:tool|function)"
        r"[ _]?calls?",
        r"returned invalid tool call arguments",
        r"failed to parse input at pos",
        r"does not match the expected .{0,40}format",
        r"xml syntax error",
        r"failed to parse (?:xml|json):",
        r"invalid diff",
        r"invalid syntax \(<unknown>",
        r"empty function name",
        r"extra content after end of tool call",
        r"incomplete \w* ?tool call",
        r"mismatched arg_key",
        r"is not declared",
        r"required argument .{0,80} is missing for tool",
        r"tool '.{1,120}' not found(?! in)",
        r"unparsed .{0,40}output",
        r"tool.?(?:call )?parser (?:error|failed)",
        r"function-wrap\[",
        r"expecting a tool call",
        r"tool_?call.{0,30}(?:decode|unmarshal)",
    ),
    _row(
        "engine.grammar_deadlock",
        "retry, or relax the schema; take the constraint off to see what the model writes",
        r"empty grammar stack",
        r"failed to advance fsm",
        r"grammar (?:matcher|state).{0,40}(?:terminated|dead|reject|fail)",
        r"grammar is stuck",
    ),
    _row(
        "request.invalid_schema",
        "send a tool or response schema that this server can use",
        r"failed to parse tools\b",
        r"failed to (?:parse|compile|initialize)\b.{0,40}\b(?:grammar|samplers|schema)",
        r"grammar error",
        r"unrecognized schema",
        r"json.?schema\b.{0,40}(?:conversion|error|invalid|failed|required|must)",
        r"invalid (?:json )?schema",
        r"schema\b.{0,40}(?:is invalid|not supported|required)",
        r"tools?\b.{0,40}(?:schema|parameters)\b.{0,30}(?:invalid|error)",
        r"has invalid 'parameters'",
        r"unsupported (?:tool )?type",
        r"pattern must start with",
        r"error resolving ref",
        r"tools? should either be",
        r"grammar constraints",
        r"json_schema and grammar",
        r"(?:field )?struct field \w*\.?tools\b",
        r"toolfunctionparameters",
        r"body[.'\x22, (\[]+(?:tools|functions)\b",
        r"missing tool (?:function|type|name)",
        r"`?tools?`? (?:must|cannot|can't|can not) (?:not )?be",
        r"when using `?tool_choice",
        r"not found in tools",
        r"schema_? is required",
        r"expected 'tools'",
        r"value looks like object",
    ),
    _row(
        "engine.oom",
        "a smaller quantisation, a shorter context, or more memory",
        r"out of memory",
        r"outofmemory",
        r"oom\b",
        r"insufficient memory",
        r"cannot allocate memory",
        r"alloc(?:ation)? failed",
    ),
    _row(
        "engine.crash",
        "look into the server's log, restart the engine",
        r"runner (?:process )?has (?:unexpectedly )?(?:stopped|terminated)",
        r"runner process",
        r"enginecore",
        r"engine ?dead",
        r"engine (?:process )?(?:is )?(?:dead|died|crashed|loop)",
        r"generation thread died",
        r"process (?:exited|died|crashed|terminated)",
        r"cuda error",
        r"segmentation",
        r"core dumped",
        r"internal error",
        r"unexpectedly stopped",
        r"has crashed",
        r"exit status \d",
        r"'response'",
        r"loc': \('response",
        r"assertion",
        r"panic",
        r"has unexpectedly",
    ),
    _row(
        "request.invalid_param",
        "correct the field that the message names",
        r"validation errors?",
        r"field required",
        r"must be (?:a |an |at |of |between |one |in |greater|less|positive|non-)",
        r"field '",
        r"unmarshal",
        r"invalid (?:value|parameter|option|argument|think|reasoning|duration|format|type)",
        r"is required",
        r"not a valid",
        r"is not valid",
        r"unsupported parameter",
        r"unknown (?:field|parameter|option)",
        r"cannot be (?:greater|less|empty|used|negative|null)",
        r"too (?:large|small|short|long)",
        r"must (?:not )?be",
        r"did not contain",
        r"should be a",
        r"not supported",
        r"does not support",
        r'expected "',
        r"invalid\b",
    ),
)
"""The kinds, in the order in which they are tried."""

JSON_WORDS = re.compile(
    r"expecting (?:value|property name|',' delimiter|':' delimiter)|extra data: line|unterminated string|"
    r"unexpected (?:end of json|eof)|\beof\b|invalid character|json.?(?:decode|parse)|json\.exception\.parse|"
    r"invalid (?:\\escape|control character|json)|unexpected token|not valid json|unexpected end of (?:content|input)|"
    r"missing request body|attempting to parse an empty input|invalid tool call arguments",
    re.IGNORECASE,
)
"""Words of JSON (or XML) readers of every language: they say that something did not parse, not what it was."""

HISTORY_WORDS = re.compile(
    r"arguments|messages?\b|tool.?calls?|content|history|concatenate|nonetype|'role'|\brole\b|unmarshal|internal server"
    r" error|apiconnectionerror|list index|subscriptable|keyerror|attribute",
    re.IGNORECASE,
)
"""Words under which a broken turn of the history is the likely thing that was refused."""


def kind_of(text: str) -> Words | None:
    """The first row whose pattern stands in the text."""
    if not text:
        return None
    text = text[:20_000]
    return next((row for row in ROWS if row.pattern.search(text)), None)
