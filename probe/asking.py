"""Sends what a stack or a probe asks through the relay, counted, limited in time and size, and read back judged."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from proxy.classify import Classified, RunMemory, judge
from proxy.exchange_view import view_of
from proxy.relay.answers import STATUS as RELAY_FAULTS
from proxy.session import RecordingSession
from results.coding import CodingError, ContentDecoder
from results.exchange import Exchange
from results.follow import JournalFollower
from stacks.serving.base import Answer, Ask, Steps, T

MAX_ANSWER_BYTES = 4 << 20
"""An answer is read this far; a server that streams without end is cut off (4 MiB)."""
ANSWER_SECONDS = 60.0
CONNECT_SECONDS = 5.0
RECORD_SECONDS = 5.0
_POLL_SECONDS = 0.005


class BudgetSpentError(Exception):
    """No request is left of the budget; what was found out before stays."""


class NotAllowedError(Exception):
    """The request would change something on the user's server, and that was not allowed (`--disruptive`)."""


@dataclass(slots=True)
class Budget:
    """How many requests may be sent, how many that generate, and until when. `spent` counts them."""

    requests: int = 120
    seconds: float = 300.0
    disruptive: bool = False
    spent: int = 0
    generations: int = 0
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds_left(self) -> float:
        """Until the time is over; never below zero."""
        return max(0.0, self.started + self.seconds - time.monotonic())

    def charge(self, ask: Ask) -> None:
        """Take one request. Raises BudgetSpentError, NotAllowedError."""
        if ask.changes and not self.disruptive:
            raise NotAllowedError(ask.purpose or f"{ask.method} {ask.path}")
        if self.spent >= self.requests:
            raise BudgetSpentError(f"the budget of {self.requests} requests is spent")
        if not self.seconds_left:
            raise BudgetSpentError(f"the time limit of {self.seconds:.0f} s is over")
        self.spent += 1
        self.generations += ask.generates


