"""Cases for bug reports: scripted exchanges through recorder and classifier, with a manifest that does not change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from checklists.bug_report import Case
from checklists.bug_report.anonymous import Anonymiser
from proxy.exchange_view import classify_run
from proxy.served import ServerFacts
from results.manifest import Fact, Manifest, UpstreamFacts, known, unknown
from results.outcomes import Outcome
from tests.support.recorded import CALL_TEXT, Script, answer, response

FLAGS = ["/opt/llama/llama-server", "-m", "/home/maria/models/tiny.gguf", "--jinja"]
TEMPLATE = "3fa48df854ca5696143d66c3970367e3533d7dd57b998431e5933a1c82e23f71"


def manifest(stack: str = "llamacpp", version: str = "b11434", agent: str = "", **facts: Fact) -> Manifest:
    """A manifest without anything of this machine."""
    said = {
        "stack": known(stack, "probe") if stack else unknown("the server was not identified"),
        "version": known(version, "probe"),
        "launch_flags": known(FLAGS, "process table"),
        "model": known("tiny.gguf", "GET /props"),
        "chat_template_hash": known(TEMPLATE, "GET /props"),
        "context_length": known(4096, "GET /props"),
        **facts,
    }
    return Manifest(
        schema=1,
        run="20260102-030405-abcd",
        created_us=0,
        stacktap="0.1.0",
        command=("stacktap", "wrap"),
        upstreams=(UpstreamFacts("up", "http://127.0.0.1:8080", said),),
        facts={"agent": known(agent, "the wrapped command")} if agent else {},
        host={"system": known("Linux 6.1", "platform"), "memory_bytes": known(16 << 30, "sysconf")},
        tools={},
    )


def case(folder: Path, *pieces: bytes, stated: Manifest | None = None, **body: Any) -> Case:
    """A case on one chat exchange that was answered by `pieces`, judged as one of the manifest's server."""
    script = Script(folder)
    script.chat(*pieces, **body)
    (exchange,) = script.exchanges()
    stated = stated or manifest()
    server = ServerFacts(stated.fact("stack", "up").value or "", stated.fact("version", "up").value, tuple(FLAGS))
    (judged,) = classify_run([exchange], {"up": server})
    return Case(exchange, judged, stated, stated.run, "1", "0.1.0", hide=Anonymiser())


def left_in_text(folder: Path, **more: Any) -> Case:
    """A call that llama-server left in the text, with parsing on."""
    return case(folder, answer(content=CALL_TEXT), **more)


def refused(folder: Path, message: str, status: bytes = b"400 Bad Request", **more: Any) -> Case:
    """A request that was refused in these words."""
    body = msgspec.json.encode({"error": {"message": message, "type": "invalid_request_error", "code": 400}})
    return case(folder, response(body, status), **more)


def with_outcome(made: Case, **fields: Any) -> Case:
    """The case with another verdict."""
    outcome: Outcome = msgspec.structs.replace(made.judged.outcome, **fields)
    judged = msgspec.structs.replace(made.judged, outcome=outcome)
    return Case(made.exchange, judged, made.manifest, made.run, made.attempt, made.version, hide=Anonymiser())
