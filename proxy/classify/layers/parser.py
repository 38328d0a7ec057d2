"""Parser: the model wrote something good and the stack lost, left or changed it."""

from __future__ import annotations

import re

from proxy.classify.facts import Facts, JudgedCall
from proxy.classify.history import arguments_problem
from proxy.classify.judged import Judgement
from proxy.classify.verdict import RAW, Verdict
from stacks.formats import CallScan, TextCall, check_call, find_calls

_PARSER = "match the server's tool parser to the format that the model writes, or parse the text in the client"
_INTERNAL = {"answer": frozenset({"message"})}
"""Tools that a server adds on its own to let a model answer without a call, with their arguments (LocalAI's no-action
function `answer`). One that reaches the client is the server's, not the model's invention."""


def parser(judgement: Judgement) -> Verdict | None:
    """What an error's diagnosis puts here; valid calls in text or reasoning; calls nobody wrote; broken splicing."""
    diagnosis = judgement.diagnosis
    if diagnosis is not None:
        return diagnosis if diagnosis.name.startswith("parser.") else None
    facts = judgement.facts
    if facts.turn is None or not facts.generates:
        return None
    return (
        _in_text(facts)
        or call_in_reasoning(facts)
        or _leaked_name(facts)
        or _phantom(facts)
        or _arguments_lost(facts)
        or _spliced(facts)
        or _fragment(facts)
    )


# ---------------------------------------------------------------------- calls that stand in text
def _in_text(facts: Facts) -> Verdict | None:
    """A valid call to an offered tool in the answer's text, where a native call was asked for."""
    if not facts.offers or facts.choice == "none" or facts.calls:
        return None
    good = [call for call in facts.scan.standing if _fits(facts, call)]
    if not good:
        return _out_of_place(facts)
    if not all(_clean(call) for call in good):
        return None
    span = good[0].call.span
    verdict = Verdict(
        "parser.left_as_text",
        delivery="left_as_text",
        wrote="valid_call",
        evidence=[facts.cite_text(span.start, span.end, "a valid call to an offered tool")],
        detail=_what(facts.scan, good) + _finish_says(facts),
        remedy=_remedy(facts),
    )
    return _with_doubt(facts, verdict, good)


def _with_doubt(facts: Facts, verdict: Verdict, good: list[TextCall]) -> Verdict:
    """The verdict on calls left in text, with the fault left open where the model may have had a part in it."""
    if facts.stack == "mlx_inprocess":
        verdict.fault = "config"
        return verdict
    if any(_WRAPPER & set(call.call.repairs) for call in good):
        verdict.detail += "; a marker around it is missing, which the server may have taken off"
    elif any(call.call.repairs for call in good) and good[0].call.format in _LOOSE:
        verdict.detail += "; in a spelling of its own"
    else:
        return verdict
    verdict.wrote = "unknown"
    return verdict.undetermined(RAW)


_WRAPPED = re.compile(
    r"\A\s*<(?P<tag>[\w:|.-]{1,40})>\s*(?P<inner>[\[{].*[\]}])\s*(?:</?[\w:|.-]{1,40}>\s*)?\Z", re.DOTALL
)


def _out_of_place(facts: Facts) -> Verdict | None:
    """A whole call to an offered tool that no format puts there: between tags that belong to none, or bare on a line of
    its own behind prose. Meant as a call, as far as can be seen; whose fault the place is cannot be seen."""
    text = facts.text
    wrapped = _WRAPPED.match(text)
    shift = wrapped.start("inner") if wrapped is not None else 0
    scan = find_calls(wrapped["inner"], facts.tools) if wrapped is not None else facts.scan
    found = [call for call in scan.calls if _fits(facts, call) and call.call.complete]
    if not found or (wrapped is None and not _own_last_line(text, found[-1])):
        return None
    span = found[0].call.span
    verdict = Verdict(
        "parser.left_as_text",
        delivery="left_as_text",
        confidence="medium",
        evidence=[facts.cite_text(span.start + shift, span.end + shift, "a call to an offered tool")],
        detail=_what(scan, found) + ", in a place where no format has it",
        remedy=_remedy(facts),
    )
    return verdict.undetermined(RAW)


def _own_last_line(text: str, found: TextCall) -> bool:
    span = found.call.span
    before = text[: span.start]
    return found.position in ("tail", "line") and not text[span.end :].strip() and before.endswith("\n")


_WRAPPER = frozenset({"missing_open_tag", "missing_close_tag", "missing_call_close"})
"""Repairs that servers cause as often as models: a marker that is a special token vanishes when text is decoded."""
_SPELLING = {"llama4_python_start": frozenset({"key_parameters"})}
"""Repairs that are a format's own other spelling."""


_LOOSE = frozenset({"bare_json", "fenced_json", "json_list", "llama3_json", "llama3_python_tag"})
"""Formats that are JSON and little else; other keys and one more wrapping are spellings of them."""


