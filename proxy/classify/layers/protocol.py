"""Protocol: the answer contradicts its dialect, itself, or the request. Terminal where it makes the answer unusable."""

from __future__ import annotations

from proxy.classify.facts import Facts
from proxy.classify.judged import Judgement
from proxy.classify.layers.engine import unfinished
from proxy.classify.layers.ok import after_result, call_due, small_talk
from proxy.classify.verdict import RAW, Verdict
from stacks.irregular import Irregularity
from stacks.strictjson import UNPARSED, load

_TERMINAL = {
    "index_missing": "protocol.delta_index",
    "index_reused": "protocol.delta_index",
    "index_type": "protocol.delta_index",
    "arguments_type": "protocol.arguments_type",
    "id_changed": "protocol.delta_id",
    "id_empty": "protocol.delta_id",
    "id_missing": "protocol.delta_id",
    "id_duplicate": "protocol.duplicate_id",
    "finish_without_calls": "protocol.finish_contradicts",
    "call_not_object": "protocol.malformed_answer",
    "calls_type": "protocol.malformed_answer",
    "arguments_differ": "protocol.malformed_answer",
    "name_type": "protocol.malformed_answer",
    "name_repeated": "protocol.malformed_answer",
    "event_truncated": "protocol.done_missing",
    "mixed_dialects": "protocol.malformed_answer",
    "body_truncated": "protocol.malformed_answer",
}
IRREGULAR_FLAGS = {
    "index_missing": "protocol.delta_index",
    "index_reused": "protocol.delta_index",
    "index_type": "protocol.delta_index",
    "index_gap": "protocol.delta_index",
    "id_missing": "protocol.delta_id",
    "id_empty": "protocol.delta_id",
    "id_late": "protocol.delta_id",
    "id_changed": "protocol.delta_id",
    "id_duplicate": "protocol.duplicate_id",
    "arguments_type": "protocol.arguments_type",
    "arguments_empty": "protocol.arguments_type",
    "arguments_missing": "protocol.arguments_type",
    "name_repeated": "protocol.malformed_answer",
    "name_split": "protocol.malformed_answer",
    "finish_without_calls": "protocol.finish_contradicts",
    "finish_hides_calls": "protocol.finish_contradicts",
    "finish_changed": "protocol.finish_contradicts",
    "finish_missing": "protocol.done_missing",
    "done_missing": "protocol.done_missing",
    "usage_absent": "protocol.usage_absent",
    "event_not_json": "protocol.malformed_answer",
    "event_not_object": "protocol.malformed_answer",
    "choice_count": "protocol.choice_ignored",
    "stream_for_plain_request": "protocol.choice_ignored",
    "plain_for_stream_request": "protocol.choice_ignored",
}
"""The outcome that an irregularity is a flag for."""
_CHAT_ONLY = frozenset({"index_missing", "index_reused", "index_type", "id_missing", "id_changed", "name_repeated"})
"""Terminal in chat completions alone, whose clients join pieces by index and add names up; elsewhere a flag."""
_REMEDY = "upgrade the server; until then number calls by their order of arrival and ignore the finish reason"


def protocol(judgement: Judgement) -> Verdict | None:
    """An irregularity that makes the calls unusable, or a field of the request that was not obeyed."""
    facts = judgement.facts
    if judgement.diagnosis is not None or facts.turn is None or not facts.generates:
        return None
    for code, name in _TERMINAL.items():
        item = facts.irregular(code)
        if item is not None and _stops(facts, item):
            return Verdict(
                name,
                delivery="altered" if facts.calls else "unknown",
                evidence=[facts.cite_irregular(item)],
                detail=item.message,
                remedy=_REMEDY,
            )
    return unfinished(judgement) or _encoded_twice(facts) or _disobeyed(facts)


