"""Whether a citation's bytes say what its quote says."""

from __future__ import annotations

import re

from results.outcomes import Evidence


def reads_back(cited: Evidence, raw: bytes) -> bool:
    """Whether the cited range lies within the message and its letters and digits hold the quote's, in order: quotes are
    decoded, the wire has escapes and framing between them."""
    if not 0 <= cited.start <= cited.end <= len(raw):
        return False
    if not cited.quote or cited.end == cited.start or cited.quote.startswith("status "):
        return True
    said = _echo(cited.quote.encode("utf-8", "replace"))[:40]
    rest = iter(_echo(raw[cited.start : cited.end]))
    return all(byte in rest for byte in said)


def _echo(data: bytes) -> bytes:
    data = re.sub(rb"\\u[0-9a-fA-F]{4}|\\[nrt]|\r\n[0-9a-f]+\r\n", b"", data)
    return bytes(byte for byte in data if byte < 128 and chr(byte).isalnum())
