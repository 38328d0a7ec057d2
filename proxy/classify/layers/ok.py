"""Ok: a usable call or an answer in text. Total: whatever no other layer stopped ends here."""

from __future__ import annotations

import json
import re

from proxy.classify.facts import Facts
from proxy.classify.judged import Judgement
from proxy.classify.verdict import CHOICE, Verdict
from results.outcomes import Wrote

_SMALL_TALK = re.compile(
    r"\A\W*(?:hi|hello|hey|hallo|hola|bonjour|ciao|good (?:morning|evening|afternoon|day)|thanks?(?: you)?|thank you"
    r"(?: very much)?|ok(?:ay)?|yes|no|how are you(?: doing)?|who are you|what(?:'s| is) up|ping|test|bye|goodbye|"
    r"你好|您好|谢谢|こんにちは|안녕하세요|привет)\b[\w\s,'’]{0,24}\W*\Z",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]{4,}")
_DECLINES = re.compile(
    r"\b(?:won't|will not|can't|cannot|can not|unable|refuse|sorry|not (?:going to|able)|declin\w+|shouldn't|which |"
    r"could you|please (?:tell|provide|give|confirm|specify)|do you want|would you like|"
    r"what (?:is|city|file))\b|\?\s*\Z",
    re.IGNORECASE,
)


def ok(judgement: Judgement) -> Verdict:
    """A native call, an answer in text, or a request that asks for no generation."""
    facts = judgement.facts
    if not facts.generates:
        return Verdict("ok.service", evidence=[facts.cite_head("answered")], detail="no generation was asked for")
    if facts.calls:
        return _native(facts)
    return _answer(facts)


def _native(facts: Facts) -> Verdict:
    call = facts.calls[0].call
    verdict = Verdict(
        "ok.native_call",
        evidence=[facts.cite_events(call.where, "a valid call to an offered tool")],
        detail=f"{len(facts.calls)} valid call{'s' if len(facts.calls) > 1 else ''}",
    )
    if facts.constrains:
        verdict.confidence = "medium"
        verdict.flags.append("engine.constrained")
        verdict.detail += "; this server constrains calls while they are generated, so it may not be the model's own"
    if facts.limit_reached:
        verdict.confidence = "low"
        verdict.flags.append("truncation.output_budget")
        verdict.detail += "; a limit ended the answer, so more may have been meant"
    if repeats_last_call(facts):
        verdict.flags.append("model.loop")
        verdict.detail += "; the same call was just answered in the history"
        verdict.fault, verdict.decide_by = "undetermined", "comparison_request: is the result in the rendered prompt?"
        verdict.confidence = "low"
    return verdict


def repeats_last_call(facts: Facts) -> bool:
    """Whether the first call repeats the last one of the history, right after its result."""
    messages = facts.request.messages
    if not messages or messages[-1].role not in ("tool", "function"):
        return False
    earlier = next((message for message in reversed(messages) if message.tool_calls), None)
    if earlier is None:
        return False
    mine, last = facts.calls[0].call, earlier.tool_calls[-1]
    return mine.name == last.name and _canonical(mine.arguments) == _canonical(last.arguments)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def _answer(facts: Facts) -> Verdict:
    turn = facts.turn
    fragments = (*turn.where_content, *turn.where_refusal) if turn is not None else ()
    evidence = [facts.cite_events(fragments, "the answer")]
    if turn is not None and turn.finish == "length":
        flags = ["truncation.output_budget"]
        detail = "text was asked for and came; a limit was met, after a call that is whole"
        return Verdict("ok.final_answer", confidence="low", evidence=evidence, detail=detail, flags=flags)
    if not facts.offers or facts.choice == "none":
        called = bool(facts.scan.standing) and _asked_in_text(facts)
        name = "ok.text_call" if called else "ok.final_answer"
        wrote: Wrote = "valid_call" if called else "prose"
        return Verdict(name, wrote=wrote, evidence=evidence, detail="text was asked for and came")
    verdict = Verdict("ok.final_answer", evidence=evidence, detail="an answer in text")
    if after_result(facts):
        verdict.wrote = "prose"
        return verdict
    if small_talk(facts):
        verdict.name, verdict.wrote, verdict.detail = "ok.no_call_needed", "prose", "no call was due"
        return verdict
    if call_due(facts) or _too_many_tokens(facts):
        if _too_many_tokens(facts):
            verdict.flags.append("parser.dropped")
            verdict.evidence.append(facts.cite_usage("more tokens than this text takes"))
        verdict.detail = "text came where an offered tool fits the question; whether a call was lost is not to be seen"
        verdict.fault, verdict.decide_by, verdict.confidence = "undetermined", CHOICE, "low"
        return verdict
    verdict.confidence = "medium"
    return verdict


