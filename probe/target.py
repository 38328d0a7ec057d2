"""One server under experiment: who to ask, what stack it is, which model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from probe.asking import Asker
from probe.reply import Reply
from results.manifest import Fact, unknown
from stacks.serving.base import ModelIdentity, Rendered, ServingStack


@dataclass(slots=True)
class Target:
    """A server and a model on it. `stack` is the module of the recognised stack (the generic one where unknown).

    `known_text` is what a known-answer model writes to the requests of the probes, None for a user's own model.
    """

    asker: Asker
    stack: ServingStack
    model: str
    version: Fact = field(default_factory=lambda: unknown("the server was not asked"))
    identity: ModelIdentity | None = None
    known_text: str | None = None
    silent: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    """Requests in a row that brought no answer in time: those that generate (True), and those that do not."""
    scripts: Mapping[str, str] = field(default_factory=dict)
    """What a known-answer model writes to `[[name]]`, where that is not the default canary's."""
    replies: dict[str, Reply] = field(default_factory=dict)
    """Answers to requests that several probes share, so that each is sent once."""
    renders: dict[str, Rendered] = field(default_factory=dict)
    """The same of renderings."""
