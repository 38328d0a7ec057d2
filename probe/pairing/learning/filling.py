"""Harmless values for arguments that a tool requires: nothing is approved, nothing runs in the background."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import regex

from probe.pairing.learning.lexicon import COMMAND, RUN, SHELL, words_of
from probe.pairing.learning.schemas import Schema, alternatives, in_order, properties_of, required_of, types_of
from stacks.formats.check import check_arguments

NO_VALUE: Any = object()
"""No value could be found that the schema allows."""
FOLDER = "{folder}"
"""Stands for the scratch folder in a value; where the folder is not known it becomes ``.``."""
PURPOSE = "A step of the task"

_DEEPEST = 8
_ON = frozenset(("wait", "blocking", "foreground", "block", "sync", "synchronous", "safe", "readonly"))
"""Switches that keep a command in front and harmless when on; every other one is left off."""
_SAFE_WORDS = ("none", "no", "low", "safe", "never", "false", "off", "default", "use_default", "auto", "minimal")
_DONE_WORDS = ("success", "succeeded", "completed", "complete", "done", "finished", "ok", "true", "yes")
_FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "PT1M",
    "email": "canary@example.org",
    "hostname": "localhost",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "uri": "file:///dev/null",
    "url": "file:///dev/null",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_PATTERN_TRIES = (
    "canary", "Canary", "CANARY", "1", "a", "A", "0", "1s", "60s", "main", "canary-1", "canary_1", "1.0.0", "1.0",
    "low", "true", "a/b", "/tmp", "./a", "a.txt", "@a", "#a", "2026-01-01", "00:00:00", "a@b.example", "aa", "AA", "11",
    "abc", "ABC", "123", "1234", "abcd", "abcdef", "12345678", "00000000-0000-4000-8000-000000000000", "A step.",
)  # fmt: skip


def value_for(name: str, schema: object, root: Schema, depth: int = 0) -> Any:
    """A value that ``schema`` allows for an argument called ``name``, or ``NO_VALUE``."""
    if schema is False or depth > _DEEPEST:
        return NO_VALUE
    if not isinstance(schema, Mapping):
        return PURPOSE
    plain = alternatives(schema, root)
    for value in (value for one in _nulls_last(plain, name) for value in _tries(name, one, root, depth)):
        if _fits(value, schema, root):
            return value
    return NO_VALUE


def filled_required(variant: Schema, root: Schema, without: str = "", depth: int = 0) -> dict[str, Any] | None:
    """Values for every property that an object variant requires but ``without``; None where one has none."""
    found: dict[str, Any] = {}
    for name in required_of(variant):
        if name != without:
            value = value_for(name, properties_of(variant).get(name, {}), root, depth + 1)
            if value is NO_VALUE:
                return None
            found[name] = value
    return in_order(found, variant)


def fits(arguments: Any, schema: object) -> bool:
    """Whether arguments are what a tool's schema allows; a broken schema allows anything."""
    return check_arguments(arguments, schema).ok


def _fits(value: Any, schema: Schema, root: Schema) -> bool:
    """``value`` against one property, with the definitions of the whole schema at hand."""
    around = {key: root[key] for key in ("$defs", "definitions", "$schema") if key in root}
    return fits({"value": value}, {**around, "type": "object", "properties": {"value": schema}})


def _nulls_last(plain: list[Schema], name: str) -> list[Schema]:
    """A nullable argument is left null unless its name says that a text is due."""
    nullable = any("null" in types_of(one) or one.get("const", "") is None for one in plain)
    if nullable and not set(words_of(name)) & {"language", "lang", "action", "operation"}:
        return [{"const": None}, *plain]
    return plain


def _tries(name: str, schema: Schema, root: Schema, depth: int) -> Iterator[Any]:
    """Values to try, the most sensible first."""
    if "const" in schema:
        yield schema["const"]
        return
    listed = schema.get("enum")
    if isinstance(listed, list):
        yield from sorted(listed, key=_harm(name))
        return
    kinds = types_of(schema) & _MAKERS.keys()
    if "boolean" not in kinds and "default" in schema:
        yield schema["default"]
    for kind, makers in _MAKERS.items():
        if kind in kinds or not kinds:
            yield from makers(name, schema, root, depth)
    examples = schema.get("examples")
    yield from examples if isinstance(examples, list) else ()


def _harm(name: str) -> Callable[[Any], int]:
    """Order of the values of a choice: what runs, a shell, what is safe, what is done, then as listed, null last."""
    asks_risk = set(words_of(name)) & {"risk", "danger", "approval", "permission", "permissions", "sandbox", "level"}

    def rank(value: Any) -> int:
        words = set(words_of(str(value)))
        if value is None:
            return 9
        if str(value).lower() in _SAFE_WORDS:
            return 0 if asks_risk else 4
        if words & RUN or words & COMMAND:
            return 1
        if words & SHELL:
            return 2 + len(words - SHELL)
        return 4 if str(value).lower() in _DONE_WORDS else 5

    return rank


