"""Wire dialects: what an exchange says, whatever API it speaks. The entry is `assemble`."""

from stacks.dialects.assemble import assemble, read_request
from stacks.dialects.exchange import Assembled, Event, WireExchange, header
from stacks.dialects.recognise import DIALECTS, OTHER, route_of

__all__ = ["DIALECTS", "OTHER", "Assembled", "Event", "WireExchange", "assemble", "header", "read_request", "route_of"]
