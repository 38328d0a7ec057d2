"""Make a failing input smaller while it fails in the same way: pieces are taken out, large ones first."""

from __future__ import annotations

import time
import traceback
from dataclasses import replace

from tests.fuzz.mutate import Input
from tests.fuzz.trial import limited, tried


def failure_of(made: Input) -> str:
    """How an input fails: the kind of exception and where it was raised; "" where it does not."""
    try:
        with limited():
            tried(made)
    except Exception as error:  # whatever it is, it is the finding
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if "/tests/fuzz/" not in frame.filename] or frames
        where = "" if type(error).__name__ == "SlowError" else f" at {own[-1].name}"
        return f"{type(error).__name__}{where}"
    return ""


def minimised(made: Input, seconds: float = 20.0) -> Input:
    """A smaller input that fails alike, found within a time limit."""
    wanted = failure_of(made)
    until = time.monotonic() + seconds
    for change in ({"cuts": ()}, {"known_text": None}, {"stack": ""}):
        candidate = replace(made, **change)
        if candidate != made and failure_of(candidate) == wanted:
            made = candidate
    for side in ("response", "request"):
        made = _smaller(made, side, wanted, until)
    return made


def _smaller(made: Input, side: str, wanted: str, until: float) -> Input:
    step = max(1, len(getattr(made, side)) // 2)
    while step:
        at = 0
        while at < len(getattr(made, side)):
            if time.monotonic() > until:
                return made
            data: bytes = getattr(made, side)
            candidate = replace(made, **{side: data[:at] + data[at + step :]})
            if failure_of(candidate) == wanted:
                made = candidate
            else:
                at += step
        step //= 2
    return made
