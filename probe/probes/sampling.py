"""Which fields of a request have an effect? Each is shown by what comes back, or left unknown."""

from __future__ import annotations

from typing import Any

from probe.probes.items import no_turn, not_applicable, ran, run_items
from probe.probes.requests import body_of, chat, few, worded
from probe.reply import Reply
from probe.result import ProbeResult
from probe.target import Target

_COUNT = "Count from one to twenty in words."
_LIMIT = 1
_INVENT = "Invent a name for a ship."
_SECONDS = 30.0


async def probe(target: Target) -> list[ProbeResult]:
    """`sampling.<field>` for max_tokens, max_completion_tokens, stop, n, logprobs, seed. Nine short generations."""
    items = {
        "max_tokens": _limit,
        "max_completion_tokens": _limit,
        "stop": _stop,
        "n": _n,
        "logprobs": _logprobs,
        "seed": _seed,
    }
    return await run_items(target, {f"sampling.{name}": item for name, item in items.items()})


def _body(target: Target, question: str = _COUNT, *, max_tokens: int | None = 24, **fields: Any) -> dict[str, Any]:
    max_tokens = few(target, max_tokens) if max_tokens else None
    return body_of(target, worded(target, question), tools=None, max_tokens=max_tokens, **fields)


async def _free(target: Target, name: str) -> Reply:
    """The answer that the fields are to change."""
    return await chat(target, _body(target), name)


async def _limit(name: str, target: Target) -> ProbeResult:
    field = name.partition(".")[2]
    reply = await chat(target, {**_body(target, max_tokens=None), field: _LIMIT}, name, seconds=_SECONDS)
    if not reply.arrived:
        return no_turn(name, reply)
    spent = reply.completion_tokens
    value = {"limit": _LIMIT, "completion_tokens": spent, "finish": reply.finish}
    if spent is not None and spent > _LIMIT + 1:
        why = f"{spent} tokens came under a limit of {_LIMIT}"
        return ran(
            name,
            "ignored",
            why,
            reply=reply,
            value=value,
            outcome="protocol.choice_ignored",
            evidence=reply.cite_usage(),
        )
    if reply.finish == "length":
        return ran(name, "yes", "the limit ended the answer, and is told", reply=reply, value=value)
    free = await _free(target, name)
    if free.arrived and len(free.text) > len(reply.text):
        why = f"the limit ended the answer, and the finish reason is {reply.finish}"
        return ran(name, "partial", why, reply=reply, value=value)
    return ran(name, "unknown", "the answer is no longer without the limit", reply=reply, value=value)


async def _stop(name: str, target: Target) -> ProbeResult:
    free = await _free(target, name)
    if not free.arrived:
        return no_turn(name, free)
    stop = stop_in(free.text)
    if stop is None:
        return ran(name, "unknown", "the free answer is too short to stop in", reply=free)
    reply = await chat(target, _body(target, stop=[stop]), name)
    if not reply.arrived:
        return no_turn(name, reply)
    before = free.text[: free.text.index(stop)].strip()
    came = reply.text.strip()
    value = {"stop": stop, "free": free.text, "came": reply.text}
    if came == before:
        return ran(name, "yes", "the answer ends before the stop text", reply=reply, value=value)
    if came == free.text.strip():
        why = "the stop text and what follows came too"
        return ran(name, "ignored", why, reply=reply, value=value, outcome="protocol.choice_ignored")
    if came.startswith(before) and len(came) < len(free.text.strip()):
        return ran(name, "partial", "the answer ends there, and text beyond the stop leaks", reply=reply, value=value)
    return ran(name, "unknown", "another answer came, so nothing can be compared", reply=reply, value=value)


def stop_in(text: str) -> str | None:
    """A word in the middle of a text that stands nowhere before it; None where there is none."""
    words = text.split()
    for word in words[len(words) // 2 : -1] if len(words) >= 4 else ():
        if len(word) >= 3 and text.index(word) >= len(text) // 4:
            return word
    return None


async def _n(name: str, target: Target) -> ProbeResult:
    if target.stack.chat_path.rstrip("/").endswith("/api/chat"):
        return not_applicable(name, "this route has no such field")
    # Servers may refuse several choices of greedy sampling, for they would all be the same.
    reply = await chat(target, _body(target, n=2, temperature=1), name)
    if not reply.arrived:
        return no_turn(name, reply)
    choices = reply.answer.get("choices")
    count = len(choices) if isinstance(choices, list) else 0
    if count >= 2:
        return ran(name, "yes", f"{count} choices came", reply=reply, value=count)
    why = f"two choices were asked for, and {count} came"
    return ran(name, "ignored", why, reply=reply, value=count, outcome="protocol.choice_ignored")


async def _logprobs(name: str, target: Target) -> ProbeResult:
    reply = await chat(target, _body(target, logprobs=True, top_logprobs=1), name)
    if not reply.arrived:
        return no_turn(name, reply)
    found = reply.answer.get("choices", 0, "logprobs") or reply.answer.get("logprobs")
    if found:
        return ran(name, "yes", "log probabilities came", reply=reply, evidence=reply.cite_body())
    return ran(name, "ignored", "accepted, and none came", reply=reply, outcome="protocol.choice_ignored")


async def _seed(name: str, target: Target) -> ProbeResult:
    if target.known_text is not None:
        return ran(name, "unknown", "a known answer does not depend on a seed")
    texts = []
    for seed in (11, 11, 12):
        body = _body(target, _INVENT, max_tokens=12, temperature=1, seed=seed)
        reply = await chat(target, body, name, again=True)
        if not reply.arrived:
            return no_turn(name, reply)
        texts.append(reply.text + reply.reasoning)
    if texts[0] != texts[1]:
        why = "two answers with one seed differ"
        return ran(name, "ignored", why, reply=reply, value=texts, outcome="protocol.choice_ignored")
    if texts[1] == texts[2]:
        return ran(name, "unknown", "another seed brings the same answer", reply=reply, value=texts)
    return ran(name, "yes", "one seed one answer, another seed another", reply=reply, value=texts)