def soft_repairs(found: TextCall) -> bool:
    """Whether what had to be rescued in a call, if anything, says nothing against the model."""
    call = found.call
    allowed = _WRAPPER | _SPELLING.get(call.format, frozenset())
    if call.format in _LOOSE:
        allowed |= {"wrapped_object", "list_of_calls"}
        allowed |= {"arguments_as_string"} if "wrapped_object" in call.repairs else set()
        allowed |= {word for word in call.repairs if word.startswith("key_")}
    return set(call.repairs) <= allowed


def _clean(found: TextCall) -> bool:
    return found.call.complete and soft_repairs(found)


def _fits(facts: Facts, found: TextCall) -> bool:
    return found.offered and found.has_object and check_call(found.call, facts.tools).ok


def _what(scan: CallScan, good: list[TextCall]) -> str:
    names = ", ".join(dict.fromkeys(call.call.name for call in good))
    return f"{len(good)} call{'s' if len(good) > 1 else ''} ({names}) in the format {scan.format} stand in the text"


def _finish_says(facts: Facts) -> str:
    turn = facts.turn
    if turn is not None and turn.finish == "tool_calls":
        return "; the finish reason announces tool calls and there are none"
    return ""


_REMEDIES = {
    "vllm": "start vLLM with `--enable-auto-tool-choice --tool-call-parser` of the model's format",
    "sglang": "start SGLang with `--tool-call-parser` of the model's format",
    "llamacpp": "use a chat template that knows tools (`--chat-template-file`) so that llama-server finds the format",
    "llamacpp_python": "llama-cpp-python does not parse calls with this chat format: choose one that does",
    "ollama": "give the model a TEMPLATE that shows its call format, or its RENDERER and PARSER",
    "mlx_server": "mlx_lm infers its parser from the chat template: use the model's own, or set `tool_parser_type`",
    "mlx_inprocess": "stacktap's own in-process upstream does not parse unless told: add `--parse FORMAT`",
    "lmstudio": "use a build of the model whose template LM Studio knows for tools",
}


def _remedy(facts: Facts) -> str:
    return _REMEDIES.get(facts.stack, _PARSER)


# ---------------------------------------------------------------------- reasoning
def call_in_reasoning(facts: Facts) -> Verdict | None:
    """A whole call to an offered tool in the reasoning, and nothing else in the answer."""
    if not facts.offers or facts.choice == "none" or facts.calls or facts.text.strip():
        return _inline_reasoning(facts)
    scan = facts.reasoning_scan
    found = [call for call in (*scan.standing, *scan.in_reasoning, *scan.calls) if _fits(facts, call) and _clean(call)]
    if not found:
        return None
    span = found[0].call.span
    verdict = Verdict(
        "parser.in_reasoning",
        delivery="in_reasoning",
        evidence=[facts.cite_text(span.start, span.end, "a valid call to an offered tool", reasoning=True)],
        detail="the call stands in the reasoning field and nothing else came",
        remedy="turn thinking off for this request, or fix the reasoning parser and template",
    )
    if facts.reasoning[: span.start].strip() or _WRAPPER & set(found[0].call.repairs):
        return verdict.undetermined(RAW)
    verdict.wrote = "valid_call"
    return verdict


def _inline_reasoning(facts: Facts) -> Verdict | None:
    """The answer's text is a think block that was not split off, with the call inside and nothing after it."""
    if not facts.offers or facts.choice == "none" or facts.calls:
        return None
    scan = facts.scan
    found = [call for call in scan.in_reasoning if _fits(facts, call) and call.exact]
    if not found or scan.prose_text or not scan.reasoning.unclosed:
        return None
    span = found[0].call.span
    verdict = Verdict(
        "parser.in_reasoning",
        delivery="left_as_text",
        evidence=[facts.cite_text(span.start, span.end, "a call inside an unclosed think block")],
        detail="the call stands inside a think block that is never closed",
        remedy="turn thinking off for this request, or fix the reasoning parser and template",
    )
    return verdict.undetermined(RAW)


# ---------------------------------------------------------------------- delivered calls
_MARKERS = re.compile(
    r"<\|[^|>]*\|>.*|<[/\uff5c|].*|\[/?[A-Z_]+\].*|^(?:functions?[.:])|[:.]\d+$|^assistant|^to=", re.DOTALL
)


def _leaked_name(facts: Facts) -> Verdict | None:
    """A call whose name is an offered one with the format's markers still on it."""
    for judged in facts.calls:
        name = judged.call.name or ""
        if judged.verdict != "unknown_tool" or not facts.offers:
            continue
        bare = _MARKERS.sub("", _MARKERS.sub("", name)).strip()
        if (bare != name and bare in facts.tools.schemas) or _swallowed_markup(name, facts):
            bare = bare if bare in facts.tools.schemas else _swallowed_markup(name, facts)
            return Verdict(
                "parser.marker_leak",
                delivery="altered",
                evidence=[facts.cite_call(judged.call, "markers in the name")],
                detail=f"the name {name!r} is the offered tool {bare!r} with markers of the call format left on it",
                remedy=_remedy(facts),
            )
    return None


