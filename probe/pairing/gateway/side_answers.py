"""What a gateway did to an answer: refused, broken off, unreadable, lost or changed in its calls and texts. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from probe.pairing.gateway.side_calls import call_differs, calls_differ, value_of
from probe.pairing.gateway.side_difference import PASS_ON, Side, SideDifference, as_sent, shortened
from probe.pairing.gateway.side_forms import irregular, left_out, types_changed

_WHOLE = "raise the gateway's limits on the time and size of answers"
_FOLLOWS = {
    "parser.dropped": ("protocol.finish_contradicts", "protocol.malformed_answer"),
    "parser.left_as_text": ("protocol.finish_contradicts", "protocol.malformed_answer", "parser.dropped"),
    "parser.altered": ("protocol.malformed_answer",),
    "protocol.arguments_type": ("protocol.malformed_answer", "protocol.delta_id", "protocol.delta_index"),
    "protocol.delta_index": ("parser.altered", "parser.phantom", "protocol.delta_id", "protocol.malformed_answer"),
    "protocol.delta_id": ("parser.altered", "parser.phantom", "protocol.malformed_answer"),
    "protocol.choice_ignored": ("protocol.done_missing", "protocol.usage_absent", "protocol.malformed_answer"),
    "protocol.done_missing": ("protocol.malformed_answer", "protocol.usage_absent"),
}
"""What follows from a difference, and is not told beside it."""


def answer_differences(front: Side, behind: Side) -> list[SideDifference]:
    """Every harmful difference between the answer that came and the one that the server sent, the worst first."""
    refused = _status(front, behind)
    if refused is not None:
        return [refused]
    if behind.facts.failed or not front.generates or behind.cut:
        return []
    broken = _unreadable(front, behind) or _broken_off(front, behind)
    if broken is not None:
        return [broken]
    return forms_and_contents(front, behind)


def forms_and_contents(front: Side, behind: Side) -> list[SideDifference]:
    """Every harmful difference in form and contents of two answers, the worst first."""
    limited = _limited(front, behind)
    if limited is not None:
        return [limited]
    if front.exchange.end == "client_gone":
        return _causes([*irregular(front, behind), *_no_beginning(front, behind)])
    found = [
        *irregular(front, behind),
        *left_out(front, behind),
        *types_changed(front, behind),
        *calls_differ(front, behind),
        *_texts(front, behind),
        *_finish(front, behind),
    ]
    return _causes(found)


def _causes(found: list[SideDifference]) -> list[SideDifference]:
    """Without what only follows from another difference; each code once."""
    codes = [difference.code for difference in found]
    follow = {other for code in codes for other in _FOLLOWS.get(code, ()) if code not in _FOLLOWS.get(other, ())}
    kept = [difference for number, difference in enumerate(found) if difference.code not in codes[:number]]
    return [difference for difference in kept if difference.code not in follow]


# ---------------------------------------------------------------------- the whole answer
def _status(front: Side, behind: Side) -> SideDifference | None:
    here, there = front.facts, behind.facts
    if here.status == there.status or (here.failed and there.failed) or not here.status:
        return None
    name = front.outcome.name if front.outcome.layer not in ("ok", "model") else "transport.gateway"
    said = f"the server answered with status {there.status}, and status {here.status} came"
    evidence = front.outcome.evidence[0] if front.outcome.evidence else here.cite_head()
    return SideDifference(
        name, said, evidence, there.cite_head("what the server sent"), front.outcome.remedy or PASS_ON
    )


def _broken_off(front: Side, behind: Side) -> SideDifference | None:
    if not front.cut:
        return None
    name = front.outcome.name if front.outcome.layer == "transport" else "transport.stream_truncated"
    here, there = len(front.facts.view.wire.response_body), len(behind.facts.view.wire.response_body)
    said = f"the answer was broken off: {here} bytes of its body came, {behind.party} wrote {there}"
    if behind.exchange.end == "client_gone":
        said += " when the gateway left"
    return SideDifference(name, said, front.facts.cite_body(), behind.facts.cite_body("what the server sent"), _WHOLE)


def _unreadable(front: Side, behind: Side) -> SideDifference | None:
    said = unreadable(front)
    if not said or unreadable(behind):
        return None
    cited = front.facts.cite_head(), behind.facts.cite_head("what the server sent")
    return SideDifference("transport.not_http", said, *cited, remedy=PASS_ON)


def unreadable(side: Side) -> str:
    """Why an answer cannot be read although it came, "" where it can."""
    response = side.exchange.response
    problems = response.problems if response is not None else []
    coded = [problem for problem in problems if "content-encoding" in problem]
    wrong = coded if side.cut or side.exchange.end == "client_gone" else [*coded, *problems]
    return f"the answer cannot be read: {wrong[0]}" if wrong else ""


def _limited(front: Side, behind: Side) -> SideDifference | None:
    """A limit ended the answer before all was delivered, and did not end the other."""
    came, due = (
        len(side.facts.text.strip()) + sum(len(value_of(call)) for call in side.turn.tool_calls)
        for side in (front, behind)
    )
    if front.turn.finish != "length" or behind.turn.finish == "length" or came >= due:
        return None
    name = front.outcome.name if front.outcome.layer == "truncation" else "truncation.output_budget"
    cited = front.outcome.evidence[0] if name == front.outcome.name and front.outcome.evidence else None
    said = "a limit on output tokens ended the answer before it was whole"
    return SideDifference(name, said, cited or front.facts.cite_body(), as_sent(behind), "raise the output limit")


# ---------------------------------------------------------------------- calls, text
def _no_beginning(front: Side, behind: Side) -> Iterator[SideDifference]:
    """The agent left before the end: what came must be a beginning of what the server sent."""
    if not behind.facts.text.startswith(front.facts.text):
        yield _text(front, behind, "text", front.facts.text, behind.facts.text)
    for got, given in zip(front.turn.tool_calls, behind.turn.tool_calls, strict=False):
        if got.name == given.name and given.arguments_text.startswith(got.arguments_text):
            continue
        yield from call_differs(front, behind, got, given)


# ---------------------------------------------------------------------- text, finish
def _texts(front: Side, behind: Side) -> Iterator[SideDifference]:
    if any(front.facts.scan.calls) and not behind.facts.scan.calls and behind.turn.tool_calls:
        return  # The calls came as text, which is told.
    for word, here, there in (
        ("text", front.facts.text, behind.facts.text),
        ("reasoning", front.facts.reasoning, behind.facts.reasoning),
    ):
        if here.strip() == there.strip():
            continue
        yield _text(front, behind, word, here, there)


def _text(front: Side, behind: Side, word: str, here: str, there: str) -> SideDifference:
    code = "nonresponse.swallowed" if not here.strip() and not front.turn.tool_calls else "parser.altered"
    said = f"the {word} was changed: {shortened(there)} came as {shortened(here)}"
    return SideDifference(code, said, front.facts.cite_body(), as_sent(behind), PASS_ON)


def _finish(front: Side, behind: Side) -> Iterator[SideDifference]:
    here, there = front.turn.finish, behind.turn.finish
    if here is not None and there is not None and here != there:
        kept = len(front.turn.tool_calls) == len(behind.turn.tool_calls)
        if kept:
            said = f"the finish reason was changed from {there!r} to {here!r}"
            cited = (
                front.facts.cite_fragments(front.turn.where_finish),
                behind.facts.cite_fragments(behind.turn.where_finish, "the finish reason before"),
            )
            yield SideDifference("protocol.finish_contradicts", said, *cited, remedy=PASS_ON)
    if front.turn.usage is None and behind.turn.usage is not None and _counts_wanted(front):
        said = "the token counts were left out"
        cited = front.facts.cite_body(), behind.facts.cite_usage("the counts that the server sent")
        yield SideDifference("protocol.usage_absent", said, *cited, remedy=PASS_ON)


def _counts_wanted(front: Side) -> bool:
    """Counts are part of every answer but of a chat stream that did not ask for them."""
    return not (front.request.dialect == "openai_chat" and front.request.stream and not front.request.include_usage)


def counts_differ(front: Side, direct: Side) -> list[SideDifference]:
    """Whether the server counted other prompt tokens than for the same request sent straight to it: then it was given
    another prompt."""
    here, there = front.facts.prompt_tokens, direct.facts.prompt_tokens
    if here is None or there is None or here == there or front.facts.failed:
        return []
    code = "truncation.context_cut_silently" if here < there else "template.drift"
    word = "part of it was taken out" if here < there else "something was put in or changed"
    if here < there and front.facts.offers and direct.turn.tool_calls and not front.turn.tool_calls:
        code, word = "template.tools_absent", "the tools are not in it, and the call came as text"
    said = f"the prompt counts {here} tokens, and {there} where the same request goes straight to the server: {word}"
    cited = front.facts.cite_usage(), direct.facts.cite_usage("the same request, straight to the server")
    return [SideDifference(code, said, *cited, remedy="let the gateway pass requests on unchanged")]
