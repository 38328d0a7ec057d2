"""The simulated Ollama of the tests against the captures of real ones: asked the same, it answers with the same status,
the same content, calls, finish and error, and as many pieces of each kind in a stream.

What it refuses as not simulated is left out, but what it must cover is written down here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from probe.canary.spec import CanarySpec, Script
from proxy.replay.framing import payload, split_head
from proxy.replay.ollama_captures import Taken
from stacks.dialects import Assembled, WireExchange, assemble
from stacks.serving.ollama_modes import mode_of
from tests.support.replayed import MODES, VERSIONS, ollama_captures
from tests.support.simulated_ollama import Installed, SimulatedOllama, Weights, simulated_ollama

SIMULATED = ("native", "gotools", "gotoolsif", "qwen3coder")
PATHS = ("/api/chat", "/v1/chat/completions")
MUST = {
    "native": {"good", "prose", "two", "answer", "fence", "bare", "trail", "think", "uni", "empty"},
    "gotools": {"good", "prose", "two", "answer", "fence", "bare", "trail", "trunc", "single", "unknown", "params"},
    "gotoolsif": {"good", "prose", "two", "answer", "fence", "trail", "trunc", "unknown", "params", "list", "argstr"},
    "qwen3coder": {"good", "prose", "two", "answer", "fence", "bare", "trail", "xml", "trunc"},
}
"""Triggers whose captures have to be expressible, by mode."""


def spec_of(version: str) -> CanarySpec:
    """The captured canary, from what the captures say that it writes."""
    texts: dict[str, str] = {"good": "", "empty": ""}
    template = ""
    for one in ollama_captures():
        if one.version != version or one.meaning.model not in MODES.values():
            continue
        if one.known_text and one.meaning.triggers:
            texts.setdefault(one.meaning.triggers[-1], one.known_text)
            texts["good"] = one.known_text if one.meaning.triggers[-1] == "good" else texts["good"]
        if one.source.endswith("canary-native/show"):
            template = json.loads(one.payload)["template"]
    scripts = tuple(Script(name, text) for name, text in texts.items())
    return CanarySpec("captured", scripts, template, triggers={"<tool_response>": "answer"}, context=8192)


@contextlib.asynccontextmanager
async def captured_on(version: str) -> AsyncIterator[SimulatedOllama]:
    """A simulated server with the captured models, as their captured `/api/show` has them."""
    weights = CapturedWeights(spec_of(version))
    async with simulated_ollama(lambda digest: weights, version=version) as server:
        for mode in (*SIMULATED, "bare"):
            name = MODES[mode]
            shown = show_of(version, name)
            way = mode_of(shown)
            template = "" if way.way in ("native", "builtin", "none") else shown["template"]
            server.models[f"{name}:latest"] = Installed(
                weights, "sha256:one", template, way.renderer, way.parser, bare=way.way == "none"
            )
        yield server


def show_of(version: str, name: str) -> dict[str, Any]:
    found = [one for one in ollama_captures() if one.version == version and one.meaning.path == "/api/show"]
    return next(json.loads(one.payload) for one in found if one.meaning.model == name and one.status == 200)


def taken(version: str, *parts: str) -> list[Taken]:
    """Captures whose source holds one of the parts and that could be asked again."""
    found = [one for one in ollama_captures() if one.version == version and any(part in one.source for part in parts)]
    return [one for one in found if one.meaning.path in PATHS and one.whole and not one.meaning.render]


def read(path: str, body: bytes, status: int, answer: bytes, content_type: str) -> Assembled:
    headers = [("content-type", content_type)]
    return assemble(WireExchange("POST", path, body, status, headers, answer))


async def ask(server: SimulatedOllama, one: Taken) -> httpx.Response:
    headers = {"content-type": "application/json"}
    async with httpx.AsyncClient(trust_env=False, verify=False, timeout=10) as client:
        return await client.post(server.url + one.meaning.path, content=one.body, headers=headers)


def facts(found: Assembled, status: int) -> dict[str, Any]:
    """What two answers must have in common."""
    turn = found.turns[0] if found.turns else None
    calls = [(call.name, call.arguments) for call in turn.tool_calls] if turn else []
    usage = turn.usage if turn else None
    return {
        "status": status,
        "streamed": found.streamed,
        "content": turn.content if turn else None,
        "calls": calls,
        "ids": [len(call.id or "") for call in turn.tool_calls] if turn else [],
        "finish": (turn.finish, turn.finish_raw) if turn else None,
        "usage": usage is not None,
        "errors": [error.message for error in found.errors],
    }


def kinds(path: str, body: bytes) -> list[str]:
    """What the pieces of a stream are, equal neighbours taken together: text is cut elsewhere by other tokens."""
    lines = [line.removeprefix("data: ") for line in body.decode("utf-8", "replace").splitlines() if line.strip()]
    found: list[str] = []
    for line in lines:
        value = json.loads(line) if line != "[DONE]" else {}
        choice = (value.get("choices") or [{}])[0]
        delta = choice.get("delta", value.get("message") or {})
        said = "text" if delta.get("content") else "calls" if delta.get("tool_calls") else ""
        calls = str(len(delta.get("tool_calls") or []))
        end = str(choice.get("finish_reason") or value.get("done_reason") or "")
        keys = "+".join(sorted(delta))
        kind = f"{said or line[:6] if not value else said} {calls} {keys} {end} {sorted(value)}"
        if not found or found[-1] != kind:
            found.append(kind)
    return found


@pytest.mark.parametrize("mode", SIMULATED)
@pytest.mark.parametrize("version", VERSIONS)
async def test_every_capture_that_it_expresses_is_answered_alike(version: str, mode: str) -> None:
    covered: Counter[str] = Counter()
    differing = []
    async with captured_on(version) as server:
        for one in taken(version, f"-canary-{mode}/"):
            # A text that is no UTF-8 reaches each client in another form.
            if one.cut or one.meaning.triggers[-1] == "badutf":
                continue
            server.loaded.clear()
            server.stuck.clear()
            answered = await ask(server, one)
            if answered.status_code == 501:
                continue
            kind = answered.headers["content-type"]
            theirs = split_head(one.raw)[0].decode("latin-1").lower()
            assert f"content-type: {kind}\r\n" in theirs or one.status >= 400, (one.source, kind)
            real = facts(read(one.meaning.path, one.body, one.status, payload(one.raw), kind), one.status)
            mine = facts(
                read(one.meaning.path, one.body, answered.status_code, answered.content, kind), answered.status_code
            )
            if real != mine:
                differing.append((one.source, real, mine))
            elif one.meaning.streams and one.status == 200:
                pieces = kinds(one.meaning.path, payload(one.raw)), kinds(one.meaning.path, answered.content)
                assert pieces[0] == pieces[1], (one.source, *pieces)
            covered[one.meaning.triggers[-1]] += 1
    assert not differing, differing[:3]
    assert set(covered) >= MUST[mode], MUST[mode] - set(covered)


class CapturedWeights(Weights):
    """The captured canary: bytes, and one token for each of its marks and triggers."""

    def size(self, text: str) -> int:
        marks = ["<|im_start|>assistant\n", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"]
        marks += ["<tool_response>", "</tool_response>", *(f"[[{script.name}]]" for script in self.spec.scripts)]
        count = 0
        for mark in marks:
            count += text.count(mark)
            text = text.replace(mark, "")
        return count + len(text.encode())


NUMBERS = re.compile(r"\d+")


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_prompt_that_does_not_fit(version: str) -> None:
    """Native mode refuses in two envelopes, streamed or not; the others cut to the context without a word."""
    refused, cut = set(), set()
    async with captured_on(version) as server:
        for one in taken(version, "limits/", "manners-"):
            model = str(one.meaning.model).removeprefix("canary-")
            # Below 256 tokens the server inside rounds up.
            odd = model not in SIMULATED or "notruncate" in one.source or "ctx-64" in one.source
            if odd or not ("-ctx-512" in one.source or "overlong-" in one.source or "/ctx-512" in one.source):
                continue
            answered = await ask(server, one)
            assert answered.status_code == one.status, (one.source, answered.text)
            if one.status == 400:
                real, mine = one.payload.decode().strip(), answered.text.replace('": ', '":').replace(', "', ',"')
                assert NUMBERS.sub("N", real) == NUMBERS.sub("N", mine), one.source
                (asked, context), (asked_mine, context_mine) = (NUMBERS.findall(text)[1:3] for text in (real, mine))
                assert context == context_mine
                # Its merges, and the letters that it reads as one.
                assert abs(int(asked) - int(asked_mine)) < 16, one.source
                refused.add(one.meaning.path)
            elif one.prompt_tokens in (511, 4095, 258, 2050):
                counted = NUMBERS.findall(re.search(r'"prompt_(?:eval_count|tokens)": \d+', answered.text)[0])  # type: ignore[index]
                assert counted == [str(one.prompt_tokens)], one.source
                cut.add(model)
    assert refused == set(PATHS)
    assert cut == {"gotools", "gotoolsif", "qwen3coder"}


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_gate(version: str) -> None:
    async with captured_on(version) as server:
        gates = taken(version, "gate-canary-bare/gate-")
        for one in gates:
            answered = await ask(server, one)
            assert (answered.status_code, answered.json()) == (400, json.loads(one.payload)), one.source
    assert {(one.meaning.path, one.meaning.streams) for one in gates} == {(p, s) for p in PATHS for s in (False, True)}


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_stuck_after_a_parsers_error_and_what_unloads_it(version: str) -> None:
    """The captured sequence in its order: an answer, an error, silence before 0.32.15, an answer after unloading."""
    asked = [one for one in ollama_captures() if one.version == version and "-wedge/" in one.source]
    seen = []
    async with captured_on(version) as server:
        for one in asked:
            chat = one.meaning.path == "/api/chat" and one.meaning.model in MODES.values()
            if not chat or "after-restart" in one.source or one.source.endswith("-other-name"):
                continue
            try:
                answered = await asyncio.wait_for(ask(server, one), 0.5)
            except TimeoutError:
                assert one.stuck, one.source
                seen.append("silent")
                continue
            assert answered.status_code == one.status, one.source
            seen.append(str(one.status))
    assert ("silent" in seen) is (version == "0.30.8")
    assert "500" in seen


@pytest.mark.parametrize("version", VERSIONS)
async def test_names_of_one_file_share_a_runner(version: str) -> None:
    """The captured sequence: native after a Go template is refused until the weights are unloaded."""
    asked = [one for one in ollama_captures() if one.version == version and "-shared-runner/" in one.source]
    statuses = []
    async with captured_on(version) as server:
        for one in asked:
            name = str(one.meaning.model).removeprefix("canary-")
            if one.meaning.path == "/api/chat" and name in SIMULATED and "notools" not in one.source:
                if "fresh" in one.source:
                    server.loaded.clear()
                answered = await ask(server, one)
                assert answered.status_code == one.status, one.source
                if one.status == 500:
                    assert answered.json() == json.loads(one.payload)
                statuses.append(one.status)
    assert set(statuses) == {200, 500}


@pytest.mark.parametrize("version", VERSIONS)
async def test_histories(version: str) -> None:
    """Arguments of past calls are objects on /api/chat and JSON text on /v1; a tool's result chooses the answer."""
    seen = Counter()
    async with captured_on(version) as server:
        for one in taken(version, "manners-native/history-", "manners-gotools/history-"):
            roles = [message.get("role") for message in json.loads(one.body)["messages"]]
            if "-args-" not in one.source or roles != ["user", "assistant", "tool"]:
                continue
            server.loaded.clear()
            answered = await ask(server, one)
            assert answered.status_code == one.status, (one.source, answered.text, one.payload)
            if one.status == 200:
                kind = answered.headers["content-type"]
                both = [(one.payload, one.status), (answered.content, answered.status_code)]
                real, mine = (facts(read(one.meaning.path, one.body, s, data, kind), s) for data, s in both)
                assert real == mine, one.source
            seen[one.status] += 1
    assert seen[200] >= 4
    assert seen[400] >= 4
