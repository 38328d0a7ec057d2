"""Whether a captured exchange answers a request that is not byte-equal to the captured one. Pure.

The rules, and why they hold:
- A canary's text depends on the latest trigger alone, so other words and sampling fields may differ; another model's
  depends on every word.
- Tools are compared by names, types and required parameters; words in them are not seen in an answer. The tools gate
  looks only at whether there are any (`server/images.go`, CheckCapabilities), so a refusal there fits every tool list.
- An answer that ended by itself after n tokens is the answer for every output budget above n; a cut one only for its
  own. What fits a context is the same in a larger one; what was cut to a context is only right for that one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from proxy.replay.ollama_captures import Taken
from proxy.replay.ollama_meaning import Meaning

DEFAULT_CONTEXT = 4096
"""Ollama's context on a machine without a large GPU (`server/routes.go`), and what `/api/ps` of the captures says."""
_GATES = (b" does not support tools", b" does not support thinking")


@dataclass(frozen=True, slots=True)
class Family:
    """Canaries that share their triggers: all of them, and the one in force where a prompt has none."""

    triggers: frozenset[str]
    default: str

    def script(self, meaning: Meaning) -> str | None:
        """The script that a prompt chooses; None where it names a trigger that this canary does not have."""
        if any(trigger not in self.triggers for trigger in meaning.triggers):
            return None
        return meaning.triggers[-1] if meaning.triggers else self.default


def families_of(taken: Iterable[Taken]) -> dict[str, Family]:
    """The canaries of the captures, by model name; models that share the first word of their name share triggers."""
    order: dict[str, dict[str, None]] = {}
    members: dict[str, set[str]] = {}
    for one in taken:
        model = one.meaning.model
        if model is None or not one.canary:
            continue
        word = model.split("-", 1)[0]
        if word in ("canary", "fmt"):
            members.setdefault(word, set()).add(model)
            order.setdefault(word, {}).update(dict.fromkeys(one.meaning.triggers))
    families = {}
    for word, models in members.items():
        triggers = order[word]
        family = Family(frozenset(triggers), next(iter(triggers), ""))
        families.update(dict.fromkeys(models, family))
    return families


def differences(asked: Meaning, one: Taken, families: Mapping[str, Family], models: frozenset[str]) -> list[str] | None:
    """What differs without changing the answer; None where this capture does not answer the request."""
    taken = one.meaning
    if taken.render and not asked.render:
        return None  # A prompt that was shown answers no generation, nor does a refusal to show one.
    soft = []
    if asked.model != taken.model:
        if not _both_unknown(asked, taken, models):
            return None
        soft.append("model")
    gate = next((name for name in _GATES if one.status == 400 and name in one.payload), b"")
    # A refusal for size depends on the words; every other one came before they were looked at.
    refused = bool(soft) or (400 <= one.status < 500 and b"context" not in one.payload)
    if not _musts_agree(asked, taken, gate, unknown="model" in soft):
        return None
    if not _tools_agree(asked, taken, gate, unknown="model" in soft):
        return None
    if not gate and not refused and not _says_the_same(asked, taken, families):
        return None
    if not gate and "model" not in soft and not _shapes_agree(asked, one):
        return None
    if not _budgets_agree(asked, one, refused=refused):
        return None
    if not gate and not ((refused or _contexts_agree(asked, one)) and _renderings_agree(asked, taken)):
        return None
    return soft + _differing(asked, taken)


def _both_unknown(asked: Meaning, taken: Meaning, models: frozenset[str]) -> bool:
    return bool(asked.model and taken.model) and not {asked.model, taken.model} & models


def _musts_agree(asked: Meaning, taken: Meaning, gate: bytes, *, unknown: bool) -> bool:
    if unknown:
        return [fact for fact in asked.must if fact[0] != "stream"] == [
            fact for fact in taken.must if fact[0] != "stream"
        ]
    if gate and b"tools" in gate:
        keep = ("stream", "think", "reasoning_effort", "thinking", "model", "body")
        return [fact for fact in asked.must if fact[0] in keep] == [fact for fact in taken.must if fact[0] in keep]
    return asked.must == taken.must


