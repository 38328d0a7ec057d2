"""The launch configurations of the truth table: data, one entry each.

Sources of the flags: ``llama-server --help`` (b11434), ``mlx_lm.server --help`` (0.32.2), ``python -m llama_cpp.server
--help`` (0.3.36), the tool parser registries of vLLM 0.32.0 (``tool_parsers/__init__.py``) and SGLang 0.5.23
(``srt/function_call/function_call_parser.py``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache

from probe.canary.call_formats import format_names
from probe.canary.format_members import format_members
from probe.canary.format_template import format_template
from probe.canary.members import EVERY_FORMAT, hermes_template, member_spec
from stacks.formats import formats

FEW = ("good", "two", "prosecall", "trunc", "single", "unknown", "prose", "empty")
"""Members that tell configurations apart which leave all calls alone, or refuse all."""
HERMES_VALID = ("good", "prosecall", "callprose", "two", "think", "thinkcall", "nested", "unicode", "escapes", "fence",
                "bare", "xml")  # fmt: skip
"""Members of the Hermes canary that are good calls."""
THINKING = ("good", "think", "thinkanswer", "thinkonly", "thinkopen", "thinkcall")
"""Members with reasoning, of the Hermes canary."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way to start a server with one canary. ``name`` is unique within its ``stack``.

    ``flags`` may hold ``{template:FORMAT}`` (the path of a file with that format's chat template),
    ``{template-text:FORMAT}`` (its text) or ``{respelled}`` (the Hermes template, spelled so that no parser is
    inferred from it). ``members`` are script names, empty for all. ``heavy`` servers take a minute to start.
    """

    stack: str
    name: str
    title: str
    canary: str = "hermes"
    members: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    context_length: int | None = None
    heavy: bool = False

    def scripts(self) -> tuple[str, ...]:
        """Names of the scripts that are asked for, in the canary's order."""
        names = [script.name for script in member_spec(self.canary).scripts]
        return tuple(name for name in names if not self.members or name in self.members)

    def digest(self) -> str:
        """SHA-256 over everything that decides what is asked: the configuration, the canary, the templates."""
        parts = [json.dumps(asdict(self), sort_keys=True), member_spec(self.canary).digest()]
        parts += [template_text(flag) or "" for flag in self.flags]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def template_text(flag: str) -> str | None:
    """The chat template that a flag's placeholder stands for; None where it holds none."""
    if flag == "{respelled}":
        return hermes_template().replace("tool_call.name", "tool_call['name']")
    kind, _, name = flag.strip("{}").partition(":")
    if flag.startswith("{") and kind in ("template", "template-text"):
        return hermes_template() if name == "hermes" else format_template(name)
    return None


@cache
def valid_members(canary: str) -> frozenset[str]:
    """Members of a canary whose text is a good call to an offered tool."""
    if canary == "hermes":
        return frozenset(HERMES_VALID)
    if canary == EVERY_FORMAT:
        return frozenset(format_names())
    if canary not in format_names():
        return frozenset()
    return frozenset(member.name for member in format_members(canary) if member.kind == "valid_call")


@cache
def configurations() -> tuple[Configuration, ...]:
    """All of them, in the order of the table."""
    return (*_llamacpp(), *_mlx(), *_llamacpp_python(), *_inprocess(), *_vllm(), *_sglang())


def configurations_of(stack: str) -> tuple[Configuration, ...]:
    """Those of one stack."""
    return tuple(each for each in configurations() if each.stack == stack)


def stacks() -> tuple[str, ...]:
    """Stacks that have configurations, in the order of the table."""
    return tuple(dict.fromkeys(each.stack for each in configurations()))


_ONE_THREAD = ("-t", "1", "-tb", "1")
"""Threads that wait for each other by spinning are slow on a busy machine, and a canary needs only one."""


def _others() -> list[str]:
    return [name for name in format_names() if name != "hermes"]


def _llamacpp() -> Iterator[Configuration]:
    def make(
        name: str, title: str, canary: str = "hermes", members: tuple[str, ...] = (), *flags: str
    ) -> Configuration:
        return Configuration("llamacpp", name, title, canary, members, (*_ONE_THREAD, *flags))

    yield make("jinja", "as it comes (--jinja)")
    yield make("jinja-long", "as it comes, a very long answer", "long")
    yield make("no-jinja", "without jinja", "hermes", FEW, "--no-jinja")
    yield make("skip-chat-parsing", "--skip-chat-parsing", "hermes", (), "--skip-chat-parsing")
    for kind in ("none", "deepseek", "deepseek-legacy"):
        flags = ("--reasoning-format", kind)
        yield make(f"reasoning-{kind}", f"--reasoning-format {kind}", "hermes", THINKING, *flags)
    yield make("formats", "a call of every format, under the Hermes template", EVERY_FORMAT)
    for name in _others():
        yield make(f"own-{name}", f"the format {name} with its own template", name)
    for name in _others():
        flags = ("--chat-template-file", f"{{template:{name}}}")
        yield make(f"wrong-{name}", f"a Hermes call under the template of {name}", EVERY_FORMAT, ("hermes",), *flags)


_MLX_PARSERS = {
    "qwen_xml": "qwen3_coder",
    "glm": "glm47",
    "gemma4": "gemma4",
    "functiongemma": "function_gemma",
    "longcat": "longcat",
    "lfm2": "pythonic",
    "kimi_k2": "kimi_k2",
    "minicpm5": "minicpm5",
    "mistral_args": "mistral",
    "muse_atem": "muse_spark",
    "minimax_m2": "minimax_m2",
}
"""Format -> the parser that mlx_lm infers from a template that spells calls so."""


def _mlx() -> Iterator[Configuration]:
    stack = "mlx_server"
    yield Configuration(stack, "json_tools", "as it comes (parser json_tools, inferred from the template)")
    yield Configuration(stack, "json_tools-long", "as it comes, a very long answer", "long")
    yield Configuration(
        stack,
        "no-parser",
        "the same template, spelled so that no parser is inferred",
        flags=("--chat-template", "{respelled}"),
    )
    yield Configuration(stack, "formats-json_tools", "a call of every format, parser json_tools", EVERY_FORMAT)
    for name, parser in _MLX_PARSERS.items():
        yield Configuration(stack, f"own-{parser}", f"the format {name} with its own template (parser {parser})", name)
    for name, parser in _MLX_PARSERS.items():
        flags = ("--chat-template", f"{{template-text:{name}}}")
        title = f"a call of every format, parser {parser}"
        yield Configuration(stack, f"formats-{parser}", title, EVERY_FORMAT, flags=flags)
    for name in ("granite", "llama3_json", "pythonic"):
        yield Configuration(
            stack, f"unparsed-{name}", f"the format {name} with its own template (no parser known)", name, FEW
        )


def _llamacpp_python() -> Iterator[Configuration]:
    stack = "llamacpp_python"
    yield Configuration(stack, "default", "as it comes (the model's own template)", context_length=4096)
    for chat_format, members in (("chatml", FEW), ("chatml-function-calling", ())):
        flags = ("--chat_format", chat_format)
        title = f"--chat_format {chat_format}"
        yield Configuration(stack, chat_format, title, "hermes", members, flags, context_length=4096)
    yield Configuration(stack, "formats", "a call of every format, as it comes", EVERY_FORMAT, context_length=4096)


def _inprocess() -> Iterator[Configuration]:
    yield Configuration("mlx_inprocess", "default", "in this process, behind the relay (nothing is parsed)")
    yield Configuration("mlx_inprocess", "formats", "a call of every format, in this process", EVERY_FORMAT)


def _parsers(stack: str) -> Iterator[tuple[str, str]]:
    """(parser, format) for every parser of a stack that a known format names, one format each."""
    seen = set()
    for entry in formats():
        for parser in entry.parsers.get(stack, ()):
            if parser not in seen and parser != "required":
                seen.add(parser)
                yield parser, entry.name


_VLLM = ("--max-model-len", "4096")


def _vllm() -> Iterator[Configuration]:
    def make(name: str, title: str, canary: str, members: tuple[str, ...], *flags: str) -> Configuration:
        return Configuration("vllm", name, title, canary, members, flags, 4096, heavy=True)

    yield make("no-parser", "without tool flags", "hermes", FEW)
    for parser, name in _parsers("vllm"):
        flags = ("--enable-auto-tool-choice", "--tool-call-parser", parser)
        yield make(f"own-{parser}", f"--tool-call-parser {parser}, the format {name}", name, (), *flags)
        if parser != "hermes":
            title = f"--tool-call-parser {parser}, a call of every format"
            yield make(f"formats-{parser}", title, EVERY_FORMAT, (), *flags)
    flags = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
    yield make("formats-hermes", "--tool-call-parser hermes, a call of every format", EVERY_FORMAT, (), *flags)
    for reasoning in ("qwen3", "deepseek_r1"):
        more = ("--enable-auto-tool-choice", "--tool-call-parser", "qwen3_coder", "--reasoning-parser", reasoning)
        title = f"--tool-call-parser qwen3_coder --reasoning-parser {reasoning}"
        yield make(f"reasoning-{reasoning}", title, "qwen_xml", THINKING, *more)


def _sglang() -> Iterator[Configuration]:
    def make(name: str, title: str, canary: str, members: tuple[str, ...], *flags: str) -> Configuration:
        return Configuration("sglang", name, title, canary, members, flags, 4096, heavy=True)

    yield make("no-parser", "without a tool parser", "hermes", FEW)
    for parser, name in _parsers("sglang"):
        flags = ("--tool-call-parser", parser)
        yield make(f"own-{parser}", f"--tool-call-parser {parser}, the format {name}", name, (), *flags)
        title = f"--tool-call-parser {parser}, a call of every format"
        yield make(f"formats-{parser}", title, EVERY_FORMAT, (), *flags)
