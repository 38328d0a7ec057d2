"""The broken set-ups: each is built for real, must be recognised, and must be healed by the remedy that was printed."""

from __future__ import annotations

from typing import Any

from probe.diagnose.asked import opening
from tests.setups.heavy import HEAVY
from tests.setups.model import Client, Setup, request
from tests.setups.models import PLAIN_TEMPLATE, RESPELLED_TEMPLATE

_WITH_RUN = ("{url}", "--run", "{run}", "--model", "{model}")


def _turns(arguments: Any, **result: Any) -> list[dict[str, Any]]:
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    answer = {"role": "tool", "tool_call_id": "call_1", "content": "18 degrees"} | result
    return [*opening(), {"role": "assistant", "content": None, "tool_calls": [call]}, answer]


LLAMA_SERVER = (
    Setup(
        "raw",
        "llama-server told not to parse",
        "llamacpp",
        "parser.left_as_text",
        "config",
        ("--skip-chat-parsing",),
        {"flags": ()},
        flags=("--skip-chat-parsing",),
    ),
    Setup(
        "no-jinja",
        "llama-server without its template engine",
        "llamacpp",
        "gate.template_flag_missing",
        "config",
        ("--jinja",),
        {"flags": ("--jinja",)},
        flags=("--no-jinja",),
        ran="no",
    ),
    Setup(
        "bare-template",
        "a model file whose template renders no tools",
        "llamacpp",
        "template.tools_absent",
        "config",
        ("--chat-template-file",),
        {"model": "hermes"},
        model="bare",
    ),
    Setup(
        "small-context",
        "a context smaller than an agent's prompt",
        "llamacpp",
        "request.context_exceeded",
        "config",
        ("-c",),
        {"flags": ("-c", "65536")},
        flags=("-c", "256"),
        ran="no",
    ),
    Setup(
        "key",
        "a server that wants a key",
        "llamacpp",
        "transport.auth",
        "client",
        ("bearer|--header|--api-key",),
        {"arguments": ("{url}", "--api-key-env", "SESAME")},
        flags=("--api-key", "sesame"),
        ran="no",
        extra={"SESAME": "sesame"},
    ),
    Setup(
        "short-answers",
        "a server that ends every answer early",
        "llamacpp",
        "truncation.cut_inside_call",
        "config",
        ("-n|--n-predict|max_tokens",),
        {"flags": ()},
        flags=("-n", "4"),
    ),
)

MLX = (
    Setup(
        "mlx-no-parser",
        "mlx_lm.server infers no parser from the template",
        "mlx",
        "parser.left_as_text",
        "config",
        ("--chat-template", "tool_parser_type"),
        {"flags": ()},
        flags=("--chat-template", RESPELLED_TEMPLATE),
    ),
    Setup(
        "mlx-bare-template",
        "mlx_lm.server with a template that renders no tools",
        "mlx",
        "template.tools_absent",
        "config",
        ("--chat-template",),
        {"flags": ()},
        flags=("--chat-template", PLAIN_TEMPLATE),
    ),
    Setup(
        "mlx-short-answers",
        "mlx_lm.server with a small output limit",
        "mlx",
        "truncation.cut_inside_call|nonresponse.swallowed|truncation.output_budget",
        "config",
        ("--max-tokens|max_tokens",),
        {"flags": ()},
        flags=("--max-tokens", "4"),
    ),
    Setup(
        "mlx-model-name",
        "a model name that mlx_lm.server takes for a download",
        "mlx",
        "gate.model_not_found",
        "client",
        ("default_model",),
        {"arguments": ("{url}", "--model", "default_model")},
        arguments=("{url}", "--model", "gpt-4o"),
        ran="no",
    ),
)

LLAMA_CPP_PYTHON = (
    Setup(
        "lcp-no-parser",
        "llama-cpp-python, which parses no calls",
        "llamacpp-python",
        "parser.left_as_text",
        "config",
        ("llama-server",),
        {"stack": "llamacpp"},
    ),
    Setup(
        "lcp-tools-left-out",
        "a chat format that takes tools only with tool_choice",
        "llamacpp-python",
        "template.tools_absent",
        "config",
        ("llama-server",),
        {"stack": "llamacpp", "flags": ()},
        flags=("--chat_format", "chatml-function-calling"),
    ),
    Setup(
        "lcp-small-context",
        "llama-cpp-python with a small context",
        "llamacpp-python",
        "request.context_exceeded|engine.crash",
        "config|undetermined",
        ("n_ctx",),
        {"stack": "llamacpp", "flags": ()},
        flags=("--n_ctx", "128"),
    ),
)

