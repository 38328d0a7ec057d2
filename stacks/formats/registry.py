"""Every call format: one module each under `stacks.formats.known`, found by looking there."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache, lru_cache

from stacks.formats import known
from stacks.formats.model import CallFormat
from stacks.stack_names import stack_name


@cache
def formats() -> tuple[CallFormat, ...]:
    """All formats, by rank, then name. Raises TypeError when a module there holds no FORMAT or FORMATS."""
    found: dict[str, CallFormat] = {}
    for module in pkgutil.iter_modules(known.__path__):
        loaded = importlib.import_module(f"{known.__name__}.{module.name}")
        entries = getattr(loaded, "FORMATS", None) or (getattr(loaded, "FORMAT", None),)
        for entry in entries:
            if not isinstance(entry, CallFormat):
                raise TypeError(f"{loaded.__name__} defines no FORMAT of type CallFormat")
            if entry.name in found:
                raise TypeError(f"two call formats are called {entry.name!r}")
            found[entry.name] = entry
    return tuple(sorted(found.values(), key=lambda entry: (entry.rank, entry.name)))


@cache
def _signs() -> tuple[str, ...]:
    return tuple(sorted({opener[:2] for entry in formats() for opener in entry.openers}))


@lru_cache(maxsize=1024)
def _candidates(signs: tuple[bool, ...]) -> tuple[CallFormat, ...]:
    there = {sign for sign, stands in zip(_signs(), signs, strict=True) if stands}
    return tuple(entry for entry in formats() if not entry.openers or any(o[:2] in there for o in entry.openers))


def present_in(text: str) -> list[CallFormat]:
    """The formats whose signs stand in a text, by rank. Those whose openers all begin with two characters that
    stand nowhere in the text are not asked."""
    candidates = _candidates(tuple([sign in text for sign in _signs()]))
    return [entry for entry in candidates if entry.detect(text)]


@cache
def format_named(name: str) -> CallFormat:
    """The format of that name. Raises KeyError naming the known ones."""
    for entry in formats():
        if entry.name == name:
            return entry
    raise KeyError(f"no call format {name!r}; known: " + ", ".join(entry.name for entry in formats()))


@cache
def parser_formats(stack: str, parser: str) -> tuple[CallFormat, ...]:
    """The formats that a server's parser of that name is documented to read."""
    name = stack_name(stack) or stack
    return tuple(entry for entry in formats() if parser in entry.parsers.get(name, ()))
