"""Recorded exchanges as text and as JSON objects. Pure: the caller prints.

What was recorded is untrusted: control characters are shown, never sent to the terminal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from proxy.classify import judge
from proxy.exchange_view import classify_run, view_of
from proxy.served import servers_of
from results.exchange import Exchange
from results.outcomes import Judged
from results.reader import RunReader
from results.record import Direction
from stacks.dialects.exchange import Assembled

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LONGEST_TEXT = 4000
_LONGEST_PROMPT = 400


def counted(number: int, noun: str) -> str:
    """`1 exchange`, `2 exchanges`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def printable(text: str) -> str:
    """Text with control characters and direction overrides made visible; newlines and tabs stay."""
    return _UNPRINTABLE.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _text(data: bytes) -> str:
    return printable(data.decode("utf-8", "backslashreplace"))


def _line(exchange: Exchange) -> str:
    request = exchange.request
    return printable(f"{request.method} {request.forwarded_target}") if request else "(not HTTP)"


def _milliseconds(microseconds: int | None) -> str:
    return "?" if microseconds is None else f"{microseconds / 1000:.1f} ms"


def live_row(exchange: Exchange, judged: Judged) -> str:
    """One line on an exchange that has just ended: what came of it, and what to change."""
    outcome = judged.outcome
    fault = "" if outcome.at_fault == "none" else f"  at fault: {outcome.at_fault}"
    advice = outcome.remedy or outcome.decide_by
    tail = f"  ({printable(advice)})" if advice and outcome.layer != "ok" else ""
    return f"{exchange.attempt:>5}  {judged.status or '---'}  {_line(exchange)}  {outcome.name}{fault}{tail}"


def row(exchange: Exchange, judged: Judged | None) -> str:
    """One line on an exchange: number, status, how it ended, what was asked, its time and verdict (None: not over)."""
    facts = row_facts(exchange, judged)
    tags = " ".join(f"{name}={value}" for name, value in exchange.tags)
    status = str(facts["status"] or _relay_status(exchange) or "---")
    parts = [f"{exchange.attempt:>5}  {status}  {exchange.end:<15} {_line(exchange)}"]
    parts.append(f"{_milliseconds(exchange.ended_at_us)}, {facts['response_bytes']} bytes")
    parts.append(str(facts["outcome"] or ""))
    return "  ".join(part for part in (*parts, printable(tags)) if part)


def _relay_status(exchange: Exchange) -> str:
    """The status that the relay itself answered with, in brackets: it is not the server's."""
    first = exchange.relay_answer.split(b" ", 2)
    return f"({first[1].decode('latin-1')})" if len(first) == 3 and first[0].startswith(b"HTTP/") else ""


def row_facts(exchange: Exchange, judged: Judged | None) -> dict[str, Any]:
    """The same as a JSON object."""
    response = exchange.response
    return {
        "attempt": exchange.attempt,
        "connection": exchange.connection,
        "upstream": exchange.upstream,
        "tags": dict(exchange.tags),
        "started_us": exchange.started_us,
        "method": exchange.request.method if exchange.request else None,
        "target": exchange.request.forwarded_target if exchange.request else None,
        "status": response.status if response else None,
        "end": exchange.end,
        "end_detail": exchange.end_detail,
        "duration_us": exchange.ended_at_us,
        "request_bytes": len(exchange.wire("request")),
        "response_bytes": len(exchange.wire("response")),
        "damage": list(exchange.damage),
        "outcome": judged.outcome.name if judged is not None else None,
    }


def exchange_facts(exchange: Exchange, judged: Judged | None, *, raw: bool = False) -> dict[str, Any]:
    """An exchange as a JSON object; with `raw`, every piece of both directions with its time."""
    facts = {"version": 1, **row_facts(exchange, judged)}
    facts["client"] = exchange.client
    facts["verdict"] = msgspec.to_builtins(judged)["outcome"] if judged is not None else None
    facts["notes"] = [{"kind": note.kind, **note.fields} for note in exchange.notes]
    for direction, message in (("request", exchange.request), ("response", exchange.response)):
        if message is not None:
            facts[direction] = {
                "headers": message.headers,
                "body": message.body.decode("utf-8", "backslashreplace"),
                "problems": message.problems,
                "complete": message.complete,
            }
    if exchange.relay_answer:
        facts["relay_answer"] = exchange.relay_answer.decode("utf-8", "backslashreplace")
    if raw:
        facts["pieces"] = [
            {"direction": direction, "at_us": at_us, "start": start, "text": text}
            for direction, at_us, start, text in _pieces(exchange)
        ]
    return facts


