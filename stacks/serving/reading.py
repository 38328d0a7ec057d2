"""Reading what servers answer: model lists, Server headers, launch flags. Everything is untrusted; nothing raises."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from results.manifest import Fact, known, unknown
from stacks.serving.base import Answer

MODELS = "/v1/models"


def entries(answer: Answer | None, key: str = "data") -> list[dict[str, Any]]:
    """The objects of a list in the body (`data` of OpenAI's model list); empty where there is none."""
    if answer is None or not answer.ok:
        return []
    found = answer.get(key)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def owners(answers: Mapping[str, Answer]) -> set[str]:
    """The values of `owned_by` in the model list."""
    found = (entry.get("owned_by") for entry in entries(answers.get(MODELS)))
    return {owner for owner in found if isinstance(owner, str)}


def entry_of(items: Iterable[Mapping[str, Any]], model: str, *keys: str) -> Mapping[str, Any] | None:
    """The entry that has `model` under one of the keys; else the only entry there is, else None."""
    listed = list(items)
    for entry in listed:
        for key in keys:
            value = entry.get(key)
            if value == model or (isinstance(value, list) and model in value):
                return entry
    return listed[0] if len(listed) == 1 else None


def answered(answers: Mapping[str, Answer]) -> list[Answer]:
    """The answers that are HTTP answers at all."""
    return [answer for answer in answers.values() if answer.status is not None]


def servers(answers: Mapping[str, Answer]) -> set[str]:
    """The values of the Server header."""
    return {value for answer in answered(answers) if (value := answer.header("server"))}


def number_fact(value: Any, source: str, why: str) -> Fact:
    """A positive whole number as a fact; anything else is unknown, because of `why`."""
    good = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return known(value, source) if good else unknown(why)


def bits_by_size(size: Any, weights: Any, source: str) -> Fact:
    """Bits for each weight by the bytes of a model and its number of weights, as a server tells both."""
    for number in (size, weights):
        if not isinstance(number, int) or isinstance(number, bool) or number <= 0:
            return unknown("the server does not tell both the bytes of the model and its number of weights")
    bits = 8 * size / weights
    return known(round(bits, 4), source) if bits <= 64 else unknown(f"{source} is more than 64 bits for each weight")


def text_fact(value: Any, source: str, why: str) -> Fact:
    """A text that is not empty as a fact; anything else is unknown, because of `why`."""
    return known(value, source) if isinstance(value, str) and value else unknown(why)


def template_facts(template: Any, source: str, why: str) -> tuple[Fact, Fact]:
    """(the template's text, its SHA-256 in hex); both unknown where there is no text."""
    if not isinstance(template, str) or not template:
        return unknown(why), unknown(why)
    return known(template, source), known(hashlib.sha256(template.encode("utf-8", "replace")).hexdigest(), source)


def flag_value(command: Sequence[str], *names: str) -> str | None:
    """What a launch command gives for a flag (`--name value`, `--name=value`, `--na_me`); the last one counts."""
    wanted = {name.replace("_", "-") for name in names}
    found: str | None = None
    for place, word in enumerate(command):
        name, equals, value = word.partition("=")
        if not name.startswith("-") or name.replace("_", "-") not in wanted:
            continue
        if equals:
            found = value
        elif place + 1 < len(command):
            found = command[place + 1]
    return found


def has_flag(command: Sequence[str], *names: str) -> bool:
    """Whether a launch command has one of the flags."""
    wanted = {name.replace("_", "-") for name in names}
    return any(word.partition("=")[0].replace("_", "-") in wanted for word in command if word.startswith("-"))


def number_flag(command: Sequence[str], *names: str) -> int | None:
    """A flag's value as a whole number; None where it is not there or is none."""
    value = flag_value(command, *names)
    return int(value) if value is not None and value.isascii() and value.isdigit() else None
