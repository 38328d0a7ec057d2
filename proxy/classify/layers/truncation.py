"""Truncation: the output budget or the context ended the answer, or the prompt was cut without a word."""

from __future__ import annotations

import re

from proxy.classify.facts import Facts, JudgedCall
from proxy.classify.judged import Judgement
from proxy.classify.verdict import FLAGS, Verdict
from results.outcomes import Evidence

_WINDOWS = frozenset({2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144})
_BUDGET = "raise the output limit (max_tokens, num_predict), or ask for less"
_CONTEXT = "raise the context length on the server (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx in the Modelfile)"
_MIN_PROMPT = 6000
_CHARS_PER_TOKEN = 12
_SHORT = 60
"""More characters a token than any text an agent sends; fewer tokens than that means that text is missing."""


def truncation(judgement: Judgement) -> Verdict | None:
    """What an error's diagnosis puts here; a call or an answer cut by a limit; a prompt that was cut silently."""
    diagnosis = judgement.diagnosis
    if diagnosis is not None:
        return diagnosis if diagnosis.name.startswith("truncation.") else None
    facts = judgement.facts
    if facts.turn is None or not facts.generates:
        return None
    return _cut_call(facts) or _budget(facts) or _prompt_cut(facts)


def _cut_call(facts: Facts) -> Verdict | None:
    """A delivered call whose arguments end early, or a call in the text that does: by a limit, or by a stop string."""
    broken = next((judged for judged in facts.calls if judged.verdict == "not_json"), None)
    by_limit, by_stop = facts.limit_reached, _stop_strings(facts)
    ended = by_limit or by_stop
    if broken is None and not (ended and not facts.calls and (facts.scan.cut or _unclosed(facts))):
        return None
    if broken is not None and not _opens_early(broken.call.arguments_text):
        return None
    if not ended:
        return _uncounted(facts, broken)
    cited = facts.cite_call(broken.call, "ends early") if broken is not None else _cite_tail(facts)
    verdict = Verdict(
        "truncation.cut_inside_call",
        fault="config" if by_limit else "client",
        delivery="cut",
        evidence=[cited, *_limits(facts)],
        detail="a limit ended the answer inside a call" if by_limit else "a stop string ended the answer inside a call",
        remedy=_BUDGET if by_limit else "remove stop strings that can occur in a call's arguments",
    )
    return marked_if_forced(facts, verdict) if by_limit else verdict


def _uncounted(facts: Facts, broken: JudgedCall | None) -> Verdict | None:
    """A delivered call that ends early under an output limit, where no token count tells whether the limit was met."""
    limited = facts.request.max_tokens is not None and facts.completion_tokens is None
    if broken is None or not broken.call.arguments_text.strip() or not limited:
        return None
    verdict = Verdict(
        "truncation.cut_inside_call",
        delivery="cut",
        confidence="medium",
        evidence=[facts.cite_call(broken.call, "ends early")],
        detail=f"the arguments end early; the request allows {facts.request.max_tokens} tokens and none are counted",
        remedy=_BUDGET,
    )
    return verdict.undetermined("comparison_request: the same request with a larger output limit")


def _unclosed(facts: Facts) -> bool:
    """Whether the text ends with a call whose closing marker is missing."""
    calls = facts.scan.calls
    return bool(calls) and not calls[-1].call.closed and not facts.text[calls[-1].call.span.end :].strip()


def _opens_early(text: str) -> bool:
    """Whether the text is the beginning of a JSON object that is not closed."""
    depth = 0
    in_string = escaped = False
    for char in text:
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
    return not text.strip() or in_string or depth > 0


def _stop_strings(facts: Facts) -> bool:
    stop = facts.request.stop
    return bool(stop) and facts.turn is not None and facts.turn.finish != "length"


def _cite_tail(facts: Facts) -> Evidence:
    start = facts.scan.calls[-1].call.span.start if facts.scan.calls else 0
    if facts.scan.problems:
        start = facts.scan.problems[-1].span.start
    return facts.cite_text(start, len(facts.text), "a call that is not closed")


def _limits(facts: Facts) -> list[Evidence]:
    turn = facts.turn
    cited = []
    if turn is not None and turn.where_finish:
        cited.append(facts.cite_fragments(turn.where_finish, "the finish reason"))
    if facts.usage is not None:
        cited.append(facts.cite_usage("the token counts"))
    return cited


