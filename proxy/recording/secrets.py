"""The secrets of a run as literals to look for: learned as they show up, in every spelling they may come back in.

Pure: no I/O. A secret is kept only in memory and only to be masked.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus

MIN_SECRET_BYTES = 6
"""Shorter values are masked where they are known to be secret, but not looked for elsewhere."""

MIN_HELD_BYTES = 4
"""A stream's end is held back when at least so many bytes of it may be the beginning of a secret."""

MAX_SECRETS = 1024
"""Further secrets are still masked in place, but no longer looked for elsewhere."""

MAX_SECRET_BYTES = 16384

MASK = b"*"

DUMMIES = frozenset(
    b"""
    empty none null ollama sk-no-key-required no-key no-key-required not-needed notneeded not-used unused dummy
    dummy-key dummy_key fake-key test-key local localhost lm-studio lmstudio llama.cpp llamacpp llama-cpp vllm
    sglang mlx mlx-lm stacktap placeholder changeme your-api-key your_api_key api-key api_key apikey bearer basic
    token secret password anonymous openai anthropic default sk-dummy sk-fake sk-xxx sk-xxxx sk-test sk-none
    sk-local whatever anything undefined
    """.split()
)
"""Keys that people put where a client insists on one. Looking for them everywhere would mask ordinary words."""

ORDINARY = frozenset(
    b"""
    assistant system developer function functions content message messages string object required arguments
    tool_calls properties parameters description stream reasoning finish_reason stop_reason choices prompt response
    request session cookie enabled disabled private public guest number integer boolean accept gzip deflate
    application text charset github model models system-ui
    """.split()
)
"""Words of the traffic itself: never looked for, whatever header they stood in."""


_SHORT_BYTES = 1024
_FEW_LITERALS = 20
"""Up to so many are looked for one after another in longer data: one pattern for all costs 6 us for each kB."""

_ANCHOR_BYTES = 8
_COMMON = {
    letter: rank
    for rank, letter in enumerate(b' etaoinsrhldcumfpgwybvk",:{}[]._jxqz0123456789-/=TASIMCDPERLNOBFHGUWVKYJXQZ')
}


def _anchor(literal: bytes) -> bytes:
    """A part of a literal that begins with the byte least common in JSON and prose: seldom found, so seldom in vain."""
    last = len(literal) - MIN_HELD_BYTES
    start = max(range(last + 1), key=lambda at: _COMMON.get(literal[at], len(_COMMON)))
    return literal[start : start + _ANCHOR_BYTES]


def forms(secret: bytes) -> set[bytes]:
    """The spellings of a secret: plain, percent-encoded, JSON-escaped (also twice), and inside base64.

    Inside base64 (RFC 4648) a value stands at one of three alignments; of each, the characters that it determines
    alone are looked for.
    """
    found = {secret}
    for encoded in (quote(secret, safe=""), quote(secret, safe="/"), quote_plus(secret)):
        found.add(encoded.encode())
        found.add(_lower_hex(encoded).encode())
    try:
        text = secret.decode()
    except UnicodeDecodeError:
        text = ""
    if text:
        for escaped in _json_forms(text):
            found.add(escaped.encode())
            found.update(twice.encode() for twice in _json_forms(escaped))
    for lead, first in enumerate((0, 2, 3)):
        last = 8 * (lead + len(secret)) // 6
        for encoder in (b64encode, urlsafe_b64encode):
            found.add(encoder(b"\0" * lead + secret)[first:last])
    return {form for form in found if len(form) >= MIN_SECRET_BYTES}


def _lower_hex(encoded: str) -> str:
    parts = encoded.split("%")
    return parts[0] + "".join("%" + part[:2].lower() + part[2:] for part in parts[1:])


def _json_forms(text: str) -> set[str]:
    plain = json.dumps(text, ensure_ascii=False)[1:-1]
    ascii_only = json.dumps(text)[1:-1]
    escaped = {plain, ascii_only, plain.replace("/", "\\/"), ascii_only.replace("/", "\\/")}
    html_safe = plain
    for character in "<>&":
        html_safe = html_safe.replace(character, f"\\u{ord(character):04x}")
    return escaped | {html_safe}


