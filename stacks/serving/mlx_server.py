"""`mlx_lm.server`.

Sources: `mlx_lm/server.py` and `tokenizer_utils.py` of mlx-lm 0.32 (the parser is inferred from the chat template's
text), and answers of 0.32.2 on a CPU.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from results.manifest import Fact, known, unknown
from stacks.serving.base import Answer, Ask, Clue, ModelIdentity, RawCompletion, Rendered, ServingStack, Steps
from stacks.serving.counting import prompt_tokens
from stacks.serving.reading import MODELS, answered, entries, flag_value, template_facts
from stacks.serving.wording import Remedies, fill, parser_for
from stacks.token_bytes import byte_alphabet

_HIDDEN = "mlx_lm.server has no route that tells it"
_SPELLING = {
    "json_tools": "`<tool_call>` and `tool_call.name`",
    "qwen3_coder": "`<tool_call>\\n<function=`",
    "mistral": "`[TOOL_CALLS]`",
    "kimi_k2": "`<|tool_calls_section_begin|>`",
    "glm47": "`<arg_key>`",
    "gemma4": "`<|tool_call>` and `<tool_call|>`",
    "function_gemma": "`<start_function_call>`",
    "minimax_m2": "`<minimax:tool_call>`",
    "longcat": "`<longcat_tool_call>`",
    "pythonic": "`<|tool_call_start|>` or `<|tool_list_start|>`",
    "minicpm5": '`<function name="` and `<param name="`',
}
"""What must stand in the chat template's text for each parser to be inferred (`_infer_tool_parser`)."""
_SET = 'set `"tool_parser_type": "{parser}"` in the model\'s tokenizer_config.json'

REMEDIES: Remedies = {
    "template.tools_absent": "the chat template renders no tools: start mlx_lm.server with `--chat-template` and one "
    "of this model that does",
    "template.render_error": "mlx_lm.server answers 404 to every template error: change the messages as its text says, "
    "or start it with another `--chat-template`",
    "template.role_rejected": "the chat template refuses this role or order (mlx_lm.server answers 404): change it, or "
    "start with another `--chat-template`",
    "template.system_dropped": "start mlx_lm.server with a `--chat-template` that has a system role",
    "template.drift": "start mlx_lm.server without `--chat-template`, so that the model's own template is used",
    "parser.dropped": "mlx_lm.server drops a call that its parser cannot read: raise max_tokens (512 by default) where "
    "it was cut; else the parser is of another format than {format}: " + _SET,
    "nonresponse.swallowed": "mlx_lm.server dropped a call that its parser cannot read: raise max_tokens (512 by "
    "default), or " + _SET,
    "parser.phantom": "mlx_lm.server parses calls also where no tools were sent: ignore them in the client",
    "parser.server_error": "the call's JSON has a shape that closes the connection: upgrade mlx-lm, or serve the model "
    "with `stacktap proxy --upstream mlx:DIR`, which keeps the raw text",
    "transport.reset": "mlx_lm.server closes the connection on a wrong parameter type or missing messages: correct the "
    "request (its log has the ValueError)",
    "truncation.output_budget": "send max_tokens: mlx_lm.server stops at 512 where none is sent (`--max-tokens`)",
    "truncation.cut_inside_call": "send a larger max_tokens: mlx_lm.server stops at 512 where none is sent "
    "(`--max-tokens`), and drops a cut call",
    "nonresponse.reasoning_only": "raise max_tokens (512 by default), or start mlx_lm.server with "
    "`--chat-template-args '{\"enable_thinking\": false}'`",
    "parser.in_reasoning": "start mlx_lm.server with `--chat-template-args '{\"enable_thinking\": false}'`",
    "gate.tool_choice_unsupported": "mlx_lm.server does not read tool_choice: offer only the tool that is wanted",
    "protocol.choice_ignored": "mlx_lm.server does not read tool_choice: offer only the tool that is wanted, or none",
    "protocol.finish_contradicts": "finish_reason `tool_calls` without calls means that mlx_lm.server dropped one: "
    "raise max_tokens, or " + _SET,
    "gate.model_not_found": "mlx_lm.server loads the model that the request names: send `default_model`, or the path "
    "it was started with (`--model`)",
    "request.invalid_param": "correct the parameter that the log names",
    "request.bad_history": "the template or the parser of past arguments fails (404): send arguments as JSON text, and "
    "content as text",
    "request.context_exceeded": "mlx_lm.server checks no length: send less, or limit memory with `--max-kv-size`",
    "engine.oom": "send less, or start mlx_lm.server with a smaller prompt cache (`--prompt-cache-size`)",
    "engine.wedged": "restart mlx_lm.server: its generating thread has died while the process lives on",
    "transport.loading": "send one short completion and wait for it: /health answers before the model is loaded",
    "transport.wrong_route": "the base URL of mlx_lm.server ends in /v1",
}