def _budget(facts: Facts) -> Verdict | None:
    """The answer ends because a limit was reached, and what came is not a whole call."""
    turn = facts.turn
    if turn is None:
        return None
    spent_on_nothing = facts.limit_reached and not facts.text.strip() and not facts.calls
    if turn.finish != "length" and not spent_on_nothing:
        return None
    if facts.calls and all(judged.verdict == "ok" for judged in facts.calls):
        return None
    if facts.scan.standing and not _unclosed(facts):
        return None
    window = _window(facts)
    spent, limit = facts.completion_tokens, facts.request.max_tokens
    own = limit is not None and (spent is None or spent >= limit)
    detail = f"the answer ends at a limit ({spent} tokens)" if spent is not None else "the answer ends at a limit"
    if window is not None and not own:
        detail = f"prompt and answer add up to {window} tokens: the context window ended the answer"
    verdict = Verdict(
        "truncation.output_budget",
        delivery="cut",
        evidence=_limits(facts) or [facts.cite_body("the answer")],
        detail=detail,
        remedy=_CONTEXT if window is not None and not own else _BUDGET,
    )
    return marked_if_forced(facts, verdict)


_FORCED = "or take the forced form away (no response format, `tool_choice` auto or none) to see what the model writes"
_RUNAWAY = re.compile(r"(.{1,80}?)\1{3,}\Z", re.DOTALL)
"""The end of a text that says one thing four times or more. A forced form that the model cannot end runs on so."""
_TAIL = 480


def marked_if_forced(facts: Facts, verdict: Verdict) -> Verdict:
    """A verdict on a limit, with the flag and remedy of a form that was forced meanwhile. Where the end of the text
    runs in a circle, the form and not the model is what ran to the limit."""
    if not facts.forced:
        return verdict
    verdict.flags.append("engine.constrained")
    verdict.remedy = f"{verdict.remedy}; {_FORCED}"
    came = facts.calls[-1].call.arguments_text if facts.calls else facts.text
    if len(came) > _SHORT and _RUNAWAY.search(came[-_TAIL:]):
        verdict.delivery = "constrained"
        verdict.detail += "; under a forced form it repeats itself up to there"
    return verdict


def _window(facts: Facts) -> int | None:
    """A usual context window that prompt and answer together fill exactly (or up to one token)."""
    prompt, spent = facts.prompt_tokens, facts.completion_tokens
    if prompt is None or spent is None:
        return None
    asked = facts.request.context_length
    return next((size for size in (prompt + spent, prompt + spent + 1) if size in _WINDOWS or size == asked), None)


def _prompt_cut(facts: Facts) -> Verdict | None:
    """The prompt's token count is far below what the request must take."""
    if not cut_prompt(facts):
        return None
    if facts.calls or not facts.offers:
        return None
    if facts.scan.standing or facts.scan.problems:
        return None
    verdict = Verdict(
        "truncation.context_cut_silently",
        confidence="medium",
        evidence=[facts.cite_usage(f"{facts.prompt_tokens} prompt tokens"), facts.cite_request((), "the request")],
        detail=f"{facts.prompt_tokens} prompt tokens for a request of {_asked_chars(facts)} characters",
        remedy=_CONTEXT,
    )
    return verdict.undetermined(FLAGS)


def cut_prompt(facts: Facts) -> bool:
    """Whether the counted prompt cannot hold the request's text."""
    prompt, estimate = facts.prompt_tokens, facts.view.prompt_tokens_estimate
    if prompt is None or prompt == 0 or (facts.usage is not None and facts.usage.cached):
        return False
    if estimate is not None:
        at_window = any(size - 2 <= prompt <= size for size in _near(facts))
        if prompt < (0.95 if at_window else 0.6) * estimate:
            return True
    chars = _asked_chars(facts)
    if chars < _MIN_PROMPT or prompt * _CHARS_PER_TOKEN >= chars:
        return False
    return any(0.9 * size <= prompt <= size + 8 for size in _near(facts))


def _near(facts: Facts) -> list[int]:
    asked = facts.request.context_length
    return [*_WINDOWS, 512, 1024, *([asked] if asked else [])]


def _asked_chars(facts: Facts) -> int:
    return sum(len(message.content or "") for message in facts.request.messages)
