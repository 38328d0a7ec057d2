"""Faults that write calls anew: their arguments as another type, or all of them as text."""

from __future__ import annotations

import json
from typing import Any

from tests.support.faulty_gateway import shapes
from tests.support.faulty_gateway.fault import Fault
from tests.support.faulty_gateway.shapes import Value


class ArgumentsAsObject(Fault):
    """Sends arguments as an object where the dialect says a string, and as a string where it says an object."""

    def __init__(self, shared: dict[str, Any]) -> None:
        super().__init__(shared)
        self.texts: dict[Any, list[str]] = {}

    def answer(self, value: Value) -> bool:
        """See the class."""
        done = False
        for function in shapes.functions(value):
            given = function.get("arguments")
            if isinstance(given, str) and given:
                function["arguments"], done = json.loads(given), True
            elif isinstance(given, dict):
                function["arguments"], done = json.dumps(given), True
        return done

    def event(self, value: Value) -> list[Value] | None:
        """A stream's pieces are gathered and come as one."""
        if "choices" not in value:
            return [value] if not value.get("type", "").endswith(".added") and self.answer(value) else None
        changed = False
        for call in shapes.calls(value):
            text = (call.get("function") or {}).pop("arguments", None)
            self.texts.setdefault(call.get("index"), []).append(text or "")
            changed = True
        if not (shapes.finishes(value) and self.texts):
            return [value] if changed else None
        whole = [
            {"index": index, "function": {"arguments": json.loads("".join(pieces))}}
            for index, pieces in self.texts.items()
        ]
        self.texts = {}
        delta = {"index": 0, "delta": {"tool_calls": whole}, "finish_reason": None}
        return [{**value, "choices": [delta], "usage": None}, value]


class CallsAsText(Fault):
    """Writes calls into the text, as one does that knows no `tool_calls`."""

    def __init__(self, shared: dict[str, Any]) -> None:
        super().__init__(shared)
        self.calls: dict[Any, dict[str, str]] = {}

    @staticmethod
    def _written(name: str, arguments: Any) -> str:
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
        return "\n<tool_call>\n" + json.dumps({"name": name, "arguments": value}) + "\n</tool_call>"

    def answer(self, value: Value) -> bool:
        """See the class."""
        done = False
        for part in shapes.parts(value):
            for call in part.pop("tool_calls", None) or ():
                function = call["function"]
                part["content"] = (part.get("content") or "") + self._written(function["name"], function["arguments"])
                done = True
        whole = shapes.response_of(value)
        for item in list(shapes.items(value)) if whole is not None else ():
            assert whole is not None
            text = {"type": "output_text", "text": self._written(item["name"], item["arguments"]), "annotations": []}
            message = {"type": "message", "id": "msg_g", "role": "assistant", "status": "completed", "content": [text]}
            whole["output"][whole["output"].index(item)] = message
            done = True
        if done:
            shapes.set_finish(value, "tool_calls", "stop")
        return done

    def event(self, value: Value) -> list[Value] | None:
        """A stream's pieces are gathered and come as one text before the finish."""
        if "choices" not in value:
            return [] if shapes.of_a_call(value) else ([value] if self.answer(value) else None)
        changed = False
        for part in shapes.parts(value):
            for call in part.pop("tool_calls", None) or ():
                held = self.calls.setdefault(call.get("index"), {"name": "", "arguments": ""})
                function = call.get("function") or {}
                held["name"] += function.get("name") or ""
                held["arguments"] += function.get("arguments") or ""
                changed = True
        if not (shapes.finishes(value) and self.calls):
            return [value] if changed else None
        text = "".join(self._written(call["name"], call["arguments"]) for call in self.calls.values())
        self.calls = {}
        shapes.set_finish(value, "tool_calls", "stop")
        delta = {"index": 0, "delta": {"content": text}, "finish_reason": None}
        return [{**value, "choices": [delta], "usage": None}, value]