GATEWAYS = (
    Setup(
        "gateway-buffers",
        "a gateway that holds streams back",
        "llamacpp",
        "transport.buffered",
        "network",
        ("buffer",),
        {"gateway": "plain"},
        gateway="buffers",
    ),
    Setup(
        "gateway-drops-calls",
        "a gateway that builds answers anew without tool_calls",
        "llamacpp",
        "transport.gateway",
        "network",
        ("directly|unchanged",),
        {"gateway": "plain"},
        gateway="drops_calls",
        arguments=("{url}", "--direct", "{direct}"),
    ),
    Setup(
        "gateway-strips-tools",
        "a gateway that builds requests anew without tools",
        "llamacpp",
        "transport.gateway",
        "network",
        ("directly|unchanged",),
        {"gateway": "plain"},
        gateway="strips_tools",
        arguments=("{url}", "--direct", "{direct}"),
    ),
    Setup(
        "gateway-impatient",
        "a gateway with a short read timeout",
        "llamacpp",
        "transport.gateway",
        "network",
        ("timeout",),
        {"gateway": "plain"},
        gateway="impatient",
    ),
    Setup(
        "gateway-cuts-streams",
        "a gateway that ends streams early",
        "llamacpp",
        "transport.stream_truncated",
        "network|stack|undetermined",
        ("gateway|direct|between",),
        {"gateway": "plain"},
        gateway="cuts_streams",
    ),
    Setup(
        "gateway-rate-limit",
        "a gateway that refuses by rate",
        "llamacpp",
        "transport.rate_limited",
        "network|client|config",
        ("wait|rate|slow|limit",),
        {"gateway": "plain"},
        gateway="limits_rate",
        ran="no",
    ),
    Setup(
        "other-program",
        "another program on the port",
        "llamacpp",
        "transport.wrong_route|transport.gateway",
        "network|client|config",
        ("URL|port",),
        {"gateway": "plain"},
        gateway="web_page",
        ran="no|unknown",
    ),
    Setup(
        "loading",
        "a server that still loads its model",
        "llamacpp",
        "transport.loading",
        "none|stack|config|client|network",
        ("wait|/health",),
        {"gateway": "plain"},
        gateway="busy",
        ran="no",
    ),
)

ADDRESSES = (
    Setup(
        "dead-port",
        "no server at the address",
        "llamacpp",
        "transport.connect",
        "network|client|config",
        ("start|URL|port",),
        {"no_server": False},
        no_server=True,
        ran="no",
    ),
    Setup(
        "tls-to-plain",
        "https to a server that speaks http",
        "llamacpp",
        "transport.connect|transport.timeout_connect|transport.reset",
        "network|client|config|undetermined",
        ("http",),
        {"arguments": ("{url}",)},
        arguments=("https://{authority}",),
        ran="no|unknown",
    ),
    Setup(
        "wrong-base",
        "a base URL with a path that the server does not have",
        "llamacpp",
        "transport.wrong_route",
        "client",
        ("base URL",),
        {"arguments": ("{url}/v1",)},
        arguments=("{url}/api/openai/v1",),
        ran="no",
    ),
)

