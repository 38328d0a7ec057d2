"""Damage to JSON: the tree is changed, then written again; some damage is done while it is written (duplicate keys)."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

MARKS = (
    "<tool_call>",
    "</tool_call>",
    '{"name": "get_weather", "arguments": {"city": "Paris"}}',
    "<|python_tag|>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "<function=get_weather>",
    "<parameter=city>",
    "</parameter>",
    "</function>",
    "<think>",
    "</think>",
    "<|channel|>",
    "<|message|>",
    "<|call|>",
    "commentary to=functions.get_weather",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁sep｜>",
    "<|tool_calls_section_begin|>",
    "<arg_key>",
    "<arg_value>",
    "</arg_value>",
    "[get_weather(city='Paris')]",
    "<start_function_call>call:get_weather{",
    "<escape>",
    "functools[",
    "Action: get_weather\nAction Input: {",
    "```json\n",
    "```",
    "<|tool_call_start|>",
    "<|tool_call_end|>",
    ">>>get_weather\n",
    "<|eom_id|>",
    "error parsing tool call: raw='",
    "failed to parse JSON",
    "\ud800",
    "\udfff\ud83d",
    "\x00",
    "\u2028",
    "\\",
    '"',
    "\\u00",
    "{" * 40,
    "[" * 300,
    "'" * 50,
    "🦊",
)

ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    10**400,
    -(10**25),
    0.1,
    1e308,
    float("nan"),
    float("inf"),
    "",
    " ",
    "0",
    "null",
    "true",
    "{}",
    "[]",
    [],
    {},
    [[]],
    [None],
    {"": None},
    [{}],
    {"type": 7},
    "x" * 3000,
    "1" * 500,
    {"error": {"error": {"message": "{"}}},
    "tool_calls",
    "stop",
    "length",
    "error",
)


def _spots(tree: Any, limit: int = 2000) -> list[tuple[Any, Any]]:
    """(container, key) of every value in a tree."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting and len(found) < limit:
        container = waiting.pop()
        keys = list(container) if isinstance(container, dict) else range(len(container))
        for key in keys:
            found.append((container, key))
            if isinstance(container[key], (dict, list)):
                waiting.append(container[key])
    return found


def _text(dice: Random, text: str) -> str:
    at, to = sorted((dice.randint(0, len(text)), dice.randint(0, len(text))))
    kind = dice.randrange(7)
    if kind == 0:
        return text[:at] + dice.choice(MARKS) + text[at:]
    if kind == 1:
        return text[:at]
    if kind == 2:
        return text[:at] + text[to:]
    if kind == 3:
        return text[:to] + text[at:]
    if kind == 4:
        return dice.choice(MARKS) + text + dice.choice(MARKS)
    if kind == 5:
        return text.replace('"', dice.choice(("'", '\\"', "“", ""))).replace("\n", dice.choice(("\n", "\\n", "\r\n")))
    return "".join(dice.choice(MARKS) for _ in range(dice.randint(1, 5)))


def _put(dice: Random, container: Any, key: Any, everything: list[tuple[Any, Any]]) -> None:
    """Put something else at one place."""
    value = container[key]
    kind = dice.randrange(8)
    if kind == 0:
        container[key] = deepcopy(dice.choice(ODD))  # one input must not change what the next one gets
    elif kind == 1:
        container[key] = [value]
    elif kind == 2:
        container[key] = json.dumps(value)
    elif kind == 3:
        other, where = dice.choice(everything)
        if where in other if isinstance(other, dict) else where < len(other):
            container[key] = json.loads(json.dumps(other[where]))
    elif kind == 4:
        deep: Any = value
        for _ in range(dice.choice((3, 30, 300))):
            deep = {"a": deep} if dice.random() < 0.5 else [deep]
        container[key] = deep
    elif isinstance(value, str):
        container[key] = _text(dice, value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        container[key] = dice.choice(
            (value + 1, -value, value * 2, str(value), float(value) if abs(value) < 1e300 else 0)
        )
    else:
        container[key] = deepcopy(dice.choice(ODD))


def _change(dice: Random, tree: Any) -> None:
    spots = _spots(tree)
    if not spots:
        return
    container, key = dice.choice(spots)
    kind = dice.randrange(6)
    if kind == 0:
        del container[key]
    elif kind == 1 and isinstance(container, list):
        container.insert(dice.randint(0, len(container)), container[key])
    elif kind == 1:
        container[dice.choice(("index", "id", "name", "arguments", "error", "type", "x", ""))] = container[key]
    elif kind == 2 and isinstance(container, list):
        dice.shuffle(container)
    elif kind == 2:
        other = dice.choice(list(container))
        container[key], container[other] = container[other], container[key]
    else:
        _put(dice, container, key, spots)


def _duplicated(dice: Random, text: str) -> str:
    """A key written twice, in the text of an object."""
    at = text.find('"', dice.randint(0, max(0, len(text) - 1)))
    colon = text.find(":", at)
    if at < 0 or colon < 0 or "\n" in text[at:colon]:
        return text
    return text[:at] + text[at : colon + 1] + dice.choice(('"x", ', "null, ", "[], ", "{}, ", "7, ")) + text[at:]


def damaged(dice: Random, text: bytes) -> bytes | None:
    """A JSON text with its tree changed; None where it is none."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(tree, (dict, list)):
        return None
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        _change(dice, tree)
    written = _write(dice, tree)
    if dice.random() < 0.1:
        written = _duplicated(dice, written)
    return written.encode("utf-8", dice.choice(("surrogatepass", "replace")))


def _write(dice: Random, tree: Any) -> str:
    style: Callable[..., str] = json.dumps
    indent = 2 if dice.random() < 0.1 else None
    try:
        return style(tree, ensure_ascii=dice.random() < 0.5, indent=indent, separators=dice.choice((None, (",", ":"))))
    except (ValueError, RecursionError):
        return "{}"