class Secrets:
    """What to look for. `version` changes when something was learned."""

    def __init__(self) -> None:
        self.version = 0
        self.literals: list[bytes] = []
        """Every form of every secret."""
        self.tails: set[bytes] = set()
        """The last MIN_HELD_BYTES of every proper beginning of a literal: a quick test whether an end is suspicious."""
        self._anchors: list[tuple[set[bytes], re.Pattern[bytes]]] = []
        """Anchors of all literals in groups, each less than half as large as the one before it: what is learned makes
        a new group, and groups are put together as in a merge sort, for compiling a pattern takes long."""
        self._known: set[bytes] = set()
        self._forms: set[bytes] = set()
        self._longest = 0

    def __bool__(self) -> bool:
        return bool(self.literals)

    def learn(self, value: bytes) -> bool:
        """Look for this value from now on; False where it is too short, too common, or one too many."""
        value = value.strip()
        if value in self._known:
            return True
        lowered = value.lower()
        if not MIN_SECRET_BYTES <= len(value) <= MAX_SECRET_BYTES or lowered in DUMMIES or lowered in ORDINARY:
            return False
        if len(set(value)) == 1 or len(self._known) >= MAX_SECRETS:
            return False
        self._known.add(value)
        fresh = forms(value) - self._forms
        self._forms |= fresh
        self.literals += fresh
        self._longest = max([self._longest, *map(len, fresh)])
        self._add_anchors({_anchor(form) for form in fresh})
        self.tails |= {form[end - MIN_HELD_BYTES : end] for form in fresh for end in range(MIN_HELD_BYTES, len(form))}
        self.version += 1
        return True

    def _add_anchors(self, anchors: set[bytes]) -> None:
        while self._anchors and len(self._anchors[-1][0]) <= 2 * len(anchors):
            anchors |= self._anchors.pop()[0]
        if anchors:
            self._anchors.append((anchors, re.compile(b"|".join(map(re.escape, sorted(anchors))))))

    def may_hold(self, data: bytes) -> bool:
        """Whether a literal may stand in `data`; False is certain. The quickest way there is, by length."""
        if len(data) <= _SHORT_BYTES or len(self.literals) > _FEW_LITERALS:
            for _, anchors in self._anchors:  # noqa: SIM110 - a generator costs as much again
                if anchors.search(data) is not None:
                    return True
            return False
        for literal in self.literals:  # noqa: SIM110 - a generator costs as much again
            if literal in data:
                return True
        return False

    def may_hold_within(self, data: bytes, start: int, end: int) -> bool:
        """Whether a literal may stand in `data` that touches what lies from `start` to `end`."""
        reach = self._longest - 1
        return self._longest > 0 and self.may_hold(data[max(0, start - reach) : end + reach])

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """(start, end) of every occurrence of a literal in `data`; they may overlap."""
        found: list[tuple[int, int]] = []
        if not self.may_hold(data):
            return found
        for literal in self.literals:
            at = data.find(literal)
            while at >= 0:
                found.append((at, at + len(literal)))
                at = data.find(literal, at + 1)
        return found

    def undecided(self, data: bytes) -> int:
        """Length of the longest end of `data` (MIN_HELD_BYTES or more) that a secret may begin with; 0 for none."""
        if data[-MIN_HELD_BYTES:] not in self.tails:
            return 0
        for length in range(min(self._longest - 1, len(data)), MIN_HELD_BYTES - 1, -1):
            end = data[-length:]
            if any(len(literal) > length and literal.startswith(end) for literal in self.literals):
                return length
        return 0

    def mask(self, data: bytes) -> bytes:
        """`data` with every secret in it as asterisks, the same length; the same object where there is none."""
        if not self.may_hold(data):
            return data
        spans = self.spans(data)
        return blank(data, spans) if spans else data


def blank(data: bytes, spans: list[tuple[int, int]]) -> bytes:
    """`data` with these ranges as asterisks."""
    out = bytearray(data)
    for start, end in spans:
        out[start:end] = MASK * (end - start)
    return bytes(out)
