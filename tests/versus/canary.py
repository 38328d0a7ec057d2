"""The known-answer model of the comparison: it solves the peer's scenarios, so that no failure can be its own."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

from probe.canary import CanarySpec, Script, default_spec, ensure_built
from probe.canary.build import BuiltCanary
from stacks.locations import canaries_folder
from tests.setups.models import PLAIN_TEMPLATE


def _call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


_STANDUP = {
    "title": "Team standup",
    "date": "2026-03-23",
    "time": "09:30",
    "duration_minutes": 30,
    "attendees": ["alex.stone@company.com", "jamie.liu@company.com"],
}
_MAIL = {
    "to": "sarah.chen@company.com",
    "subject": "Meeting moved",
    "body": "The meeting moved to 3pm.",
}

TURNS: tuple[tuple[str, str, str], ...] = (
    ("berlin", "What's the weather like in Berlin right now?", _call("get_weather", location="Berlin")),
    ("berlin-said", "Overcast", "It is 8 degrees Celsius and overcast in Berlin."),
    ("stock", "What is the current price of AAPL stock?", _call("get_stock_price", ticker="AAPL")),
    ("stock-said", "187.42", "AAPL stands at $187.42."),
    ("sarah", "I need to let Sarah know the meeting moved to 3pm.", _call("get_contacts", query="Sarah")),
    ("sarah-mail", "Sarah Chen", _call("send_email", **_MAIL)),
    ("sarah-said", "msg_8821", "I have told Sarah that the meeting moved to 3pm."),
    (
        "tokyo",
        "What's the temperature in Tokyo in Fahrenheit?",
        _call("get_weather", location="Tokyo", units="fahrenheit"),
    ),
    ("tokyo-said", "Tokyo", "It is 64 degrees Fahrenheit in Tokyo."),
    (
        "standup",
        "Schedule a team standup for next Monday at 9:30am, 30 minutes, with Alex and Jamie.",
        _call("create_calendar_event", **_STANDUP),
    ),
    ("standup-said", "evt_4412", "The team standup is in the calendar for Monday, 2026-03-23, at 9:30."),
)
"""What the model reads last (a question of the peer's scenarios, or a word of the mock tool's result) and what it
then writes. Everything else it is asked, it answers as the shipped canary does: with a call to get_weather for Paris.
"""


def _spec() -> CanarySpec:
    spec = default_spec()
    scripts = tuple(Script(f"peer-{name}", text, about=f"after: {read}") for name, read, text in TURNS)
    triggers = {read: f"peer-{name}" for name, read, _ in TURNS}
    return replace(
        spec,
        name="canary-versus",
        scripts=(*spec.scripts, *scripts),
        triggers={**spec.triggers, **triggers},
        # Another template text: neither tool is to know the model by its files.
        template="{# versus #}" + spec.template,
    )


def _bare() -> CanarySpec:
    return replace(_spec(), name="canary-versus-bare", template=PLAIN_TEMPLATE)


def _counting() -> CanarySpec:
    """The same that counts where it is asked to, as models do: only a long answer shows whether a stream is held."""
    spec = _spec()
    count = Script("count", loop=" ".join(str(number) for number in range(1, 21)) + " ", about="counts for ever")
    triggers = {**spec.triggers, "Count from 1 to": "count"}
    return replace(spec, name="canary-versus-counting", scripts=(*spec.scripts, count), triggers=triggers)


SPECS = {"hermes": _spec, "bare": _bare, "counting": _counting}
"""`hermes` and `bare` stand for the models of `tests.setups.models` of these names."""


@cache
def built(name: str) -> BuiltCanary:
    """A model of `SPECS`, built once into the cache."""
    spec = SPECS[name]()
    return ensure_built(spec, canaries_folder() / f"versus-{name}-{spec.digest()[:12]}")
