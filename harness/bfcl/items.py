"""The 39 items of BFCL v4 multi-turn that need its file system alone: 13 ids, each as base, miss_func and miss_param.

Read from the wheel file. `excluded_function` stands in the data and is applied nowhere in this version, so it is not
here either. True calls are parsed as literals (`ast`), never evaluated.
"""

from __future__ import annotations

import ast
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

from harness.bfcl.code import FILE_SYSTEM, WheelCode, wheel_code
from harness.bfcl.wheel import NAME, VERSION, BfclError, fetched_wheel
from harness.bfcl.world import BfclWorld
from harness.dense.items import Item, Kind, ToolCall, UserTurn
from harness.tools import ToolSpec

NUMBERS = (1, 3, 6, 9, 10, 12, 16, 25, 26, 29, 37, 38, 39)
KINDS: tuple[Kind, ...] = get_args(Kind)
SOURCE = f"{NAME} {VERSION} (Berkeley Function-Calling Leaderboard v4, Apache-2.0)"
READS = frozenset({"pwd", "ls", "find", "cat", "grep", "wc", "sort", "tail", "diff", "du"})
"""Tools of its file system that only look (by what they do, not by their documentation)."""
_DATA = "bfcl_eval/data"
_PROMPTS = "bfcl_eval/constants/default_prompts.py"
_ADDED = "DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC"
_TYPES = {"dict": "object", "float": "number", "tuple": "array"}


def bfcl_items() -> dict[str, Item]:
    """The items by id (`base_3`, `miss_func_25`), from the fetched wheel. Raises BfclError where it is not there."""
    return dict(_items(fetched_wheel()))


@cache
def _items(wheel: Path) -> dict[str, Item]:
    code = wheel_code(wheel)
    try:
        with zipfile.ZipFile(wheel) as held:
            tools = _tools(held)
            added = _added_words(held)
            shared = _Shared(code, tools, added)
            return {item.id: item for kind in KINDS for item in _of_kind(held, kind, shared)}
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError) as error:
        raise BfclError(f"{wheel} does not hold what is expected: {type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class _Shared:
    """What all items have in common; `added` is what the user says where tools become available."""

    code: WheelCode
    tools: tuple[ToolSpec, ...]
    added: str


def _of_kind(held: zipfile.ZipFile, kind: Kind, shared: _Shared) -> Iterator[Item]:
    name = f"BFCL_v4_multi_turn_{kind}.json"
    truths = {row["id"]: row["ground_truth"] for row in _rows(held, f"{_DATA}/possible_answer/{name}")}
    for row in _rows(held, f"{_DATA}/{name}"):
        if row["involved_classes"] == [FILE_SYSTEM]:
            yield _item(row, truths[row["id"]], kind, shared)


def _item(row: Mapping[str, Any], truth: list[list[str]], kind: Kind, shared: _Shared) -> Item:
    missed: Mapping[str, list[str]] = row.get("missed_function", {})
    turns = tuple(
        UserTurn(
            said="\n".join(message["content"] for message in messages) or shared.added,
            expected=tuple(parse_call(text) for text in truth[number]),
            adds=tuple(missed.get(str(number), ())),
        )
        for number, messages in enumerate(row["question"])
    )
    names = frozenset(tool.name for tool in shared.tools)
    configuration = row["initial_config"]
    return Item(
        id=row["id"].removeprefix("multi_turn_"),
        kind=kind,
        source=SOURCE,
        tools=shared.tools,
        turns=turns,
        fresh=lambda: BfclWorld(shared.code, configuration, names),
        reads=READS,
        refuses_misfits=False,
    )


def parse_call(text: str) -> ToolCall:
    """A true call from its text: a name and literal keyword arguments. Raises ValueError for anything else."""
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"no call: {text!r}") from error
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.args:
        raise ValueError(f"no call with keyword arguments: {text!r}")
    given: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise ValueError(f"no call with keyword arguments: {text!r}")
        given[keyword.arg] = ast.literal_eval(keyword.value)
    return ToolCall(node.func.id, given)


def _rows(held: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in held.read(name).decode().splitlines() if line.strip()]


def _tools(held: zipfile.ZipFile) -> tuple[ToolSpec, ...]:
    rows = _rows(held, f"{_DATA}/multi_turn_func_doc/gorilla_file_system.json")
    return tuple(ToolSpec(row["name"], row["description"], _schema(row["parameters"])) for row in rows)


def _schema(value: Any) -> Any:
    """BFCL's names of types as JSON Schema has them."""
    if isinstance(value, list):
        return [_schema(each) for each in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    rest = {name: _schema(each) for name, each in value.items() if name != "type"}
    if not isinstance(kind, str):
        return rest if kind is None else {"type": _schema(kind), **rest}
    return rest if kind == "any" else {"type": _TYPES.get(kind, kind), **rest}


def _added_words(held: zipfile.ZipFile) -> str:
    """What the user says where tools are added: a constant of the wheel's source, read without importing it."""
    for node in ast.parse(held.read(_PROMPTS)).body:
        if isinstance(node, ast.Assign) and any(isinstance(at, ast.Name) and at.id == _ADDED for at in node.targets):
            return str(ast.literal_eval(node.value))
    raise ValueError(f"{_PROMPTS} has no {_ADDED}")
