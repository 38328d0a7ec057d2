"""Raw HTTP messages through the real recorder into a journal, and back as exchanges."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from proxy.tap import (
    ConnectionClosed,
    ConnectionOpened,
    Event,
    RelayFault,
    RequestStarted,
    ResponseData,
    SideClosed,
    UpstreamConnected,
)
from results.exchange import Exchange
from results.reader import RunReader


@dataclass(frozen=True, slots=True)
class Raw:
    """One exchange to be recorded: both messages as raw bytes, and how it ended (`fin`, `rst`, `client`: the client
    left, `refused`: nothing listens, `timeout`: the relay's own read timeout)."""

    request: bytes
    response: bytes
    how: str = "fin"
    tags: tuple[tuple[str, str], ...] = ()


def record(folder: Path, exchanges: Iterable[Raw], seed: int = 7) -> list[Exchange]:
    """Record exchanges, one connection each, answers cut at random places; read them back in order of attempt."""
    dice = random.Random(seed)
    recorder = Recorder(folder, "run-1", Redactor())
    recorder.start()
    for connection, raw in enumerate(exchanges, 1):
        for event in events(raw, connection, dice):
            recorder.put(event)
    recorder.close()
    return sorted(RunReader(folder), key=lambda exchange: exchange.attempt)


def events(raw: Raw, connection: int, dice: random.Random) -> list[Event]:
    """What the relay would have said of one exchange."""
    now = time.monotonic_ns()
    end = raw.request.find(b"\r\n\r\n") + 4
    head, body = raw.request[:end], raw.request[end:]
    target = head.split(b" ", 2)[1]
    said: list[Event] = [ConnectionOpened(connection, now, "127.0.0.1:5")]
    said.append(RequestStarted(connection, now, "up", raw.tags, head, body, target, True))
    if raw.how == "refused":
        said.append(RelayFault(connection, now, "upstream_refused", "connection refused", b""))
        said.append(ConnectionClosed(connection, now))
        return said
    said.append(UpstreamConnected(connection, now, "up", "127.0.0.1:9", 1000))
    for piece in _pieces(raw.response, dice):
        now += 1_000_000
        said.append(ResponseData(connection, now, piece))
    if raw.how == "timeout":
        said.append(RelayFault(connection, now, "timeout_read", "no byte for 10 s", b""))
    elif raw.how == "client":
        said.append(SideClosed(connection, now, "client", "fin"))
    else:
        said.append(SideClosed(connection, now, "upstream", "rst" if raw.how == "rst" else "fin"))
    said.append(ConnectionClosed(connection, now))
    return said


def _pieces(data: bytes, dice: random.Random) -> list[bytes]:
    cuts = sorted(dice.randrange(len(data)) for _ in range(min(3, len(data)))) if data else []
    bounds = [0, *cuts, len(data)]
    return [data[start:end] for start, end in pairwise(bounds) if end > start]