class Asker:
    """Asks one upstream of a running recording. `headers` go with every request (a user's authorization)."""

    def __init__(
        self,
        session: RecordingSession,
        upstream: str | None = None,
        *,
        budget: Budget | None = None,
        headers: Mapping[str, str] | None = None,
        numbers: Callable[[], int] | None = None,
    ) -> None:
        self.session = session
        self.base_url = session.base_url(upstream)
        self.upstream = next((one for one in session.upstreams if one.name == upstream), session.upstreams[0])
        """The one that is asked."""
        self.budget = budget or Budget()
        self.headers = dict(headers or {})
        self.numbers = numbers or itertools.count(1).__next__
        self._follower = JournalFollower(session.folder)
        self._exchanges: dict[int, Exchange] = {}
        self._judged: dict[int, Classified] = {}
        self._memory = RunMemory()
        # A connection for each request: a server that closes one after an error would else spoil the next answer.
        self._client = httpx.AsyncClient(
            trust_env=False,
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            follow_redirects=False,
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def close(self) -> None:
        """Let go of the connections and the journal."""
        await self._client.aclose()
        self._follower.close()

    async def __aenter__(self) -> Asker:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def ask(self, ask: Ask, **tags: str) -> Answer:
        """Send one request and read its answer; a failed one is an `Answer` with `failure`, not an exception.

        Raises BudgetSpentError, NotAllowedError before anything is sent.
        """
        self.budget.charge(ask)
        number = self.numbers()
        allowed = min(ask.seconds or ANSWER_SECONDS, self.budget.seconds_left)
        began = time.monotonic()
        answer = _Reading()
        try:
            async with asyncio.timeout(allowed):
                await self._send(ask, number, tags, answer)
        except (TimeoutError, httpx.TimeoutException):
            answer.failure = "timeout"
        except httpx.ConnectError:
            answer.failure = "connect"
        except (httpx.HTTPError, CodingError):
            answer.failure = "broken"
        answer.tell_relay_faults()
        return Answer(
            ask=ask,
            status=answer.status,
            headers=tuple(answer.headers),
            body=bytes(answer.body),
            failure=answer.failure,
            seconds=time.monotonic() - began,
            number=number,
        )

    async def follow(self, steps: Steps[T], **tags: str) -> T:
        """Drive a stack's dialogue to its end. Raises as `ask`."""
        try:
            ask = next(steps)
            while True:
                ask = steps.send(await self.ask(ask, **tags))
        except StopIteration as done:
            result: T = done.value
            return result

    async def exchange(self, answer: Answer) -> Exchange | None:
        """The record of an answer; None where nothing was recorded (never sent, or the record is broken)."""
        return await self.recorded(answer.number)

    async def recorded(self, number: int) -> Exchange | None:
        """The record of the ask with this number; None as in `exchange`."""
        if not number:
            return None
        until = time.monotonic() + RECORD_SECONDS
        while number not in self._exchanges:
            try:
                for exchange in self._follower.poll():
                    self._take(exchange)
            except OSError:
                return None
            if number in self._exchanges:
                break
            if time.monotonic() > until:
                return None
            await asyncio.sleep(_POLL_SECONDS)
        return self._exchanges[number]

    async def judged(self, answer: Answer) -> Classified | None:
        """The verdict on an answer by what stands on the wire, looking back at earlier ones of this run."""
        exchange = await self.exchange(answer)
        return None if exchange is None else self._judged[answer.number]

    def forget(self, answer: Answer) -> None:
        """Let go of the record of an answer: one who asks for ever keeps in memory only what it still needs."""
        self._exchanges.pop(answer.number, None)
        self._judged.pop(answer.number, None)

    def identify(self, stack: str, version: str) -> None:
        """From now on answers are judged as ones of this stack (signatures are ranged by version)."""
        self._stack, self._version = stack, version

    _stack = ""
    _version = ""

    def _take(self, exchange: Exchange) -> None:
        number = int(exchange.tag("ask", "0") or 0)
        if number:
            classified = judge(view_of(exchange, self._stack, self._version), self._memory)
            classified.remember(self._memory)
            self._exchanges[number], self._judged[number] = exchange, classified

    async def _send(self, ask: Ask, number: int, tags: Mapping[str, str], into: _Reading) -> None:
        words = ",".join(f"{key}={quote(str(value), safe='')}" for key, value in {"ask": number, **tags}.items())
        content = ask.raw if ask.body is None else _json(ask.body)
        # Nothing compressed: what is cited is then readable on the wire, and no small body unpacks to gigabytes.
        plain = {"content-type": "application/json", "accept-encoding": "identity"}
        headers = {**plain, **self.headers, **dict(ask.headers)}
        if content is None:
            headers.pop("content-type")
        url = f"{self.base_url}/t/{words}{ask.path}"
        async with self._client.stream(ask.method, url, content=content, headers=headers) as response:
            into.status, into.headers = response.status_code, list(response.headers.multi_items())
            decoder = ContentDecoder(response.headers.get("content-encoding", ""))
            async for piece in response.aiter_raw():
                for decoded in decoder.feed(piece) if decoder.supported else (piece,):
                    into.body += decoded
                    if len(into.body) > MAX_ANSWER_BYTES:
                        del into.body[MAX_ANSWER_BYTES:]
                        into.failure = "too_long"
                        return


def _json(value: Mapping[str, Any]) -> bytes:
    """The body as its reader would write it; lone surrogates, which UTF-8 cannot hold, as their escapes."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


class _Reading:
    """An answer as far as it was read."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: list[tuple[str, Any]] = []
        self.body = bytearray()
        self.failure = ""

    def tell_relay_faults(self) -> None:
        """Where the relay answered in place of a server that cannot be reached, there is no answer of the server's."""
        fault = next((value for key, value in self.headers if key.lower() == "x-stacktap-error"), None)
        if fault in RELAY_FAULTS and self.status == RELAY_FAULTS[fault]:
            self.status = None
            self.failure = "timeout" if fault.startswith("timeout") else "connect"