CLIENTS = (
    Setup(
        "client-budget",
        "a client with too small an output limit",
        "llamacpp",
        "truncation.cut_inside_call|truncation.output_budget",
        "client|config",
        ("max_tokens|limit",),
        {"client": Client(request())},
        client=Client(request(max_tokens=4)),
        arguments=_WITH_RUN,
    ),
    Setup(
        "client-thinking-budget",
        "reasoning that uses up the client's output limit",
        "llamacpp",
        "nonresponse.reasoning_only|truncation.output_budget",
        "client|config",
        ("max_tokens|limit|budget",),
        {"client": Client(request(max_tokens=1024))},
        model="thinker",
        client=Client(request(max_tokens=24)),
        arguments=_WITH_RUN,
    ),
    Setup(
        "client-bad-history",
        "a client that sends a broken call back",
        "llamacpp",
        "request.bad_history",
        "client",
        ("history|turn|message",),
        {"client": Client(request(messages=_turns('{"city": "Paris"}')))},
        client=Client(request(messages=_turns('{"city": "Par'))),
        arguments=_WITH_RUN,
        ran="no",
    ),
    Setup(
        "client-bad-json",
        "a client whose body is no JSON",
        "llamacpp",
        "request.invalid_json",
        "client",
        ("JSON",),
        {"client": Client(request())},
        client=Client(b'{"messages": [{"role": "user"'),  # type: ignore[arg-type]
        arguments=_WITH_RUN,
        ran="no",
    ),
    Setup(
        "client-bad-schema",
        "a tool whose schema no grammar can be made of",
        "llamacpp",
        "engine.grammar_compile|request.invalid_schema",
        "client|config|stack",
        ("schema|pattern|ref",),
        {"client": Client(request())},
        client=Client(
            request(
                tools=[
                    {
                        "type": "function",
                        "function": {
                            "name": "get_weather",
                            "parameters": {
                                "type": "object",
                                "properties": {"city": {"$ref": "#/$defs/none"}},
                            },
                        },
                    }
                ]
            )
        ),
        arguments=_WITH_RUN,
    ),
    Setup(
        "client-large-prompt",
        "a client's prompt that does not fit the context",
        "llamacpp",
        "request.context_exceeded",
        "client|config",
        ("-c|context|less",),
        {"flags": ("-c", "65536")},
        flags=("-c", "4096"),
        client=Client(request(messages=[{"role": "user", "content": "word " * 9000}])),
        arguments=_WITH_RUN,
        ran="no",
    ),
    Setup(
        "client-model-name",
        "a client that names a model the server does not have",
        "mlx",
        "gate.model_not_found",
        "client",
        ("default_model",),
        {"client": Client(request(model="default_model"))},
        client=Client(request(model="gpt-4o")),
        arguments=_WITH_RUN,
        ran="no",
    ),
    Setup(
        "client-route",
        "a client that asks a route the server does not have",
        "llamacpp",
        "transport.wrong_route",
        "client",
        ("base URL|/v1",),
        {"client": Client(request())},
        client=Client(request(), path="/v3/chat/completions"),
        arguments=_WITH_RUN,
        ran="no",
    ),
    Setup(
        "prose",
        "a model that answers in prose although its tools are in the prompt",
        "llamacpp",
        "model.no_call",
        "model",
        ("model|prompt",),
        {"model": "hermes"},
        model="talker",
        grades=("differential",),
    ),
)

_OLLAMA = ("{url}", "--model", "{model}")
OLLAMA = (
    Setup(
        "ollama-gate",
        "Ollama (replayed): a model whose template has no tools",
        "ollama 0.30.8",
        "gate.tools_unsupported",
        "config|stack",
        ("TEMPLATE|template",),
        {"model": "native"},
        model="bare",
        arguments=_OLLAMA,
        ran="no",
    ),
    Setup(
        "ollama-range",
        "Ollama (replayed): a TEMPLATE in which only `range .ToolCalls` stands",
        "ollama 0.30.8",
        "parser.left_as_text",
        "config",
        ("if .ToolCalls",),
        {"model": "gotoolsif"},
        model="gotools",
        arguments=_OLLAMA,
    ),
    Setup(
        "ollama-wrong-parser",
        "Ollama (replayed): a PARSER for another format",
        "ollama 0.30.8",
        "parser.server_error",
        "config|stack",
        ("PARSER",),
        {"model": "native"},
        model="qwen3coder",
        arguments=_OLLAMA,
    ),
    Setup(
        "ollama-gate-new",
        "Ollama 0.32.15 (replayed): the gate",
        "ollama 0.32.15",
        "gate.tools_unsupported",
        "config|stack",
        ("TEMPLATE|template",),
        {"model": "native"},
        model="nogate",
        arguments=_OLLAMA,
        ran="no",
    ),
)

SETUPS: dict[str, Setup] = {
    setup.name: setup for setup in (*LLAMA_SERVER, *MLX, *LLAMA_CPP_PYTHON, *GATEWAYS, *ADDRESSES, *CLIENTS, *OLLAMA)
}
"""The quick ones: seconds each."""

HEAVY_SETUPS: dict[str, Setup] = {setup.name: setup for setup in HEAVY}
"""Those on vLLM and SGLang: minutes each, unless they share a server (`together.all_said`)."""