def _pieces(exchange: Exchange) -> Iterator[tuple[str, int, int, str]]:
    directions: tuple[Direction, ...] = ("request", "response")
    found = [
        (piece.at_us, number, direction, piece.start, exchange.wire(direction)[piece.start : piece.end])
        for number, direction in enumerate(directions)
        for piece in exchange.pieces(direction)
    ]
    for at_us, _, direction, start, data in sorted(found):
        yield direction, at_us, start, data.decode("utf-8", "backslashreplace")


def raw_lines(exchange: Exchange) -> Iterator[str]:
    """The wire, piece by piece, both directions in order of time."""
    yield from _heading(exchange)
    for direction, at_us, start, text in _pieces(exchange):
        arrow = ">" if direction == "request" else "<"
        yield f"{arrow} at {at_us / 1000:.3f} ms, wire byte {start}"
        for line in text.splitlines(keepends=True):
            ending = line[len(line.rstrip("\r\n")) :].replace("\r", "\\r").replace("\n", "\\n")
            yield f"{arrow} {printable(line.rstrip(chr(13) + chr(10)))}{ending}"
    yield from _ending(exchange)


def _heading(exchange: Exchange) -> Iterator[str]:
    tags = "".join(f"  {name}={value}" for name, value in exchange.tags)
    yield f"attempt {exchange.attempt}  upstream {exchange.upstream}  connection {exchange.connection}{printable(tags)}"


def _ending(exchange: Exchange) -> Iterator[str]:
    detail = f" ({printable(exchange.end_detail)})" if exchange.end_detail else ""
    yield f"end: {exchange.end}{detail} after {_milliseconds(exchange.ended_at_us)}"
    if exchange.relay_answer:
        first = exchange.relay_answer.split(b"\r\n", 1)[0]
        yield f"the relay itself answered: {_text(first)}"
    for damage in exchange.damage:
        yield f"note: {printable(damage)}"


def exchange_lines(exchange: Exchange, judged: Judged | None) -> Iterator[str]:
    """An exchange assembled: what was asked, what came back as one turn, what was odd, and the verdict."""
    yield from _heading(exchange)
    if judged is not None:
        yield from verdict_lines(judged)
    yield ""
    if exchange.request is None:
        for label, direction in ((">", "request"), ("<", "response")):
            data = exchange.opaque(direction)  # type: ignore[arg-type]
            yield f"{label} {len(data)} bytes that are not HTTP: {_text(data[:200])}"
        yield from _ending(exchange)
        return
    yield f"> {_line(exchange)}"
    classified = judge(view_of(exchange))
    assembled = classified.facts.assembled
    yield from _asked(assembled)
    yield ""
    response = exchange.response
    if response is None:
        yield "< no response"
    else:
        yield f"< {response.status} {printable(response.reason)}  {_came_as(exchange, assembled)}"
        yield from answered_lines(assembled, response.body)
        for problem in response.problems:
            yield f"  note: {printable(problem)}"
    for note in exchange.notes:
        if note.kind != "connected":
            yield from _note(note.kind, note.fields)
    yield from _ending(exchange)


def _came_as(exchange: Exchange, assembled: Assembled) -> str:
    pieces = exchange.pieces("response")
    first = f", first byte after {_milliseconds(pieces[0].at_us)}" if pieces else ""
    kind = "stream" if assembled.streamed else assembled.body_kind
    return f"{assembled.dialect}, {kind}, {counted(len(pieces), 'piece')}{first}"


def _asked(assembled: Assembled) -> Iterator[str]:
    request = assembled.request
    if request is None:
        return
    if request.body_error:
        yield f"  the body cannot be read: {printable(request.body_error)}"
    if not request.messages and request.model is None:
        return
    tools = printable(", ".join(tool.name or "?" for tool in request.tools)) or "none"
    yield f"  model {printable(str(request.model))}, {counted(len(request.messages), 'message')}, tools: {tools}"
    for message in request.messages[-1:]:
        yield from _quoted(f"  last message ({printable(str(message.role))})", message.content or "", _LONGEST_PROMPT)


def answered_lines(assembled: Assembled, body: bytes) -> Iterator[str]:
    """What an answer says: errors, reasoning, content, calls, how it finished, and what was odd about it."""
    turn = assembled.turn
    for error in assembled.errors:
        yield f"  error: {printable(error.message or '')}"
    if turn is None:
        if not assembled.errors:
            yield from _quoted("  body", body[:_LONGEST_TEXT].decode("utf-8", "backslashreplace"))
        return
    if turn.reasoning:
        yield from _quoted("  reasoning", turn.reasoning)
    if turn.content:
        yield from _quoted("  content", turn.content)
    for call in turn.tool_calls:
        yield f"  tool call {printable(str(call.name))}({printable(call.arguments_text or '')})"
    if not (turn.content or turn.reasoning or turn.tool_calls):
        yield "  nothing in it: no content, no tool call"
    tokens = f"{turn.usage.prompt} tokens in, {turn.usage.completion} out" if turn.usage else "no token counts"
    yield f"  finish: {printable(str(turn.finish_raw))}, {tokens}"
    for irregularity in assembled.irregularities:
        where = f"{irregularity.code}, body bytes {irregularity.start}-{irregularity.end}"
        yield f"  odd: {printable(irregularity.message)} ({where})"


