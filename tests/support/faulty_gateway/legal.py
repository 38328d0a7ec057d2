"""What a gateway may do: nobody is to be blamed for it."""

from __future__ import annotations

from tests.support.faulty_gateway import shapes
from tests.support.faulty_gateway.answers import Changes
from tests.support.faulty_gateway.fault import Fault
from tests.support.faulty_gateway.shapes import Value


class NewIds(Changes):
    """Gives calls ids of its own, one each: allowed, the agent answers with what it got."""

    legal = True

    def change(self, value: Value) -> bool:
        """See the class."""
        done = False
        for holder, name in [(call, "id") for call in shapes.calls(value)] + [
            (item, "call_id") for item in shapes.items(value)
        ]:
            if holder.get(name):
                holder[name], done = f"gw-{holder[name]}", True
        return done


class KeepAliveComments(Fault):
    """Sends comments between the events of a stream: allowed."""

    legal = True

    def framed(self, data: bytes, sse: bool) -> list[bytes]:
        """See the class."""
        return [b": keep-alive\n\n", data] if sse else [data]


class OddSplits(Fault):
    """Cuts what it sends at any byte: allowed."""

    legal = True

    def framed(self, data: bytes, sse: bool) -> list[bytes]:
        """See the class."""
        return [data[start : start + 37] for start in range(0, len(data), 37)]


class CrlfLines(Fault):
    """Ends lines with CR LF: allowed."""

    legal = True

    def framed(self, data: bytes, sse: bool) -> list[bytes]:
        """See the class."""
        return [data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")]


class RenamesModel(Fault):
    """Calls the model by the name the server knows it by: allowed, gateways are there for it."""

    legal = True

    def request(self, asked: Value) -> bool:
        """See the class."""
        asked["model"] = "served-name"
        return True
