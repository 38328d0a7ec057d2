"""`stacktap replay RUN`: serve a recording, or a captures file, as the server it was."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stacktap.failure import CouldNotRunError

if TYPE_CHECKING:
    from proxy.replay.ollama import OllamaReplay
    from proxy.replay.recordings import RecordedAnswer, Recordings
    from proxy.replay.server import ReplayStatistics


@click.command("replay")
@click.argument("run")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; a free one by default.")
@click.option("--timing", type=click.Choice(["fast", "original"]), default="fast", show_default=True)
@click.option("--ollama", metavar="VERSION", help="RUN holds captures of Ollama: stand in for this version of it.")
@click.option("--strict", is_flag=True, help="Exit 1 at the end if a request was asked that was never recorded.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object when listening, one at the end.")
def command(run: str, port: int, timing: str, ollama: str | None, strict: bool, as_json: bool) -> None:
    """Serve RUN (a run, or a captures file of JSON lines) as the server it was, until Ctrl-C.

    Requests are matched by method, path and body (ids and dates aside, where nothing else fits); unseen ones get a 404
    that names the nearest. RUN may be a grid's run: all its recordings are served. With --ollama they are
    matched by what they mean (RUN may be a folder of captures then), and every answer names its capture in a header;
    what no capture covers gets a 501. What `wrap` and `doctor` ask to find out what a server is, is not unseen.
    """
    from proxy.event_loop import run as run_loop
    from proxy.replay.recordings import Recordings

    if not as_json:
        _say(f"reading {run}")
    left_out: Counter[str] = Counter()
    recordings = _stand_in(run, ollama) if ollama else Recordings(_answers(run, left_out))
    if not recordings:
        raise CouldNotRunError(f"{run}: nothing in it can be served (no answered exchange)")
    try:
        statistics = run_loop(_serve(recordings, run, port, timing == "original", left_out, as_json))
    except OSError as failure:
        raise CouldNotRunError(
            f"cannot listen on 127.0.0.1:{port}: {failure.strerror or failure}; choose another --port"
        ) from None
    if strict and statistics.unseen:
        raise click.exceptions.Exit(1)


def _say(line: str) -> None:
    """On stderr; names of runs, upstreams and problems are untrusted text."""
    from proxy.present import printable

    click.echo(printable(line), err=True)


def _answers(run: str, left_out: Counter[str]) -> Iterator[RecordedAnswer]:
    from proxy.replay.sources import answers_of_captures, answers_of_run
    from results.reader import JournalMissingError, RunReader
    from results.record import NewerSchemaError
    from results.runs import RECORDINGS, RunNotFoundError, find

    path = Path(run)
    try:
        if path.is_file():
            with path.open(encoding="utf-8") as lines:
                yield from answers_of_captures(lines, path.name)
            return
        folder = find(run, kind=None)
        inside = sorted(entry for entry in (folder / RECORDINGS).glob("*") if entry.is_dir())
        for recording in inside or [folder]:
            reader = RunReader(recording)
            yield from answers_of_run(reader, recording.name if inside else "", left_out)
            for problem in reader.problems.describe():
                _say(f"note: {problem}")
    except (RunNotFoundError, JournalMissingError, NewerSchemaError, OSError, ValueError) as failure:
        raise CouldNotRunError(str(failure)) from None


def _stand_in(run: str, version: str) -> OllamaReplay:
    from proxy.replay.ollama import OllamaReplay
    from proxy.replay.ollama_captures import CapturesError, read_captures

    try:
        taken = read_captures([Path(run)])
    except CapturesError as failure:
        raise CouldNotRunError(str(failure)) from None
    versions = sorted({one.version for one in taken})
    if version not in versions:
        held = ", ".join(filter(None, versions)) or "none"
        raise CouldNotRunError(f"{run} holds no captures of Ollama {version}; it holds: {held}")
    return OllamaReplay(taken, version)


async def _serve(
    recordings: Recordings | OllamaReplay,
    source: str,
    port: int,
    original_timing: bool,
    left_out: Counter[str],
    as_json: bool,
) -> ReplayStatistics:
    from proxy.replay.server import ReplayServer

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = ReplayServer(recordings, original_timing=original_timing)
    url = await server.start(port)
    if as_json:
        facts = {"url": url, "answers": len(recordings), "upstreams": sorted(recordings.upstreams)}
        click.echo(json.dumps({"version": 1, **facts, "left_out": dict(left_out)}))
    else:
        _say(f"replaying {len(recordings)} recorded answers of {source} at {url}")
        if len(recordings.upstreams) > 1:
            named = ", ".join(f"{url}/{name}" for name in sorted(recordings.upstreams))
            _say(f"  of several servers, each under its name: {named}")
        for end, count in sorted(left_out.items()):
            _say(f"  {count} that reached no server cannot be served again: {end}")
        click.echo("  this is a replay, not the server itself; Ctrl-C ends it", err=True)
    await stop.wait()
    await server.stop()
    statistics = server.statistics
    repeated, loosely = getattr(recordings, "repeated", 0), getattr(recordings, "loosely", {})
    if as_json:
        served = {"served": statistics.served, "matched": statistics.by_match, "unseen": statistics.unseen}
        served["identifying"] = statistics.identifying
        click.echo(json.dumps({"version": 1, **served, "repeated": repeated, "matched_loosely": loosely}))
    else:
        _say(f"served {statistics.served}, unseen {len(statistics.unseen)}")
        if statistics.identifying:
            _say(f"  {statistics.identifying} asked what the server is (stacktap's own, not counted as unseen)")
        if repeated:
            _say(f"  {repeated} came more often than recorded; the last answer was given again")
        for asked, source_of_answer in loosely.items():
            _say(f"  matched but for ids, dates or random names: {asked} ({source_of_answer})")
        for line in dict.fromkeys(statistics.unseen):
            _say(f"  unseen: {line}")
    return statistics
