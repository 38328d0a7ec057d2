"""What to change where a verdict is: in the flags of the server that was asked, as exactly as the record allows. Pure.

One place for reports, bug reports and the viewer.
"""

from __future__ import annotations

from functools import lru_cache

from probe.diagnose.words import remedy
from probe.pairing.verdict.room import context_for
from results.outcomes import Outcome
from stacks.serving.launch_advice import by_launch
from stacks.serving.openai import OpenAICompatible
from stacks.serving.registry import serving_stack

_GENERAL = OpenAICompatible()


def advice(
    outcome: Outcome,
    stack: str = "",
    *,
    model: str = "",
    flags: tuple[str, ...] = (),
    tokens: int = 0,
    call_format: str = "",
) -> str:
    """What to change: the launch flag at fault where the flags show it, else the verdict's own words, else what holds
    everywhere; empty where nothing is known.

    A refusal that was known by its words, and a parser that is known, are answered in the stack's own flags: the row
    of such words is terser. `tokens` is the size of a prompt that did not fit, 0 where it is not known.
    """
    if outcome.at_fault in ("config", "stack"):
        said = by_launch(outcome.name, stack, flags, call_format)
        if said:
            return said
    refused = outcome.layer in ("gate", "request", "template", "transport") and bool(outcome.signature)
    own = ""
    if refused or outcome.layer == "parser":
        own = _own_words(
            outcome.name, stack, model=model, flags=flags, tokens=tokens, call_format=call_format, refused=refused
        )
    return own or outcome.remedy or remedy(outcome, _GENERAL, {})


@lru_cache(maxsize=1000)
def _own_words(
    name: str, stack: str, *, model: str, flags: tuple[str, ...], tokens: int, call_format: str, refused: bool
) -> str:
    """In the stack's own words: for a refusal, and for a parser where the launch command names the one in force."""
    try:
        serving = serving_stack(stack)
    except KeyError:
        return ""
    facts = {"model": model} if model else {}
    if call_format:
        facts["format"] = call_format
    if tokens:
        facts |= {"tokens": str(tokens), "room": str(context_for(tokens))}
    launched = serving.flags(flags) if flags else {}
    for fact, key in (("parser", "in_force"), ("context_length", "context")):
        if fact in launched and launched[fact].value is not None:
            facts[key] = str(launched[fact].value)
    said = (serving.remedy(name, facts) or "") if refused or "in_force" in facts else ""
    if said and name == "request.context_exceeded" and tokens and "context" in facts and str(tokens) not in said:
        return f"{tokens:,} tokens do not fit the context of {facts['context']} that it was started with: {said}"
    return said
