"""Runs for tests of the checklist: exchanges through the real recorder, a manifest, episodes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from checklists.items.collect import checklist_of
from checklists.items.records import Checklist, Filled
from checklists.reading import RunSource
from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from proxy.tap import RequestStarted, UpstreamConnected
from results.episode_journal import EpisodeWriter
from results.episodes import CellKey, CellPlan, EpisodeRecord
from results.manifest import Fact, UpstreamFacts, known, new_manifest, unknown, write_manifest
from tests.support.journalled import Raw, events
from tests.support.recorded import answer, chat_request, response

SERVER: dict[str, Fact] = {
    "stack": known("llamacpp", "fingerprint"),
    "version": known("b11434", "/props"),
    "build": known("binary llama-server SHA-256 abc", "files"),
    "launch_flags": known(["/opt/llama-server", "-m", "q.gguf", "--jinja"], "process table"),
    "model": known("qwen", "/v1/models"),
    "model_digest": known("sha256:aa", "hash"),
    "bits_per_weight": known(4.8512, "header"),
    "chat_template_hash": known("ab" * 32, "/props"),
    "tools_in_prompt": known(True, "/apply-template"),
    "sampling": known({"temperature": 0.8, "top_p": 0.95}, "/props"),
    "context_length": known(8192, "/props"),
    "kernel_backend": known("libggml-cpu.so", "libraries"),
    "parser": known("made from the chat template", "/props"),
}
HOST = {
    "cpu_model": known("Epyc", "/proc/cpuinfo"),
    "system": known("Linux 6", "platform"),
    "cpus": known(8, "os"),
    "memory_bytes": known(16 << 30, "sysconf"),
}
CALL = {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
CALLED = answer(tool_calls=[CALL])
SPOKEN = answer(content="I shall not.")
NEEDS_JINJA = response(
    b'{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}',
    b"500 Internal Server Error",
)


def without(*names: str, why: str = "nobody looked") -> dict[str, Fact]:
    """The facts of a server with some unknown."""
    return {**SERVER, **{name: unknown(why) for name in names}}


def asked(**body: Any) -> bytes:
    """A chat request with a tool."""
    head, data = chat_request(**body)
    return head + data


def plain(**body: Any) -> bytes:
    """A chat request without tools."""
    return asked(tools=None, **body)


def make_recording(
    folder: Path, exchanges: Mapping[str, Sequence[Raw]], facts: Mapping[str, Mapping[str, Fact]]
) -> None:
    """A recorded run: exchanges by upstream, facts by upstream (no manifest without any), on ports 8001 and up."""
    folder.mkdir(parents=True, exist_ok=True)
    dice = random.Random(7)
    recorder = Recorder(folder, "run-1", Redactor())
    recorder.start()
    rows = [(name, raw) for name, raws in exchanges.items() for raw in raws]
    for connection, (name, raw) in enumerate(rows, 1):
        for event in events(raw, connection, dice):
            named = isinstance(event, RequestStarted | UpstreamConnected)
            recorder.put(msgspec.structs.replace(event, upstream=name) if named else event)
    recorder.close()
    if not facts:
        return
    hosts = {"far": "http://gpu.example:8000"}
    upstreams = [
        UpstreamFacts(name, hosts.get(name, f"http://127.0.0.1:{8000 + number}"), dict(known_of))
        for number, (name, known_of) in enumerate(facts.items(), 1)
    ]
    manifest = new_manifest("run-1", upstreams=upstreams)
    write_manifest(folder, msgspec.structs.replace(manifest, host=HOST))


def filled(
    folder: Path,
    exchanges: Sequence[Raw] = (),
    facts: Mapping[str, Fact] | None = None,
    stated: Mapping[str, str] | None = None,
) -> Checklist:
    """The checklist of a run with one upstream `up`; `facts` of None: all are known."""
    make_recording(folder, {"up": exchanges}, {"up": SERVER if facts is None else facts})
    return checklist_of(RunSource(folder), stated)


def entry(item: str, folder: Path, exchanges: Sequence[Raw] = (), facts: Mapping[str, Fact] | None = None) -> Filled:
    """One item of such a run."""
    return filled(folder, exchanges, facts).entry(item)


def plan_of(cell: CellKey, seeds: Sequence[int] = (0, 1), repeats: int = 1, **facts: Any) -> CellPlan:
    """What a grid would have written of a cell."""
    stated = {
        "harness": "1",
        "condition_text": "cd" * 32,
        "task_version": "aggregation 1",
        "turns": 5,
        "attempt_timeout_s": 120.0,
        "episode_timeout_s": 900.0,
        "retries": 0,
        "decoder_seed": None,
        **facts,
    }
    found = {name: known(value, "the grid") for name, value in stated.items()}
    return CellPlan(cell=cell, seeds=tuple(seeds), repeats=repeats, facts=found)


def make_grid(
    folder: Path,
    plans: Iterable[CellPlan],
    episodes: Iterable[EpisodeRecord],
    recordings: Mapping[str, Mapping[str, Mapping[str, Fact]]] | None = None,
    exchanges: Mapping[str, Sequence[Raw]] | None = None,
) -> RunSource:
    """A grid's run; `recordings` are the facts by upstream of each."""
    for name, facts in (recordings or {"001": {"llamacpp": SERVER}}).items():
        make_recording(folder / "recordings" / name, exchanges or {"llamacpp": [Raw(asked(), CALLED)]}, facts)
    writer = EpisodeWriter(folder, "grid-1")
    for line in (*plans, *episodes):
        writer.append(line)
    writer.close()
    return RunSource(folder)
