"""One cell of the truth table: what came back for a known text, and the sighted verdict. Pure.

Nothing in a cell depends on the machine or the moment: no times, ids, ports, or paths.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from probe.canary import Script
from probe.canary.spec import text_bytes
from probe.findings import known_answer_verdict
from proxy.served import ServerFacts
from results.exchange import Exchange

ENDLESS = "@-2"
"""Mark behind a known text whose last pieces are repeated for ever, as the captures write it."""


@dataclass(frozen=True, slots=True)
class Came:
    """What the client got. ``calls`` are (name, arguments text as sent); ``ended`` says how where not by itself.

    ``calls`` of None means that the field was absent or null. ``tokens`` is the usage's completion count.
    """

    status: int | None
    error: str
    content: str | None
    reasoning: str | None
    calls: tuple[tuple[str, str], ...]
    finish: str | None
    tokens: int | None
    ended: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of a configuration's table. ``mode`` is plain or stream; the verdict is sighted (known-answer)."""

    member: str
    mode: str
    came: Came
    outcome: str
    at_fault: str
    model_ran: str
    wrote: str
    delivery: str
    flags: tuple[str, ...]
    detail: str

    def facts(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def known_text(script: Script) -> str:
    """The text of a script as the classifier takes it; bytes that are no UTF-8 stand for themselves (Latin-1)."""
    data = text_bytes(script.text + script.loop)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return f"{text}{ENDLESS}" if script.loop else text


def cell_of(exchange: Exchange, script: Script, mode: str, server: ServerFacts, hidden: Mapping[str, str]) -> Cell:
    """Judge one recorded exchange. ``hidden`` replaces what tells of the machine."""
    classified, outcome = known_answer_verdict(exchange, known_text(script), server)
    facts = classified.facts
    turn = facts.turn
    calls = tuple((call.name or "", call.arguments_text) for call in turn.tool_calls) if turn is not None else ()
    came = Came(
        status=facts.status or None,
        error=_masked(facts.error_text, hidden) if facts.failed else "",
        content=turn.content if turn is not None else None,
        reasoning=turn.reasoning if turn is not None else None,
        calls=calls,
        finish=turn.finish_raw if turn is not None else None,
        tokens=facts.completion_tokens,
        ended="" if exchange.end == "complete" else exchange.end,
    )
    return Cell(
        member=script.name,
        mode=mode,
        came=came,
        outcome=outcome.name,
        at_fault=outcome.at_fault,
        model_ran=outcome.model_ran,
        wrote=outcome.wrote,
        delivery=outcome.delivery,
        flags=tuple(outcome.flags),
        detail=_masked(outcome.detail, hidden),
    )


def _masked(text: str, hidden: Mapping[str, str]) -> str:
    for secret, word in hidden.items():
        text = text.replace(secret, word)
    return text


def cell_from(facts: Mapping[str, Any]) -> Cell:
    """A cell from its JSON object. Raises KeyError, TypeError or ValueError when it is none."""
    came = dict(facts["came"])
    came["calls"] = tuple((name, arguments) for name, arguments in came["calls"])
    return Cell(**{**facts, "came": Came(**came), "flags": tuple(facts["flags"])})


def table_text(head: Mapping[str, Any], texts: Mapping[str, Any], cells: Iterable[Cell]) -> str:
    """A configuration's table as JSON text, a text and a cell a line, so that differences can be read."""

    def line(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)

    members = ",\n".join(f"  {line(name)}: {line(text)}" for name, text in texts.items())
    rows = ",\n".join(f"  {line(cell.facts())}" for cell in cells)
    start = "".join(f" {line(key)}: {line(value)},\n" for key, value in head.items())
    return f'{{\n{start} "texts": {{\n{members}\n }},\n "cells": [\n{rows}\n ]\n}}\n'