def _tools_agree(asked: Meaning, taken: Meaning, gate: bytes, *, unknown: bool) -> bool:
    if gate and b"tools" in gate:
        return asked.offers_tools and _well_formed(asked)
    if unknown:
        return _well_formed(asked) or not asked.offers_tools
    return asked.tools == taken.tools or not (asked.offers_tools or taken.offers_tools)


def _well_formed(asked: Meaning) -> bool:
    tools = _tools(asked)
    return isinstance(tools, list) and all(
        isinstance(tool, dict) and isinstance(tool.get("function", tool), dict) for tool in tools
    )


def _says_the_same(asked: Meaning, taken: Meaning, families: Mapping[str, Family]) -> bool:
    if asked.text == taken.text and asked.triggers == taken.triggers:
        return True
    family = families.get(asked.model or "")
    if family is None:
        return False
    script = family.script(asked)
    return script is not None and script == family.script(taken)


def _shapes_agree(asked: Meaning, one: Taken) -> bool:
    if asked.shape == one.meaning.shape:
        return True
    # A leading system message changes nothing that a canary writes, nor what a parser then fails on.
    generated = one.status in (200, 500) and not asked.render
    return generated and asked.shape_without_system == one.meaning.shape_without_system


def _budgets_agree(asked: Meaning, one: Taken, *, refused: bool) -> bool:
    theirs = one.meaning.budget
    if refused or asked.budget == theirs or asked.render:
        return True
    if one.cut or not one.whole or (theirs is None and one.tokens is None):
        return False
    if asked.budget is None or (theirs is not None and asked.budget >= theirs):
        return True
    return one.tokens is not None and asked.budget > one.tokens


def _renderings_agree(asked: Meaning, taken: Meaning) -> bool:
    """A rendering holds every word of its request, and answers no generation."""
    if asked.render != taken.render:
        return False
    return not asked.render or (asked.text, _tools(asked)) == (taken.text, _tools(taken))


def _contexts_agree(asked: Meaning, one: Taken) -> bool:
    mine, theirs = asked.context or DEFAULT_CONTEXT, one.meaning.context or DEFAULT_CONTEXT
    if asked.text == one.meaning.text and mine == theirs:
        return True
    size = _size(one.meaning)
    if size > theirs:
        return mine == theirs and _size(asked) > mine
    used = max(size if one.prompt_tokens is None else one.prompt_tokens, 0)
    grown = used + max(0, _size(asked) - size)
    return grown + (one.tokens or one.meaning.budget or 0) <= mine


def _size(meaning: Meaning) -> int:
    """About the tokens of the words and tools of a request: a canary reads bytes."""
    return len(meaning.text.encode("utf-8", "surrogatepass")) + (len(meaning.tools) if meaning.offers_tools else 0)


def _differing(asked: Meaning, taken: Meaning) -> list[str]:
    """Paths of the leaves in which two bodies differ, without the model."""
    mine, theirs = _leaves(asked.value), _leaves(taken.value)
    names = {path for path, _ in mine ^ theirs}
    return sorted(name for name in names if name not in ("model", "stream"))


def _leaves(value: object) -> set[tuple[str, str]]:
    leaves: set[tuple[str, str]] = set()
    open_values: list[tuple[str, object]] = [("", value)]
    while open_values:
        path, item = open_values.pop()
        if isinstance(item, dict) and item:
            open_values += [(f"{path}.{name}".lstrip("."), inner) for name, inner in item.items()]
        elif isinstance(item, list) and item:
            open_values += [(f"{path}[{number}]", inner) for number, inner in enumerate(item)]
        elif item not in (None, [], {}):
            leaves.add((path, json.dumps(item)))
    return leaves


def _tools(meaning: Meaning) -> object:
    return meaning.value.get("tools") if isinstance(meaning.value, dict) else None
