"""What each text of the Hermes and the long canary is, labelled by hand; those of the format canaries say it
themselves, by construction (`probe.canary.format_members`)."""

from __future__ import annotations

from typing import Any

from probe.canary import member_spec
from probe.canary.format_members import format_members

W = "get_weather"
Call = tuple[str, Any]
Label = tuple[str, list[Call], str]


def w(city: Any) -> Call:
    """One call of the weather tool."""
    return (W, {"city": city})


_NESTED = (W, {"city": "Paris", "options": {"days": [1, 2, {"hour": None}], "exact": True}})
HERMES: dict[str, Label] = {
    "good": ("valid_call", [w("Paris")], ""),
    "prose": ("prose", [], "I could look up the weather in Paris, but I will not."),
    "prosecall": ("valid_call", [w("Paris")], "I will check the weather now."),
    "callprose": ("valid_call", [w("Paris")], "I have called the weather tool."),
    "two": ("valid_call", [w("Paris"), w("London")], ""),
    "answer": ("prose", [], "The weather in Paris is 18 degrees and sunny."),
    "empty": ("nothing", [], ""),
    "think": ("valid_call", [w("Paris")], ""),
    "thinkanswer": ("prose", [], "It is sunny today."),
    "thinkonly": ("thoughts", [], ""),
    "thinkopen": ("thoughts", [], ""),
    "thinkcall": ("open_thought_call", [w("Paris")], ""),
    "nested": ("valid_call", [_NESTED], ""),
    "unicode": ("valid_call", [w("Z\u00fcrich \u2600\ufe0f \u6771\u4eac \U0001f600")], ""),
    "escapes": ("valid_call", [w('a "b" \\ c\n\u00e9 </tool_call>')], ""),
    "noparams": ("invalid_arguments", [(W, {})], ""),
    "trunc": ("malformed_call", [w("Par")], ""),
    "truncclosed": ("malformed_call", [w("Par")], ""),
    "fence": ("valid_call", [w("Paris")], ""),
    "fenceintags": ("malformed_call", [w("Paris")], ""),
    "bare": ("valid_call", [w("Paris")], ""),
    "single": ("malformed_call", [w("Paris")], ""),
    "literals": ("malformed_call", [(W, {"city": "Paris", "metric": True})], ""),
    "comma": ("malformed_call", [w("Paris")], ""),
    "unknown": ("unknown_tool", [("launch_rocket", {"target": "moon"})], ""),
    "badtype": ("invalid_arguments", [(W, {"city": 5, "extra": True})], ""),
    "noargs": ("malformed_call", [], ""),
    "noname": ("malformed_call", [], ""),
    "parameters": ("malformed_call", [w("Paris")], ""),
    "argstring": ("malformed_call", [w("Paris")], ""),
    "jsonstring": ("malformed_call", [], ""),
    "jsonnull": ("malformed_call", [], ""),
    "list": ("malformed_call", [w("Paris"), w("London")], ""),
    "stringlist": ("malformed_call", [], ""),
    "doubleopen": ("malformed_call", [w("Rome")], ""),
    "xml": ("valid_call", [w("Paris")], ""),
    "badutf8": ("prose", [], "Temperature: 21"),
    "emoji": ("prose", [], "It is 21 \u00b0C in Z\u00fcrich \u2600\ufe0f\U0001f600."),
    "splitemoji": ("prose", [], "Cut \U0001f600 here."),
    "loop": ("endless_prose", [], ""),
    "loopcall": ("endless_call", [], ""),
}


def label_of(canary: str, member: str) -> Label:
    """(kind, calls, prose) of a member of a canary. Raises KeyError for one that nobody labelled."""
    if canary == "hermes":
        return HERMES[member]
    if canary == "formats":
        return ("valid_call", [w("Paris")], "")
    if canary == "long":
        return ("prose", [], member_spec("long").script(member).text)
    found = next(each for each in format_members(canary) if each.name == member)
    if found.loop:
        return ("endless_call" if found.text else "endless_prose", [], "")
    kind = "open_thought_call" if found.in_reasoning else found.kind
    return (kind, [(name, dict(arguments)) for name, arguments in found.calls], found.prose)