def _strings(name: str, schema: Schema, root: Schema, depth: int) -> Iterator[str]:
    words = set(words_of(name))
    shape = str(schema.get("format") or "")
    if shape in _FORMATS:
        yield _FORMATS[shape]
    if words & {"language", "lang", "interpreter"} or words & SHELL:
        yield "bash"
    if words & {"cwd", "workdir", "directory", "dir", "folder", "root", "cd"} or "path" in words:
        absolute = "absolute" in str(schema.get("description") or "").lower()
        yield FOLDER if absolute else "."
        yield "."
    if words & {"timeout", "seconds", "wait"}:
        yield "60"
    if words & {"risk", "danger"}:
        yield "LOW"
    if words & {"id", "session", "name", "key"}:
        yield "canary"
    yield PURPOSE
    least = schema.get("minLength")
    if isinstance(least, int) and len(PURPOSE) < least <= 20_000:
        yield (PURPOSE + ". ") * (least // len(PURPOSE) + 1)
        yield "a" * least
    yield from ("canary", "a", "", *_fitting(schema.get("pattern")))
    most = schema.get("maxLength")
    if isinstance(most, int) and 0 <= most < len(PURPOSE):
        yield PURPOSE[:most]


def _fitting(pattern: object) -> Iterator[str]:
    """Texts that a simple pattern allows: itself where it is plain, the first of its choices, and common forms."""
    if not isinstance(pattern, str):
        return
    bare = pattern.removeprefix("^").removesuffix("$")
    inner = bare.removeprefix("(?:").removeprefix("(").removesuffix(")")
    for text in (bare, *inner.split("|"), *_PATTERN_TRIES):
        plain = text.replace("\\", "")
        try:
            if regex.search(pattern, plain, timeout=0.2):
                yield plain
        except (regex.error, TimeoutError):
            return


def _numbers(name: str, schema: Schema, root: Schema, depth: int) -> Iterator[float]:
    words = set(words_of(name))
    told = f"{name} {schema.get('description') or ''}".lower()
    wanted: list[float] = [1]
    if words & {"timeout", "wait", "seconds", "duration", "yield", "ms", "deadline"}:
        wanted = [60_000, 60, 1] if "ms" in words or "millisecond" in told else [60, 1]
    elif words & {"max", "limit", "length", "tokens", "lines"}:
        wanted = [10_000, 1000, 100, 1]
    elif words & {"id", "index", "offset", "number"}:
        wanted = [0, 1]
    yield from wanted
    yield from (0, 1, 0.5, -1)
    for word, step in (("minimum", 0), ("exclusiveMinimum", 1), ("maximum", 0), ("exclusiveMaximum", -1)):
        bound = schema.get(word)
        if isinstance(bound, int | float) and not isinstance(bound, bool):
            yield from (bound + step, int(bound) + step, bound + step / 2, bound + step / 1000)
    multiple = schema.get("multipleOf")
    if isinstance(multiple, int | float) and not isinstance(multiple, bool) and multiple:
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        first = int(low // multiple) if isinstance(low, int | float) else 0
        yield from (multiple * (first + more) for more in range(3))


def _switches(name: str, schema: Schema, root: Schema, depth: int) -> Iterator[bool]:
    on = bool(set(words_of(name)) & _ON)
    yield from (on, not on)


def _arrays(name: str, schema: Schema, root: Schema, depth: int) -> Iterator[list[Any]]:
    least = schema.get("minItems")
    count = least if isinstance(least, int) and 0 < least <= 64 else 0
    first = schema.get("prefixItems")
    items = [value_for(name, item, root, depth + 1) for item in first] if isinstance(first, list) else []
    if not items and count == 0:
        yield []
    more = value_for(name, schema.get("items", {}), root, depth + 1)
    items += [more] * max(count - len(items), 0)
    if NO_VALUE not in items:
        yield items
        if schema.get("uniqueItems") is True and "string" in types_of(schema.get("items") or {}):
            yield [f"{item}{number}" for number, item in enumerate(items)]


def _objects(name: str, schema: Schema, root: Schema, depth: int) -> Iterator[dict[str, Any]]:
    found = filled_required(schema, root, depth=depth)
    if found is not None:
        yield found
        least = schema.get("minProperties")
        if isinstance(least, int) and len(found) < least <= 16:
            rest = {key: value_for(key, part, root, depth + 1) for key, part in properties_of(schema).items()}
            full = {**{key: value for key, value in rest.items() if value is not NO_VALUE}, **found}
            yield in_order(full, schema)


_MAKERS: dict[str, Callable[[str, Schema, Schema, int], Iterator[Any]]] = {
    "boolean": _switches,
    "string": _strings,
    "integer": _numbers,
    "number": _numbers,
    "array": _arrays,
    "object": _objects,
}
