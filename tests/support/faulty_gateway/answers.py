"""Faults in what comes back: lost, doubled, changed and moved pieces, streamed or plain."""

from __future__ import annotations

import abc
import copy
import json
from collections.abc import Callable
from typing import Any

from tests.support.faulty_gateway import shapes
from tests.support.faulty_gateway.fault import CutError, EnoughError, Fault
from tests.support.faulty_gateway.shapes import Value


class Changes(Fault, abc.ABC):
    """Does the same thing to every event of a stream and to a plain answer."""

    @abc.abstractmethod
    def change(self, value: Value) -> bool:
        """Change it; whether anything was."""

    def answer(self, value: Value) -> bool:
        """See `change`."""
        return self.change(value)

    def event(self, value: Value) -> list[Value] | None:
        """See `change`."""
        return [value] if self.change(value) else None


class DropsCalls(Fault):
    """Builds the answer anew from the fields it knows; calls are none of them."""

    def answer(self, value: Value) -> bool:
        """See the class."""
        done = False
        for part in shapes.parts(value):
            done = part.pop("tool_calls", None) is not None or done
        whole = shapes.response_of(value)
        if whole is not None and any(shapes.items(value)):
            whole["output"] = [item for item in whole["output"] if item.get("type") != "function_call"]
            done = True
        return done

    def event(self, value: Value) -> list[Value] | None:
        """See the class."""
        if shapes.of_a_call(value):
            return []
        return [value] if self.answer(value) else None


class OneDelta(Fault):
    """Does something once in a stream, to the first piece that `piece` finds."""

    piece: Callable[[Value], str | None]

    def __init__(self, shared: dict[str, Any]) -> None:
        super().__init__(shared)
        self.seen = 0

    def what(self, value: Value) -> list[Value]:
        """What goes on instead."""
        return []

    def event(self, value: Value) -> list[Value] | None:
        """See the class."""
        if type(self).piece(value) is None:
            return None
        self.seen += 1
        return self.what(value) if self.seen == 1 else None


class LosesArgumentDelta(OneDelta):
    """One piece of the arguments is lost."""

    piece = staticmethod(shapes.argument_delta)


class LosesTextDelta(OneDelta):
    """One piece of the text is lost."""

    piece = staticmethod(shapes.text_delta)


class DoublesArgumentDelta(OneDelta):
    """One piece of the arguments comes twice."""

    piece = staticmethod(shapes.argument_delta)

    def what(self, value: Value) -> list[Value]:
        """See the class."""
        return [value, copy.deepcopy(value)]


class DoublesTextDelta(DoublesArgumentDelta):
    """One piece of the text comes twice."""

    piece = staticmethod(shapes.text_delta)


class ReordersEvents(Fault):
    """Two pieces of the arguments change places."""

    held: Value | None = None
    done = False

    def event(self, value: Value) -> list[Value] | None:
        """See the class."""
        if self.done or shapes.argument_delta(value) is None:
            return None
        if self.held is None:
            self.held = value
            return []
        self.done = True
        return [value, self.held]


class RepeatsId(Changes):
    """Gives every call of every answer one and the same id."""

    def change(self, value: Value) -> bool:
        """See the class."""
        done = False
        for call in shapes.calls(value):
            if "id" in call:
                call["id"], done = "call_0", True
        for item in shapes.items(value):
            item["call_id"], done = "call_0", True
        return done


class ChangesId(Fault):
    """The pieces of a call after its first carry another id."""

    def event(self, value: Value) -> list[Value] | None:
        """See the class."""
        if shapes.argument_delta(value) is None:
            return None
        if "item_id" in value:
            value["item_id"] = "fc_other"
        for call in shapes.calls(value):
            call["id"] = "call_other"
        return [value]


class DropsId(Changes):
    """Calls come without an id."""

    def change(self, value: Value) -> bool:
        """See the class."""
        done = [call.pop("id") for call in shapes.calls(value) if "id" in call]
        done += [item.pop("call_id") for item in shapes.items(value) if "call_id" in item]
        return bool(done)


class DropsIndex(Fault):
    """The pieces of a call do not say which call they belong to."""

    def event(self, value: Value) -> list[Value] | None:
        """See the class."""
        done = [call.pop("index") for call in shapes.calls(value) if "index" in call]
        done += [value.pop("output_index")] if shapes.of_a_call(value) and "output_index" in value else []
        return [value] if done else None


class FinishStop(Changes):
    """Says `stop` where there are calls."""

    def change(self, value: Value) -> bool:
        """See the class."""
        before = json.dumps(value)
        shapes.set_finish(value, "tool_calls", "stop")
        return json.dumps(value) != before


class FinishLength(Changes):
    """Says `length` where the model had ended by itself."""

    def change(self, value: Value) -> bool:
        """See the class."""
        before = json.dumps(value)
        shapes.set_finish(value, "stop", "length")
        shapes.set_finish(value, "tool_calls", "length")
        return json.dumps(value) != before


class ClosesInArguments(Fault):
    """The connection is closed in the middle of a call's arguments (of a plain answer: in the middle)."""

    cuts_body = True
    seen = 0

    def event(self, value: Value) -> list[Value] | None:
        """See the class."""
        self.seen += shapes.argument_delta(value) is not None or any(shapes.functions(value))
        if self.seen > 2 or (self.seen and shapes.finishes(value)):
            raise CutError
        return None

    def body(self, data: bytes) -> bytes:
        """See the class."""
        return data[: len(data) // 2]


class ClosesBeforeDone(Fault):
    """The stream ends, in good order, without its end mark."""

    def event(self, value: Value) -> list[Value] | None:
        """See the class."""
        if value.get("done") is True or value.get("type") in ("response.completed", "response.incomplete"):
            raise EnoughError
        return None

    def mark(self) -> None:
        """See the class."""
        raise EnoughError


class Buffers(Fault):
    """Takes the whole answer before the first byte of it goes on."""

    holds = True


class DropsUsage(Changes):
    """Leaves the token counts out."""

    def change(self, value: Value) -> bool:
        """See the class."""
        done = value.pop("usage", None) is not None
        for name in ("prompt_eval_count", "eval_count"):
            done = value.pop(name, None) is not None or done
        whole = shapes.response_of(value)
        return (whole is not None and whole.pop("usage", None) is not None) or done

    def event(self, value: Value) -> list[Value] | None:
        """An event that held nothing else goes away with them."""
        changed = self.change(value)
        if changed and value.get("choices") == []:
            return []
        return [value] if changed else None


class RenamesTool(Changes):
    """Calls tools by other names than those offered."""

    def change(self, value: Value) -> bool:
        """See the class."""
        done = False
        for function in shapes.functions(value):
            if function.get("name"):
                function["name"], done = f"{function['name']}_tool", True
        return done


class GzipClaimed(Fault):
    """Unpacks answers and leaves the header that says they are packed."""

    def headers(self, headers: dict[str, str]) -> None:
        """See the class."""
        headers["Content-Encoding"] = "gzip"
