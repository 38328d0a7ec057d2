"""The everyday request, recognised at a glance: one whole request in one read, with nothing in it to decide.

Agents send hardly anything else, and taking such a request apart costs most of what the relay spends on it. What is
recognised here means the same to `results.http1` and `proxy.relay.rewrite` (a test compares them on random requests);
everything else is left to them. Pure: bytes in, offsets out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE = re.compile(rb"(?!CONNECT )([A-Z]+) (/(?![kt]/)[\x21-\x7e]*) HTTP/1\.1\r\n")
_FIELD = re.compile(rb"\n(host|content-length|transfer-encoding|upgrade|x-stacktap-|[ \t\n])")
_MAX_DIGITS = 18


class PlainRequest(NamedTuple):
    """Offsets of Host's value and of the body; the request ends where the read ends."""

    method: bytes
    target: bytes
    host_start: int
    host_end: int
    body_start: int


def plain_request(data: bytes) -> PlainRequest | None:
    """Recognise an everyday request, or return None.

    It has a target in origin form without stacktap's prefixes, CRLF line ends, one Host field, no folded line, no
    transfer coding, no upgrade, and a body as long as its Content-Length says.
    """
    line = _LINE.match(data)
    head_end = data.find(b"\r\n\r\n")
    if line is None or head_end < 0:
        return None
    start = line.end() - 1
    fields = data[start : head_end + 2].lower()
    found = _FIELD.findall(fields)
    lines = fields.count(b"\r\n")
    if fields.count(b"\n") != lines + 1 or fields.count(b"\r") != lines:
        return None
    body_start = head_end + 4
    length = 0
    if len(found) == 2 and b"content-length" in found:
        at = fields.find(b"\ncontent-length: ") + 17
        digits = fields[at : fields.find(b"\r", at)]
        if at < 17 or len(digits) > _MAX_DIGITS or not digits.isdigit():
            return None
        length = int(digits)
    elif len(found) != 1:
        return None
    host = fields.find(b"\nhost: ") + 7
    host_end = fields.find(b"\r", host)
    value = fields[host:host_end]
    if host < 7 or value != value.strip() or body_start + length != len(data):
        return None
    return PlainRequest(line[1], line[2], start + host, start + host_end, body_start)
