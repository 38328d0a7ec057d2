"""A JSON reader for text that a model wrote: exact where it can be, rescuing where it must.

`JsonReader.read` parses one value anywhere in a text. It keeps the spans of the upper levels (the list of calls, the
call, its members), says in stable words what it had to rescue, never recurses, and never raises. Containers below
those levels go through the C decoder first and are read by hand only when that fails, so that valid input costs
little and broken input stays linear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from stacks.formats.json_nodes import MAX_DEPTH, Frame, Node, Reading, decode_piece, too_deep
from stacks.formats.json_text import (
    Token,
    read_scalar,
    read_strict_string,
    read_string,
    skip_space,
)
from stacks.formats.model import MAX_FINDINGS, MAX_STEPS, Span

_EXPLORED = frozenset({"function", "function_call", "tool_call", "tool_calls"})
_WINDOWS = (2048, 65536)
_KEY = re.compile(r"[A-Za-z_$][\w$.-]*(?=\s*:)")
_PLAIN_CALL = re.compile(
    r"\{\s*(?P<first>\"name\")\s*:\s*\"(?P<name>[^\"\\\x00-\x1f]*)\"\s*,\s*\"(?P<key>arguments|parameters)\"\s*:\s*(?=\{)"
)
_PLAIN_END = re.compile(r"\s*\}")
_STARTS = frozenset("\"'{[\u201c")


class JsonReader:
    """Reads JSON values out of text[:end]. `stops` are markers (closing tags) at which an open value ends."""

    def __init__(self, text: str, stops: Sequence[str] = (), end: int | None = None) -> None:
        self.text = text
        self.end = len(text) if end is None else end
        self._stops = tuple(stops)
        self._stop_at = re.compile("|".join(map(re.escape, stops))) if stops else None
        self._stop_line = re.compile(r"\n[ \t]*(?:" + "|".join(map(re.escape, stops)) + ")") if stops else None
        self._next_stop = -1
        self.ran_out = False
        self.steps = MAX_STEPS
        self._long_reads = 8 * len(text) + (1 << 20)

    # ------------------------------------------------------------------ entry
    def read(self, pos: int) -> Reading:
        """Read the value that starts at `pos` (white space is skipped)."""
        return _Run(self).go(skip_space(self.text, pos))

    def stop_here(self, pos: int) -> bool:
        """Whether one of the stop markers stands at `pos`."""
        return bool(self._stops) and self.text.startswith(self._stops, pos)

    def string_limit(self, pos: int) -> int:
        """Where a string that starts at `pos` ends at the latest: the next line that begins with a stop marker.

        Valid JSON strings hold no raw line break, so this bounds broken ones only."""
        if self._stop_line is None:
            return self.end
        if self._next_stop < pos:
            match = self._stop_line.search(self.text, pos, self.end)
            self._next_stop = match.start() if match else self.end
        return self._next_stop

    # ------------------------------------------------------------------ the C decoder, in windows
    def plain_call(self, pos: int) -> Node | None:
        """The object at `pos` if it is the everyday call: a name, then an object of arguments, nothing else."""
        head = _PLAIN_CALL.match(self.text, pos, self.end)
        if head is None:
            return None
        arguments = self.decode(head.end())
        if arguments is None:
            return None
        close = _PLAIN_END.match(self.text, arguments.end, self.end)
        if close is None:
            return None
        name, key = head.group("name"), head.group("key")
        name_node = Node(head.start("name") - 1, head.end("name") + 1, name)
        name_key, arguments_key = Span(*head.span("first")), Span(head.start("key") - 1, head.end("key") + 1)
        members = {"name": (name_key, name_node), key: (arguments_key, arguments)}
        return Node(pos, close.end(), {"name": name, key: arguments.value}, members=members)

    def decode(self, pos: int) -> Node | None:
        """The container at `pos` through the C decoder, or None (`ran_out`: because the text ends inside it).

        Windows keep its error reports cheap."""
        left = self.end - pos
        self.ran_out = False
        for window in (*(w for w in _WINDOWS if w < left), left):
            if window > _WINDOWS[-1]:
                self._long_reads -= window
                if self._long_reads < 0:
                    break
            piece = self.text[pos : pos + window]
            value, end, longer = decode_piece(piece)
            if end:
                brackets = piece.count("{", 0, end) + piece.count("[", 0, end)
                return None if brackets > MAX_DEPTH and too_deep(value) else Node(pos, pos + end, value)
            self.ran_out = longer
            if not longer:
                break
        return None


class _Run:
    """State of one read: the open containers, the repairs, whether the C decoder is worth trying."""

    def __init__(self, reader: JsonReader) -> None:
        self.reader = reader
        self.text = reader.text
        self.limit = reader.end
        self.stack: list[Frame] = []
        self.repairs: list[str] = []
        self.by_hand_below = 1 << 30

    def go(self, pos: int) -> Reading:
        while True:
            node, pos, why = self._value(pos)
            if why:
                return self._give_up(pos, why)
            if node is not None:
                if not self.stack:
                    return Reading(node, pos, "" if node.complete else "cut", self._noted())
                self.stack[-1].add(node)
                if not node.complete:
                    return self._give_up(pos, "stop" if pos < self.limit else "cut")
            done, pos, why = self._next(pos, opened=node is None)
            if done is not None:
                return Reading(done, pos, why, self._noted())
            if why:
                return self._give_up(pos, why)

    def _noted(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.repairs))

    # ------------------------------------------------------------------ values
    def _value(self, pos: int) -> tuple[Node | None, int, str]:
        """Read a scalar or a leaf container, or open a container (node None, no reason)."""
        pos = skip_space(self.text, pos)
        if pos >= self.limit:
            return None, pos, "cut"
        if self.reader.stop_here(pos):
            return None, pos, "stop"
        self.reader.steps -= 1
        if self.reader.steps < 0:
            return None, pos, "too_long"
        char = self.text[pos]
        if char in "{[":
            return self._container(pos, char == "{")
        token = self._string(pos) if char in "\"'\u201c" else read_scalar(self.text, pos, self.limit)
        if token is None:
            return None, pos, "garbage"
        self.repairs.extend(token.repairs)
        return Node(pos, token.end, token.value, token.complete), token.end, ""

    def _string(self, pos: int) -> Token:
        strict = read_strict_string(self.text, pos, self.limit)
        if strict is not None and (not self.stack or self.text[strict.end : strict.end + 1] in _FOLLOWS):
            return strict
        loose = read_string(self.text, pos, self.reader.string_limit(pos))
        return strict if strict is not None and loose.end == strict.end else loose

    def _container(self, pos: int, is_object: bool) -> tuple[Node | None, int, str]:
        depth = len(self.stack)
        if self._explored(is_object):
            plain = self.reader.plain_call(pos) if is_object else None
            if plain is not None:
                return plain, plain.end, ""
        elif depth < self.by_hand_below:
            leaf = self.reader.decode(pos)
            if leaf is not None:
                return leaf, leaf.end, ""
            if not self.reader.ran_out:
                self.by_hand_below = depth
        if depth >= MAX_DEPTH:
            return None, pos, "too_deep"
        self.stack.append(Frame(is_object, pos))
        return None, pos + 1, ""

    def _explored(self, is_object: bool) -> bool:
        """Whether the container is one of the levels whose spans matter: calls, not their arguments."""
        depth = len(self.stack)
        if depth == 0:
            return True
        above = self.stack[-1]
        if above.is_object:
            return depth <= 4 and above.key in _EXPLORED
        return is_object and depth <= 4 and len(above.items) < MAX_FINDINGS

    # ------------------------------------------------------------------ between values
    def _next(self, pos: int, opened: bool) -> tuple[Node | None, int, str]:
        """After an opening bracket or a value: close containers until the next value is due.

        Returns the finished outermost node, or why reading cannot go on, or neither."""
        after_comma = False
        while True:
            frame = self.stack[-1]
            pos = skip_space(self.text, pos)
            if pos >= self.limit:
                return None, pos, "cut"
            if self.reader.stop_here(pos):
                return None, pos, "stop"
            char = self.text[pos]
            if char in "}]":
                done, pos = self._close(pos, char, after_comma)
                if done is not None:
                    return done, pos, ""
                opened = after_comma = False
                continue
            if not opened and not after_comma:
                if char == ",":
                    after_comma, pos = True, pos + 1
                    continue
                if not self._may_follow(pos, char, frame):
                    return None, pos, "garbage"
                self.repairs.append("missing_comma")
            if char == ",":
                self.repairs.append("extra_comma")
                pos += 1
                continue
            if frame.is_object:
                pos, why = self._key(pos, frame)
                return None, pos, why
            return None, pos, ""

    def _may_follow(self, pos: int, char: str, frame: Frame) -> bool:
        if frame.is_object:
            return char in "\"'\u201c" or _KEY.match(self.text, pos) is not None
        return char in _STARTS

    def _close(self, pos: int, char: str, after_comma: bool) -> tuple[Node | None, int]:
        """Close the innermost container that `char` fits; None while one is still open."""
        is_object = char == "}"
        if after_comma:
            self.repairs.append("trailing_comma")
        if self.stack[-1].is_object != is_object and not any(frame.is_object == is_object for frame in self.stack):
            self.repairs.append("extra_bracket")
            return None, pos + 1
        while True:
            frame = self.stack.pop()
            fits = frame.is_object == is_object
            node = frame.close(pos + 1 if fits else pos)
            if not fits:
                self.repairs.append("missing_brace" if frame.is_object else "missing_bracket")
            if len(self.stack) <= self.by_hand_below:
                self.by_hand_below = 1 << 30
            if not self.stack:
                return node, pos + 1
            self.stack[-1].add(node)
            if fits:
                return None, pos + 1

    def _key(self, pos: int, frame: Frame) -> tuple[int, str]:
        if self.text[pos] in "\"'\u201c":
            token = self._string(pos)
            self.repairs.extend(token.repairs)
            if not token.complete:
                return token.end, "cut" if token.end >= self.limit else "stop"
            key, end = str(token.value), token.end
        else:
            match = _KEY.match(self.text, pos)
            if match is None:
                cut = re.compile(r"[\w$.-]*\s*").match(self.text, pos)
                whole = cut is not None and cut.end() >= self.limit
                return pos, "cut" if whole else "garbage"
            key, end = match.group(), match.end()
            self.repairs.append("unquoted_key")
        colon = skip_space(self.text, end)
        if colon >= self.limit:
            return colon, "cut"
        if self.text[colon] != ":":
            return colon, "stop" if self.reader.stop_here(colon) else "garbage"
        frame.key, frame.key_span, frame.pending = key, Span(pos, end), True
        return colon + 1, ""

    # ------------------------------------------------------------------ the end of a broken value
    def _give_up(self, pos: int, why: str) -> Reading:
        """Close what is open where reading stopped. At a stop marker that is a repair; elsewhere it is incomplete."""
        if not self.stack:
            return Reading(None, pos, why, self._noted())
        whole = why == "stop" and not any(frame.pending for frame in self.stack) and self._last_complete()
        node: Node | None = None
        while self.stack:
            frame = self.stack.pop()
            if node is not None:
                frame.add(node)
            if why == "stop":
                self.repairs.append("missing_brace" if frame.is_object else "missing_bracket")
            node = frame.close(pos, whole)
        return Reading(node, pos, why, self._noted())

    def _last_complete(self) -> bool:
        """Whether the value read last was whole (an unterminated string at a closing tag is not)."""
        frame = self.stack[-1]
        last = next(reversed(frame.members.values()))[1] if frame.members else None
        if not frame.is_object:
            last = frame.items[-1] if frame.items else None
        return last is None or last.complete


_FOLLOWS = frozenset(",:}]")
