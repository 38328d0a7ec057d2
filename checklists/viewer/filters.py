"""The filter line of the viewer as SQL conditions: `layer:gate,parser fault:stack -model:phi3 tag:task=agg some words`.

Words are looked for in the text of an exchange, all of them; `"two words"` as one. A value may be quoted; commas mean
or, a minus in front means not. What looks like `name:value` and names no field is a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_CHARACTERS = 1000

FIELDS: dict[str, str] = {
    "layer": "the layer that stopped it: gate, parser, model, ok ...",
    "outcome": "the whole outcome, or its beginning: parser.left_as_text",
    "fault": "who is at fault: config, stack, client, model, network, undetermined, none",
    "ran": "whether the model ran: yes, no, unknown",
    "stack": "the serving stack: ollama, vllm, llamacpp ...",
    "model": "a part of the model's name",
    "upstream": "the name of the recorded server",
    "tag": "a tag (task), or a tag with its value (task=agg)",
    "flag": "an anomaly that did not stop it",
    "status": "the status code: 200, or 4xx",
    "end": "how the exchange ended: complete, client_gone, open ...",
    "method": "GET, POST ...",
    "path": "a part of the path",
    "dialect": "the protocol: openai_chat, ollama_chat ...",
    "recording": "which recording of a grid: 001",
    "sure": "confidence of the verdict: high, medium, low",
}
"""Every field that a filter can name, in words."""

_TOKEN = re.compile(r"""(-?)(?:([a-z]+):)?((?:"[^"]*"?|[^\s"])+)""")
_VALUE = re.compile(r"""(?:"[^"]*"?|[^,"])+""")

_EQUAL = {
    "fault": "fault",
    "ran": "ran",
    "stack": "stack",
    "upstream": "upstream",
    "end": "ended",
    "method": "method",
    "dialect": "dialect",
    "sure": "confidence",
    "layer": "layer",
}


class FilterError(ValueError):
    """A filter that cannot be read; the message says why."""


@dataclass(frozen=True)
class Term:
    """One condition. `field` is "" for words of the text."""

    field: str
    values: tuple[str, ...]
    negated: bool = False

    @property
    def words(self) -> str:
        """As it is understood, for people."""
        said = " or ".join(self.values)
        return f"{'not ' if self.negated else ''}{self.field or 'text'}: {said}"


def parse(text: str) -> list[Term]:
    """The terms of a filter line. Raises FilterError."""
    if len(text) > MOST_CHARACTERS:
        raise FilterError(f"a filter has at most {MOST_CHARACTERS} characters")
    terms = []
    for minus, name, rest in _TOKEN.findall(text):
        if name in FIELDS:
            values = tuple(dict.fromkeys(_bare(value) for value in _VALUE.findall(rest)))
            values = tuple(value for value in values if value)
            if values:
                terms.append(Term(name, values, bool(minus)))
            continue
        word = _bare(f"{name}:{rest}" if name else rest)
        if word:
            terms.append(Term("", (word.lower(),), bool(minus)))
    return terms


def _bare(value: str) -> str:
    return value.replace('"', "").strip()


def where(terms: list[Term]) -> tuple[str, list[str | int]]:
    """The condition over `exchange` (joined with `said` where `needs_text` says so) and its parameters."""
    conditions, parameters = [], []
    for term in terms:
        parts = [_condition(term.field, value) for value in term.values]
        joined = " OR ".join(sql for sql, _ in parts)
        conditions.append(f"{'NOT ' if term.negated else ''}({joined})")
        for _, given in parts:
            parameters += given
    return " AND ".join(conditions) or "1", parameters


def needs_text(terms: list[Term]) -> bool:
    """Whether any term looks through the text."""
    return any(not term.field for term in terms)


def _condition(field: str, value: str) -> tuple[str, list[str | int]]:
    if field in _EQUAL:
        return f"{_EQUAL[field]} = ?", [value]
    if field == "":
        return "instr(words, ?) > 0", [value]
    if field == "outcome":
        return "(name = ? OR name GLOB ?)", [value, _escaped(value) + "*"]
    if field == "model":
        return "instr(lower(model), ?) > 0", [value.lower()]
    if field == "path":
        return "instr(target, ?) > 0", [value]
    if field == "tag":
        return "instr(tags, ?) > 0", [f"\n{value}\n" if "=" in value else f"\n{value}="]
    if field == "flag":
        return "instr(flags, ?) > 0", [f" {value} "]
    if field == "recording":
        return "recording = (SELECT number FROM recording WHERE name = ?)", [value]
    return _status(value)


def _status(value: str) -> tuple[str, list[str | int]]:
    if re.fullmatch(r"[1-9]xx", value.lower()):
        return "status / 100 = ?", [int(value[0])]
    if not re.fullmatch(r"[0-9]{1,3}", value):
        raise FilterError(f"a status is a number such as 404, or a class such as 4xx, not {value!r}")
    return "status = ?", [int(value)]


def _escaped(value: str) -> str:
    return re.sub(r"([\[*?])", r"[\1]", value)
