"""The contract of one serving stack as a running server: its questions, its answers, and what they tell.

Generators without I/O: `identity = yield from ...` is driven by whoever can send (`probe.asking.Asker.follow`), so the
same code runs against a live server, a recorded one, and a table in a test.
"""

from __future__ import annotations

import json
from abc import ABC
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from results.manifest import Fact, unknown
from stacks.strictjson import UNPARSED

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """One HTTP request to a server. `body` is sent as JSON (None: no body); `raw` is sent as it is instead.

    `generates`: the model writes something for it. `changes`: it loads, unloads, creates, removes or may wedge
    something on the server, so it is only sent where the user allowed that. `seconds` limits the whole answer.
    """

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    raw: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    purpose: str = ""
    generates: bool = False
    changes: bool = False
    seconds: float | None = None


@dataclass(frozen=True)
class Answer:
    """What came back: `body` is decoded of transfer and content coding. `status` None: no HTTP answer at all.

    `failure` says how it ended where it did not end well: `connect`, `timeout`, `broken`, `too_long` (cut off by the
    asker), `budget` (never sent). `number` is the ask's number on the run (tag `ask`), 0 where it was not sent.
    """

    ask: Ask
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    failure: str = ""
    seconds: float = 0.0
    number: int = 0

    @property
    def ok(self) -> bool:
        """Whether the server answered with a 2xx, wholly."""
        return self.status is not None and 200 <= self.status < 300 and not self.failure

    def header(self, name: str) -> str:
        """The first value of a header, whatever its case; empty where there is none."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), "")

    @cached_property
    def text(self) -> str:
        """The body as text; bytes that are not UTF-8 show as U+FFFD."""
        return self.body.decode("utf-8", "replace")

    @cached_property
    def value(self) -> Any:
        """The body as a JSON value; UNPARSED where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return UNPARSED

    @property
    def object(self) -> dict[str, Any]:
        """The body as a JSON object; empty where it is none."""
        return self.value if isinstance(self.value, dict) else {}

    def get(self, *path: str | int) -> Any:
        """The value at a path of keys and indexes inside the body; None where it is not there."""
        found = self.value
        for step in path:
            if isinstance(step, str) and isinstance(found, dict):
                found = found.get(step)
            elif isinstance(step, int) and isinstance(found, list) and -len(found) <= step < len(found):
                found = found[step]
            else:
                return None
        return None if found is UNPARSED else found


Steps = Generator[Ask, Answer, T]
"""A dialogue with a server: yields requests, is sent their answers, returns what was learned."""


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """One model as the server holds it; each fact says where it is from, or why it is unknown.

    `context_length` is what is in force (tokens), `context_trained` what the model was made for. `template` is the
    chat template's text, `template_hash` its SHA-256. `tools` is what the metadata say of tool support (True, False).
    `parser` names the tool-call parser in force, `reasoning_parser` likewise. `sampling` maps parameter to default.
    """

    name: str
    digest: Fact = field(default_factory=lambda: unknown("the server does not tell"))
    quantization: Fact = field(default_factory=lambda: unknown("the server does not tell"))
    bits_per_weight: Fact = field(default_factory=lambda: unknown("the server does not tell sizes"))
    architecture: Fact = field(default_factory=lambda: unknown("the server does not tell"))
    parameters: Fact = field(default_factory=lambda: unknown("the server does not tell"))
    context_length: Fact = field(default_factory=lambda: unknown("the server does not tell"))
    context_trained: Fact = field(default_factory=lambda: unknown("the server does not tell"))
    template: Fact = field(default_factory=lambda: unknown("the server does not tell"))
    template_hash: Fact = field(default_factory=lambda: unknown("the server does not tell"))
    tools: Fact = field(default_factory=lambda: unknown("the server does not tell"))
    parser: Fact = field(default_factory=lambda: unknown("the server does not tell"))
    reasoning_parser: Fact = field(default_factory=lambda: unknown("the server does not tell"))
    sampling: Fact = field(default_factory=lambda: unknown("the server does not tell"))
    asks: tuple[int, ...] = ()
    """Numbers of the asks that these facts rest on."""


