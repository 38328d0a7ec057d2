"""Four guards that come before any number: the same tokens, the same prompt, the template's drift, the same tensors.

A guard that fails excludes the model, with the reason on record. Drift between the source's template and the one in a
GGUF file is recorded and excludes nothing: prompts are rendered from the source's, and the record says that the file
would have rendered another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stacks.engine import Message, RenderError, Tool
from stacks.source_template import SourceTemplate

State = Literal["ok", "recorded", "failed"]

PROBE_TEXTS = (
    "The quick brown fox jumps over the lazy dog.",
    '{"name": "get_weather", "arguments": {"city": "Köln", "days": 3}}',
    "  two  spaces,\ttab,\r\nnew lines\n\n\nand 1234567890 numbers -12.50e3",
    "naïve café Ærøskøbing 東京 Москва שלום 👩‍👩‍👧 ½ …",
    "<|im_start|>user\nHello<|im_end|>\n",
    "def f(x):\n    return x ** 2  # a comment",
)
"""Texts on which tokenizers are compared: words, JSON, white space, scripts, special tokens, code."""

_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
PROBE_CHATS: tuple[tuple[tuple[Message, ...], tuple[Tool, ...]], ...] = (
    (({"role": "user", "content": "Hello"},), ()),
    (({"role": "system", "content": "Answer in JSON."}, {"role": "user", "content": "Köln?"}), ()),
    (
        (
            {"role": "user", "content": "One"},
            {"role": "assistant", "content": '{"a": 1}'},
            {"role": "user", "content": "Two"},
        ),
        (),
    ),
    (({"role": "user", "content": "Weather in Köln?"},), (_TOOL,)),
)
"""Conversations on which renderings are compared."""


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard's verdict. ``reason`` says what was compared, or what differs."""

    name: str
    state: State
    reason: str


def excluded(guards: Sequence[Guard]) -> list[str]:
    """Why a model must not be measured; empty where it may."""
    return [f"{guard.name}: {guard.reason}" for guard in guards if guard.state == "failed"]


def tokenizer_equivalence(
    source: Callable[[str], Sequence[int]],
    converted: Callable[[str], Sequence[int]],
    texts: Sequence[str] = PROBE_TEXTS,
) -> Guard:
    """Whether the converted model's tokenizer makes the same tokens of the same texts."""
    for text in texts:
        mine, theirs = list(source(text)), list(converted(text))
        if mine != theirs:
            place = next((at for at, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), None)
            at = min(len(mine), len(theirs)) if place is None else place
            said = (
                f"{text[:40]!r} is {len(mine)} tokens in the source and {len(theirs)} here, the first other one is {at}"
            )
            return Guard("tokenizer_equivalence", "failed", said)
    return Guard("tokenizer_equivalence", "ok", f"the same tokens on {len(texts)} texts")


Render = Callable[[Sequence[Message], Sequence[Tool]], str]


def template_fidelity(template: SourceTemplate, engine: Render, decoded: Callable[[str], bytes] | None = None) -> Guard:
    """Whether our rendering of the source's template is that of the engine's own library over the same template, and,
    with ``decoded``, whether the prompt survives the tokenizer byte for byte."""
    compared = 0
    for messages, tools in PROBE_CHATS:
        mine, theirs = _rendered(template.render, messages, tools), _rendered(engine, messages, tools)
        if mine != theirs:
            return Guard("template_fidelity", "failed", f"a conversation of {len(messages)} messages renders otherwise")
        if mine.startswith("refused"):
            continue
        if decoded is not None and decoded(mine) != mine.encode():
            return Guard("template_fidelity", "failed", "a rendered prompt does not survive the tokenizer")
        compared += 1
    if not compared:
        return Guard("template_fidelity", "failed", "the template renders none of the conversations")
    return Guard(
        "template_fidelity", "ok", f"{compared} of {len(PROBE_CHATS)} conversations render alike, the others not"
    )


def gguf_template_drift(source: SourceTemplate, embedded: SourceTemplate | None) -> Guard:
    """Whether the template in a GGUF file is the source's; by what it renders where its text differs."""
    name = "gguf_template_drift"
    if embedded is None:
        return Guard(name, "recorded", "the file holds no template; prompts are rendered from the source's")
    if source.text == embedded.text:
        return Guard(name, "ok", "the file holds the source's template")
    other = [
        place
        for place, (messages, tools) in enumerate(PROBE_CHATS)
        if _rendered(source.render, messages, tools) != _rendered(embedded.render, messages, tools)
    ]
    renders = f"{len(other)} of {len(PROBE_CHATS)} conversations render otherwise" if other else "it renders alike"
    return Guard(name, "recorded", f"the file holds another template than the source: {renders}")


def tensor_count_parity(source: Mapping[str, int], converted: Mapping[str, int]) -> Guard:
    """Whether a tier holds the tensors of its chain's baseline: names to numbers of logical weights."""
    name = "tensor_count_parity"
    missing, extra = sorted(source.keys() - converted.keys()), sorted(converted.keys() - source.keys())
    if missing or extra:
        first = f"{missing[0]!r} is missing" if missing else f"{extra[0]!r} is not in the baseline"
        return Guard(name, "failed", f"{len(converted)} tensors, the baseline has {len(source)}: {first}")
    other = sorted(tensor for tensor in source if source[tensor] != converted[tensor])
    if other:
        said = f"{other[0]!r} holds {converted[other[0]]} weights, in the baseline {source[other[0]]}"
        return Guard(name, "failed", said)
    return Guard(name, "ok", f"the same {len(source)} tensors, {sum(source.values())} weights")


def _rendered(render: Render, messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    try:
        return render(messages, tools)
    except RenderError:
        return "refused"
