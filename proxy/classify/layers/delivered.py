"""Calls that came, and are not what was written: markers in names, calls nobody meant, lost or spliced arguments."""

from __future__ import annotations

import re

from proxy.classify.facts import Facts
from proxy.classify.history import arguments_problem
from proxy.classify.layers.remedies import parser_remedy
from proxy.classify.verdict import RAW, Verdict

_INTERNAL = {"answer": frozenset({"message"})}
"""Tools that a server adds on its own to let a model answer without a call, with their arguments (LocalAI's no-action
function `answer`). One that reaches the client is the server's, not the model's invention."""


def changed_on_the_way(facts: Facts) -> Verdict | None:
    """The first thing wrong with the delivered calls that points at the server's parser."""
    return _leaked_name(facts) or _phantom(facts) or _arguments_lost(facts) or _spliced(facts) or _fragment(facts)


_MARKERS = re.compile(
    r"<\|[^|>]*\|>.*|<[/\uff5c|].*|\[/?[A-Z_]+\].*|^(?:functions?|tools?|call|default_api)[.:]|[:.]\d+$|^assistant|^to=",
    re.DOTALL,
)
_GENERIC = frozenset({"function", "functions", "tool", "tools", "tool_call", "call", "name", "json", "assistant"})
"""Words of call formats that a wrong parser takes for the name."""


def _leaked_name(facts: Facts) -> Verdict | None:
    """A call whose name is an offered one with markup on it, or a word of the call format itself."""
    for judged in facts.calls:
        name = judged.call.name or ""
        if judged.verdict != "unknown_tool" or not facts.offers:
            continue
        meant = _meant(name, facts)
        if meant:
            return Verdict(
                "parser.marker_leak",
                delivery="altered",
                evidence=[facts.cite_call(judged.call, "markup in the name")],
                detail=f"the name {name!r} is the offered tool {meant!r} with pieces of the call format on it",
                remedy=parser_remedy(facts),
            )
        if name.lower() in _GENERIC:
            verdict = Verdict(
                "parser.altered",
                delivery="altered",
                evidence=[facts.cite_call(judged.call, "a word of a call format")],
                detail=f"{name!r} is a word of a call format, taken for the name of a tool",
                remedy=parser_remedy(facts),
            )
            return verdict.undetermined(RAW)
    return None


def _meant(name: str, facts: Facts) -> str:
    """The offered tool that a name with markup on it means, "" where there is none."""
    bare = _MARKERS.sub("", _MARKERS.sub("", name)).strip()
    if bare != name and bare in facts.tools.schemas:
        return bare
    twice = next((each for each in facts.request.tool_names if each and name == each * 2), "")
    return twice or _swallowed_markup(name, facts)


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


_END_TOKEN = re.compile(
    r"(?:<\|[a-z_]{2,30}\|>|<\|[A-Z_]{2,30}\|>|</s>|<end_of_turn>|<turn\|>|\[/INST\]|<\uff5c[^\uff5c>]{1,60}\uff5c>)\s*\Z"
)
_TOKEN = re.compile(r"<\|[a-z_]{2,30}\|>|<tool_call>|</tool_call>|<end_of_turn>")


def tokens_left_over(facts: Facts) -> bool:
    """Whether the text ends in a token that ends turns, or arguments hold one of a call format."""
    if _END_TOKEN.search(facts.text[-64:]) and not facts.scan.standing:
        return True
    return any(_TOKEN.search(judged.call.arguments_text) for judged in facts.calls)


def _arguments_lost(facts: Facts) -> Verdict | None:
    """A call with a name and no arguments at all, although its tool requires some."""
    for judged in facts.calls:
        call = judged.call
        if call.arguments_text.strip() not in ("", "null") or judged.verdict == "unknown_tool" or not call.name:
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
    return bool(schema.get("required")) if isinstance(schema, dict) else False


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
        remedy=parser_remedy(facts),
    )
    return verdict.undetermined(RAW)


def _index_fault(facts: Facts) -> bool:
    return facts.irregular("index_missing", "index_reused", "arguments_type", "index_type") is not None
