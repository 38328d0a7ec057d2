"""What a pack is once it is read: tasks, their evaluators, the answers that should pass and should fail. No I/O."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Dialect = Literal["stacktap", "aqbe"]
"""`stacktap`: a file with `format: 1`; `aqbe`: one without, in the form of AQBE's task packs, read unchanged."""

RuleKind = Literal["exact", "number", "iso_minute", "set", "equiv", "text", "semantic"]
RULES: tuple[RuleKind, ...] = ("exact", "number", "iso_minute", "set", "equiv", "text", "semantic")
"""Every rule by which a value is compared with the expected one; the set is closed."""

EVALUATORS = ("regex_checks", "json_fields", "numeric", "schema", "arguments")
"""Every kind of evaluator; the set is closed, and an unknown one fails at load."""

FORMAT = 1
"""Version of the pack format that this code reads."""


class PackError(Exception):
    """A pack that cannot be used; the message names the file, the line where one is known, and what is wanted."""


class Message(msgspec.Struct, frozen=True):
    """One message of a task's prompt."""

    role: str
    content: str


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a value is compared. `values`: further accepted values (`equiv`); `threshold`: the least share of content
    tokens in common, in (0, 1] (`semantic`)."""

    kind: RuleKind = "exact"
    values: tuple[Any, ...] = ()
    threshold: float = 0.6


class Check(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One check of `regex_checks`: a `pattern` that is found (with `invert`: is not found), or at most `max_words`
    words separated by white space.

    `multiline`: `^` and `$` match at every line. `dot_all`: `.` matches line ends too. `fold`: typographic quotes,
    dashes and spaces of pattern and answer are read as their ASCII ones. `asks`: False says that the prompt does not
    ask for it (such a check never counts). `hard`: the task is worth nothing where it fails.
    """

    name: str
    pattern: str = ""
    max_words: int | None = None
    case_insensitive: bool = False
    invert: bool = False
    multiline: bool = False
    dot_all: bool = False
    fold: bool = False
    asks: bool = True
    hard: bool = False
    points: float = 2
    line: int = 0


class RegexChecks(msgspec.Struct, frozen=True, tag="regex_checks"):
    """Patterns and lengths, each a check."""

    checks: tuple[Check, ...]


class JsonFields(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="json_fields"):
    """A JSON object in the answer: each of `fields` is there and neither null nor empty; each of `values` is equal as
    text, case aside. `points` for each."""

    fields: tuple[str, ...] = ()
    values: dict[str, Any] = msgspec.field(default_factory=dict)
    points: float = 1
    hard: bool = False


class Numeric(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="numeric"):
    """Numbers in the answer: each of `expected` is among them within `tolerance` (a share of it); the key `verdict`
    is a word or phrase instead."""

    expected: dict[str, Any]
    tolerance: float = 0.05
    points: float = 2
    hard: bool = False


class SchemaCheck(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="schema"):
    """The answer is a JSON value (`parse`), valid by `schema`, and its members are equal to `expected` by their rules
    (`exact` where none is named)."""

    schema: dict[str, Any]
    expected: dict[str, Any] = msgspec.field(default_factory=dict)
    rules: dict[str, Rule] = msgspec.field(default_factory=dict)
    points: float = 2
    hard: bool = False


class Arguments(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="arguments"):
    """The answer is one call of `tool`, its arguments valid by the tool's schema and equal to `expected` by their
    rules. An argument that is neither expected nor `optional` is one too many."""

    tool: str
    expected: dict[str, Any] = msgspec.field(default_factory=dict)
    rules: dict[str, Rule] = msgspec.field(default_factory=dict)
    optional: tuple[str, ...] = ()
    points: float = 2
    hard: bool = False


Evaluator = RegexChecks | JsonFields | Numeric | SchemaCheck | Arguments


class Sample(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An answer whose verdict is known. `passes`: every check holds; otherwise at least one fails, namely `fails`
    where these are named."""

    answer: str
    passes: bool
    fails: tuple[str, ...] = ()
    line: int = 0


class PackTask(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One request, and how its answer is judged. `tools` are as in an OpenAI chat request. `labels` are words of the
    pack's own (a half, a depth). `max_tokens`: its own budget. `line`: where it begins in `file`."""

    id: str
    category: str = ""
    description: str = ""
    messages: tuple[Message, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    evaluators: tuple[Evaluator, ...] = ()
    samples: tuple[Sample, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    max_tokens: int | None = None
    file: str = ""
    line: int = 0

    @property
    def system(self) -> str:
        """Text of the system messages."""
        return "\n".join(message.content for message in self.messages if message.role == "system")

    @property
    def prompt(self) -> str:
        """Text of the last user message."""
        return next((message.content for message in reversed(self.messages) if message.role == "user"), "")


class PackFile(msgspec.Struct, frozen=True):
    """One file of a pack: its path relative to the pack's folder, and SHA-256 (hex) of its bytes with LF line ends."""

    path: str
    sha256: str


class Pack(msgspec.Struct, frozen=True, kw_only=True):
    """A pack as it was read. `digest` is its content hash (`loading.content_hash` states the rule); `warnings` are
    faults that AQBE's own form does not refuse, with their lines."""

    name: str
    version: str
    tasks: tuple[PackTask, ...]
    digest: str
    dialect: Dialect = "stacktap"
    description: str = ""
    files: tuple[PackFile, ...] = ()
    path: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def categories(self) -> tuple[str, ...]:
        """Categories in the order of their first task."""
        return tuple(dict.fromkeys(task.category for task in self.tasks))

    def task(self, name: str) -> PackTask:
        """A task by its id. Raises KeyError."""
        for task in self.tasks:
            if task.id == name:
                return task
        raise KeyError(name)
