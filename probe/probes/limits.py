"""Where do the limits lie, and are they told? Context in force, size of a schema, number of tools; by few doublings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from probe.known_answer import WEATHER_TOOL
from probe.probes.items import no_turn, ran, run_items
from probe.probes.requests import body_of, chat
from probe.reply import Reply
from probe.result import ProbeResult
from probe.target import Target

LARGEST_PROMPT = 8192
"""Tokens of the longest prompt that is tried: a longer one costs a server without a GPU minutes."""
PROMPT_SECONDS = 30.0
_SIZES = (2048, LARGEST_PROMPT)
_BISECTIONS = 3
_SHORT_WORDS, _LONG_WORDS = 20, 220

_TOLD = (re.compile(r'n_ctx"?\\*"?\s*[:=]\s*(\d{2,8})'), re.compile(r"context (?:length|size|window)\D{0,30}(\d{2,8})"))


async def probe(target: Target) -> list[ProbeResult]:
    """`limits.context`, `limits.schema`, `limits.tools`. Up to 7 + 5 + 5 requests of one token."""
    items = {"limits.context": _context, "limits.schema": _schema, "limits.tools": _tools}
    return await run_items(target, items)


# ---------------------------------------------------------------------- context
def context_told(text: str) -> int | None:
    """The context length that an error text names."""
    return next((int(found[1]) for pattern in _TOLD if (found := pattern.search(text))), None)


@dataclass(frozen=True, slots=True)
class _Rate:
    """Tokens of a filler prompt: `base` + `per_word` * words."""

    base: float
    per_word: float

    def words(self, tokens: float) -> int:
        return max(1, int((tokens - self.base) / self.per_word) + 1)

    def tokens(self, words: int) -> float:
        return self.base + self.per_word * words


def _filler(target: Target, words: int) -> dict[str, Any]:
    return body_of(target, " ".join(["apple"] * words), tools=None, max_tokens=1)


async def _ask(target: Target, name: str, words: int) -> Reply:
    return await chat(target, _filler(target, words), name, seconds=PROMPT_SECONDS)


async def _rate(target: Target, name: str) -> tuple[_Rate | None, Reply]:
    short = await _ask(target, name, _SHORT_WORDS)
    if not short.arrived or short.prompt_tokens is None:
        return None, short
    long = await _ask(target, name, _LONG_WORDS)
    if not long.arrived or long.prompt_tokens is None or long.prompt_tokens <= short.prompt_tokens:
        return None, long
    per_word = (long.prompt_tokens - short.prompt_tokens) / (_LONG_WORDS - _SHORT_WORDS)
    return _Rate(short.prompt_tokens - per_word * _SHORT_WORDS, per_word), long


async def _context(name: str, target: Target) -> ProbeResult:
    rate, reply = await _rate(target, name)
    told = _told_by_metadata(target)
    if rate is None:
        if not reply.arrived:
            return no_turn(name, reply, value=told or context_told(reply.error))
        return ran(name, "unknown", "the server counts no prompt tokens", reply=reply, value=told)
    if told is not None and told > LARGEST_PROMPT:
        why = f"{told} tokens by the server's own word; not tried, since that would take a prompt as long"
        return ran(name, "unknown", why, value=told, source="metadata")
    sizes = (int(told * 1.25) + 64,) if told is not None else _SIZES
    fits = rate.tokens(_LONG_WORDS)
    for tokens in sizes:
        reply = await _ask(target, name, rate.words(tokens))
        if not reply.arrived:
            return await _refused(name, target, reply, rate=rate, fits=fits, told=told)
        if _cut(reply, tokens):
            why = f"a prompt of about {tokens} tokens was cut to {reply.prompt_tokens} without a word"
            outcome, evidence = "truncation.context_cut_silently", reply.cite_usage() + reply.cite_request("messages")
            value = told or reply.prompt_tokens
            return ran(name, "no", why, reply=reply, value=value, outcome=outcome, evidence=evidence)
        fits = tokens
    why = f"a prompt of {reply.prompt_tokens} tokens was taken whole"
    why += f", more than the {told} that the metadata tell" if told is not None else "; no limit was met"
    return ran(name, "unknown", why, value=told, evidence=reply.cite_usage())


def _told_by_metadata(target: Target) -> int | None:
    fact = target.identity.context_length if target.identity is not None else None
    value = fact.value if fact is not None and fact.unknown is None else None
    return value if isinstance(value, int) and value > 0 else None


def _cut(reply: Reply, tokens: float) -> bool:
    return reply.prompt_tokens is not None and reply.prompt_tokens < 0.9 * tokens


async def _refused(
    name: str, target: Target, reply: Reply, *, rate: _Rate, fits: float, told: int | None
) -> ProbeResult:
    """A prompt was too long and that was said: the number from the error, the metadata, or by bisection."""
    if not reply.refused:
        return no_turn(name, reply, value=told)
    limit = context_told(reply.error) or told
    evidence = reply.cite_error()
    if limit is not None:
        why = f"longer prompts are refused: {reply.error}"
        return ran(name, "yes", why, reply=reply, value=limit, source="error answer", evidence=evidence)
    low, high = fits, _asked_tokens(reply, rate)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        tried = await _ask(target, name, rate.words(middle))
        if tried.arrived and not _cut(tried, middle):
            low = middle
        elif tried.refused:
            high = middle
        else:
            break
    why = f"prompts of {low:.0f} tokens are taken, of {high:.0f} refused: {reply.error}"
    return ran(name, "yes", why, reply=reply, value=round(low), source="bisection", evidence=evidence)


def _asked_tokens(reply: Reply, rate: _Rate) -> float:
    asked = reply.facts.request.messages[0].content if reply.facts is not None else ""
    return rate.tokens(len((asked or "").split()))


# ---------------------------------------------------------------------- schema size, number of tools
def wide_tool(properties: int) -> dict[str, Any]:
    """A tool with so many parameters."""
    fields = {f"field_{number}": {"type": "string"} for number in range(properties)}
    function = {**WEATHER_TOOL["function"], "parameters": {"type": "object", "properties": fields}}
    return {"type": "function", "function": function}


def many_tools(count: int) -> list[dict[str, Any]]:
    """So many tools of different names."""
    function = WEATHER_TOOL["function"]
    return [{"type": "function", "function": {**function, "name": f"get_weather_{number}"}} for number in range(count)]


async def _schema(name: str, target: Target) -> ProbeResult:
    return await _edge(name, target, (32, 256), lambda size: [wide_tool(size)], "parameters in one tool")


async def _tools(name: str, target: Target) -> ProbeResult:
    return await _edge(name, target, (16, 128), many_tools, "tools")


async def _edge(
    name: str, target: Target, sizes: Sequence[int], tools: Callable[[int], list[dict[str, Any]]], what: str
) -> ProbeResult:
    """Grow until refused, then bisect: the largest that was taken and the smallest that was not."""

    async def ask(size: int) -> Reply:
        body = body_of(target, "Hello.", tools=tools(size), max_tokens=1)
        return await chat(target, body, name, seconds=PROMPT_SECONDS)

    taken, refused, last = 0, 0, None
    for size in sizes:
        reply = await ask(size)
        if not reply.arrived:
            refused, last = size, reply
            break
        taken = size
    if last is None:
        why = f"{taken} {what} are taken; no limit was met"
        return ran(name, "yes", why, value={"taken": taken}, evidence=reply.cite_usage())
    if taken == 0 or not last.refused:
        return no_turn(name, last, value={"taken": taken, "failed": refused})
    if last.outcome == "request.context_exceeded":
        why = f"{taken} {what} are taken; {refused} do not fit the context, so no other limit was met: {last.error}"
        value = {"taken": taken, "beyond_context": refused}
        return ran(name, "yes", why, reply=last, value=value, evidence=last.cite_error())
    for _ in range(_BISECTIONS):
        middle = (taken + refused) // 2
        if middle in (taken, refused):
            break
        reply = await ask(middle)
        if reply.arrived:
            taken = middle
        else:
            refused, last = middle, reply
    why = f"{taken} {what} are taken, {refused} are not: {last.error}"
    value = {"taken": taken, "refused": refused}
    return ran(name, "partial", why, reply=last, value=value, source="bisection", evidence=last.cite_error())
