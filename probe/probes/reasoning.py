"""Can reasoning be switched on and off, and does it come in a field of its own?"""

from __future__ import annotations

from typing import Any

from probe.probes.items import cite_asks, no_turn, ran, rendered, run_items
from probe.probes.requests import QUESTION, asked, body_of, chat, script
from probe.result import ProbeResult
from probe.target import Target
from stacks.formats import split_reasoning

_TEMPLATE_SWITCH: tuple[dict[str, Any], dict[str, Any]] = (
    {"chat_template_kwargs": {"enable_thinking": True}},
    {"chat_template_kwargs": {"enable_thinking": False}},
)
_EFFORT: tuple[dict[str, Any], dict[str, Any]] = ({"reasoning_effort": "medium"}, {"reasoning_effort": "none"})
_THINK: tuple[dict[str, Any], dict[str, Any]] = ({"think": True}, {"think": False})

SWITCHES = {
    "llamacpp": _TEMPLATE_SWITCH,
    "vllm": _TEMPLATE_SWITCH,
    "sglang": _TEMPLATE_SWITCH,
    "mlx_server": _TEMPLATE_SWITCH,
    "ollama": _EFFORT,
}
"""(on, off) fields by stack, on its OpenAI route; `reasoning_effort` where none is listed. Sources: llama.cpp
`tools/server/README`, vLLM and SGLang docs on reasoning outputs, `mlx_lm/server.py`, Ollama's `openai/openai.go`."""


async def probe(target: Target) -> list[ProbeResult]:
    """`reasoning.switch` and `reasoning.separated`. Two renderings or two generations, and one generation."""
    return await run_items(target, {"reasoning.switch": _switch, "reasoning.separated": _separated})


def switch_of(target: Target) -> tuple[dict[str, Any], dict[str, Any]]:
    """The request fields that switch reasoning on and off on this stack."""
    if target.stack.chat_path.rstrip("/").endswith("/api/chat"):
        return _THINK
    return SWITCHES.get(target.stack.name, _EFFORT)


async def _switch(name: str, target: Target) -> ProbeResult:
    on, off = switch_of(target)
    field = next(iter(on))
    bodies = [body_of(target, asked(target, QUESTION, "think"), **fields) for fields in (on, off)]
    shown = [await rendered(target, body) for body in bodies]
    if shown[0].text is not None and shown[1].text is not None:
        evidence = await cite_asks(target, *shown[0].asks[-1:], *shown[1].asks[-1:])
        if shown[0].text != shown[1].text:
            return ran(name, "yes", f"{field} changes the rendered prompt", source=shown[0].source, evidence=evidence)
        why = f"{field} does not change the rendered prompt: the template has no such switch"
        return ran(name, "ignored", why, source=shown[0].source, evidence=evidence)
    replies = [await chat(target, body, name) for body in bodies]
    for reply in replies:
        if not reply.arrived:
            return no_turn(name, reply)
    evidence = replies[0].cite_turn() + replies[1].cite_turn()
    thought = [_reasons(reply.text, reply.reasoning) for reply in replies]
    if thought == [True, False]:
        return ran(name, "yes", f"{field} switches reasoning", reply=replies[1], evidence=evidence)
    if thought == [True, True] and target.known_text is None:
        return ran(name, "ignored", f"reasoning comes although {field} is off", reply=replies[1], evidence=evidence)
    why = "a known answer does not depend on it" if all(thought) else "the model shows no reasoning either way"
    return ran(name, "unknown", why, reply=replies[1], evidence=evidence)


def _reasons(text: str, reasoning: str) -> bool:
    return bool(reasoning.strip() or split_reasoning(text).reasoning)


async def _separated(name: str, target: Target) -> ProbeResult:
    on, _ = switch_of(target)
    fields = on if script(target, "think") is None else {}
    reply = await chat(target, body_of(target, asked(target, QUESTION, "thinkanswer"), **fields), name)
    if not reply.arrived:
        return no_turn(name, reply)
    field = reply.turn.reasoning_field if reply.turn is not None else None
    inside = bool(split_reasoning(reply.text).reasoning)
    if reply.reasoning.strip():
        support, why = ("partial", "reasoning stands in both places") if inside else ("yes", f"in the field {field!r}")
        return ran(name, "partial" if support == "partial" else "yes", why, reply=reply, value=field)
    if inside:
        return ran(name, "no", "reasoning stands in the answer's text", reply=reply)
    if script(target, "thinkanswer") is not None:
        why = "the model is known to write reasoning, and none came"
        return ran(name, "no", why, reply=reply, outcome="parser.dropped")
    return ran(name, "unknown", "the model shows no reasoning", reply=reply)
