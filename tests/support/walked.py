"""Walks of agents as exchanges: recorded ones, and ones written out in any dialect, plain or streamed."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import zstandard

from probe.canary.call_formats import write_call
from probe.canary.members import hermes_template
from probe.canary.spec import CanarySpec, Script
from probe.pairing.records import STEP_NAMES, AgentRun, Plan, PlannedTurn, Speech
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
from results.exchange import Exchange, Piece, WireStream
from results.reader import RunReader
from tests.support.dialect_turns import (
    ANSWERS,
    chat_answer,
    history_message,
    messages_block,
    responses_items,
)
from tests.support.wire import PATHS, dumps

CARRIED = Path(__file__).resolve().parents[1] / "data" / "pairing" / "agents.jsonl.zst"
NONCE = "canary-4711"
FILE = "canary_note.txt"
TASK = "Write a note that says canary-4711 into canary_note.txt and check it."


@dataclass(frozen=True)
class Timed:
    """One exchange: raw request, the reads of its answer with their time in microseconds, when it began, how it
    ended (`fin`, `rst`, `client`, `refused`, `timeout`), and on which upstream."""

    request: bytes
    pieces: tuple[tuple[int, bytes], ...] = ()
    how: str = "fin"
    at_us: int = 0
    upstream: str = "up"

    @property
    def response(self) -> bytes:
        return b"".join(piece for _, piece in self.pieces)

    def answering(self, response: bytes, *, cuts: int = 1, every_us: int = 4000) -> Timed:
        """The same with another answer, read in `cuts` pieces."""
        size = max(1, -(-len(response) // cuts))
        pieces = tuple(
            (every_us * (n + 1), response[at : at + size]) for n, at in enumerate(range(0, len(response), size))
        )
        return replace(self, pieces=pieces)

    def body(self) -> dict[str, Any]:
        """The request's body."""
        value: dict[str, Any] = json.loads(self.request.partition(b"\r\n\r\n")[2])
        return value

    def asking(self, body: dict[str, Any], path: str = "") -> Timed:
        """The same with another request body."""
        where = path or self.request.split(b" ", 2)[1].decode()
        return replace(self, request=post(where, body))


def record_timed(folder: Path, exchanges: Sequence[Timed]) -> list[Exchange]:
    """Record them, one connection each, by the real recorder; read back in order of attempt."""
    recorder = Recorder(folder, "run-1", Redactor())
    recorder.start()
    base = time.monotonic_ns()
    for connection, timed in enumerate(exchanges, 1):
        for event in _events(timed, connection, base + 1000 * timed.at_us):
            recorder.put(event)
    recorder.close()
    return sorted(RunReader(folder), key=lambda exchange: exchange.attempt)


_ENDS = {"rst": "upstream_reset", "client": "client_gone", "refused": "upstream_refused", "timeout": "timeout_read"}


def in_memory(exchanges: Sequence[Timed], first: int = 1) -> list[Exchange]:
    """The same exchanges as the reader would give them, without a recording; attempts are numbered from `first`."""
    return [_exchange(timed, number) for number, timed in enumerate(exchanges, first)]


def _exchange(timed: Timed, attempt: int) -> Exchange:
    offset, pieces = 0, []
    for at, data in timed.pieces:
        pieces.append(Piece(at, offset, offset + len(data)))
        offset += len(data)
    method, target = timed.request.split(b" ", 2)[:2]
    finished = timed.how == "fin"
    ended = timed.pieces[-1][0] if timed.pieces else 0

    def made(end: str, *, whole: bool) -> Exchange:
        return Exchange(
            attempt=attempt,
            connection=attempt,
            exchange=1,
            upstream=timed.upstream,
            started_us=1_700_000_000_000_000 + timed.at_us,
            method=method.decode("latin-1"),
            forwarded=target.decode("latin-1"),
            request=WireStream(timed.request, (Piece(0, 0, len(timed.request)),), complete=True),
            response=WireStream(timed.response, tuple(pieces), complete=whole),
            end=end,
            ended_at_us=ended,
        )

    first = made("complete" if finished else _ENDS[timed.how], whole=finished)
    if finished and (first.response is None or not first.response.complete):
        return made("upstream_closed", whole=False)
    return first