def with_flags(identity: ModelIdentity, facts: Mapping[str, Fact]) -> ModelIdentity:
    """An identity in which what the server does not tell is filled in from its launch command.

    What the command line switches off is off, whatever the server's own pages make one expect.
    """
    better: dict[str, Any] = {
        name: fact
        for name, fact in facts.items()
        if getattr(identity, name).unknown is not None or _switched_off(fact.value)
    }
    return replace(identity, **better)


def _switched_off(value: object) -> bool:
    return value is False or (isinstance(value, str) and value.startswith("none"))


@dataclass(frozen=True, slots=True)
class Model:
    """One entry of the server's model list. `loaded`: whether it is in memory; None where the server does not tell."""

    name: str
    loaded: bool | None = None
    digest: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rendered:
    """The prompt that a chat request becomes, by the server's own rendering. `text` is None where only the number of
    tokens is to be had. `source` names the endpoint. `why` says why there is no text."""

    text: str | None = None
    tokens: int | None = None
    source: str = ""
    why: str = ""
    asks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RawCompletion:
    """What the model writes after a rendered prompt, by a channel that parses nothing. `text` is None where there is
    no such channel or it failed (`why`)."""

    text: str | None = None
    finish: str = ""
    tokens: int | None = None
    source: str = ""
    why: str = ""
    asks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Clue:
    """One piece of evidence for or against a stack: `weight` > 0 speaks for it, < 0 against (10: nearly certain)."""

    stack: str
    weight: int
    why: str
    ask: int = 0
    version: str = ""


class ServingStack(ABC):
    """One serving stack. Every method has a default that says "not available here" with its reason; no state."""

    name: str
    """Canonical name (`stacks.stack_names`)."""
    title: str
    """As its users write it."""
    chat_path = "/v1/chat/completions"
    """Where chat requests go when the user did not say otherwise."""

    def clues(self, answers: Mapping[str, Answer]) -> list[Clue]:
        """Evidence for or against this stack in the answers to `fingerprint.ASKS`, by ask path."""
        return []

    def models(self) -> Steps[list[Model]]:
        """The models that the server lists (OpenAI's `/v1/models` unless a stack has better)."""
        answer = yield Ask("GET", "/v1/models", purpose="model list")
        data = answer.get("data")
        entries = data if isinstance(data, list) else []
        return [Model(str(entry["id"])) for entry in entries if isinstance(entry, dict) and entry.get("id")]

    def identity(self, model: str) -> Steps[ModelIdentity]:
        """What the server tells of a model, without a generation."""
        yield from ()
        return ModelIdentity(model)

    def render(self, request: Mapping[str, Any]) -> Steps[Rendered]:
        """The prompt that this chat completion request (OpenAI form, with `model`, `messages`, `tools`) becomes."""
        yield from ()
        return Rendered(why=f"{self.title} cannot show the prompt it renders")

    def complete_raw(self, model: str, prompt: str, max_tokens: int) -> Steps[RawCompletion]:
        """Continue a rendered prompt at temperature 0, special tokens understood and kept, nothing parsed."""
        yield from ()
        return RawCompletion(why=f"{self.title} has no raw completion channel")

    def flags(self, command: Sequence[str]) -> Mapping[str, Fact]:
        """What a launch command tells (`process_table` where the server is local): facts by `ModelIdentity` field."""
        return {}

    def stuck_after(self, outcome: str, version: str, parser: str) -> str:
        """What is stuck on this server after an outcome, and how to free it; empty where the next request is answered
        as ever. `parser` is the one in force, as `ModelIdentity` has it."""
        return ""

    def remedy(self, outcome: str, facts: Mapping[str, str]) -> str | None:
        """What to change on this stack for an outcome (`layer.code`), in the stack's own words; None: nothing better
        than the general remedy. `facts` may hold `parser` (to configure), `in_force` (the parser that is), `format`,
        `mode`, `model`, `context`, `tokens`."""
        return None
