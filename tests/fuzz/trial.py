"""One input through everything that a recorded exchange goes through: wire bytes to outcome, and the outcome to a line
of `outcomes.jsonl`, to words and to the labels of other taxonomies. What must hold of each is checked here.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

from proxy.classify import Classified, RunMemory, judge
from proxy.exchange_files import ExchangeFileError, load_exchanges
from proxy.exchange_view import judged_of, view_of
from proxy.explain import explain, explained
from results.exchange import Exchange, Piece, WireStream
from results.labels import PROJECTIONS
from results.outcome_table import OutcomeTable
from results.outcomes import check, decode_judged, encode
from tests.fuzz.mutate import Input

CPU_SECONDS = 2.0
"""CPU time that one input may take."""


class SlowError(Exception):
    """An input took more than its CPU time."""


class BrokenPromiseError(AssertionError):
    """An outcome breaks a promise."""


@contextmanager
def limited(seconds: float = CPU_SECONDS) -> Iterator[None]:
    """Raise SlowError where the block takes more CPU time than that (main thread only; no limit elsewhere)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(*_: object) -> None:
        raise SlowError(f"more than {seconds} s of CPU")

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def promise(kept: bool, said: str) -> None:
    """Raise BrokenPromiseError with these words unless kept."""
    if not kept:
        raise BrokenPromiseError(said)


def exchange_of(made: Input) -> Exchange:
    """The exchange that a reader of the journal would give."""
    request, response = made.request, made.response
    bounds = sorted({0, *(cut for cut in made.cuts if cut < len(response)), len(response)})
    reads = tuple(Piece(1000 + at, at, to) for at, to in pairwise(bounds))
    method = request.split(b" ", 1)[0][:20].decode("latin-1")
    return Exchange(
        attempt=7,
        connection=1,
        exchange=1,
        upstream="up",
        started_us=0,
        method=None if made.end == "not_http" else method,
        request=WireStream(request, (Piece(0, 0, len(request)),), True),
        response=WireStream(response, reads, made.end == "complete"),
        end=made.end,
        ended_at_us=2_000_000,
    )


def tried(made: Input) -> list[str]:
    """Run one input; the names of its outcomes. Raises whatever goes wrong."""
    memory = RunMemory()
    if made.way == "record":
        exchange = exchange_of(made)
        view = view_of(exchange, made.stack)
        wires = {"request": exchange.wire("request"), "response": exchange.wire("response")}
        return [_judged(judge(view, memory), memory, made.known_text, wires)]
    names = []
    try:
        for loaded in load_exchanges(made.request):
            wires = {"request": loaded.request_raw, "response": loaded.response_raw}
            names.append(_judged(judge(loaded.view, memory), memory, made.known_text, wires))
    except ExchangeFileError as refused:
        promise(bool(str(refused)), "a file is refused without a word")
    return names


def _judged(classified: Classified, memory: RunMemory, known: str | None, wires: dict[str, bytes]) -> str:
    classified.remember(memory)
    for known_text in (None,) if known is None else (None, known):
        judged = judged_of(classified, known_text)
        outcome = judged.outcome
        check(outcome)
        line = encode(judged)
        promise(b"\n" not in line, "a line of outcomes.jsonl holds a line end")
        promise(decode_judged(line) == judged, "an outcome is not read back as it was written")
        promise(bool(outcome.evidence), f"{outcome.name} cites nothing")
        for cited in outcome.evidence:
            if cited.attempt == judged.attempt:
                size = len(wires[cited.direction])
                promise(0 <= cited.start <= cited.end <= size, f"{cited} lies outside of {size} bytes")

        def wire(attempt: int, direction: str, own: int = judged.attempt) -> bytes | None:
            return wires[direction] if attempt == own else None

        explain(judged, wire).encode()
        json.dumps(explained(judged, wire)).encode()
        for projection in PROJECTIONS.values():
            promise(bool(projection(outcome)), "a projection gives no label")
    table = OutcomeTable()
    table.add(judged)
    table.text().encode()
    return outcome.name
