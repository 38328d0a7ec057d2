"""From a JSON value to calls: which keys hold the name and the arguments, and what else passes for a call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stacks.formats.json_nodes import Node, Reading
from stacks.formats.json_text import loads
from stacks.formats.model import MAX_FINDINGS, ParsedCall, Span

NAME_KEYS = ("name", "tool_name", "tool", "function_name", "function", "recipient_name", "action")
ARGUMENT_KEYS = ("arguments", "parameters", "args", "params", "input", "tool_input", "action_input", "kwargs")
_FENCE = re.compile(r"\s*```[ \t]*[\w+-]*[ \t]*\r?\n?")
_FENCE_END = re.compile(r"\s*```")


@dataclass(frozen=True, slots=True)
class Keys:
    """Key names of one format.

    nested: the call sits under this key (`function`); either: nested or flat, both are right. optional: no arguments
    key is an ordinary call without arguments. as_text: the arguments are a JSON text.
    """

    name: str = "name"
    arguments: str = "arguments"
    nested: str = ""
    optional: bool = False
    either: bool = False
    as_text: bool = False


HERMES_KEYS = Keys()


class Draft(msgspec.Struct):
    """A call being built; spans are known, the block around it is not yet."""

    name: str
    arguments: Any
    arguments_text: str
    span: Span
    name_span: Span
    arguments_span: Span
    complete: bool
    repairs: list[str]
    call_id: str | None = None

    def call(self, span: Span, closed: bool, repairs: Sequence[str] = ()) -> ParsedCall:
        """The finished call, standing in the block `span`."""
        noted = tuple(dict.fromkeys((*repairs, *self.repairs)))
        return ParsedCall(
            self.name,
            self.arguments,
            self.arguments_text,
            span,
            self.name_span,
            self.arguments_span,
            closed=closed,
            complete=self.complete,
            repairs=noted,
            call_id=self.call_id,
        )


def _unwrap(node: Node, keys: Keys, repairs: list[str]) -> Node:
    """Follow `function` / `function_call` wrappers down to the object that holds the name."""
    members = node.members or {}
    if keys.nested and keys.nested in members and members[keys.nested][1].members is not None:
        return members[keys.nested][1]
    for wrapper in ("function", "function_call", "tool_call"):
        inner = members.get(wrapper)
        if inner is not None and inner[1].members is not None and "name" in inner[1].members:
            repairs.append("wrapped_object")
            return inner[1]
    if keys.nested and not keys.either:
        repairs.append("not_wrapped")
    return node


def draft_of(node: Node, keys: Keys, text: str) -> Draft | str:
    """The call that an object spells, or the reason why it spells none."""
    if node.members is None:
        return "not an object"
    repairs: list[str] = []
    inner = _unwrap(node, keys, repairs)
    members = inner.members or {}
    name_key = keys.name if keys.name in members else _first_text(members, NAME_KEYS)
    if name_key is None:
        return "no name"
    name_node = members[name_key][1]
    if not isinstance(name_node.value, str) or not name_node.value.strip() or not name_node.complete:
        return "the name is no string"
    if name_key != keys.name:
        repairs.append(f"key_{name_key}")
    call_id = (node.members.get("id") or members.get("id") or (None, None))[1]
    draft = Draft(
        name_node.value,
        {},
        "",
        node.span,
        _inner_span(name_node),
        Span(inner.end, inner.end),
        node.complete,
        repairs,
        call_id.value if call_id is not None and isinstance(call_id.value, str) else None,
    )
    _arguments(draft, members, keys, text)
    return draft


def _first_text(members: dict[str, tuple[Span, Node]], keys: Sequence[str]) -> str | None:
    return next((key for key in keys if key in members and isinstance(members[key][1].value, str)), None)


def _inner_span(node: Node) -> Span:
    """The span of a string without its quotes."""
    quoted = isinstance(node.value, str) and node.end - node.start >= len(node.value) + 2
    return Span(node.start + 1, node.end - 1) if quoted else node.span


def _arguments(draft: Draft, members: dict[str, tuple[Span, Node]], keys: Keys, text: str) -> None:
    key = keys.arguments if keys.arguments in members else None
    if key is None:
        key = next((other for other in ARGUMENT_KEYS if other in members), None)
        if key is None:
            if not keys.optional:
                draft.repairs.append("no_arguments")
            return
        draft.repairs.append(f"key_{key}")
    node = members[key][1]
    draft.arguments, draft.arguments_span = node.value, node.span
    draft.arguments_text = text[node.start : node.end]
    if not node.complete:
        draft.complete = False
    if isinstance(node.value, str):
        try:
            value = loads(node.value) if node.value.strip() else {}
        except ValueError:
            draft.repairs.append("arguments_no_object")
            return
        draft.arguments = value
        if not keys.as_text:
            draft.repairs.append("arguments_as_string")
        if not isinstance(value, dict):
            draft.repairs.append("arguments_no_object")
    elif node.value is None:
        draft.arguments = {}
        draft.repairs.append("arguments_null")
    elif not isinstance(node.value, dict):
        draft.repairs.append("arguments_no_object")


def drafts_of(node: Node, keys: Keys, text: str, wants_list: bool) -> tuple[list[Draft], list[tuple[str, Node]]]:
    """Calls spelled by a value that is one call or a list of them, and the parts that are no calls with the reason."""
    wrapper = (node.members or {}).get("tool_calls")
    extra: list[str] = []
    if wrapper is not None and wrapper[1].items is not None:
        node, extra = wrapper[1], ["wrapped_object"]
        wants_list = True
    elements = node.items[:MAX_FINDINGS] if node.items is not None else [node]
    if wants_list != (node.items is not None):
        extra.append("list_of_calls" if node.items is not None else "no_list")
    drafts: list[Draft] = []
    bad: list[tuple[str, Node]] = []
    for element in elements:
        draft = draft_of(element, keys, text)
        if isinstance(draft, str):
            bad.append((draft, element))
        else:
            draft.repairs[:0] = extra
            drafts.append(draft)
    return drafts, bad


def skip_fence(text: str, pos: int) -> int:
    """Offset behind an opening code fence at `pos`, or `pos` when there is none."""
    match = _FENCE.match(text, pos)
    return match.end() if match else pos


def skip_fence_end(text: str, pos: int) -> int:
    """Offset behind a closing code fence at `pos`, or `pos` when there is none."""
    match = _FENCE_END.match(text, pos)
    return match.end() if match else pos


def openings(text: str, opener: str) -> Iterator[int]:
    """Offsets of every `opener`; send() an offset to go on from there."""
    at = text.find(opener)
    while at >= 0:
        resume = yield at
        at = text.find(opener, resume if resume is not None else at + len(opener))


def reason_of(reading: Reading) -> tuple[str, str]:
    """Problem kind and sentence for a value that could not be read to its end."""
    if reading.stopped in ("too_deep", "too_long"):
        return reading.stopped, "nested too deep" if reading.stopped == "too_deep" else "too long to be a call"
    if reading.stopped == "cut":
        return "cut", "the text ends inside the call"
    return "not_json", "no readable JSON value"
