"""A simulated fast server that writes what the known-answer agents write (simulated: no stack is behind it)."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from harness.canary_agents import agents_spec
from harness.dense import known_agents
from harness.dense.family import own_families
from harness.tasks import FAMILIES
from tests.support.simulated import call, completion

SEEDS = (42, 123, 456, 789, 2024, 7, 99, 2025)
MARK = re.compile(r"\[\[[\w.]+\]\]")
HERMES = re.compile(r"<tool_call>\n(.*)\n</tool_call>", re.DOTALL)


def known_answers(
    families: tuple[str, ...] = ("aggregation", "chain"), seeds: tuple[int, ...] = SEEDS
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """From a request's body to the completion: what the script of its last mark says, parsed where tools are there."""
    spec = agents_spec(FAMILIES[family].task(seed, 1) for family in families for seed in seeds)
    return answers_by_mark({mark: spec.script(name).text for mark, name in spec.triggers.items()})


def dense_answers(behaviours: Iterable[str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The same for the known agents of items, on every item of our own that they are for."""
    texts: dict[str, str] = {}
    for behaviour in behaviours:
        tasks = [one.task(0) for one in own_families().values() if known_agents.fits(behaviour, one.item)]
        spec = known_agents.agents_spec(behaviour, tasks)
        texts |= {mark: spec.script(name).text for mark, name in spec.triggers.items()}
    return answers_by_mark(texts)


def answers_by_mark(texts: Mapping[str, str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What the text of the last known mark in a request is, as a completion."""

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        marks = [mark for mark in MARK.findall(json.dumps(body["messages"])) if mark in texts]
        text = texts[marks[-1]] if marks else "There is nothing that I know."
        found = HERMES.fullmatch(text)
        if found and body.get("tools"):
            value = json.loads(found[1])
            one = call(value["name"])
            one["function"]["arguments"] = json.dumps(value["arguments"])
            return completion(None, one)
        return completion(text, spent=5 if text else 1)

    return answer


class KnownServer:
    """Answers in threads of its own, so that processes killed at any moment do not matter to it.

    `hook` may break a connection off (True) by the number of the chat request.
    """

    def __init__(
        self,
        hook: Callable[[int], bool] = lambda number: False,
        model: str = "m",
        answer: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        self.answer = answer or known_answers()
        self.hook, self.model = hook, model
        self.chats = 0
        self.headers: deque[dict[str, str]] = deque(maxlen=100)
        """Of the latest chat requests: the memory of long grids is measured beside this server."""


@contextlib.contextmanager
def known_server(server: KnownServer, wrap: Callable[[Any], Any] = lambda sock: sock) -> Iterator[str]:
    """Serve on loopback; the URL. `wrap` may put TLS around the listening socket."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path != "/v1/models":
                self._send(404, {"error": {"message": "no such route", "type": "invalid_request_error"}})
                return
            self._send(200, {"object": "list", "data": [{"id": server.model, "object": "model", "owned_by": "us"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            server.chats += 1
            server.headers.append(dict(self.headers.items()))
            if server.hook(server.chats):
                self.close_connection = True
                return
            self._send(200, server.answer(body))

        def _send(self, status: int, value: Any) -> None:
            raw = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that was killed is no error here."""

    http = Quiet(("127.0.0.1", 0), Handler)
    http.socket = wrap(http.socket)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
