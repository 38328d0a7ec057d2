"""What the exchanges with one server say, counted one by one in memory that does not grow with the run."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec

from checklists.items.records import Link
from checklists.reading import Seen
from proxy.classify.facts import Facts
from results.outcomes import Evidence, Outcome
from results.rates import RateCounter, Rates
from results.taxonomy import CODES

KEPT = 16
"""Different values of one kind that are kept by name; further ones are counted together."""
QUESTIONS = 4096
"""Requests whose content is remembered for a comparison with other servers."""
OTHERS = "(others)"
_WINDOW = 4096


def count_bounded(counts: Counter[str], value: str, limit: int = KEPT) -> None:
    """Count a value under its own name, or under `(others)` where there are `limit` names already."""
    counts[value if value in counts or len(counts) < limit else OTHERS] += 1


class AtOnce:
    """The most requests that were under way at one time; at least that many where very long ones overlap very many.

    Fed in the order in which exchanges end; begins and ends wait in a window to be taken in the order of time.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int]] = []
        self._now = self._most = 0

    def add(self, began_us: int, ended_us: int) -> None:
        """One exchange by its begin and end, in microseconds of one clock."""
        heapq.heappush(self._waiting, (began_us, 1))
        heapq.heappush(self._waiting, (max(ended_us, began_us), 2))
        while len(self._waiting) > 2 * _WINDOW:
            self._take()

    def _take(self) -> None:
        _, kind = heapq.heappop(self._waiting)
        self._now += 1 if kind == 1 else -1
        self._most = max(self._most, self._now)

    def most(self) -> int:
        """The number, once everything was added."""
        while self._waiting:
            self._take()
        return self._most


@dataclass(slots=True)
class Refusal:
    """A refusal of tools in the server's own words: how often, and where first."""

    words: str
    outcome: str
    count: int
    first: Link


@dataclass(slots=True)
class ServerTraffic:
    """Counts over the exchanges with one upstream. `attempts` are all, `generating` those that ask for an answer of
    the model; everything below counts generating ones only, save `counter`, which counts what the
    report's rates count."""

    attempts: int = 0
    generating: int = 0
    with_tools: int = 0
    tools_accepted: int = 0
    stopped_first: Counter[str] = field(default_factory=Counter)
    """Requests with tools that were refused for another reason before tools mattered, by the reason."""
    accepted_first: Link | None = None
    refusals: dict[str, Refusal] = field(default_factory=dict)
    tools_absent: Link | None = None
    models: Counter[str] = field(default_factory=Counter)
    decoding: Counter[str] = field(default_factory=Counter)
    undefined: Counter[str] = field(default_factory=Counter)
    """Decoding parameters that a request leaves to the server, by their names."""
    conditions: Counter[str] = field(default_factory=Counter)
    system_prompts: Counter[str] = field(default_factory=Counter)
    channels: Counter[str] = field(default_factory=Counter)
    channel_first: dict[str, Link] = field(default_factory=dict)
    reached: int = 0
    transport: Counter[str] = field(default_factory=Counter)
    transport_first: Link | None = None
    sent_again: int = 0
    repeated_after_failure: int = 0
    client_timeouts: Counter[str] = field(default_factory=Counter)
    clients: Counter[str] = field(default_factory=Counter)
    tagged_seeds: Counter[str] = field(default_factory=Counter)
    questions: set[bytes] = field(default_factory=set)
    at_once: AtOnce = field(default_factory=AtOnce)
    counter: RateCounter = field(default_factory=RateCounter)
    _failed: bytes = b""

    def add(self, seen: Seen) -> None:
        """Count one exchange."""
        self.attempts += 1
        facts, outcome = seen.classified.facts, seen.judged.outcome
        if seen.judged.aside or (not facts.generates and seen.exchange.tag("ask")):
            return
        self.counter.add(outcome, tools=seen.judged.tools)
        if not facts.generates:
            return
        self.generating += 1
        exchange = seen.exchange
        if exchange.ended_at_us is not None:
            self.at_once.add(exchange.started_us, exchange.started_us + exchange.ended_at_us)
        self._ask(facts)
        self._tools(seen, facts, outcome)
        self._answer(seen, outcome)
        self._client(seen)
        self._again(facts, outcome)

    def rates(self, *, offering: bool) -> Rates:
        """The three rates of what was counted; with `offering` (tools were offered in this run) without the requests
        that offered none."""
        return self.counter.rates(offering=offering)

    def _ask(self, facts: Facts) -> None:
        request = facts.request
        count_bounded(self.models, request.model or "(none named)")
        sent: dict[str, Any] = {name: value for name, value in sorted(request.sampling.items()) if value is not None}
        if request.max_tokens is not None:
            sent["max_tokens"] = request.max_tokens
        if request.stop is not None:
            sent["stop"] = request.stop
        if request.context_length is not None:
            sent["num_ctx"] = request.context_length
        count_bounded(self.decoding, _text(sent))
        for name in ("temperature", "top_p", "max_tokens"):
            if name not in sent:
                self.undefined[name] += 1
        form = "a forced form of the answer" if facts.forced_format else ""
        tools = "tools in the request" if facts.offers else "no tools in the request"
        count_bounded(self.conditions, f"{tools} and {form}" if form else tools)
        first = request.messages[0] if request.messages else None
        text = _text(first.raw) if first is not None and first.role in ("system", "developer") else ""
        count_bounded(self.system_prompts, hashlib.sha256(text.encode()).hexdigest()[:16] if text else "none")

    def _tools(self, seen: Seen, facts: Facts, outcome: Outcome) -> None:
        if not facts.offers:
            return
        self.with_tools += 1
        if outcome.layer == "gate":
            self._refused(seen, facts, outcome)
        elif 200 <= facts.status < 300 and not facts.failed:
            self.tools_accepted += 1
            self.accepted_first = self.accepted_first or link_of(seen, "a request with tools is answered")
        elif outcome.layer == "request":
            self.stopped_first[CODES[outcome.name].meaning] += 1
        if outcome.name == "template.tools_absent" and self.tools_absent is None:
            self.tools_absent = link_of(seen, "the tools did not come to the prompt")

    def _refused(self, seen: Seen, facts: Facts, outcome: Outcome) -> None:
        words = " ".join(facts.error_text.split())[:300]
        key = words if words in self.refusals or len(self.refusals) < KEPT else OTHERS
        if key not in self.refusals:
            self.refusals[key] = Refusal(key, outcome.name, 0, link_of(seen, "the refusal"))
        self.refusals[key].count += 1

    def _answer(self, seen: Seen, outcome: Outcome) -> None:
        self.reached += outcome.reached
        channel = channel_of(outcome)
        if channel:
            self.channels[channel] += 1
            self.channel_first.setdefault(channel, link_of(seen, channel))
        if outcome.layer == "transport":
            self.transport[outcome.name] += 1
            self.transport_first = self.transport_first or link_of(seen, outcome.name)

    def _client(self, seen: Seen) -> None:
        request = seen.exchange.request
        if request is None:
            return
        count_bounded(self.clients, request.header("user-agent") or "(not named)")
        again = request.header("x-stainless-retry-count")
        self.sent_again += again.isascii() and again.isdigit() and int(again[:9]) > 0
        timeout = request.header("x-stainless-read-timeout") or request.header("x-stainless-timeout")
        if timeout:
            count_bounded(self.client_timeouts, timeout[:32])
        seed = seen.exchange.tag("seed")
        if seed:
            count_bounded(self.tagged_seeds, seed, 256)

    def _again(self, facts: Facts, outcome: Outcome) -> None:
        body = facts.view.wire.request_body
        whole = hashlib.sha256(body).digest() if body else b""
        self.repeated_after_failure += bool(whole) and whole == self._failed
        self._failed = whole if outcome.layer in ("transport", "engine", "nonresponse") else b""
        if len(self.questions) < QUESTIONS:
            self.questions.add(question_of(facts))


