"""The cases of the pack `structured`, drawn from a seed. Pure: the same seed gives the same cases.

Six kinds. `call`: one of three tools, all of them declared by every such case. `order`, `meeting`: fields out of a
sentence. `label`: one of three words. `colours`: a set. `depth`: an order that was named so many turns ago
(`labels.depth` 0, 2 or 4), and its length control, the same words in one turn (`labels.form`: `turns` or `length`).
A family of `depth` asks the same order five times and lies in one half as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from harness.workbench.structured import words

SEED = 20261201
SYSTEM = "You read a request and answer with one JSON object and nothing else."
COUNTS = {"call": 80, "order": 35, "meeting": 20, "label": 20, "colours": 20, "depth": 75}
DEV = {"call": 40, "order": 15, "meeting": 10, "label": 10, "colours": 10, "depth": 40}
"""How many cases of a kind lie in the development half; the others are held out."""
DEPTHS = (0, 2, 4)

_TEXT = {"type": "string", "minLength": 1, "maxLength": 60}
TOOLS = (
    {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": _TEXT, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
    {
        "name": "convert_currency",
        "description": "An amount of money in another currency.",
        "parameters": {
            "type": "object",
            "properties": {
                "amount": {"type": "integer"},
                "from": {"type": "string", "enum": list(words.CURRENCIES)},
                "to": {"type": "string", "enum": list(words.CURRENCIES)},
            },
            "required": ["amount", "from", "to"],
            "additionalProperties": False,
        },
    },
    {
        "name": "search_web",
        "description": "Pages about a subject.",
        "parameters": {
            "type": "object",
            "properties": {"query": _TEXT},
            "required": ["query"],
            "additionalProperties": False,
        },
    },
)
Case = dict[str, Any]


def cases(seed: int = SEED) -> list[Case]:
    """All cases as tasks of the pack format, without their tools (`call` cases declare `TOOLS`)."""
    draw = Random(seed)
    made = [*_calls(draw), *_orders(draw), *_meetings(draw), *_labels(draw), *_colours(draw), *_depths(draw)]
    placed: dict[str, int] = {}
    for case in made:
        kind = case["category"]
        placed[kind] = placed.get(kind, 0) + 1
        case["labels"] = {"half": "dev" if placed[kind] <= DEV[kind] else "test", **case.get("labels", {})}
    return made


def _case(kind: str, number: int, messages: list[dict[str, str]], **more: Any) -> Case:
    asked = [{"role": "system", "content": SYSTEM}, *messages]
    return {"id": f"{kind}-{number:03}", "category": kind, "messages": asked, **more}


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _different(draw: Random, said: set[str], one: Any) -> Any:
    """A drawn value whose text was not there before."""
    while True:
        made = one(draw)
        if made[0] not in said:
            said.add(made[0])
            return made


def _call(draw: Random, which: int) -> tuple[str, str, dict[str, Any], dict[str, str]]:
    if which == 0:
        city, unit = draw.choice(words.CITIES), draw.choice(["celsius", "fahrenheit"])
        text = draw.choice(["What is the weather in {0} in {1}?", "Tell me how warm it is in {0}, in {1}."])
        return text.format(city, unit), "get_weather", {"city": city, "unit": unit}, {"city": "text"}
    if which == 1:
        amount, (one, other) = draw.randrange(10, 990, 5), draw.sample(words.CURRENCIES, 2)
        text = draw.choice(["How much is {0} {1} in {2}?", "Convert {0} {1} to {2}."])
        arguments = {"amount": amount, "from": one, "to": other}
        return text.format(amount, one, other), "convert_currency", arguments, {"amount": "number"}
    subject, place = draw.choice(words.SUBJECTS), draw.choice(words.CITIES)
    text = draw.choice(["Search the web for {0} in {1}.", "Find pages about {0} in {1}."])
    return text.format(subject, place), "search_web", {"query": f"{subject} in {place}"}, {"query": "semantic"}


def _calls(draw: Random) -> Iterator[Case]:
    said: set[str] = set()
    for number in range(COUNTS["call"]):
        which = number % 3
        text, tool, arguments, rules = _different(draw, said, lambda drawn, which=which: _call(drawn, which))
        judged = {"eval": "arguments", "tool": tool, "expected": arguments, "rules": rules}
        gold = {"name": tool, "arguments": arguments}
        yield _case("call", number + 1, [_user(text)], **judged, gold=gold)


def _order(draw: Random) -> tuple[str, dict[str, Any]]:
    person, item, count = draw.choice(words.PEOPLE), draw.choice(words.ITEMS), draw.randrange(2, 30)
    day = draw.choice(words.DAYS)
    return f"{person} wants {count} {item}s by {day}.", {"customer": person, "item": item, "quantity": count}


ORDER_FIELDS = '"customer", "item" and "quantity"'
_ORDER_SCHEMA = {
    "type": "object",
    "properties": {"customer": _TEXT, "item": _TEXT, "quantity": {"type": "integer"}},
    "required": ["customer", "item", "quantity"],
    "additionalProperties": False,
}


def _judged_order(gold: Mapping[str, Any]) -> dict[str, Any]:
    rules = {
        "customer": "text",
        "item": {"rule": "equiv", "values": _spellings(str(gold["item"]))},
        "quantity": "number",
    }
    return {"eval": "schema", "schema": _ORDER_SCHEMA, "expected": dict(gold), "rules": rules, "gold": dict(gold)}


def _spellings(item: str) -> list[str]:
    """The same thing in the plural, and with a capital."""
    return [f"{item}s", item.capitalize(), f"{item.capitalize()}s"]


def _orders(draw: Random) -> Iterator[Case]:
    said: set[str] = set()
    for number in range(COUNTS["order"]):
        text, gold = _different(draw, said, _order)
        asked = f"Fill in the fields {ORDER_FIELDS} from the order.\nOrder: {text}"
        yield _case("order", number + 1, [_user(asked)], **_judged_order(gold))


def _meeting(draw: Random) -> tuple[str, dict[str, Any]]:
    title, room = draw.choice(words.TITLES), f"{draw.choice('ABCD')}{draw.randrange(1, 30)}"
    day, month, hour = draw.randrange(1, 29), draw.randrange(1, 13), draw.randrange(8, 18)
    minute = draw.choice((0, 15, 30, 45))
    text = f"{title} on {day} {words.MONTHS[month - 1]} 2025 at {hour:02}:{minute:02} in room {room}."
    return text, {"title": title, "start": f"2025-{month:02}-{day:02}T{hour:02}:{minute:02}", "room": room}


def _meetings(draw: Random) -> Iterator[Case]:
    said: set[str] = set()
    schema = {
        "type": "object",
        "properties": {"title": _TEXT, "start": {"type": "string", "minLength": 16, "maxLength": 25}, "room": _TEXT},
        "required": ["title", "start", "room"],
        "additionalProperties": False,
    }
    for number in range(COUNTS["meeting"]):
        text, gold = _different(draw, said, _meeting)
        asked = (
            f'Write the meeting as JSON with the fields "title", "start" (YYYY-MM-DDTHH:MM) and "room".\nNote: {text}'
        )
        rules = {"title": "text", "start": "iso_minute", "room": "exact"}
        judged = {"eval": "schema", "schema": schema, "expected": gold, "rules": rules, "gold": gold}
        yield _case("meeting", number + 1, [_user(asked)], **judged)


def _labels(draw: Random) -> Iterator[Case]:
    said: set[str] = set()
    names = list(words.MESSAGES)
    schema = {
        "type": "object",
        "properties": {"label": {"type": "string", "enum": names}},
        "required": ["label"],
        "additionalProperties": False,
    }

    def drawn(by: Random, label: str) -> tuple[str, str]:
        return by.choice(words.MESSAGES[label]).format(item=by.choice(words.ITEMS)), label

    for number in range(COUNTS["label"]):
        label = names[number % len(names)]
        text, _ = _different(draw, said, lambda by, label=label: drawn(by, label))
        asked = (
            'Give the label of this message as JSON with the field "label": one of "complaint", "question", "praise".\n'
            f"Message: {text}"
        )
        gold = {"label": label}
        judged = {"eval": "schema", "schema": schema, "expected": gold, "rules": {"label": "exact"}, "gold": gold}
        yield _case("label", number + 1, [_user(asked)], **judged)


def _colour(draw: Random) -> tuple[str, list[str]]:
    colours, things = draw.sample(words.COLOURS, 3), draw.sample(words.THINGS, 3)
    (a, b, c), (x, y, z) = colours, things
    return f"The {a} {x} stands beside a {b} {y} and a {c} {z}.", colours


def _colours(draw: Random) -> Iterator[Case]:
    said: set[str] = set()
    schema = {
        "type": "object",
        "properties": {"colours": {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 6}},
        "required": ["colours"],
        "additionalProperties": False,
    }
    for number in range(COUNTS["colours"]):
        text, colours = _different(draw, said, _colour)
        asked = f'List the colours named in the text as JSON with the field "colours", a list of words.\nText: {text}'
        gold = {"colours": colours}
        judged = {"eval": "schema", "schema": schema, "expected": gold, "rules": {"colours": "set"}, "gold": gold}
        yield _case("colours", number + 1, [_user(asked)], **judged)


def _depths(draw: Random) -> Iterator[Case]:
    said: set[str] = set()
    asked = f"Fill in the fields {ORDER_FIELDS} from order 1."
    number = 0
    for family in range(COUNTS["depth"] // 5):
        text, gold = _different(draw, said, _order)
        remarks = draw.sample(words.REMARKS, max(DEPTHS))
        for depth in DEPTHS:
            for form in ("turns", "length") if depth else ("turns",):
                number += 1
                messages = _said(text, remarks[:depth], asked, form)
                labels = {"depth": str(depth), "form": form, "family": f"{family + 1:02}"}
                yield _case("depth", number, messages, labels=labels, **_judged_order(gold))


def _said(text: str, remarks: list[str], asked: str, form: str) -> list[dict[str, str]]:
    """The order, the remarks after it, and the question: in turns, or all in one."""
    parts = [f"Order 1: {text}", *remarks]
    if form == "length" or not remarks:
        return [_user("\n".join([*parts, asked]))]
    turns = []
    for at, part in enumerate(parts):
        turns += [_user(part), {"role": "assistant", "content": words.REPLIES[at % len(words.REPLIES)]}]
    return [*turns, _user(asked)]