def _encoded_twice(facts: Facts) -> Verdict | None:
    """Arguments that are a JSON string which holds the object: encoded twice, by the server or by the model."""
    for judged in facts.calls:
        value = judged.call.arguments
        if isinstance(value, str) and judged.verdict == "invalid_arguments" and value.lstrip().startswith("{"):
            verdict = Verdict(
                "protocol.arguments_type",
                delivery="altered",
                evidence=[facts.cite_call(judged.call, "a JSON string where an object belongs")],
                detail="the arguments are encoded twice: a JSON string that holds the object",
                remedy="decode the arguments a second time in the client",
            )
            return verdict.undetermined(RAW)
    return None


def _stops(facts: Facts, item: Irregularity) -> bool:
    if item.code in _CHAT_ONLY and facts.assembled.dialect != "openai_chat":
        return False
    if item.code == "finish_without_calls":
        return not facts.calls
    if item.code in ("event_truncated", "body_truncated", "mixed_dialects"):
        return not facts.calls and not facts.text
    return True


def _disobeyed(facts: Facts) -> Verdict | None:
    """A tool choice or a limit on parallel calls that was accepted and not kept."""
    said = _broken_promise(facts)
    if said is None or _only_not_enforced(facts):
        return None
    field, detail = said
    evidence = [facts.cite_request((field,), "what was asked")]
    evidence.append(facts.cite_call(facts.calls[0].call, "what came") if facts.calls else facts.cite_body("what came"))
    return Verdict(
        "protocol.choice_ignored",
        delivery="intact",
        evidence=evidence,
        detail=detail,
        remedy="do not rely on this field here; check the answer in the client",
    )


def _only_not_enforced(facts: Facts) -> bool:
    """Whether a required call did not come, and nothing shows that one was due: the answer may be all that the model
    wrote, which is no fault; that the field was not enforced is a flag."""
    return not facts.calls and (after_result(facts) or not (call_due(facts) or small_talk(facts)))


def _broken_promise(facts: Facts) -> tuple[str, str] | None:
    choice, request, calls = facts.choice, facts.request, facts.calls
    if request.parallel_tool_calls is False and len(calls) > 1:
        return "parallel_tool_calls", f"parallel calls were forbidden and {len(calls)} came"
    if not facts.offers or request.tool_choice is None:
        return None
    if choice == "none" and calls:
        return "tool_choice", "the request forbids calls and one came"
    if choice in ("required", "named") and not calls and facts.text.strip():
        return "tool_choice", "a call was required and none came"
    wanted = request.tool_choice.name
    if choice == "named" and wanted and any(judged.call.name != wanted for judged in calls):
        return "tool_choice", f"{wanted!r} was required and another tool was called"
    return None


def protocol_flags(facts: Facts) -> list[str]:
    """Irregularities that did not stop the exchange, as outcome names."""
    flags = [IRREGULAR_FLAGS[item.code] for item in facts.assembled.irregularities if item.code in IRREGULAR_FLAGS]
    if facts.turn is not None and facts.generates and (_broken_promise(facts) is not None or _no_json(facts)):
        flags.append("protocol.choice_ignored")
    return list(dict.fromkeys(flags))


_JSON_FIELDS = frozenset({"format", "json_schema", "guided_json"})


def _no_json(facts: Facts) -> bool:
    """Whether JSON was asked for (JSON mode, a schema), and an answer came to its end that is none. A flag: the field
    was not enforced, which says nothing of what the model wrote."""
    request, turn = facts.request, facts.turn
    wanted = request.response_format
    stated = wanted.get("type") if isinstance(wanted, dict) else None
    kind = stated if isinstance(stated, str) else None
    if not facts.forced_format or (kind not in _JSON_KINDS and request.response_format_field not in _JSON_FIELDS):
        return False
    text = facts.text.strip()
    if facts.calls or not text or facts.limit_reached or turn is None or turn.finish is None:
        return False
    if text.startswith("```") and text.endswith("```") and len(text) > len("``````"):
        text = text[3:-3].removeprefix("json")
    return load(text.encode("utf-8", "surrogatepass")) is UNPARSED


_JSON_KINDS = frozenset({"json_object", "json_schema", "json"})
