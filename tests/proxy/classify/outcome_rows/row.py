"""A row of the table of whole outcomes, and what several rows are made of."""

from __future__ import annotations

from typing import Any, NamedTuple

from proxy.classify import ExchangeView
from tests.proxy.classify.exchanges import QUESTION

GOOD: list[tuple[str, Any]] = [("get_weather", {"city": "Lyon"})]
DONE = "data: [DONE]"
OLD_CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Lyon"}'}}
PAST = [
    QUESTION,
    {"role": "assistant", "content": None, "tool_calls": [OLD_CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "22 C"},
]


def ended(view: ExchangeView, end: str) -> ExchangeView:
    """The same exchange, ended in another way."""
    view.end = end
    return view


class Row(NamedTuple):
    """An exchange and what is said of it. `evidence`: direction, beginning of the quote, reason. `remedy`: its
    beginning, "" where nothing is to be changed; `ask`: the kind of question that would decide it, "" where it is
    decided."""

    about: str
    view: ExchangeView
    name: str
    state: str
    evidence: list[str]
    remedy: str
    ask: str
    flags: list[str]
