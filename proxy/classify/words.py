"""What error texts say, by kind and not by product: the fallback for messages that no signature knows.

Each row is (layer.code, pattern, remedy). Order matters: the first match wins. Statuses are looked at elsewhere; a text
means the same under any of them, since servers disagree about statuses.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Words(NamedTuple):
    """A kind of error text."""

    name: str
    pattern: re.Pattern[str]
    remedy: str


def _row(name: str, pattern: str, remedy: str) -> Words:
    return Words(name, re.compile(pattern, re.IGNORECASE | re.DOTALL), remedy)


_CONTEXT = "raise the server's context length, or send less"
_TEMPLATE = "use a template that fits this request, or change the history to what the template accepts"
_PARSER = "match the server's tool parser to the model's format, or upgrade the server"

ROWS: tuple[Words, ...] = (
    # -- capacity and way
    _row("transport.loading", r"\b(?:model is |still |currently )?loading(?: the)? model\b|model is (?:being|still) load",
         "wait until the server is ready, then retry"),
    _row("transport.queue_full",
         r"server (?:is )?(?:busy|overloaded)|maximum pending requests|queue (?:is )?full|too many (?:pending|concurrent|"
         r"queued) requests|at capacity|model limit reached, try again",
         "send fewer requests at once, or raise the server's queue limit"),
    _row("transport.rate_limited", r"rate.?limit|too many requests|quota (?:exceeded|exhausted)",
         "slow down, or raise the limit"),
    _row("transport.auth", r"(?:invalid|missing|incorrect|wrong|no|bad) (?:api[ _-]?key|token|credential)|unauthorized|"
         r"authentication (?:failed|required)|not authenticated",
         "send the key that the server was started with"),
    # -- gates
    _row("gate.parser_not_configured",
         r"tool.?choice\b.{0,80}requires? .{0,40}--(?:enable-auto-tool-choice|tool-call-parser)|requires? --tool-call-parser|"
         r"no tool.?(?:call )?parser|tool parser is not (?:set|configured|available|enabled)",
         "start the server with its tool-call parser (vLLM: `--enable-auto-tool-choice --tool-call-parser NAME`)"),
    _row("gate.template_flag_missing", r"requires? (?:the )?--jinja|--jinja (?:flag )?(?:is )?(?:required|needed)",
         "start llama-server with `--jinja`"),
    _row("gate.tools_unsupported",
         r"(?:does|do|did)(?: not|n't) (?:currently )?(?:support|have|allow) (?:the )?(?:use of )?(?:tool|function)|"
         r"(?:tool|function)(?:s|[ _-]?calls?|[ _-]?calling|[ _-]?use)* (?:is|are) not (?:supported|enabled|available|allowed)|"
         r"not support(?:ed)?(?: for| by| yet| here)?:? (?:the |any |native )?(?:tools?|function.?call\w*|tool.?use|tool.?call\w*)\b"
         r"(?! choice)|"
         r"cannot use tools|tools? (?:cannot|can't|can not) be (?:used|combined)|unsupported\b.{0,30}\btools?\b(?!.? type)|"
         r"no endpoints? found that supports? tool",
         "use a model or template that the server accepts tools for, or send none and parse the text"),
    _row("gate.tool_choice_unsupported",
         r"tool.?choice\b.{0,120}(?:not supported|unsupported|must (?:either )?be|only .{0,60}supported|not (?:valid|allowed)|"
         r"invalid)|(?:invalid|unsupported|unknown)\b.{0,40}tool.?choice|(?:automatic|auto|streaming|forced|named|required)"
         r"[\w ]{0,30} tool choice (?:is )?not supported|tool choice '.{0,80}' not found|only .{0,60} tool.?choice",
         "send a tool choice that this server supports (`auto`, or none at all)"),
    # -- the history's own words come before general ones
    _row("request.bad_history",
         r"assistant tool call function\.arguments|(?:failed to parse|(?<!returned )invalid|could not parse|malformed) tool.?calls? "
         r"arguments?\b|invalid message content type|(?:failed to parse messages?:)|"
         r"messages?\.tool_calls\.function\.arguments|messages?\.content of type|"
         r"(?:all )?non-assistant messages must contain|tool.?call.?id\b.{0,60}(?:not found|missing|required|does not match)|"
         r"tool (?:results?|messages?) must (?:follow|be preceded)|tool_result.{0,80}without|"
         r"'role'.{0,30}(?:missing|required)|missing 'role'",
         "repair or drop the turn of the history that the message names"),
    _row("gate.model_not_found",
         r"model\b.{0,160}?(?:not found|does ?n[o']t exist|is not (?:loaded|served|available)|no such|unknown)|"
         r"(?:unknown|no such|invalid|cannot find|could not find|failed to load) model|model (?:name )?is (?:missing|required)"
         r"|cached snapshot folder|repository not found|invalid model name|requested_model",
         "ask for a model that the server lists"),
    _row("gate.capability_unsupported",
         r"(?:does not|doesn't|not) support(?:s|ed)? (?:thinking|chat|generate|insert|vision|image|audio|multimodal|embedding"
         r"|logprobs|parallel)|(?:image|audio|video|multimodal) (?:input|data)\w* (?:is |are )?not supported|not a multimodal"
         r"|only supports? text|only 'text' content|start it with `?--|restart .{0,30} with --|multimodal data provided|"
         r"endpoints? (?:is|are) disabled",
         "leave the feature out, or use a model and launch flags that have it"),
    # -- limits
    _row("truncation.output_budget",
         r"context size has been exceeded|context shift is disabled|reached (?:the )?context length",
         _CONTEXT),
    _row("request.context_exceeded",
         r"exceeds? (?:the )?(?:available |model'?s? |maximum |max )*(?:context|sequence)|context (?:length|size|window) "
         r"(?:exceeded|is only|of only)|maximum context length|longer than the (?:model'?s )?context|n_keep:? ?\d+ ?>= ?n_ctx|"
         r"greater than the context length|prompt is too (?:long|large)|prompt is longer than|input is too long|"
         r"too large to process|exceed_context_size|context_length_exceeded|tokens?\b.{0,60}context length of only|"
         r"(?:input|prompt)\b.{0,60}\btokens?\b.{0,60}(?:exceed|longer|too (?:long|many))",
         _CONTEXT),
    # -- templates
    _row("template.role_rejected",
         r"roles? must alternate|must alternate user|system (?:role|message) (?:not supported|must be)|"
         r"unexpected role|unknown role|invalid role|unsupported role|(?:only|first message).{0,60}\broles?\b.{0,60}supported|"
         r"conversation must start|after the optional system message",
         _TEMPLATE),
    _row("template.render_error",
         r"jinja|\bchat.?template\b|error rendering prompt|can't evaluate field|template: ?:\d+|templateerror|"
         r"undefinederror|undefinedvalue|raise_exception|while executing \w+ at line|can only concatenate|"
         r"unable to generate parser for this template|no user query found|unsupported operand type|"
         r"object is not (?:iterable|subscriptable|callable)|failed to apply.{0,30}template|"
         r"'(?:none|undefined|dict|str|list)\w*' object has no",
         _TEMPLATE),
    # -- reading the model's output
    _row("parser.server_error",
         r"(?:error|failed|failure|unable|could not|cannot)\b.{0,20}\bpars(?:e|ing)\b.{0,20}\b(?:tool|function)[ _]?calls?|"
         r"returned invalid tool call arguments|failed to parse input at pos|does not match the expected .{0,40}format|"
         r"xml syntax error|failed to parse (?:xml|json):|invalid diff|invalid syntax \(<unknown>|empty function name|"
         r"extra content after end of tool call|incomplete \w* ?tool call|mismatched arg_key|is not declared|"
         r"required argument .{0,80} is missing for tool|tool '.{1,120}' not found(?! in)|unparsed .{0,40}output|"
         r"tool.?(?:call )?parser (?:error|failed)|function-wrap\[|expecting a tool call|tool_?call.{0,30}(?:decode|unmarshal)",
         _PARSER),
    # -- grammars and schemas
    _row("engine.grammar_deadlock",
         r"empty grammar stack|failed to advance fsm|grammar (?:matcher|state).{0,40}(?:terminated|dead|reject|fail)|"
         r"grammar is stuck",
         "retry, or relax the schema; take the constraint off to see what the model writes"),
    _row("request.invalid_schema",
         r"failed to parse tools\b|failed to (?:parse|compile|initialize)\b.{0,40}\b(?:grammar|samplers|schema)|"
         r"grammar error|unrecognized schema|json.?schema\b.{0,40}(?:conversion|error|invalid|failed|required|must)|"
         r"invalid (?:json )?schema|schema\b.{0,40}(?:is invalid|not supported|required)|tools?\b.{0,40}(?:schema|parameters)"
         r"\b.{0,30}(?:invalid|error)|"
         r"has invalid 'parameters'|unsupported (?:tool )?type|pattern must start with|error resolving ref|"
         r"tools? should either be|grammar constraints|json_schema and grammar|(?:field )?struct field \w*\.?tools\b|"
         r"toolfunctionparameters|body[.'\", (\[]+(?:tools|functions)\b|missing tool (?:function|type|name)|"
         r"`?tools?`? (?:must|cannot|can't|can not) (?:not )?be|when using `?tool_choice|not found in tools|schema_? is required"
         r"|expected 'tools'|value looks like object",
         "send a tool or response schema that this server can use"),
    # -- engines
    _row("engine.oom", r"out of memory|outofmemory|oom\b|insufficient memory|cannot allocate memory|alloc(?:ation)? failed",
         "a smaller quantisation, a shorter context, or more memory"),
    _row("engine.crash",
         r"runner (?:process )?has (?:unexpectedly )?(?:stopped|terminated)|runner process|enginecore|engine ?dead|"
         r"engine (?:process )?(?:is )?(?:dead|died|crashed|loop)|generation thread died|process (?:exited|died|crashed|"
         r"terminated)|cuda error|segmentation|core dumped|internal error|unexpectedly stopped|has crashed|exit status \d|"
         r"'response'|loc': \('response|assertion|panic|has unexpectedly",
         "look into the server's log, restart the engine"),
    # -- fields
    _row("request.invalid_param",
         r"validation errors?|field required|must be (?:a |an |at |of |between |one |in |greater|less|positive|non-)|"
         r"field '|unmarshal|invalid (?:value|parameter|option|argument|think|reasoning|duration|format|type)|"
         r"is required|not a valid|is not valid|unsupported parameter|unknown (?:field|parameter|option)|"
         r"cannot be (?:greater|less|empty|used|negative|null)|too (?:large|small|short|long)|must (?:not )?be|"
         r"did not contain|should be a|not supported|does not support|expected \"|invalid\b",
         "correct the field that the message names"),
)  # fmt: skip

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