def _events(timed: Timed, connection: int, now: int) -> list[Event]:
    end = timed.request.find(b"\r\n\r\n") + 4
    head, body = timed.request[:end], timed.request[end:]
    said: list[Event] = [ConnectionOpened(connection, now, "127.0.0.1:5")]
    said.append(RequestStarted(connection, now, timed.upstream, (), head, body, head.split(b" ", 2)[1], True))
    if timed.how == "refused":
        said.append(RelayFault(connection, now, "upstream_refused", "connection refused", b""))
        return [*said, ConnectionClosed(connection, now)]
    said.append(UpstreamConnected(connection, now, timed.upstream, "127.0.0.1:9", 1000))
    at = now
    for after, piece in timed.pieces:
        at = now + 1000 * after
        said.append(ResponseData(connection, at, piece))
    if timed.how == "timeout":
        said.append(RelayFault(connection, at, "timeout_read", "no byte for 10 s", b""))
    elif timed.how == "client":
        said.append(SideClosed(connection, at, "client", "fin"))
    else:
        said.append(SideClosed(connection, at, "upstream", "rst" if timed.how == "rst" else "fin"))
    return [*said, ConnectionClosed(connection, at)]


def post(path: str, body: dict[str, Any]) -> bytes:
    """A raw request."""
    data = dumps(body)
    return b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        path.encode(),
        len(data),
        data,
    )


def answer(body: bytes, kind: str = "application/json", status: str = "200 OK") -> bytes:
    """A raw answer of stated length."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def chunked(events: Sequence[bytes], kind: str) -> list[bytes]:
    """A raw answer as the reads of a server that writes event by event."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return [head, *(b"%x\r\n%s\r\n" % (len(event), event) for event in events), b"0\r\n\r\n"]


# ---------------------------------------------------------------------- recorded agents
_TOOLS = {
    "opencode": ("bash", "command", {}),
    "mini-swe-agent": ("bash", "command", {}),
    "codex-cli": ("exec_command", "cmd", {}),
    "qwen-code": ("run_shell_command", "command", {"is_background": False}),
}


def captured(agent: str) -> list[Timed]:
    """The recorded walk of an agent."""
    data = zstandard.ZstdDecompressor().decompress(CARRIED.read_bytes(), max_output_size=64 << 20).decode()
    found = []
    for line in data.splitlines():
        record = json.loads(line)
        if record["kind"] == "exchange" and record["agent"] == agent:
            pieces = tuple((round(seconds * 1e6), text.encode()) for seconds, text in record["response"])
            request = post(record["path"], json.loads(record["body"]))
            whole = b"".join(piece for _, piece in pieces)
            # Codex leaves when the last event is there, before the last chunk of the framing.
            left = b"Transfer-Encoding: chunked" in whole and not whole.endswith(b"0\r\n\r\n")
            found.append(Timed(request, pieces, "client" if left else "fin", round(record["at"] * 1e6)))
    return found


