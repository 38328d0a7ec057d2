"""What a gateway did to a request: what was taken out, shortened, changed or put in before the server saw it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from probe.pairing.gateway.side_difference import Side, SideDifference
from results.outcomes import Evidence
from stacks.turn import CanonicalRequest, Message

_Became = tuple[Message, Message | None]
_SYSTEM = ("system", "developer")
_SHOWN = 60
_CUT = "switch off the gateway's limit on prompts or histories, or raise it above what the agent sends"
_PASS = "let the gateway pass the request's fields on unchanged"


def request_differences(front: Side, behind: Side) -> list[SideDifference]:
    """Every harmful difference between what the agent asked and what the server was asked, the worst first."""
    asked, got = front.request, behind.request
    if not front.generates or asked.body_error:
        return []
    if got.body_error:
        said = f"the body that the server got cannot be read: {got.body_error}"
        return [SideDifference("request.invalid_json", said, *_cited(front, behind, (), ()), remedy=_PASS)]
    return [
        *_messages(front, behind),
        *_tools(front, behind),
        *_limit(front, behind),
        *_fields(front, behind),
    ]


def _cited(
    front: Side, behind: Side, here: tuple[str | int, ...], there: tuple[str | int, ...]
) -> tuple[Evidence, Evidence]:
    return front.facts.cite_request(here, "what the agent sent"), behind.facts.cite_request(
        there, "what the server got"
    )


# ---------------------------------------------------------------------- messages
def _messages(front: Side, behind: Side) -> Iterator[SideDifference]:
    sent, got = _unmatched(front.request.messages, behind.request.messages)
    systems = [message for message in sent if message.role in _SYSTEM]
    if systems and front.request.system and not behind.request.system:
        cited = _cited(front, behind, systems[0].path, ())
        yield SideDifference("template.system_dropped", "the system prompt was taken out", *cited, remedy=_PASS)
        sent = [message for message in sent if message.role not in _SYSTEM]
    shortened: list[_Became] = []
    changed: list[_Became] = []
    removed: list[_Became] = []
    for message in sent:
        other = _counterpart(message, got)
        if other is None:
            removed.append((message, None))
            continue
        got.remove(other)
        (shortened if _shorter(message, other) else changed).append((message, other))
    texts = {
        "removed": f"{len(removed)} of {len(front.request.messages)} messages were taken out",
        "shortened": f"the text of {len(shortened)} of {len(front.request.messages)} messages was cut short",
        "changed": f"{len(changed)} of {len(front.request.messages)} messages were changed",
    }
    listed = (
        ("removed", "truncation.context_cut_silently", _CUT, removed),
        ("shortened", "truncation.context_cut_silently", _CUT, shortened),
        ("changed", "template.drift", _PASS, changed),
    )
    for word, code, remedy, pairs in listed:
        if pairs:
            message, other = pairs[0]
            said = f"{texts[word]}, the first a message of role {message.role}: {_beginning(message.content)}"
            if word == "shortened" and other is not None:
                said += f" ({len(message.content or '')} characters became {len(other.content or '')})"
            cited = _cited(front, behind, message.path, other.path if other is not None else ())
            yield SideDifference(code, said, *cited, remedy=remedy)
    if got:
        said = f"{len(got)} messages were put in, the first of role {got[0].role}: {_beginning(got[0].content)}"
        yield SideDifference("template.drift", said, *_cited(front, behind, (), got[0].path), remedy=_PASS)


def _unmatched(sent: Sequence[Message], got: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """The messages of either side that have no equal on the other, in order."""
    left = list(got)
    alone = []
    for message in sent:
        equal = next((other for other in left if _key(other) == _key(message)), None)
        if equal is None:
            alone.append(message)
        else:
            left.remove(equal)
    return alone, left


def _key(message: Message) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """A message by what it says: spellings that mean the same are one (developer is system, a list of texts a text)."""
    calls = tuple((call.name or "", _canonical(call.arguments, call.arguments_text)) for call in message.tool_calls)
    return _role(message), message.content or "", calls


def _role(message: Message) -> str:
    return "system" if message.role in _SYSTEM else message.role or ""


def _canonical(value: object, text: str) -> str:
    try:
        return json.dumps(value, sort_keys=True)
    except TypeError:
        return text


def _counterpart(message: Message, among: Sequence[Message]) -> Message | None:
    """The message that this one became: of its role, and like it (a part of its text, or most of its words)."""
    same = [other for other in among if _role(other) == _role(message)]
    part = next((other for other in same if _shorter(message, other)), None)
    return part or next((other for other in same if _alike(message.content or "", other.content or "")), None)


def _shorter(message: Message, other: Message) -> bool:
    whole, part = message.content or "", (other.content or "").rstrip(". \n…")
    return bool(part) and len(part) < len(whole) and part[: len(part) // 2 + 1] in whole and part[-8:] in whole


def _alike(first: str, second: str) -> bool:
    words, others = set(first.split()), set(second.split())
    return bool(words | others) and len(words & others) >= 0.5 * len(words | others)


def _beginning(text: str | None) -> str:
    text = " ".join((text or "").split())
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


# ---------------------------------------------------------------------- tools, limits, other fields
def _tools(front: Side, behind: Side) -> Iterator[SideDifference]:
    asked, got = front.request, behind.request
    lost = [tool for tool in asked.tools if tool.name is not None and got.tool(tool.name) is None]
    if lost:
        named = ", ".join(str(tool.name) for tool in lost[:3]) + (", ..." if len(lost) > 3 else "")
        all_of = "all" if len(lost) == len(asked.tools) else "some"
        said = f"{all_of} tools were taken out of the request ({len(lost)} of {len(asked.tools)}: {named})"
        cited = _cited(front, behind, ("tools",), ("tools",) if got.tools else ())
        yield SideDifference("template.tools_absent", said, *cited, remedy=_PASS)
    for tool in asked.tools:
        other = got.tool(tool.name) if tool.name is not None else None
        if other is not None and _schema(other.parameters) != _schema(tool.parameters):
            said = f"the parameters of the tool {tool.name} were changed"
            yield SideDifference("template.drift", said, *_cited(front, behind, tool.path, other.path), remedy=_PASS)
            break


def _schema(value: object) -> str:
    return json.dumps(value or {}, sort_keys=True, default=str)


def _limit(front: Side, behind: Side) -> Iterator[SideDifference]:
    asked, got = front.request.max_tokens, behind.request.max_tokens
    if got is None or asked == got or (asked is not None and 0 < asked < got):
        return
    ended_so = behind.turn.finish == "length"
    if asked is None and not ended_so:
        return
    inside = front.outcome.layer == "truncation"
    code = front.outcome.name if inside and ended_so else "truncation.output_budget"
    was = "none was set" if asked is None else f"the agent allowed {asked}"
    said = f"the limit on output tokens was set to {got} ({was})" + (", and it ended the answer" if ended_so else "")
    here = (front.request.max_tokens_field,) if front.request.max_tokens_field and asked is not None else ()
    there = _limit_path(behind.request)
    yield SideDifference(code, said, *_cited(front, behind, here, there), remedy="raise the gateway's output limit")


def _limit_path(request: CanonicalRequest) -> tuple[str | int, ...]:
    field = request.max_tokens_field
    if field is None:
        return ()
    raw = request.raw if isinstance(request.raw, dict) else {}
    return (field,) if field in raw else tuple(field.split("."))


def _fields(front: Side, behind: Side) -> Iterator[SideDifference]:
    asked, got = front.request, behind.request
    changed = [name for name, value in asked.sampling.items() if value is not None and got.sampling.get(name) != value]
    if asked.tool_choice is not None and asked.tools and got.tools:
        there = got.tool_choice
        same = there is not None and (there.mode, there.name) == (asked.tool_choice.mode, asked.tool_choice.name)
        if not same and not (there is None and asked.tool_choice.mode == "auto"):
            changed.append("tool_choice")
    others = ("response_format", "stop", "parallel_tool_calls")
    changed += [n for n in others if getattr(asked, n) is not None and getattr(got, n) != getattr(asked, n)]
    if changed:
        said = f"fields of the request were dropped or changed: {', '.join(changed)}"
        yield SideDifference("protocol.choice_ignored", said, *_cited(front, behind, (), ()), remedy=_PASS)