def channel_of(outcome: Outcome) -> str:
    """Where the model's valid call arrived, in words; "" for an outcome without one."""
    if outcome.name == "ok.native_call":
        return "in its own field"
    if outcome.name in ("ok.text_call", "parser.left_as_text"):
        return "as text"
    if outcome.layer == "parser" and outcome.wrote == "valid_call":
        return {"in_reasoning": "in the reasoning", "dropped": "nowhere (dropped by the server)"}.get(
            outcome.code, "in another way (" + outcome.code.replace("_", " ") + ")"
        )
    return ""


def question_of(facts: Facts) -> bytes:
    """A digest of what is asked (messages, prompt, tools, choice), whatever the model's name and the sampling."""
    request = facts.request
    asked = [
        [message.raw for message in request.messages],
        request.prompt,
        [tool.raw for tool in request.tools],
        facts.choice,
    ]
    return hashlib.sha256(_text(asked).encode("utf-8", "replace")).digest()


def link_of(seen: Seen, what: str) -> Link:
    """The bytes that an outcome rests on; else those of the answer, or of the request where none came."""
    cited: Evidence | None = next(iter(seen.judged.outcome.evidence), None)
    exchange = seen.exchange
    if cited is not None and cited.attempt == exchange.attempt:
        return Link(
            attempt=cited.attempt,
            direction=cited.direction,
            start=cited.start,
            end=cited.end,
            what=what,
            recording=seen.recording,
        )
    answered = exchange.response is not None
    message = exchange.response if answered else exchange.request
    start, end = (message.body_start, message.body_end) if message is not None else (0, 0)
    return Link(
        attempt=exchange.attempt,
        direction="response" if answered else "request",
        start=start,
        end=end,
        what=what,
        recording=seen.recording,
    )


def _text(value: object) -> str:
    try:
        return msgspec.json.encode(value, order="sorted", enc_hook=str).decode()
    except (UnicodeEncodeError, RecursionError, TypeError, ValueError):
        return repr(value)
