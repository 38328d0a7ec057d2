"""The four ways in which a pairing goes on Ollama, on replayed captures of two versions: an agent of ours whose
requests they cover is walked through the recording relay and judged.

Covered by captures: all of native and of the Go template with only `range .ToolCalls`; of the others the first answer
(a remedied cell then ends after its call). The other agents go through the same cells on a simulated server.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from probe.pairing.serving.on_ollama import server_side
from results.reader import RunReader
from tests.support.replayed import VERSIONS, ReplayedOllama, replayed_ollama
from tests.support.weather_pairing import Walked, walked, weather_plan

APIS = ("v1", "api")
LONG = ("--words", "1500")


async def walk(ollama: ReplayedOllama, folder: Path, api: str, *arguments: str, once: bool = False) -> Walked:
    """One pairing; `once` ends it after the call. The default of the model that holds every format is `hermes`."""
    good = ollama.known_text("good") or ollama.known_text("hermes")
    assert good is not None
    plan = weather_plan(good, "The weather in Paris is 18 degrees and sunny.", once=once)
    server = await server_side(ollama.url, ollama.model)
    more = (*arguments, *(("--once",) if once else ()))
    return await walked(ollama.url, server, plan, folder, "--api", api, *more)


def bytes_of(found: Walked, folder: Path) -> str:
    """The wire bytes that the finding which broke it cites."""
    broken = found.verdict.broken
    assert broken is not None
    assert broken.wire is not None
    exchange = next(one for one in RunReader(folder / "run") if one.attempt == broken.attempt)
    start, end = broken.wire
    return exchange.wire("request" if broken.direction == "request" else "response")[start:end].decode()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("version", VERSIONS)
async def test_native_with_enough_context(tmp_path: Path, version: str, api: str, stream: bool) -> None:
    """It pairs. Streamed answers after a tool's result were not captured: there the agent ends after its call."""
    async with replayed_ollama(version, "native") as ollama:
        found = await walk(ollama, tmp_path, api, *(("--stream",) if stream else ()), once=stream)
    assert found.verdict.kind == "pairs", found.verdict
    assert found.run.exit_code == 0


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
async def test_native_with_too_little_context(tmp_path: Path, version: str, stream: bool) -> None:
    """Refused for size; the nested error is read, and the remedy names every way to a larger context."""
    async with replayed_ollama(version, "native") as ollama:
        found = await walk(ollama, tmp_path, "v1", *LONG, *(("--stream",) if stream else ()))
    broken = found.verdict.broken
    assert (found.verdict.kind, broken and broken.code) == ("broken", "request.context_exceeded"), found.verdict
    assert broken is not None
    assert (broken.step, broken.at_fault, broken.attempt) == ("write", "config", 1)
    # The captured refusal's own numbers.
    assert "45,551 tokens" in broken.said
    assert "4,096" in broken.said
    assert "exceeds the available context size" in bytes_of(found, tmp_path)
    for part in ("PARAMETER num_ctx", "OLLAMA_CONTEXT_LENGTH", "options.num_ctx", "49,152"):
        assert part in broken.remedy, (part, broken.remedy)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_template_whose_calls_come_back_as_text(tmp_path: Path, version: str, api: str, stream: bool) -> None:
    """Broken by the template; with `if .ToolCalls` in it the call arrives."""
    how = ("--stream",) if stream else ()
    async with replayed_ollama(version, "gotools") as ollama:
        found = await walk(ollama, tmp_path / "broken", api, *how)
    broken = found.verdict.broken
    assert (found.verdict.kind, broken and broken.code) == ("broken", "parser.left_as_text"), found.verdict
    assert broken is not None
    assert (broken.step, broken.at_fault, broken.attempt) == ("write", "config", 1)
    assert "tool_call" in bytes_of(found, tmp_path / "broken")
    assert "{{ if .ToolCalls }}" in broken.remedy
    assert found.run.file is None
    async with replayed_ollama(version, "gotoolsif") as ollama:
        mended = await walk(ollama, tmp_path / "mended", api, *how, once=True)
    assert mended.verdict.kind == "pairs", mended.verdict


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_parser_of_another_format(tmp_path: Path, version: str, api: str, stream: bool) -> None:
    """An error, then on 0.30.8 silence and on 0.32.15 the same again; with the parser that fits the call arrives."""
    how = ("--stream",) if stream else ()
    async with replayed_ollama(version, "qwen3coder") as ollama:
        found = await walk(ollama, tmp_path / "broken", api, "--patience", "2", *how)
    broken = found.verdict.broken
    assert (found.verdict.kind, broken and broken.code) == ("broken", "parser.server_error"), found.verdict
    assert broken is not None
    assert (broken.step, broken.at_fault, broken.attempt) == ("write", "config", 1)
    assert "EOF" in bytes_of(found, tmp_path / "broken")
    assert "PARSER qwen3`" in broken.remedy
    assert len(found.exchanges) == 3
    wedged = [fault for fault in found.verdict.faults if fault.code == "engine.wedged"]
    if version == "0.30.8":
        assert wedged, found.verdict.faults
        assert "0.32.15" in wedged[0].remedy
    else:
        assert not wedged
    async with replayed_ollama(version, "fmt-qwen3") as ollama:
        mended = await walk(ollama, tmp_path / "mended", api, *how, once=True)
    assert mended.verdict.kind == "pairs", mended.verdict


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_parsers_error_after_prose_ends_a_stream_without_a_word(tmp_path: Path, version: str) -> None:
    """On /v1 the answer breaks off: no error, no finish, no end mark. The call is missing, by the parser's doing."""
    async with replayed_ollama(version, "qwen3coder") as ollama:
        text = ollama.known_text("prose")
        assert text is not None
        plan = weather_plan(text, "", trigger="prose")
        server = await server_side(ollama.url, ollama.model)
        how = ("--stream", "--ask", "[[prose]] ", "--patience", "2")
        found = await walked(ollama.url, server, plan, tmp_path, *how)
    broken = found.verdict.broken
    assert (found.verdict.kind, broken and broken.code) == ("broken", "parser.dropped"), found.verdict
    assert broken is not None
    assert (broken.step, broken.at_fault) == ("write", "config")
    assert "qwen3-coder, is for another format than hermes" in broken.said
    assert "PARSER qwen3`" in broken.remedy
    assert "protocol.done_missing" in {fault.code for fault in found.verdict.faults}
    assert len(found.exchanges) == 3