def _too_many_tokens(facts: Facts) -> bool:
    """Whether more tokens were generated than the delivered text can take (1.5 bytes a token is dense for any text)."""
    spent = facts.completion_tokens
    hidden = (facts.usage.reasoning or 0) if facts.usage is not None else 0
    if spent is None:
        return False
    return spent - hidden > len((facts.text + facts.reasoning).encode("utf-8", "replace")) / 1.5 + 16


def _asked_in_text(facts: Facts) -> bool:
    """Whether the messages themselves name the tool that the text calls (tools described in the prompt)."""
    names = {call.call.name for call in facts.scan.standing}
    asked = "\n".join(message.content or "" for message in facts.request.messages)
    return any(name in asked for name in names)


def after_result(facts: Facts) -> bool:
    """Whether a tool's result stands among the last messages."""
    messages = facts.request.messages
    return any(message.role in ("tool", "function") for message in messages[-6:])


def _last_user(facts: Facts) -> str:
    return next((message.content or "" for message in reversed(facts.request.messages) if message.role == "user"), "")


def small_talk(facts: Facts) -> bool:
    """Whether the last message is a greeting or the like, which no tool is needed for."""
    return bool(_SMALL_TALK.match(_last_user(facts)[:200]))


_DISCLAIMS = re.compile(
    r"\b(?:can't|cannot|can not|couldn't|unable to|don't have|do not have|no) "
    r"(?:see|access|check|browse|look|fetch|open|read"
    r"|real[- ]?time|live|the ability|current|direct)\b|"
    r"\bas an ai\b|\byou (?:can|could|should|may) (?:visit|use|run|check|try)\b",
    re.IGNORECASE,
)
_ANNOUNCES = re.compile(
    r"\b(?:i will|i'll|let me|i am going to|i'm going to|i need to|i should|first,? i|now i|next,? i)\b.{0,80}"
    r"\b(?:call|use|check|read|look|search|run|fetch|open|list|write|create|find|get|execute|invoke)\b",
    re.IGNORECASE | re.DOTALL,
)


_ASKS = re.compile(
    r"\?\s*\Z|\A\W*(?:please |can you |could you |now )?(?:list|read|write|create|find|search|open|run|show|fix|add|"
    r"delete|remove|update|check|get|fetch|call|use|send|make|build|test|install|execute|move|rename|refactor|restructure|apply|"
    r"look up|download|save|edit|change|implement|start|stop|click|go)\b",
    re.IGNORECASE,
)


def call_due(facts: Facts) -> bool:
    """Whether a call may have been due: the answer says that it cannot do what a tool does, announces an action and
    stops, names an offered tool, or the question shares a word with one."""
    text = facts.text
    if _DISCLAIMS.search(text) or _ANNOUNCES.search(text[-300:]):
        return True
    if any(len(name) > 3 and name in text for name in facts.request.tool_names) and not facts.scan.calls:
        return True
    return not _DECLINES.search(text[-400:]) and (_related(facts) or bool(_ASKS.search(_last_user(facts)[:4000])))


def _related(facts: Facts) -> bool:
    asked = {word.lower() for word in _WORD.findall(_last_user(facts)[:4000])}
    for tool in facts.request.tools:
        said = f"{tool.name or ''} {tool.description or ''}".replace("_", " ")
        said = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", said)
        if asked & {word.lower() for word in _WORD.findall(said)} - _COMMON:
            return True
    return False


_COMMON = frozenset(
    "with from this that your what when where which will have about into text name list some give".split()  # noqa: SIM905
)
