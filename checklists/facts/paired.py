"""What a pairing found, said as what does not fit what: the set-up at fault, never a version by itself. Pure."""

from __future__ import annotations

import re

from checklists.facts.records import Beside
from probe.pairing.verdict.room import sizes_in
from stacks.serving.registry import title_of

_SAYS = {
    "parser.left_as_text": "hands {agent} its tool calls as plain text",
    "parser.dropped": "loses the tool calls that are meant for {agent}",
    "parser.in_reasoning": "hands {agent} its tool calls in the reasoning field, where they are not looked for",
    "parser.altered": "hands {agent} other tool calls than the model wrote",
    "parser.server_error": "fails on the tool calls that the model writes for {agent}",
    "template.tools_absent": "keeps the tools of {agent} from the model",
}
_REFUSES = "refuses the requests of {agent} because tools are offered in them"
_CONTEXT = re.compile(r"context is (\d[\d,]{0,9})")
_FLAG = re.compile(r"started with (`[^`]{1,80}`)")


def pair_headline(found: Beside, offered: int, refused: int) -> str:
    """One sentence for a pairing that broke; what the pairing itself said where that is all there is. `refused` of
    `offered` requests with tools were refused before the model ran."""
    if found.by != "pair" or found.kind != "faults" or not (found.agent and found.stack and found.outcome):
        return found.headline
    title = title_of(found.stack)
    server = f"{title} ({found.version})" if found.version else title
    said = found.explained[0] if found.explained else found.meaning
    if found.outcome == "request.context_exceeded":
        return _too_small(found, title, said, offered, refused)
    layer = found.outcome.partition(".")[0]
    says = _SAYS.get(found.outcome) or (_REFUSES if layer == "gate" else "")
    if not says or found.at_fault not in ("config", "stack"):
        return f"{found.agent} does not work with {server} as both are set up here: {said.rstrip('.')}."
    flag = _FLAG.search(said)
    how = f"Started with {flag[1]}, " if flag else "As it was started here, " if found.at_fault == "config" else ""
    return f"{how}{server} {says.format(agent=found.agent)}."


def _too_small(found: Beside, title: str, said: str, offered: int, refused: int) -> str:
    context = sizes_in(found.quote).context
    told = None if context else _CONTEXT.search(said)
    context = int(told[1].replace(",", "")) if told else context
    room = f"a context of {context:,} tokens" if context else f"the context of {title}"
    if not refused:
        return f"{found.agent} does not fit {room}: {title} refused its request."
    many = f"every request with tools ({refused} of {offered})" if refused == offered else f"{refused} of {offered}"
    return f"{found.agent} does not fit {room}: {title} refused {many}{'' if refused == offered else ' with tools'}."


def pair_sentences(found: Beside) -> list[str]:
    """At which step it broke, and what the headline leaves out."""
    said = []
    if found.step:
        doing = f": {found.doing}" if found.doing else ""
        where = "the first tool call" if found.step == 1 else "a later one"
        said.append(f"It broke at {where} (step {found.step} of {found.steps}{doing}).")
    if found.outcome == "request.context_exceeded" or not found.agent:
        said += found.explained
    return said
