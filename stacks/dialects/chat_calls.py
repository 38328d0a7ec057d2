"""Tool calls of OpenAI chat completions put together from deltas (or taken whole), with what is irregular in them.

Form (OpenAI API reference, "The chat completion chunk object"): every delta entry has an integer `index`; `id`,
`type` and `function.name` come with a call's first entry; `function.arguments` pieces are concatenated by index.
"""

from __future__ import annotations

from stacks.dialects.base import Context, check_call_ids, compact, finish_arguments, integer
from stacks.strictjson import UNPARSED, Path, load
from stacks.turn import Fragment, ToolCall, json_type

_ENTRY_FIELDS = frozenset(("index", "id", "type", "function"))
_FUNCTION_FIELDS = frozenset(("name", "arguments"))


class _Building:
    """One call while its pieces come."""

    __slots__ = (
        "arguments",
        "arguments_type",
        "call",
        "checks",
        "entries",
        "event",
        "where",
        "where_arguments",
        "where_name",
    )

    def __init__(self, index: int | None) -> None:
        self.call = ToolCall(index=index)
        self.arguments: list[str] = []
        self.arguments_type = "absent"
        self.entries = 0
        self.event = -1
        self.checks = 0
        self.where: list[Fragment] = []
        self.where_name: list[Fragment] = []
        self.where_arguments: list[Fragment] = []

    def complete(self) -> bool:
        """Whether the arguments so far are one whole JSON text."""
        # Bounded: joining again and again would be quadratic, and real servers repeat a name a few times at most.
        self.checks += 1
        if self.checks > 64 or not self.arguments or self.arguments[-1].rstrip()[-1:] not in ("}", "]"):
            return False
        text = "".join(self.arguments).strip()
        return text[-1:] in ("}", "]") and load(text.encode("utf-8", "surrogatepass")) is not UNPARSED