_NO_NAME = re.compile(r"[<>{}\[\]\n\"=()]")


def _swallowed_markup(name: str, facts: Facts) -> str:
    """The offered tool that stands inside a name which is a piece of markup, "" where there is none."""
    if not _NO_NAME.search(name):
        return ""
    return next((offered for offered in facts.request.tool_names if len(offered) > 1 and offered in name), "")


def _phantom(facts: Facts) -> Verdict | None:
    """Calls that the model did not mean as such: made out of code or text, added by the server, or unasked for."""
    strange = [judged for judged in facts.calls if judged.verdict == "unknown_tool"]
    if not strange:
        return None
    call = strange[0].call
    evidence = [facts.cite_call(call, "a call that was not offered")]
    if not facts.offers:
        return Verdict(
            "parser.phantom",
            delivery="phantom",
            evidence=evidence,
            detail="the request offers no tools, and the server made a call out of the text",
            remedy="expect calls from this server whatever is asked, or use a template without a call format",
        )
    internal = _INTERNAL.get(call.name or "")
    if internal is not None and isinstance(call.arguments, dict) and set(call.arguments) <= internal:
        verdict = Verdict("protocol.malformed_answer", delivery="phantom", evidence=evidence)
        verdict.detail = f"{call.name!r} is a function that the server itself adds; its text is the answer"
        verdict.remedy = "read the text inside as the answer; upgrade the server"
        return verdict.undetermined("comparison_request: the same request without `tools`")
    if facts.text.count("```") % 2 == 1:
        verdict = Verdict(
            "parser.phantom",
            delivery="phantom",
            evidence=[facts.cite_text(facts.text.rfind("```"), len(facts.text), "an open code fence"), *evidence],
            detail="the call begins inside an open code fence of the answer: code was read as a call",
            remedy="use a stricter parser or template; upgrade the server",
        )
        return verdict.undetermined(RAW)
    return None


def _arguments_lost(facts: Facts) -> Verdict | None:
    """A call with a name and no arguments at all, although its tool requires some."""
    for judged in facts.calls:
        call = judged.call
        if call.arguments_text.strip() or judged.verdict == "unknown_tool" or not call.name:
            continue
        if not _requires(facts, call.name):
            continue
        verdict = Verdict(
            "parser.dropped",
            delivery="altered",
            confidence="medium",
            evidence=[facts.cite_call(call, "a name and no arguments")],
            detail="the call came with its name and no arguments: they were lost, or the model wrote none",
            remedy="ask without streaming to compare; upgrade the server",
        )
        return verdict.undetermined(RAW)
    return None


def _requires(facts: Facts, name: str) -> bool:
    schema = facts.tools.schema(name)
    required = schema.get("required") if isinstance(schema, dict) else None
    return bool(required) or facts.assembled.streamed


def _spliced(facts: Facts) -> Verdict | None:
    """Arguments that are no JSON because pieces were cut or joined wrongly: streamed ones, and several objects glued
    together. The model may have written them so; the wire does not tell."""
    broken = [judged for judged in facts.calls if judged.verdict == "not_json"]
    if not broken or _index_fault(facts):
        return None
    problem = arguments_problem(broken[0].call.arguments_text)
    if not facts.assembled.streamed and (problem is None or problem[0] != "arguments_glued"):
        return None
    verdict = Verdict(
        "parser.altered",
        delivery="altered",
        confidence="medium",
        evidence=[facts.cite_call(broken[0].call, broken[0].reason)],
        detail="the arguments are not JSON: spliced by the server's parser, or written so by the model",
        remedy="ask without streaming to compare; look at the raw text",
    )
    return verdict.undetermined(RAW)


_FRAGMENT = re.compile(r"\A[\s,{]*\"(?:arguments|parameters|name)\"\s*:")


def _fragment(facts: Facts) -> Verdict | None:
    """The text is a piece of a call whose other pieces are gone."""
    if not facts.offers or facts.calls or facts.scan.calls or not _FRAGMENT.match(facts.text):
        return None
    if facts.text.count("{") == facts.text.count("}") and facts.text.lstrip().startswith("{"):
        return None
    verdict = Verdict(
        "parser.marker_leak",
        delivery="altered",
        confidence="medium",
        evidence=[facts.cite_text(0, len(facts.text), "a piece of a call")],
        detail="the text is a piece of a call whose other pieces were taken away",
        remedy=_remedy(facts),
    )
    return verdict.undetermined(RAW)


def _index_fault(facts: Facts) -> bool:
    return facts.irregular("index_missing", "index_reused", "arguments_type", "index_type") is not None


def good_calls(facts: Facts) -> list[JudgedCall]:
    """Delivered calls that are fine."""
    return [judged for judged in facts.calls if judged.verdict == "ok"]
