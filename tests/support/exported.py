"""Runs for tests of exports: each kind of exchange once, hostile content in every place that a recording has."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from checklists.exports.selection import ExportRun, attempt_name
from checklists.reading import RunSource
from proxy.replay.sources import answers_of_captures
from results.episode_journal import EpisodeWriter
from results.episodes import EndedBy
from results.outcomes import Outcome
from tests.support.corpus import carried
from tests.support.episodes import episode, not_run
from tests.support.journalled import Raw, record
from tests.support.recorded import CALL_TEXT, Script, answer, response

HOSTILE = (
    "'; touch pwned; '$(touch pwned)`touch pwned`\"\\\n#{x}\x1b[31m\u202e</script><script>x</script>%0a"
    "'''\"\"\"\\N{BEL}\nEOF\n\x00\ufeff{{7*7}}"
)
CALL = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
NAMES = {
    1: "parser.left_as_text",
    2: "ok.native_call",
    3: "transport.stream_truncated",
    4: "transport.connect",
    5: "transport.not_http",
    6: "gate.tools_unsupported",
    7: "ok.final_answer",
}
"""Outcomes of `every_kind`, by attempt."""


def every_kind(folder: Path) -> ExportRun:
    """A call in text, a real call, a cut answer, a refused connection, something that is not HTTP, a refusal to take
    tools, and an answer full of hostile text."""
    script = Script(folder)
    script.chat(answer(content=CALL_TEXT))
    script.chat(answer(tool_calls=[CALL]), tags=(("episode", "e1"), ("k", HOSTILE[:40])), temperature=0.5, seed=3)
    script.chat(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{", ended="upstream")
    script.refused("upstream_refused", "connection refused", b"")
    script.opaque(b"\x00\xff hello", b"\x01")
    refusal = json.dumps({"error": {"message": f"m does not support tools {HOSTILE}", "type": HOSTILE}}).encode()
    script.chat(response(refusal, b"400 Bad Request"), messages=[{"role": "user", "content": HOSTILE}])
    script.chat(answer(content=HOSTILE), model=HOSTILE)
    script.run()
    return opened(folder)


def opened(folder: Path, attempts: Iterable[str] = ()) -> ExportRun:
    """The export of a recorded run."""
    return ExportRun(RunSource(folder), [attempt_name(text) for text in attempts])


def raw_request(body: bytes, *headers: tuple[str, str], target: str = "/v1/chat/completions") -> bytes:
    """A POST as bytes."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    head = f"POST {target} HTTP/1.1\r\nHost: relay\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
    return head.encode("latin-1") + body


def binary_kind(folder: Path) -> ExportRun:
    """Bodies that are no text, one of them compressed; both directions."""
    packed = gzip.compress(b"\x00\xffzipped")
    coded = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed
    plain = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\xff\x00\xfe"
    record(folder, [Raw(raw_request(b"\x00\xff\xfe body"), plain), Raw(raw_request(b"{}"), coded)])
    return opened(folder)


def decoded_text(text: str, encoding: str | None) -> bytes:
    """What `text_or_base64` was made of."""
    return base64.b64decode(text) if encoding else text.encode()


def captured_raw() -> list[Raw]:
    """The carried captures of real servers, as raw exchanges."""
    lines = [line.decode() for line in carried("captures.jsonl.zst")]
    kept = [line for line in lines if '"request"' in line and '"chunks"' not in line.split('"response_raw', 1)[0]]
    found = []
    for answered in answers_of_captures(kept, "captures"):
        request = raw_request(answered.body, ("Content-Type", "application/json"), target=answered.path)
        request = request.replace(b"POST", answered.method.encode(), 1)
        how = {"close": "fin", "reset": "rst", "hang": "timeout"}[answered.ended]
        raw = b"".join(data for _, data in answered.pieces)
        if not raw or raw.startswith(b"HTTP/"):
            found.append(Raw(request, raw, how))
    return found


def grid_run(folder: Path) -> ExportRun:
    """A grid's run of two recordings and three episodes: one done, one failed, one that infrastructure ended."""
    for recording, names in (("001", ("done", "failed")), ("002", ("broken",))):
        script = Script(folder / "recordings" / recording)
        for name in names:
            tags = (("episode", name), ("turn", "1"))
            script.chat(answer(tool_calls=[CALL]), tags=tags)
            history = [{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": "I look."}]
            ended = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{" if name == "broken" else answer(content="Sunny.")
            script.chat(ended, tags=tags, messages=history, ended="upstream")
        script.run()
    writer = EpisodeWriter(folder, "grid")
    results: tuple[tuple[str, str | Outcome, EndedBy, str], ...] = (
        ("done", "ok.task_done", "final_answer", "001"),
        ("failed", "task.wrong_args", "final_answer", "001"),
        ("broken", not_run("transport.stream_truncated", "stack"), "nonresponse", "002"),
    )
    for seed, (name, result, ended_by, recording) in enumerate(results):
        made = episode("vf", seed=seed, result=result, ended_by=ended_by)
        writer.append(replace(made, episode=name, recording=recording, started_us=1_000 * seed, ended_us=2_000 * seed))
    writer.close()
    return opened(folder)