class CallBuilder:
    """Collects the `tool_calls` entries of one choice."""

    __slots__ = ("_by_id", "_by_index", "_calls", "_context")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._calls: list[_Building] = []
        self._by_index: dict[int, _Building] = {}
        self._by_id: dict[str, _Building] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add_delta(self, entries: object, event: int, path: Path) -> bool:
        """Take a delta's `tool_calls`; returns whether it held any payload."""
        if not isinstance(entries, list):
            self._context.flag("calls_type", f"tool_calls is a JSON {json_type(entries)}")
            return False
        touched = False
        for position, entry in enumerate(entries):
            if not isinstance(entry, dict):
                self._context.flag("call_not_object", f"a tool call entry is a JSON {json_type(entry)}")
                continue
            building = self._find(entry)
            if building.event == event:
                self._context.flag(
                    "two_entries_in_delta", f"two entries of one delta belong to index {building.call.index}"
                )
            building.event = event
            touched = True
            self._take(building, entry, event, (*path, position), streamed=True)
        return touched

    def add_whole(self, entries: object, event: int, path: Path) -> None:
        """Take a plain message's `tool_calls`."""
        if not isinstance(entries, list):
            self._context.flag("calls_type", f"tool_calls is a JSON {json_type(entries)}")
            return
        for position, entry in enumerate(entries):
            if not isinstance(entry, dict):
                self._context.flag("call_not_object", f"a tool call entry is a JSON {json_type(entry)}")
                continue
            building = self._open(integer(entry.get("index")))
            self._take(building, entry, event, (*path, position), streamed=False)

    def add_legacy(self, entry: object, event: int, path: Path) -> bool:
        """Take the former `function_call` field, as one call without index and id."""
        if not isinstance(entry, dict):
            return False
        building = self._calls[0] if self._calls else self._open(None)
        building.call.kind = "function_call"
        self._function(building, entry, event, path)
        return True

    def _open(self, index: int | None) -> _Building:
        building = _Building(index)
        self._calls.append(building)
        if index is not None:
            self._by_index[index] = building
        return building

    def _find(self, entry: dict[str, object]) -> _Building:
        """The call a delta entry belongs to; a new one is opened when it starts one."""
        stated = entry.get("index")
        index = stated if type(stated) is int else self._odd_index(entry)
        if index is None:
            return self._find_without_index(entry)
        known = self._by_index.get(index)
        if known is None:
            if index > len(self._by_index):
                self._context.flag("index_gap", f"index {index} comes when {len(self._by_index)} calls are known")
            return self._open(index)
        if self._starts_another(known, entry):
            self._context.flag("index_reused", f"two calls share index {index}", f"index {index}")
            return self._open(index)
        return known

    def _odd_index(self, entry: dict[str, object]) -> int | None:
        stated = entry.get("index")
        if stated is None:
            self._context.flag("index_missing", "a tool call entry carries no index")
            return None
        self._context.flag("index_type", f"the index is {stated!r}")
        if isinstance(stated, str) and stated.isdecimal() and len(stated) < 6:
            return int(stated)
        return integer(stated)

    def _find_without_index(self, entry: dict[str, object]) -> _Building:
        call_id = entry.get("id")
        if isinstance(call_id, str) and call_id:
            known = self._by_id.get(call_id)
            if known is None:
                known = self._by_id[call_id] = self._open(None)
            return known
        if self._calls and not self._starts_another(self._calls[-1], entry):
            return self._calls[-1]
        return self._open(None)

    @staticmethod
    def _starts_another(known: _Building, entry: dict[str, object]) -> bool:
        """Whether an entry with a known index opens a second call: a new id with a name, or a name after arguments
        that are already whole."""
        function = entry.get("function")
        if not isinstance(function, dict) or not function.get("name"):
            return False
        call_id = entry.get("id")
        if isinstance(call_id, str) and call_id and known.call.id:
            return call_id != known.call.id
        return bool(function.get("arguments")) and known.complete()

    def _take(self, building: _Building, entry: dict[str, object], event: int, path: Path, streamed: bool) -> None:
        building.where.append((event, path))
        self._identity(building, entry, streamed)
        function = entry.get("function")
        if isinstance(function, dict):
            self._function(building, function, event, (*path, "function"))
        elif function is not None:
            self._context.flag("call_not_object", f"function is a JSON {json_type(function)}")
        elif entry.get("type") == "custom" and isinstance(entry.get("custom"), dict):
            self._custom(building, entry["custom"], event, (*path, "custom"))
        elif "name" in entry or "arguments" in entry:
            self._context.flag("call_type", "name and arguments stand in the entry itself, not under function")
            self._function(building, entry, event, path)
        building.entries += 1
        if len(entry) > 3:
            for key in entry.keys() - _ENTRY_FIELDS:
                building.call.extra[key] = entry[key]

    def _identity(self, building: _Building, entry: dict[str, object], streamed: bool) -> None:
        call, context = building.call, self._context
        kind = entry.get("type")
        if kind is not None and kind != "function":
            if kind == "custom":
                call.kind = "custom"
            else:
                context.flag("call_type", f"the type of a call is {kind!r}")
        call_id = entry.get("id")
        if call_id is None:
            return
        if not isinstance(call_id, str):
            context.flag("id_type", f"the id of a call is {call_id!r}")
            call_id = str(call_id)
        if call.id is None:
            if building.entries and call_id and streamed:
                context.flag("id_late", f"the id {call_id!r} came after the first entry of its call", call_id)
            call.id = call_id
        elif call_id and call.id == "":
            context.flag("id_late", f"the id {call_id!r} came after the first entry of its call", call_id)
            call.id = call_id
        elif call_id and call_id != call.id:
            context.flag("id_changed", f"the id changed from {call.id!r} to {call_id!r}", call.id)
        elif call_id:
            context.flag("id_repeated", f"the id {call_id!r} is repeated", call_id)

    def _function(self, building: _Building, function: dict[str, object], event: int, path: Path) -> None:
        name = function.get("name")
        if name is not None:
            self._name(building, name, event, (*path, "name"))
        arguments = function.get("arguments")
        if arguments is not None:
            where = (event, (*path, "arguments"))
            if isinstance(arguments, str):
                building.arguments_type = "string"
                if arguments:
                    building.arguments.append(arguments)
                    building.where_arguments.append(where)
            else:
                building.arguments_type = json_type(arguments)
                self._context.flag("arguments_type", f"arguments are a JSON {building.arguments_type}, not a string")
                building.arguments.append(compact(arguments))
                building.where_arguments.append(where)
        elif "arguments" in function and building.arguments_type == "absent":
            building.arguments_type = "null"
        if len(function) > 2:
            for key in function.keys() - _FUNCTION_FIELDS - _ENTRY_FIELDS:
                building.call.extra[key] = function[key]

    def _name(self, building: _Building, name: object, event: int, path: Path) -> None:
        call = building.call
        if not isinstance(name, str):
            self._context.flag("name_type", f"the name of a call is {name!r}")
            return
        if not name:
            return
        if call.name is None:
            call.name = name
        elif name == call.name:
            self._context.flag("name_repeated", f"the name {name!r} is repeated", name)
            return
        else:
            self._context.flag("name_split", f"{name!r} comes after {call.name!r}", f"index {call.index}")
            call.name += name
        building.where_name.append((event, path))

    def _custom(self, building: _Building, custom: object, event: int, path: Path) -> None:
        """A custom tool's call: free text where a function has arguments."""
        if isinstance(custom, dict):
            building.call.kind = "custom"
            if custom.get("name") is not None:
                self._name(building, custom["name"], event, (*path, "name"))
            text = custom.get("input")
            if isinstance(text, str):
                building.arguments_type = "string"
                building.arguments.append(text)
                building.where_arguments.append((event, (*path, "input")))

    def finish(self) -> list[ToolCall]:
        """The calls in the order they began, with their last irregularities recorded."""
        calls: list[ToolCall] = []
        for position, building in enumerate(self._calls):
            call, subject = building.call, f"call {position}"
            call.arguments_text = "".join(building.arguments)
            call.arguments_type = building.arguments_type
            call.where = tuple(building.where)
            call.where_name = tuple(building.where_name)
            call.where_arguments = tuple(building.where_arguments)
            if not call.name:
                self._context.about(call.where, "name_missing", f"{subject} has no name", subject)
            if call.arguments_type in ("absent", "null"):
                self._context.about(
                    call.where, "arguments_missing", f"{subject} ({call.name}) has no arguments", subject
                )
                call.arguments_error = "missing"
            elif call.kind == "custom":
                call.arguments = call.arguments_text
            else:
                finish_arguments(call, self._context, subject)
            calls.append(call)
        if calls and calls[0].kind != "function_call":
            check_call_ids(calls, self._context)
        return calls
