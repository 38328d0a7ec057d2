"""A broken set-up: how it is built, what a diagnosis must say of it, and how its printed remedy is applied."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from probe.diagnose.asked import opening
from probe.known_answer import WEATHER_TOOL

Flags = tuple[str, ...]


def request(**changes: Any) -> dict[str, Any]:
    """A client's chat request with one tool; `changes` to its fields (None: left out)."""
    body = {"messages": opening(), "tools": [WEATHER_TOOL], "temperature": 0, "max_tokens": 256} | changes
    return {name: value for name, value in body.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Client:
    """A client that is part of the set-up: its requests are recorded first, and the run is given to the diagnosis.

    `path` and `body` are of the request it sends (`model` is filled in); `stream` as in the body.
    """

    body: Mapping[str, Any]
    path: str = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Setup:
    """`mended` is the set-up after the remedy: only the fields that the remedy changes. `says` are patterns that must
    stand in the printed remedy (they are what is applied). `outcome`, `fault`, `grades`: the right verdict.

    `flags` of the server; `model` a key of `models.MODELS`; `gateway` a key of `gateways.GATEWAYS` in front of it;
    `arguments` of the diagnosis, where {url}, {direct}, {run} are filled in. `no_server`: only the URL is given.
    `heavy`: its server takes a minute or more to start, so it stands in a list of its own.
    """

    name: str
    title: str
    stack: str
    outcome: str
    fault: str
    says: tuple[str, ...]
    mended: Mapping[str, Any]
    flags: Flags = ()
    model: str = "hermes"
    gateway: str | None = None
    client: Client | None = None
    arguments: Flags = ("{url}",)
    no_server: bool = False
    grades: tuple[str, ...] = ("observed", "differential", "known-answer")
    ran: str | None = None
    seconds: float = 120.0
    heavy: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def server(self) -> tuple[str, str, Flags]:
        """What is started for it: set-ups that agree in this can share one server."""
        return self.stack, self.model, self.flags


_WITHOUT = re.compile(r"without `(--?[^`]+)`")
_WITH = re.compile(r"(?<!without )`(--?[^`]+)`")


def flags_after(remedy: str, flags: Flags) -> Flags:
    """The server's flags after a printed remedy is followed to the letter: what it says to leave out, and to add."""
    kept = list(flags)
    for left_out in _WITHOUT.findall(remedy):
        kept = _less(kept, shlex.split(left_out)[0])
    for added in _WITH.findall(remedy):
        words = shlex.split(added)
        kept = [*_less(kept, words[0]), *words]
    return tuple(kept)


def _less(flags: list[str], name: str) -> list[str]:
    """The flags without one of them and its value."""
    left: list[str] = []
    skip = False
    for word in flags:
        if skip and not word.startswith("-"):
            skip = False
            continue
        skip = word == name
        if not skip:
            left.append(word)
    return left
