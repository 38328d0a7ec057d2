"""The places in a tool's arguments where a command may go, each with the shape of the argument around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from probe.pairing.learning.filling import FOLDER, filled_required
from probe.pairing.learning.lexicon import words_of
from probe.pairing.learning.schemas import Schema, alternatives, in_order, properties_of, types_of

COMMAND = "{command}"
FILE = "{file}"
CONTENT = "{content}"
"""``COMMAND``, ``FILE`` and ``CONTENT`` stand in a shape for what is put there; ``FOLDER`` for the scratch folder."""
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Slot:
    """One place for a text in a tool's arguments: ``argument`` (top level), ``shape`` (the value of the argument with
    ``COMMAND`` in the text's place), ``names`` on the way there, and the ``schema`` of the text itself."""

    argument: str
    shape: Any
    names: tuple[str, ...]
    schema: Schema
    variant: Schema


def slots(variant: Schema, root: Schema) -> Iterator[Slot]:
    """Every place in an object variant where a free text can stand."""
    for name, schema in properties_of(variant).items():
        for shape, names, leaf in _places(schema, root, (str(name),), 0):
            yield Slot(str(name), shape, names, leaf, variant)


def _places(schema: object, root: Schema, names: tuple[str, ...], depth: int) -> Iterator[tuple[Any, Any, Schema]]:
    """(shape, names, leaf schema) of the texts in one property, plain strings first."""
    if depth > _DEEPEST:
        return
    each = alternatives(schema, root)
    free = next((one for one in each if _is_free_text(one)), None)
    if free is not None:
        typed = set(words_of(names[-1])) & {"keys", "keystrokes"}
        yield (f"{COMMAND}\n" if typed else COMMAND), names, free
    for one in each:
        if "array" in types_of(one):
            yield from _in_array(one, root, names, depth)
        elif properties_of(one):
            for inner, part in properties_of(one).items():
                for shape, path, leaf in _places(part, root, (*names, str(inner)), depth + 1):
                    rest = filled_required(one, root, without=str(inner))
                    if rest is not None:
                        yield in_order({**rest, str(inner): shape}, one), path, leaf


def _in_array(array: Schema, root: Schema, names: tuple[str, ...], depth: int) -> Iterator[tuple[Any, Any, Schema]]:
    for one in alternatives(array.get("items"), root):
        if _is_free_text(one):
            leaf: Schema = {
                **one,
                "description": f"{array.get('description') or ''} {one.get('description') or ''}".strip(),
            }
            yield _listed(array, names[-1]), names, leaf
        elif "object" in types_of(one):
            for shape, path, leaf in _places(one, root, names, depth + 1):
                yield [shape], path, leaf


def _listed(array: Schema, name: str) -> list[str]:
    """A list of strings is an argument vector, unless its name or its words say that it lists commands."""
    words = str(array.get("description") or "").lower()
    many = name.lower().rstrip("_").endswith(("commands", "cmds", "lines", "scripts"))
    if many or re.search(r"(list|array|sequence|series) of (\w+ ){0,3}(commands|lines|scripts)", words):
        return [COMMAND]
    most = array.get("maxItems")
    return [COMMAND] if isinstance(most, int) and most < 3 else ["bash", "-lc", COMMAND]


def _is_free_text(schema: Schema) -> bool:
    """Whether any command may stand here: a string without a fixed choice, and not a short or formatted one."""
    kinds = types_of(schema)
    if "string" not in kinds and (kinds or {"type", "enum", "const", "items"} & schema.keys()):
        return False
    if "enum" in schema or "const" in schema or str(schema.get("format") or "") not in ("", "text", "shell", "command"):
        return False
    most = schema.get("maxLength")
    return not (isinstance(most, int) and most < 60)


def placed(shape: Any, values: Mapping[str, str]) -> Any:
    """A shape with what ``values`` says in place of ``COMMAND``, ``FILE``, ``CONTENT`` and ``FOLDER``.

    Keystrokes end in a newline, which is what has them run.
    A path in the scratch folder (``{folder}/{file}``) becomes a relative one where the folder is not among them.
    """
    if isinstance(shape, str):
        return _placed_text(shape, values)
    if isinstance(shape, Mapping):
        return {key: placed(value, values) for key, value in shape.items()}
    return [placed(item, values) for item in shape] if isinstance(shape, list | tuple) else shape


def _placed_text(text: str, values: Mapping[str, str]) -> str:
    if text in values:
        return values[text]
    if text.endswith("\n") and text[:-1] in values:
        return values[text[:-1]] + "\n"
    if text == FOLDER:
        return "."
    if text == f"{FOLDER}/{FILE}":
        inside = values.get(FILE, FILE)
        return f"{values[FOLDER]}/{inside}" if FOLDER in values else inside
    return text