def captured_plan(agent: str) -> Plan:
    """The plan of a recorded walk (whose triggers stand in the commands themselves)."""
    if agent == "aider":
        text = "I will add the file.\n\nanswer.txt\n```\n<<<<<<< SEARCH\n=======\n42\n>>>>>>> REPLACE\n```\n"
        plan = make_plan(kind="search_replace", channel="text", texts=(("write", "a1", text),))
        return replace(plan, nonce="42", file="answer.txt")
    tool, argument, extra = _TOOLS[agent]
    prefix = "b"
    commands = ("ls; echo [[b2]]", "echo 42 > answer.txt; echo [[b3]]", "cat answer.txt; echo [[b4]]")
    says = ("Let me look around first.", "Now I write the file.", "Check it.")
    turns = []
    for number, (step, say, command) in enumerate(zip(STEP_NAMES, says, commands, strict=False), 1):
        arguments = {argument: command, **extra}
        text = f"{say}\n{write_call('hermes', tool, arguments)}"
        turns.append(PlannedTurn(step, f"[[{prefix}{number}]]", text, say, ((tool, arguments),), command))
    last = "The answer is written."
    if agent == "mini-swe-agent":
        arguments = {argument: "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}
        text = f"Done.\n{write_call('hermes', tool, arguments)}"
        turns.append(PlannedTurn("finish", f"[[{prefix}4]]", text, "Done.", ((tool, arguments),), arguments[argument]))
    else:
        turns.append(PlannedTurn("finish", f"[[{prefix}4]]", last, last))
    return _plan(Speech(f"tool {tool}({argument})", "tool", "native", tool, argument, extra), turns, "42", "answer.txt")


# ---------------------------------------------------------------------- written walks
def make_plan(
    tool: str = "bash",
    argument: str = "command",
    *,
    kind: str = "tool",
    channel: Any = "native",
    extra: dict[str, Any] | None = None,
    texts: Sequence[tuple[Any, str, str]] = (),
    finish: str = "The note is written and checked.",
) -> Plan:
    """The four-step plan for a tool, or for a text protocol (`texts`: step, trigger, text; else fenced bash)."""
    commands = (
        "ls; echo '[''[k2]]'",
        f"echo {NONCE} > {FILE}; echo '[''[k3]]'",
        f"cat {FILE}; echo '[''[k4]]'",
    )
    says = ("Let me look around first.", "Now I write the note.", "I read it back.")
    turns = [PlannedTurn(step, f"[[{name}]]", text, text) for step, name, text in texts]
    for number, (say, command) in enumerate(zip(says, commands, strict=True), 1):
        if texts:
            break
        step = STEP_NAMES[number - 1]
        if channel == "text":
            text = f"{say}\n\n```bash\n{command}\n```"
            turns.append(PlannedTurn(step, f"[[k{number}]]", text, text, command=command))
            continue
        arguments = {argument: command, **(extra or {})}
        text = f"{say}\n{write_call('hermes', tool, arguments)}"
        turns.append(PlannedTurn(step, f"[[k{number}]]", text, say, ((tool, arguments),), command))
    if not texts:
        turns.append(PlannedTurn("finish", "[[k4]]", finish, finish))
    name = f"tool {tool}({argument})" if channel == "native" else "fenced bash block"
    speech = Speech(name, kind, channel, tool if channel == "native" else "bash", argument, extra or {})
    return _plan(speech, turns, NONCE, FILE)


def _plan(speech: Speech, turns: Sequence[PlannedTurn], nonce: str, file: str) -> Plan:
    scripts = tuple(Script(turn.trigger[2:-2], turn.text) for turn in turns)
    spec = CanarySpec("canary-walk", scripts, hermes_template())
    return Plan(speech, tuple(turns), nonce, file, TASK, "hermes", spec)


def good_run(plan: Plan, **more: Any) -> AgentRun:
    """An agent's process that did all of it."""
    given: dict[str, Any] = {
        "command": ("agent", "do it"),
        "ending": "exited",
        "exit_code": 0,
        "seconds": 2.0,
        "output": "done\n",
        "file": f"{plan.nonce}\n".encode(),
        **more,
    }
    return AgentRun(**given)


SYSTEM = "You are a careful agent. " * 20
_SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


@dataclass
class Walker:
    """Writes the exchanges of an agent that does as it is told, in one dialect, plain or streamed."""

    dialect: str = "openai_chat"
    streamed: bool = True
    plan: Plan = field(default_factory=make_plan)
    options: dict[str, Any] = field(default_factory=dict)
    usage: bool = True

    def exchanges(self, results: Sequence[str] = ("", "", "")) -> list[Timed]:
        """The whole walk; `results` are what the commands print before their trigger."""
        history: list[Any] = [("user", self.plan.task)]
        found = []
        for number, turn in enumerate(self.plan.turns):
            found.append(self.exchange(history, number, at_us=500_000 * number))
            if number + 1 < len(self.plan.turns):
                history.append(("call", number, turn))
                history.append(("result", number, f"{results[number]}{self.plan.turns[number + 1].trigger}\n"))
        return found

    def exchange(self, history: Sequence[Any], number: int, *, at_us: int = 0) -> Timed:
        """One request with this history, and the answer that the turn is."""
        request = post(PATHS[self.dialect], self.request(history))
        return Timed(request, at_us=at_us, pieces=self.pieces(number, len(request) // 4))

    def pieces(self, number: int, prompt_tokens: int = 600) -> tuple[tuple[int, bytes], ...]:
        """The answer that a turn is, read by read."""
        turn = self.plan.turns[number]
        body = ANSWERS[self.dialect](turn, number, prompt_tokens, self.streamed)
        if isinstance(body, bytes):
            return ((4000, answer(body)),)
        kind = "application/x-ndjson" if self.dialect.startswith("ollama") else "text/event-stream"
        return tuple((4000 * (n + 1), piece) for n, piece in enumerate(chunked(body, kind)))

    def request(self, history: Sequence[Any]) -> dict[str, Any]:
        """The body of a request with this history: ("user", text), ("call", number, turn), ("result", number, text)."""
        native = self.plan.speech.channel == "native"
        body: dict[str, Any] = {"model": "canary", "stream": self.streamed}
        called = (name for turn in self.plan.turns for name, _ in turn.calls)
        names = dict.fromkeys((*called, *((self.plan.speech.tool,) if self.plan.speech.tool else ())))
        # The usual tool has its schema; what other plans call takes anything.
        tools: list[Any] = [(name, _SCHEMA if name == "bash" else {"type": "object"}) for name in names]
        if self.dialect == "openai_responses":
            body |= {"instructions": SYSTEM, "input": [item for entry in history for item in responses_items(entry)]}
            tools = [{"type": "function", "name": n, "description": "shell", "parameters": s} for n, s in tools]
        elif self.dialect == "anthropic_messages":
            body |= {"system": SYSTEM, "max_tokens": 1024, "messages": [messages_block(entry) for entry in history]}
            tools = [{"name": n, "description": "shell", "input_schema": s} for n, s in tools]
        else:
            text = self.dialect == "ollama_chat"
            body["messages"] = [
                {"role": "system", "content": SYSTEM},
                *(history_message(entry, native=native, objects=text) for entry in history),
            ]
            functions = [{"name": n, "description": "shell", "parameters": s} for n, s in tools]
            tools = [{"type": "function", "function": function} for function in functions]
            if self.streamed and self.dialect == "openai_chat":
                body["stream_options"] = {"include_usage": True}
        return body | ({"tools": tools} if native else {}) | self.options


# ---------------------------------------------------------------------- altered answers
def events_of(timed: Timed) -> list[bytes]:
    """The events of a streamed answer, each as it was written."""
    return [data.partition(b"\r\n")[2].removesuffix(b"\r\n") for _, data in timed.pieces[1:-1]]


def with_events(timed: Timed, events: Sequence[bytes]) -> Timed:
    """The same exchange with other events in its stream."""
    kind = "application/x-ndjson" if events and events[0].startswith(b"{") else "text/event-stream"
    return replace(timed, pieces=tuple((4000 * (n + 1), piece) for n, piece in enumerate(chunked(events, kind))))


def as_text(timed: Timed, text: str, prompt_tokens: int = 600) -> Timed:
    """The same exchange with a text as its (chat) answer, streamed or plain as it was asked."""
    turn = PlannedTurn("look", "", text, text)
    streamed = bool(timed.body().get("stream"))
    body = chat_answer(turn, 7, prompt_tokens, streamed)
    if isinstance(body, bytes):
        return timed.answering(answer(body))
    return with_events(timed, body)


def failing(timed: Timed, status: str, error: Any) -> Timed:
    """The same exchange answered with an error (a JSON value, or a text as it is)."""
    if isinstance(error, str):
        return timed.answering(answer(error.encode(), "text/html", status))
    return timed.answering(answer(dumps(error), status=status))