class MlxServer(ServingStack):
    """`mlx_lm.server`: it shows neither template nor prompt; its raw text can be had by log-probabilities."""

    name = "mlx_server"
    title = "mlx_lm.server"

    def clues(self, answers: Mapping[str, Answer]) -> list[Clue]:
        """Python's own HTTP server, plain `Not Found`, models without an owner."""
        found = []
        if any(answer.header("server").startswith("BaseHTTP/") for answer in answered(answers)):
            found.append(Clue(self.name, 3, "the Server header is that of Python's http.server"))
        if any(_is_unknown_route(answer) for answer in answers.values()):
            found.append(Clue(self.name, 4, "unknown routes answer `Not Found`, called JSON"))
        listed = answers.get(MODELS)
        if listed is not None and listed.ok and not listed.body:
            found.append(Clue(self.name, 2, "the model list is an empty 200", listed.number))
        items = entries(listed)
        if items and all(set(entry) == {"id", "object", "created"} for entry in items):
            found.append(
                Clue(self.name, 3, "its models have an id, a date and no owner", listed.number if listed else 0)
            )
        # Any server on Python's http.server has the first one.
        return found if len(found) > 1 else []

    def identity(self, model: str) -> Steps[ModelIdentity]:
        """Nothing can be read; the launch flags tell a template of the user's."""
        yield from ()
        return ModelIdentity(
            model,
            quantization=unknown(_HIDDEN),
            context_length=unknown("mlx_lm.server checks no context length"),
            context_trained=unknown(_HIDDEN),
            template=unknown(_HIDDEN),
            template_hash=unknown(_HIDDEN),
            tools=unknown(_HIDDEN),
            parser=unknown(_HIDDEN + "; it is inferred from the chat template"),
            reasoning_parser=unknown(_HIDDEN + "; it is inferred from the chat template"),
            sampling=known({"temperature": 0.0, "top_p": 1.0, "max_tokens": 512}, "its documented defaults"),
        )

    def render(self, request: Mapping[str, Any]) -> Steps[Rendered]:
        """Only the number of tokens is to be had, for the price of one generated token."""
        return (yield from prompt_tokens(self.chat_path, request, _HIDDEN + " (the rendered prompt)"))

    def complete_raw(self, model: str, prompt: str, max_tokens: int) -> Steps[RawCompletion]:
        """`/v1/completions` with the most likely token at each place: at temperature 0 that is the text, before the
        server's parser takes calls out of it."""
        body = {
            "model": model,
            "prompt": prompt,
            "max_tokens": max_tokens,
            "temperature": 0.0,
            "logprobs": True,
            "top_logprobs": 1,
        }
        answer = yield Ask("POST", "/v1/completions", body, purpose="the model's raw text", generates=True)
        tokens = answer.get("choices", 0, "logprobs", "content")
        finish = str(answer.get("choices", 0, "finish_reason") or "")
        if not isinstance(tokens, list):
            why = answer.get("error") or "the connection was closed: the server's parser failed on this text"
            return RawCompletion(source="/v1/completions", why=str(why), asks=(answer.number,))
        written = tokens if finish == "length" else tokens[:-1]  # the last one is the end token
        return RawCompletion(
            spelled(str(token.get("token", "")) for token in written if isinstance(token, dict)),
            finish="stop" if finish == "tool_calls" else finish,
            tokens=len(tokens),
            source="/v1/completions logprobs",
            asks=(answer.number,),
        )

    def flags(self, command: Sequence[str]) -> Mapping[str, Fact]:
        """A template of the user's, and the parser that mlx_lm infers from it."""
        template = flag_value(command, "--chat-template")
        if not template:
            return {}
        text, digest = template_facts(template, "launch flag --chat-template", "")
        return {
            "template": text,
            "template_hash": digest,
            "tools": known("tools" in template, "launch flag --chat-template"),
            "parser": known(inferred_parser(template) or "none", "as mlx_lm infers it from --chat-template"),
        }

    def remedy(self, outcome: str, facts: Mapping[str, str]) -> str | None:
        """See the base class."""
        parser = parser_for(self.name, facts)
        if outcome in ("parser.left_as_text", "parser.marker_leak"):
            return _left_as_text(parser, facts)
        return fill(REMEDIES.get(outcome), facts, parser, "PARSER")


