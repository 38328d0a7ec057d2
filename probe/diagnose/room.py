"""Whether an agent's prompt fits into the context in force: asked for real where the context is known to be small."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from probe.diagnose import asked
from probe.diagnose.looking import Seen, graded
from results.outcomes import Outcome

if TYPE_CHECKING:
    from probe.diagnose.triage import Triage

SMALL = 4096
"""Tokens. Real agents sent 3,800 (aider) to 26,900 (Qwen Code) tokens before the user's first word; measured on
recorded runs of mini-swe-agent, opencode, Codex CLI, Qwen Code and aider with a known-answer model."""
AMPLE = 32768
_WORDS = "Work carefully, one step at a time, and read every file before you change it. "
_WORD_TOKENS = 17
"""Tokens of `_WORDS` at least, in common tokenizers."""


async def too_small(triage: Triage) -> bool:
    """Send a prompt of an agent's size where the context in force is smaller; concludes on what comes of it."""
    identity = triage.target.identity
    context = identity.context_length.value if identity is not None else None
    if not isinstance(context, int) or context >= AMPLE:
        return False
    if context >= SMALL:
        triage.diagnosis.notes.append(
            f"the context in force is {context} tokens; agents send 3,800 to 26,900 before the user's first word"
        )
        return False
    filler = _WORDS * (context // _WORD_TOKENS + 8)
    messages = asked.opening(triage.trigger)
    messages[0] = {"role": "system", "content": f"{messages[0]['content']} {filler}"}
    large = await triage.see("a prompt of an agent's size", stream=False, messages=messages)
    triage.facts["room"] = str(AMPLE)
    triage.conclude(
        _verdict(large, context), [f"The context in force is {context} tokens; agents send more than that."]
    )
    return True


def _verdict(large: Seen, context: int) -> Outcome:
    """What the server did with a prompt that cannot fit: refused it, or cut it without a word."""
    outcome = large.outcome
    if not large.ok and outcome.layer in ("request", "truncation"):
        return graded(msgspec.structs.replace(outcome, at_fault="config", decide_by=None), "differential")
    if large.classified.facts.failed:
        detail = f"a prompt longer than the context of {context} tokens is answered with an error"
        return Outcome(
            layer="request",
            code="context_exceeded",
            at_fault="config",
            model_ran="no",
            grade="differential",
            delivery="refused",
            evidence=outcome.evidence,
            detail=detail,
        )
    counted = large.prompt_tokens
    detail = f"a prompt longer than the context was taken without an error (counted: {counted} tokens of {context})"
    return Outcome(
        layer="truncation",
        code="context_cut_silently",
        at_fault="config",
        model_ran="yes",
        grade="differential",
        delivery="unknown",
        evidence=outcome.evidence,
        detail=detail,
    )
