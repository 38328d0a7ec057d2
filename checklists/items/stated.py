"""What the user states of items that only the user knows: `--set C18="RTX 4090, driver 560"`."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable

from checklists.items.catalogue import IDS
from checklists.items.records import Filled

LONGEST = 2000


class StatedError(ValueError):
    """A `--set` that cannot be used; the message says what is wanted."""


def parse_stated(entries: Iterable[str]) -> dict[str, str]:
    """Texts by item from `ITEM=TEXT`. Raises StatedError for another form, an unknown item, an empty or very long
    text, control characters, or an item that is stated twice."""
    found: dict[str, str] = {}
    for entry in entries:
        item, equals, text = entry.partition("=")
        item, text = item.strip().upper(), text.strip()
        if not equals:
            raise StatedError(f'--set wants ITEM=TEXT, as in --set C18="RTX 4090, driver 560"; not {entry[:80]!r}')
        check_item(item)
        if item in found:
            raise StatedError(f"--set states {item} twice")
        if not text:
            raise StatedError(f"--set {item}= states nothing")
        if len(text) > LONGEST:
            raise StatedError(f"--set {item}: {len(text)} characters; at most {LONGEST}")
        if any(unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co") for letter in text):
            raise StatedError(f"--set {item}: the text holds control characters or line ends; write it as one line")
        found[item] = text
    return found


def check_item(item: str) -> None:
    """Raise StatedError where there is no such item."""
    if item in IDS:
        return
    near = difflib.get_close_matches(item, IDS, 1, 0.6)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise StatedError(f"--set: there is no item {item[:40]!r}{hint} (the items are {IDS[0]} to {IDS[-1]})")


def with_stated(entry: Filled, text: str | None) -> Filled:
    """The entry as the user states it; what was measured stays beside it, for a statement is no measurement."""
    if text is None:
        return entry
    measured = entry.counted == "filled" and not entry.stated
    value = f"{text}; measured: {entry.value}" if measured else text
    return Filled(
        id=entry.id,
        state="yes",
        value=value,
        stated=True,
        parts=entry.parts,
        data={**entry.data, "stated": text},
        evidence=entry.evidence,
    )
