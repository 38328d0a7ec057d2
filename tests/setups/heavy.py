"""The broken set-ups on vLLM and SGLang. Those that agree in their flags stand together: they share one start."""

from __future__ import annotations

from tests.setups.model import Client, Setup, request
from tests.setups.models import plain_template_file

VLLM_FLAGS = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
SGLANG_FLAGS = ("--tool-call-parser", "hermes")
SMALL = "512"
"""Tokens of context: enough for the first question, too few for an agent."""
LARGE = "32768"
"""What the remedy for a small context names."""

_TEMPLATE = ("--chat-template", str(plain_template_file()))
_RUN = ("{url}", "--run", "{run}", "--model", "{model}")
_KEY = {"SESAME": "sesame"}
_STREAMED = Client(request(stream=True))


VLLM = (
    Setup(
        "vllm-no-flags",
        "vLLM without tool flags",
        "vllm",
        "gate.parser_not_configured",
        "config",
        ("--enable-auto-tool-choice --tool-call-parser hermes",),
        {"flags": VLLM_FLAGS},
        ran="no",
        grades=("differential",),
        heavy=True,
    ),
    Setup(
        "vllm-parser-alone",
        "vLLM with a parser, without --enable-auto-tool-choice",
        "vllm",
        "gate.parser_not_configured",
        "config",
        ("--enable-auto-tool-choice --tool-call-parser hermes",),
        {"flags": VLLM_FLAGS},
        flags=("--tool-call-parser", "hermes"),
        ran="no",
        grades=("differential",),
        heavy=True,
    ),
    Setup(
        "vllm-wrong-parser",
        "vLLM with the hermes parser, a model that writes Qwen3-Coder's XML",
        "vllm",
        "parser.left_as_text",
        "config",
        ("--tool-call-parser qwen3_coder",),
        {"flags": ("--enable-auto-tool-choice", "--tool-call-parser", "qwen3_coder")},
        flags=VLLM_FLAGS,
        model="qwen_xml",
        ran="yes",
        heavy=True,
    ),
    Setup(
        "vllm-stream-only",
        "the same and a client that streams: what is left as text otherwise is lost without a word",
        "vllm",
        "parser.dropped",
        "config",
        ("--tool-call-parser qwen3_coder",),
        {"flags": ("--enable-auto-tool-choice", "--tool-call-parser", "qwen3_coder")},
        flags=VLLM_FLAGS,
        model="qwen_xml",
        client=_STREAMED,
        arguments=_RUN,
        grades=("differential",),
        ran="yes",
        heavy=True,
    ),
    Setup(
        "vllm-bare-template",
        "vLLM with a chat template that renders no tools",
        "vllm",
        "template.tools_absent",
        "config",
        ("--chat-template",),
        {"flags": VLLM_FLAGS},
        flags=(*VLLM_FLAGS, *_TEMPLATE),
        ran="yes",
        heavy=True,
    ),
    Setup(
        "vllm-small-context",
        "vLLM with too small a --max-model-len",
        "vllm",
        "request.context_exceeded",
        "config",
        (f"--max-model-len {LARGE}",),
        {"flags": (*VLLM_FLAGS, "--max-model-len", LARGE)},
        flags=(*VLLM_FLAGS, "--max-model-len", SMALL),
        ran="no",
        heavy=True,
    ),
    Setup(
        "vllm-model-name",
        "a model name that vLLM does not serve",
        "vllm",
        "gate.model_not_found",
        "client",
        ("/v1/models", "--served-model-name"),
        {"arguments": ("{url}",)},
        flags=VLLM_FLAGS,
        arguments=("{url}", "--model", "gpt-4o"),
        ran="no",
        heavy=True,
    ),
    Setup(
        "vllm-key",
        "vLLM with --api-key, a client without",
        "vllm",
        "transport.auth",
        "client",
        ("--api-key-env",),
        {"arguments": ("{url}", "--api-key-env", "SESAME")},
        flags=(*VLLM_FLAGS, "--api-key", "sesame"),
        ran="no",
        heavy=True,
        extra=_KEY,
    ),
)

SGLANG = (
    Setup(
        "sglang-no-parser",
        "SGLang without a tool-call parser",
        "sglang",
        "parser.left_as_text",
        "config",
        ("--tool-call-parser hermes",),
        {"flags": SGLANG_FLAGS},
        ran="yes",
        heavy=True,
    ),
    Setup(
        "sglang-wrong-parser",
        "SGLang with the hermes parser, a model that writes Qwen3-Coder's XML",
        "sglang",
        "parser.left_as_text",
        "config",
        ("--tool-call-parser qwen3_coder",),
        {"flags": ("--tool-call-parser", "qwen3_coder")},
        flags=SGLANG_FLAGS,
        model="qwen_xml",
        ran="yes",
        heavy=True,
    ),
    Setup(
        "sglang-stream-only",
        "the same and a client that streams: what is left as text otherwise is lost without a word",
        "sglang",
        "parser.dropped",
        "config",
        ("--tool-call-parser qwen3_coder",),
        {"flags": ("--tool-call-parser", "qwen3_coder")},
        flags=SGLANG_FLAGS,
        model="qwen_xml",
        client=_STREAMED,
        arguments=_RUN,
        grades=("differential",),
        ran="yes",
        heavy=True,
    ),
    Setup(
        "sglang-bare-template",
        "SGLang with a chat template that renders no tools",
        "sglang",
        "template.tools_absent",
        "config",
        ("--chat-template",),
        {"flags": SGLANG_FLAGS},
        flags=(*SGLANG_FLAGS, *_TEMPLATE),
        ran="yes",
        heavy=True,
    ),
    Setup(
        "sglang-small-context",
        "SGLang with too small a --context-length",
        "sglang",
        "request.context_exceeded",
        "config",
        (f"--context-length {LARGE}",),
        {"flags": (*SGLANG_FLAGS, "--context-length", LARGE)},
        flags=(*SGLANG_FLAGS, "--context-length", SMALL),
        ran="no",
        heavy=True,
    ),
)

HEAVY = (*VLLM, *SGLANG)
