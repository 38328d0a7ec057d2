"""Are the offered tools in the model's prompt? By the rendered prompt where a server shows one, else by its length."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from probe.asking import ANSWER_SECONDS
from probe.diagnose.asked import as_openai, tool_tokens
from probe.diagnose.diagnosis import Step
from probe.diagnose.looking import Seen
from results.outcomes import Evidence, Outcome
from stacks.serving.base import Rendered

if TYPE_CHECKING:
    from probe.diagnose.triage import Triage


async def tools_present(triage: Triage, seen: Seen, body: Mapping[str, Any], *, by_count: bool = True) -> bool | None:
    """Whether the tools of a chat request are in the prompt; concludes where they are not. None: nobody can see.

    `by_count`: where no prompt is shown, a generation without tools tells by its number of tokens.
    """
    form = as_openai(seen.answer.ask.path, body)
    tools = tool_names(body)
    if form is None or not tools:
        return None
    rendered = await _rendered(triage, form)
    present = await _present(triage, form, rendered, tools)
    if present is None and by_count and not triage.silent and seen.prompt_tokens is not None:
        present = await _present_by_count(triage, seen, form)
    if present is False:
        triage.conclude(await _absent(triage, seen, rendered, tools))
    return present


async def _rendered(triage: Triage, form: Mapping[str, Any]) -> Rendered:
    target = triage.target
    began = time.monotonic()
    rendered = await target.asker.follow(target.stack.render(form), probe="render")
    if rendered.text is None and time.monotonic() - began >= ANSWER_SECONDS:
        triage.silent = True
    triage.prompt = rendered.text
    return rendered


def tool_names(body: Mapping[str, Any]) -> list[str]:
    """Names of the tools that a request offers."""
    tools = body.get("tools")
    if not isinstance(tools, list):
        return []
    functions = [tool.get("function", tool) for tool in tools if isinstance(tool, dict)]
    return [str(f["name"]) for f in functions if isinstance(f, dict) and isinstance(f.get("name"), str)]


async def _present(triage: Triage, form: Mapping[str, Any], rendered: Rendered, tools: list[str]) -> bool | None:
    """Whether the tools are in the prompt: each name must stand there more often than without tools."""
    if rendered.text is None:
        return None
    target = triage.target
    bare = {name: value for name, value in form.items() if name not in ("tools", "tool_choice")}
    without = await target.asker.follow(target.stack.render(bare), probe="render")
    if without.text is None:
        return None
    text, base = rendered.text, without.text
    named = [name for name in tools if text.count(name) > base.count(name)]
    said = f"{len(text)} characters, {len(base)} without tools; tools in it: {', '.join(named[:8]) or 'none'}"
    triage.note(Step("the rendered prompt", said))
    return bool(named)


async def _present_by_count(triage: Triage, seen: Seen, form: Mapping[str, Any]) -> bool | None:
    """Where no prompt can be seen: does it grow by about the size of the tools when they are offered?"""
    messages = list(form["messages"])
    bare = await triage.see(
        "no tools, for the count", stream=False, tools=False, messages=messages, max_tokens=1, judged_step=False
    )
    if not bare.prompt_tokens or not seen.prompt_tokens:
        return None  # Some servers count nothing and say 0.
    grown = seen.prompt_tokens - bare.prompt_tokens
    triage.note(Step("prompt tokens", f"{seen.prompt_tokens} with tools, {bare.prompt_tokens} without"))
    return grown >= tool_tokens(form.get("tools", []))


async def _absent(triage: Triage, seen: Seen, rendered: Rendered, tools: list[str]) -> Outcome:
    cited = await _cite(triage, rendered.asks, rendered.text or "", "the rendered prompt, without the tools")
    evidence = (cited,) if cited is not None else seen.outcome.evidence
    called = "; a call came all the same, for the question names the tool" if seen.called else ""
    how = "the rendered prompt does not hold" if rendered.text is not None else "the prompt is no longer for"
    return Outcome(
        layer="template",
        code="tools_absent",
        at_fault="config",
        model_ran="yes",
        # A count may be a constant, or leave out what was in a cache; a prompt that is seen may not.
        confidence="high" if rendered.text is not None else "medium",
        grade="differential",
        delivery=seen.outcome.delivery,
        evidence=evidence,
        detail=f"{how} {', '.join(tools)}: the chat template renders no tools{called}",
        remedy="use a chat template that renders tools (the model's own, where it has one)",
    )


async def _cite(triage: Triage, asks: tuple[int, ...], text: str, why: str) -> Evidence | None:
    """A citation of the body in which a rendering or a raw text came."""
    for number in reversed(asks):
        exchange = await triage.target.asker.recorded(number)
        response = exchange.response if exchange is not None else None
        if exchange is not None and response is not None and response.body:
            start, end = response.wire_range(0, len(response.body))
            return Evidence(
                attempt=exchange.attempt,
                direction="response",
                start=start,
                end=end,
                quote=(text or response.body.decode("utf-8", "replace"))[:400],
                why=why,
            )
    return None
