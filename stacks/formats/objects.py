"""From a JSON value to calls: which keys hold the name and the arguments, and what else passes for a call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from stacks.formats.json_reader import JsonReader, Node, Reading
from stacks.formats.json_text import loads, skip_space
from stacks.formats.model import MAX_FINDINGS, Found, ParsedCall, Span

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


@dataclass(slots=True)
class Draft:
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


@dataclass(slots=True)
class _Block:
    """A block being read: where it starts, what it needed, what it held."""

    start: int
    repairs: list[str]
    drafts: list[Draft] = field(default_factory=list)
    values: int = 0


@dataclass(frozen=True, slots=True)
class TaggedJson:
    """A scanner for calls written as JSON behind an opening marker: one object, or a list of objects.

    opener / closer: the markers; closer "" when the format has none (the value's own end closes it).
    separator: what may stand between several values of one block ("" for white space only).
    """

    opener: str
    closer: str = ""
    keys: Keys = HERMES_KEYS
    wants_list: bool = False
    separator: str = ""
    other_closers: tuple[str, ...] = ()

    def scan(self, text: str, _tools: object) -> Found:
        """Read every block of the text."""
        stops = tuple(dict.fromkeys(s for s in (self.closer, self.opener, *self.other_closers) if s))
        reader = JsonReader(text, stops)
        found = Found()
        at = text.find(self.opener)
        while at >= 0 and not found.full:
            at = text.find(self.opener, self._block(reader, at, found))
        return found

    def _block(self, reader: JsonReader, start: int, found: Found) -> int:
        """Read one block: opener, a fence or doubled opener to rescue, values, closer. Returns where to go on."""
        text = reader.text
        pos, repairs = self._enter(text, start + len(self.opener))
        block = _Block(start, repairs)
        while self._value_follows(text, pos := self._skip(text, pos, block.values), block.values):
            reading = reader.read(pos)
            pos = max(reading.end, pos + 1) if reading.node is None else reading.end
            block.values += 1
            if not self._take(reading, block, found, text):
                break
        return self._finish(text, pos, block, found)

    def _enter(self, text: str, pos: int) -> tuple[int, list[str]]:
        repairs: list[str] = []
        while text.startswith(self.opener, at := skip_space(text, pos)):
            repairs = ["doubled_open_tag"]
            pos = at + len(self.opener)
        fenced = skip_fence(text, pos)
        if fenced != pos:
            repairs.append("fence_inside_tag")
        return fenced, repairs

    def _skip(self, text: str, pos: int, values: int) -> int:
        """Over white space, over a closing fence, and over the separator before a further value."""
        pos = skip_space(text, pos)
        while values and text.startswith("```", pos):
            pos = skip_space(text, pos + 3)
        if values and self.separator and text.startswith(self.separator, pos):
            after = skip_space(text, pos + len(self.separator))
            return after if text[after : after + 1] in _VALUE_STARTS else pos
        return pos

    def _value_follows(self, text: str, pos: int, values: int) -> bool:
        if values and not self.closer and not (self.separator and text[:pos].rstrip().endswith(self.separator)):
            return False
        if self.closer and text.startswith(self.closer, pos):
            return False
        return text[pos : pos + 1] in (("{", "[") if values else _VALUE_STARTS)

    def _take(self, reading: Reading, block: _Block, found: Found, text: str) -> bool:
        node = reading.node
        if node is None:
            found.problem(*reason_of(reading), block.start, reading.end)
            return False
        fresh, bad = drafts_of(node, self.keys, text, self.wants_list)
        for draft in fresh:
            draft.repairs.extend(reading.repairs)
        block.drafts.extend(fresh)
        for why, element in bad:
            kind = "no_name" if "name" in why else "not_a_call"
            broken = reason_of(reading) if not element.complete else (kind, why)
            found.problem(*broken, element.start, element.end)
        return reading.stopped in ("", "stop")

    def _finish(self, text: str, pos: int, block: _Block, found: Found) -> int:
        start, drafts, repairs = block.start, block.drafts, block.repairs
        end, closed = pos, not self.closer and all(draft.complete for draft in drafts)
        if self.closer:
            end, closed = self._close(text, pos, block)
        if not block.values:
            kind = "cut" if pos >= len(text) else "not_json"
            found.problem(kind, "no JSON value after the opening marker", start, end)
        if self.separator == "" and not self.wants_list and block.values > 1:
            repairs.append("several_in_one_block")
        found.blocks.append(Span(start, end))
        for index, draft in enumerate(drafts):
            span = Span(start, end) if len(drafts) == 1 else _share(index, drafts, start, end)
            found.calls.append(draft.call(span, closed, repairs))
        return max(end, start + len(self.opener))

    def _close(self, text: str, pos: int, block: _Block) -> tuple[int, bool]:
        """Where the block ends and whether a closing marker ends it, over stray brackets or words before that."""
        extra = _EXTRA_CLOSERS.match(text, pos)
        after = extra.end() if extra and block.drafts else pos
        for closer in (self.closer, *self.other_closers):
            if text.startswith(closer, after):
                if text[pos:after].strip():
                    block.repairs.append("extra_bracket")
                if closer != self.closer:
                    block.repairs.append("other_close_tag")
                return after + len(closer), True
        end, closed = self._late_closer(text, pos) if block.drafts else (pos, False)
        block.repairs.append("text_in_block" if closed else "missing_close_tag")
        return end, closed

    def _late_closer(self, text: str, pos: int) -> tuple[int, bool]:
        """The closer a little further on, behind stray words; not behind another opener."""
        at = text.find(self.closer, pos, pos + _LATE)
        if at < 0 or text.find(self.opener, pos, at) >= 0:
            return pos, False
        return at + len(self.closer), True


def _share(index: int, drafts: Sequence[Draft], start: int, end: int) -> Span:
    """The part of a block of several calls that belongs to one: its own text, plus the block's edges."""
    first, last = index == 0, index == len(drafts) - 1
    return Span(start if first else drafts[index].span.start, end if last else drafts[index].span.end)


_LATE = 400
_VALUE_STARTS = frozenset("{[\"'")
_EXTRA_CLOSERS = re.compile(r"[\s}\])]*")