def _quoted(label: str, text: str, longest: int = _LONGEST_TEXT) -> Iterator[str]:
    shown = printable(text[:longest])
    cut = f"  (the first {longest} of {len(text)} characters)" if len(text) > longest else ""
    lines = shown.splitlines() or [""]
    if len(lines) == 1:
        yield f"{label}: {lines[0]}{cut}"
        return
    yield f"{label}:{cut}"
    for line in lines:
        yield f"    | {line}"


def _note(kind: str, fields: dict[str, Any]) -> Iterator[str]:
    yield f"  note {printable(kind)}"
    for name, value in fields.items():
        yield from _quoted(f"    {printable(name)}", value if isinstance(value, str) else str(value)[:_LONGEST_TEXT])


def verdict_lines(judged: Judged) -> Iterator[str]:
    """The verdict in words, with the bytes it rests on."""
    outcome = judged.outcome
    fault = "" if outcome.at_fault == "none" else f", at fault: {outcome.at_fault}"
    yield f"verdict: {outcome.name}{fault}, model ran: {outcome.model_ran}, confidence: {outcome.confidence}"
    if outcome.detail:
        yield f"  {printable(outcome.detail)}"
    for evidence in outcome.evidence:
        where = f"attempt {evidence.attempt}, {evidence.direction} bytes {evidence.start}-{evidence.end}"
        yield from _quoted(f"  evidence ({where})", evidence.quote)
    if outcome.remedy:
        yield f"  remedy: {printable(outcome.remedy)}"
    if outcome.decide_by:
        yield f"  would decide it: {printable(outcome.decide_by)}"
    if outcome.flags:
        yield f"  flags: {', '.join(outcome.flags)}"


def summary_facts(reader: RunReader) -> dict[str, Any]:
    """Counts of a run by how attempts ended, by status, and by outcome; problems of the record."""
    ends: Counter[str] = Counter()
    statuses: Counter[str] = Counter()

    def seen(exchanges: Iterable[Exchange]) -> Iterator[Exchange]:
        for exchange in exchanges:
            ends[exchange.end] += 1
            if exchange.response is not None:
                statuses[str(exchange.response.status)] += 1
            yield exchange

    outcomes: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    stopped: dict[str, tuple[int, str | None]] = {}
    for judged in classify_run(seen(reader), servers_of(reader.folder)):
        outcome = judged.outcome
        outcomes[outcome.name] += 1
        if not judged.aside:
            ran[outcome.model_ran] += 1
        if outcome.layer != "ok" and not judged.aside:
            stopped.setdefault(outcome.name, (judged.attempt, outcome.remedy or outcome.decide_by))
    return {
        "attempts": sum(ends.values()),
        "ends": dict(ends.most_common()),
        "statuses": dict(sorted(statuses.items())),
        "outcomes": dict(outcomes.most_common()),
        "model_ran": dict(ran),
        "findings": {name: {"first_attempt": first, "advice": advice} for name, (first, advice) in stopped.items()},
        "problems": reader.problems.describe(),
    }


def run_summary(reader: RunReader) -> list[str]:
    """A run in a few lines, for the end of a recording."""
    facts = summary_facts(reader)
    lines = [f"{counted(facts['attempts'], 'exchange')} recorded in {reader.folder}"]
    unusual = {end: count for end, count in facts["ends"].items() if end != "complete"}
    if unusual:
        lines.append("ended otherwise than complete: " + _counts(unusual))
    if facts["statuses"]:
        lines.append("statuses: " + _counts(facts["statuses"]))
    if facts["outcomes"]:
        lines.append("outcomes: " + _counts(facts["outcomes"]))
        lines.append(_ran_in_words(facts["model_ran"]))
    for name, finding in facts["findings"].items():
        advice = f": {printable(finding['advice'])}" if finding["advice"] else ""
        lines.append(f"{name}, first in attempt {finding['first_attempt']}{advice}")
    return lines + [f"note: {problem}" for problem in facts["problems"]]


def _ran_in_words(ran: dict[str, int]) -> str:
    """Whether the model ran, over the exchanges that asked it to."""
    asked = sum(ran.values())
    if not asked:
        return "no exchange asked a model for anything"
    unknown = f", in {ran['unknown']} the record does not tell" if ran.get("unknown") else ""
    rate = "; its rate is undefined, not 0 %" if ran.get("no", 0) == asked else ""
    return f"the model ran in {ran.get('yes', 0)} of {asked}{unknown}{rate}"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} x {printable(name)}" for name, count in counts.items())
