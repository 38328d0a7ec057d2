"""JSON values with their places, and the C decoder behind them."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from stacks.formats.json_text import number_of
from stacks.formats.model import Span

MAX_DEPTH = 100
_UNTERMINATED = "Unterminated string"


class Node(msgspec.Struct):
    """A value with its place. members: key -> (span of the key as written, node), for objects read by hand."""

    start: int
    end: int
    value: Any
    complete: bool = True
    members: dict[str, tuple[Span, Node]] | None = None
    items: list[Node] | None = None

    @property
    def span(self) -> Span:
        """Where the value stands."""
        return Span(self.start, self.end)


class Reading(msgspec.Struct):
    """Outcome of one read. node is None when not even its start was readable.

    stopped: why it ended early ("cut" at the end of the text, "stop" at a marker, "garbage", "too_deep", "too_long"),
    empty when the value is whole.
    """

    node: Node | None
    end: int
    stopped: str = ""
    repairs: tuple[str, ...] = ()


class Frame(msgspec.Struct):
    """An open container: what it holds so far, and the key whose value is due."""

    is_object: bool
    start: int
    members: dict[str, tuple[Span, Node]] = msgspec.field(default_factory=dict)
    items: list[Node] = msgspec.field(default_factory=list)
    key: str = ""
    key_span: Span = msgspec.field(default=Span(0, 0))
    pending: bool = False

    def add(self, node: Node) -> None:
        if self.is_object:
            self.members[self.key] = (self.key_span, node)
            self.pending = False
        else:
            self.items.append(node)

    def close(self, end: int, complete: bool = True) -> Node:
        if self.is_object:
            value: Any = {key: node.value for key, (_, node) in self.members.items()}
            return Node(self.start, end, value, complete, members=self.members)
        return Node(self.start, end, [node.value for node in self.items], complete, items=self.items)


def _decoder(careful: bool) -> json.JSONDecoder:
    def refuse(word: str) -> Any:
        raise ValueError(word)

    return json.JSONDecoder(parse_constant=refuse, parse_float=number_of if careful else None)


_SCAN = _decoder(False).scan_once  # type: ignore[attr-defined]
_SCAN_CAREFULLY = _decoder(True).scan_once  # type: ignore[attr-defined]
_HUGE = re.compile(r"[0-9][eE]\+?[0-9]{3}|[0-9]{300}")


def too_deep(value: Any) -> bool:
    """Whether a value nests deeper than `MAX_DEPTH` containers."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                deeper.extend(child for child in item.values() if isinstance(child, dict | list))
            elif isinstance(item, list):
                deeper.extend(child for child in item if isinstance(child, dict | list))
        if not deeper:
            return False
        level = deeper
    return True


def decode_piece(piece: str) -> tuple[Any, int, bool]:
    """Value and end of the JSON at the start of `piece` (end 0: unreadable), and whether a longer piece may help."""
    try:
        value, end = _SCAN(piece, 0)
    except StopIteration as stop:
        return None, 0, int(stop.value) >= len(piece) - 8
    except json.JSONDecodeError as error:
        return None, 0, error.pos >= len(piece) - 8 or error.msg.startswith(_UNTERMINATED)
    except (ValueError, RecursionError):
        return None, 0, False
    if _HUGE.search(piece, 0, end) is not None:
        value, end = _SCAN_CAREFULLY(piece, 0)
    return value, int(end), False
