"""Engine: the model's process crashed, hangs, or produced noise."""

from __future__ import annotations

import re

from proxy.classify.judged import Judgement
from proxy.classify.verdict import FLAGS, LOG, Verdict

_SPECIAL = re.compile(r"<\|[^|>\s]{0,40}\|>|<\uff5c[^\uff5c>]{1,60}\uff5c>|<unused\d+>|\[multimodal\]|\ufffd{2,}")
_LONG_PROMPT = 2048


def engine(judgement: Judgement) -> Verdict | None:
    """Silence after an earlier fault, what an error's diagnosis puts here, noise, and streams that simply stop."""
    facts = judgement.facts
    if facts.no_response:
        return _wedged(judgement)
    diagnosis = judgement.diagnosis
    if diagnosis is not None:
        return diagnosis if diagnosis.name.startswith("engine.") else None
    if facts.turn is None:
        return None
    return _aborted(judgement) or _repeated_sign(judgement) or _noise(judgement)


def _aborted(judgement: Judgement) -> Verdict | None:
    """The finish reason itself says that the engine gave up."""
    facts = judgement.facts
    turn = facts.turn
    if turn is None or turn.finish not in ("aborted", "error"):
        return None
    verdict = Verdict(
        "engine.crash",
        ran="yes",
        delivery="cut",
        evidence=[facts.cite_fragments(turn.where_finish, "the finish reason")],
        detail=f"the finish reason is {turn.finish_raw!r}",
        remedy="look into the server's log",
    )
    return verdict.undetermined(LOG)


_SIGN = re.compile(r"(\S{1,3}?)\1{24,}")


def _repeated_sign(judgement: Judgement) -> Verdict | None:
    """One sign over and over ("!!!!!!", "GGGGGG"): broken numbers in the engine, not words of a model."""
    facts = judgement.facts
    text = facts.text.strip()
    found = _SIGN.search(text[:4000]) if _repeats_midway(text[:4000]) else None
    if found is None or facts.calls or len(found[0]) < 0.8 * min(len(text), 4000) or found[1].strip("-=_*#~.") == "":
        return None
    verdict = Verdict(
        "engine.degenerate",
        confidence="medium",
        evidence=[facts.cite_text(found.start(), found.end(), "one sign repeated")],
        detail=f"the answer is {found[1]!r} over and over",
        remedy="check the quantisation, flash attention and cache types of the server; reload the model",
    )
    return verdict.undetermined(LOG)


def _repeats_midway(text: str) -> bool:
    """Whether the middle of a text is one sign of up to three characters over and over, as it must be where four
    fifths of the text are. Far cheaper than looking for the sign everywhere."""
    middle = text[2 * len(text) // 5 : 3 * len(text) // 5]
    return any(middle[period:] == middle[:-period] for period in (1, 2, 3))


def _wedged(judgement: Judgement) -> Verdict | None:
    facts = judgement.facts
    model = facts.request.model or ""
    earlier = facts.memory.fault_before(facts.upstream, model)
    if earlier is None:
        return None
    same = earlier.model == model
    return Verdict(
        "engine.wedged",
        ran="no",
        confidence="high" if same else "medium",
        evidence=[facts.cite_head("not one byte came"), *earlier.evidence[:2]],
        detail=f"no byte came after {earlier.name} in attempt {earlier.attempt}"
        + ("" if same else f" (model {earlier.model!r}; two names may share one set of weights)"),
        remedy="unload the model (Ollama: `keep_alive: 0`) or restart the server; upgrade to a release that recovers",
    )


def _noise(judgement: Judgement) -> Verdict | None:
    """Debris of special tokens in a short answer to a long prompt: the history was cut inside a structure, or the
    engine's numbers are broken. Not a model's choice of words."""
    facts = judgement.facts
    text = facts.text
    prompt = facts.prompt_tokens or facts.view.prompt_tokens_estimate or 0
    if facts.calls or not text or prompt < _LONG_PROMPT or len(text) > 400 or not _SPECIAL.search(text):
        return None
    if facts.scan.calls or any(problem.kind != "not_a_call" for problem in facts.scan.problems):
        return None
    found = _SPECIAL.search(text)
    start, end = found.span() if found is not None else (0, len(text))
    verdict = Verdict(
        "engine.degenerate",
        confidence="low",
        evidence=[facts.cite_text(start, end, "debris of special tokens"), facts.cite_usage("the prompt's size")],
        detail="a short answer with debris of special tokens after a long prompt",
        remedy="check the loaded context length against the prompt's size",
    )
    return verdict.undetermined(FLAGS)


def unfinished(judgement: Judgement) -> Verdict | None:
    """A stream that closes cleanly without finish reason and end mark, after some or no payload."""
    facts = judgement.facts
    assembled, turn = facts.assembled, facts.turn
    if not assembled.streamed or assembled.done_mark or (turn is not None and turn.finish is not None):
        return None
    if turn is not None and turn.tool_calls and all(call.verdict == "ok" for call in facts.calls):
        return None
    if turn is not None and turn.model == "" and facts.stack in ("ollama", ""):
        lost = Verdict(
            "engine.error_in_stream",
            ran="yes",
            confidence="medium",
            evidence=[facts.cite_body("an empty chunk of no model, and no end mark")],
            detail="an empty chunk without a model name and no end mark: Ollama's /v1 stream hides an error this way",
            remedy="ask /api/chat, or without streaming, to see the error text",
        )
        return lost.undetermined("comparison_request: the same request without streaming, or on /api/chat")
    item = facts.irregular("done_missing", "finish_missing", "event_missing", "stream_empty", "body_empty")
    verdict = Verdict(
        "protocol.done_missing",
        delivery="cut",
        confidence="medium",
        evidence=[facts.cite_irregular(item) if item is not None else facts.cite_body("the stream")],
        detail="the stream ends without finish reason and without end mark",
        remedy="look into the server's log for an exception at this moment",
    )
    return verdict.undetermined(LOG)