def _is_unknown_route(answer: Answer) -> bool:
    return answer.status == 404 and answer.body == b"Not Found" and "json" in answer.header("content-type")


def _left_as_text(parser: str | None, facts: Mapping[str, str]) -> str:
    if parser is None and facts.get("format"):
        return "mlx_lm has no parser for this format: parse the text in the client"
    parser = parser or "PARSER"
    spelling = _SPELLING.get(parser)
    respell = f", or spell the chat template so that it is inferred ({spelling} must stand in it)" if spelling else ""
    return (
        "mlx_lm inferred no fitting parser from the chat template: start mlx_lm.server without `--chat-template`, "
        + _SET.replace("{parser}", parser)
        + respell
    )


def inferred_parser(template: str) -> str | None:
    """The parser that mlx_lm 0.32 infers from a chat template's text; None where it finds none."""
    either = re.search(r"<tool_call>(\\n|\n)<function=", template)
    rules = (
        ("minimax_m2", "<minimax:tool_call>" in template),
        ("gemma4", "<|tool_call>" in template and "<tool_call|>" in template),
        ("function_gemma", "<start_function_call>" in template),
        ("longcat", "<longcat_tool_call>" in template),
        ("glm47", "<arg_key>" in template),
        ("pythonic", "<|tool_list_start|>" in template or "<|tool_call_start|>" in template),
        ("qwen3_coder", either is not None),
        ("kimi_k2", "<|tool_calls_section_begin|>" in template),
        ("minicpm5", '<function name="' in template and '<param name="' in template),
        ("mistral", "[TOOL_CALLS]" in template),
        ("muse_spark", "<atem:function_calls>" in template),
        ("json_tools", "<tool_call>" in template and "tool_call.name" in template),
    )
    return next((name for name, there in rules if there), None)


def spelled(tokens: Any) -> str:
    """The text of tokens as a tokenizer spells them: byte-level (GPT-2's alphabet) or with U+2581 for the space.

    Tokens with a character outside the alphabet are added ones and stand for themselves.
    """
    alphabet = byte_alphabet()
    data = bytearray()
    for token in tokens:
        if "\u2581" in token:
            data += token.replace("\u2581", " ").encode()
        elif re.fullmatch(r"<0x[0-9A-F]{2}>", token):
            data.append(int(token[3:5], 16))
        elif all(character in alphabet for character in token):
            data += bytes(alphabet[character] for character in token)
        else:
            data += token.encode("utf-8", "surrogatepass")
    return data.decode("utf-8", "replace")
