"""Standard output and error as stacktap needs them: they hold any text, and on a terminal text only ever gets shown."""

from __future__ import annotations

import codecs
import io
import re
import sys
from typing import TextIO

_ERRORS = "stacktap.escaped"
# What acts on a terminal, or reorders what is read. Left alone are stacktap's own marks (bold, dim, reverse) and the
# line of progress that is written over.
_ACTING = re.compile(r"(\x1b\[(?:0|1|2|7|27)m|\r\x1b\[K|\r\n)|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def shown(text: str) -> str:
    r"""Text with every character that would act on a terminal as a JSON escape (`\u001b`): valid inside JSON, and
    readable elsewhere."""
    return _ACTING.sub(lambda found: found[1] or f"\\u{ord(found[0]):04x}", text)


class ShownText(io.TextIOWrapper):
    """A text stream to a terminal, on which recorded text cannot act whatever part of the program prints it."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        """Over the same buffer as `stream`, which must live as long: its end closes the buffer."""
        stream.flush()
        super().__init__(stream.buffer, encoding=stream.encoding, errors=_ERRORS, line_buffering=True)
        self.unguarded: TextIO = stream
        stream.reconfigure(errors=_ERRORS)

    def write(self, text: str, /) -> int:
        """Write, with acting characters made visible."""
        super().write(shown(text))
        return len(text)


def unguarded(stream: TextIO) -> TextIO:
    """The same stream for a part of the program that moves the cursor, and makes the texts in it harmless itself."""
    if not isinstance(stream, ShownText):
        return stream
    stream.flush()
    return stream.unguarded


def _escaped(wrong: UnicodeError) -> tuple[str, int]:
    """What a stream cannot hold, as JSON's escapes: half a surrogate pair in a server's text, letters on a terminal
    without them. Valid inside JSON, and readable elsewhere."""
    if not isinstance(wrong, UnicodeEncodeError):
        raise wrong
    units = wrong.object[wrong.start : wrong.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2)), wrong.end


def print_anything() -> None:
    """Let standard output and error take any text; where they are terminals, let none of it act."""
    codecs.register_error(_ERRORS, _escaped)
    sys.stdout = _able(sys.stdout)
    sys.stderr = _able(sys.stderr)


def _able(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    if stream.isatty() and not isinstance(stream, ShownText):
        return ShownText(stream)
    stream.reconfigure(errors=_ERRORS)
    return stream
