"""Our own items: a small, clean set over folders, shipped as versioned data (`own_items.json`)."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from harness.dense.items import Item, Kind, ToolCall, UserTurn
from harness.dense.world import READS, TOOLS, FolderWorld
from stacks.formats.check import check_arguments

SOURCE = "stacktap"
VERSION = 1


class _Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any]


class _Turn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    said: str
    expected: tuple[_Call, ...]
    adds: tuple[str, ...] = ()


class _Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    kind: Kind
    capability: str
    turns: tuple[_Turn, ...]
    files: dict[str, str]
    folders: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    provenance: str
    items: tuple[_Item, ...]


def read_items(raw: bytes) -> dict[str, Item]:
    """Items by id from a file of this form. Raises ValueError with the place and what is wanted."""
    try:
        held = msgspec.json.decode(raw, type=_File)
    except (msgspec.MsgspecError, RecursionError) as wrong:
        raise ValueError(f"no file of items: {wrong}") from None
    if held.version != VERSION:
        raise ValueError(f"version {held.version} of the form is not known; this stacktap reads {VERSION}")
    items = {row.id: _item(row, held) for row in held.items}
    if len(items) < len(held.items):
        raise ValueError("an id stands twice")
    return items


@cache
def _own() -> dict[str, Item]:
    return read_items(files("harness.dense").joinpath("own_items.json").read_bytes())


def own_items() -> dict[str, Item]:
    """The shipped items by id."""
    return dict(_own())


def _item(row: _Item, held: _File) -> Item:
    item = Item(
        id=row.id,
        kind=row.kind,
        source=f"{SOURCE} v{held.version}",
        tools=TOOLS,
        turns=tuple(
            UserTurn(turn.said, tuple(ToolCall(call.name, call.arguments) for call in turn.expected), turn.adds)
            for turn in row.turns
        ),
        fresh=lambda: FolderWorld(row.files, row.folders),
        reads=READS,
        capability=row.capability,
        absent=frozenset(row.absent),
    )
    _check(item)
    return item


def _check(item: Item) -> None:
    """Raises ValueError where the true calls cannot be made: no turn, an unknown or withheld tool, wrong arguments."""
    names = {tool.name for tool in item.tools}
    unknown = (item.absent | {name for turn in item.turns for name in turn.adds}) - names
    if not item.turns:
        raise ValueError(f"{item.id}: no turns")
    if unknown:
        raise ValueError(f"{item.id}: there is no tool {sorted(unknown)[0]!r}")
    for number, turn in enumerate(item.turns):
        offered = {tool.name: tool for tool in item.offered(number)}
        for call in turn.expected:
            if call.name not in offered:
                raise ValueError(f"{item.id}, turn {number + 1}: {call.name} is not offered there")
            found = check_arguments(dict(call.arguments), offered[call.name].parameters)
            if not found.ok:
                raise ValueError(f"{item.id}, turn {number + 1}: {call.text}: {found.reason}")
