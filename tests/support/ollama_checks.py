"""What an Ollama server does with canaries: one set of checks, run on replayed captures and on live servers alike.

The expectations are what 0.30.8 and 0.32.15 did (`tests/data/captures/ollama.jsonl.zst`).
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Protocol

from probe.asking import Asker, Budget
from stacks.serving.base import Answer, Ask
from stacks.serving.ollama import Ollama
from stacks.serving.ollama_modes import mode_of
from tests.support.simulated import asking

OLLAMA = Ollama()
WEDGE_FIXED = (0, 32, 15)
QUESTION = "What is the weather in Paris?"
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
FUNCTION: dict[str, Any] = TOOL["function"]  # type: ignore[assignment]


class OllamaUnderTest(Protocol):
    """A server and canaries on it: `model(way)` is the name of one of `probe.canary.ollama_files.WAYS` there."""

    url: str
    version: tuple[int, ...]
    patience: float
    """After how many seconds without an answer a generation of a few tokens counts as stuck."""

    def model(self, way: str) -> str:
        """The name of the canary installed in a way."""
        ...

    def text(self, trigger: str) -> str:
        """What the canary writes."""
        ...

    def fresh(self) -> None:
        """No canary is in memory any more, and none is stuck."""
        ...


def chat(model: str, text: str = QUESTION, **more: Any) -> dict[str, Any]:
    body = {"model": model, "messages": [{"role": "user", "content": text}], "stream": False, "tools": [TOOL]}
    return {**body, "options": {"num_predict": 64, "temperature": 0}, **more}


async def post(asker: Asker, body: dict[str, Any], path: str = "/api/chat", seconds: float = 60.0) -> Answer:
    return await asker.ask(Ask("POST", path, body, generates=True, changes=True, seconds=seconds))


def talking(server: OllamaUnderTest, folder: Path) -> Any:
    """An asker of the server through a relay, with leave to change what is loaded."""
    return asking(server.url, folder, Budget(requests=100, disruptive=True))


def calls_of(answer: Answer) -> list[tuple[str, Any]]:
    """(name, arguments) of the calls in an `/api/chat` answer."""
    found = answer.get("message", "tool_calls") or []
    return [(call["function"]["name"], call["function"]["arguments"]) for call in found]


async def check_modes(server: OllamaUnderTest, folder: Path) -> None:
    """Each way to a model is recognised from what the server tells, and so is whether its gate lets tools pass."""
    expected = {
        "native": ("native", True),
        "tools-if": ("go_if", True),
        "tools-range": ("go_range", True),
        "thinking": ("go_range", True),
        "no-tools": ("go_no_calls", False),
        "qwen3-coder": ("builtin", True),
    }
    async with talking(server, folder) as asker:
        for way, (mode, tools) in expected.items():
            shown = await asker.ask(Ask("POST", "/api/show", {"model": server.model(way)}))
            assert shown.ok, (way, shown.text)
            assert mode_of(shown.object).way == mode, way
            identity = await asker.follow(OLLAMA.identity(server.model(way)))
            assert identity.tools.value is tools, way
            assert len(str(identity.digest.value)) == 64


async def check_gate(server: OllamaUnderTest, folder: Path) -> None:
    """Tools are refused on all four routes, streamed or not, for a model that writes a perfect call."""
    server.fresh()
    model, weather = server.model("no-tools"), [{"role": "user", "content": QUESTION}]
    requests: dict[str, dict[str, Any]] = {
        "/api/chat": {"messages": weather, "tools": [TOOL]},
        "/v1/chat/completions": {"messages": weather, "tools": [TOOL], "max_tokens": 24},
        "/v1/messages": {
            "messages": weather,
            "max_tokens": 24,
            "tools": [{"name": "get_weather", "input_schema": FUNCTION["parameters"]}],
        },
        "/v1/responses": {"input": QUESTION, "tools": [{"type": "function", **FUNCTION}]},
    }
    async with talking(server, folder) as asker:
        for path, body in requests.items():
            for stream in (False, True):
                refused = await post(asker, {"model": model, "stream": stream, **body}, path)
                assert refused.status == 400, (path, refused.text)
                assert "does not support tools" in refused.text
                verdict = await asker.judged(refused)
                assert verdict is not None
                outcome = verdict.outcome
                found = (outcome.name, outcome.at_fault, outcome.model_ran, outcome.delivery)
                assert found == ("gate.tools_unsupported", "config", "no", "refused"), path
        free = await post(asker, chat(model, tools=[]))
        assert free.get("message", "content") == server.text("good")


async def check_calls(server: OllamaUnderTest, folder: Path) -> None:
    """One good call comes back as a call where the template shows how calls open, or the parser fits; else as text."""
    async with talking(server, folder) as asker:
        for way in ("native", "tools-if", "qwen3"):
            server.fresh()
            for stream in (False, True):
                answer = await post(asker, chat(server.model(way), stream=stream))
                assert answer.ok, (way, answer.text)
                verdict = await asker.judged(answer)
                assert verdict is not None
                assert verdict.outcome.name == "ok.native_call", (way, stream, answer.text)
                if not stream:
                    assert calls_of(answer) == [("get_weather", {"city": "Paris"})]
        server.fresh()
        for way in ("tools-range", "thinking"):
            left = await post(asker, chat(server.model(way)))
            assert (left.get("message", "content"), calls_of(left)) == (server.text("good"), []), way
            verdict = await asker.judged(left)
            assert verdict is not None
            assert verdict.outcome.name == "parser.left_as_text", way


async def check_swallowed_and_thinking(server: OllamaUnderTest, folder: Path) -> None:
    """A truncated call is swallowed by the generic parser; thinking is taken out by a template that knows it."""
    server.fresh()
    async with talking(server, folder) as asker:
        cut = await post(asker, chat(server.model("tools-if"), "[[trunc]]"))
        assert (cut.get("message", "content"), calls_of(cut)) == ("", [])
        assert int(cut.get("eval_count")) > 1
        verdict = await asker.judged(cut)
        assert verdict is not None
        assert verdict.outcome.name == "nonresponse.swallowed"
        thought = await post(asker, chat(server.model("thinking"), "[[think]]"))
        assert str(thought.get("message", "thinking")).strip() == "The user wants the weather."
        assert thought.get("message", "content") == server.text("good")


async def check_parser_error(server: OllamaUnderTest, folder: Path) -> None:
    """A parser of another format fails on a valid call, and before 0.32.15 leaves the runner silent until unloaded."""
    server.fresh()
    model = server.model("qwen3-coder")
    async with talking(server, folder) as asker:
        fine = await post(asker, chat(model, "[[answer]]"))
        assert fine.get("message", "content") == server.text("answer")
        failed = await post(asker, chat(model))
        assert (failed.status, failed.get("error")) == (500, "EOF")
        verdict = await asker.judged(failed)
        assert verdict is not None
        assert verdict.outcome.layer == "parser"
        after = await post(asker, chat(model, "[[answer]]"), seconds=server.patience)
        if server.version < WEDGE_FIXED:
            assert after.failure == "timeout"
            verdict = await asker.judged(after)
            assert verdict is not None
            assert verdict.outcome.name == "engine.wedged"
            unloaded = await post(asker, {"model": model, "keep_alive": 0})
            assert unloaded.get("done_reason") == "unload"
            after = await patient(asker, chat(model, "[[answer]]"))
        assert after.get("message", "content") == server.text("answer")


async def patient(asker: Asker, body: dict[str, Any]) -> Answer:
    """Ask until there is an answer: a runner may need a moment to go."""
    answer = await post(asker, body, seconds=20)
    for _ in range(5):
        if answer.ok:
            break
        await asyncio.sleep(1)
        answer = await post(asker, body, seconds=20)
    return answer


async def check_shared_runner(server: OllamaUnderTest, folder: Path) -> None:
    """Two names of one weights file share a runner, and the one loaded first decides for the other."""
    async with talking(server, folder) as asker:
        server.fresh()
        assert calls_of(await post(asker, chat(server.model("native"))))
        assert calls_of(await post(asker, chat(server.model("tools-if"))))
        server.fresh()
        assert calls_of(await post(asker, chat(server.model("tools-if"))))
        refused = await post(asker, chat(server.model("native")))
        assert refused.status == 500, refused.text
        assert "requires --jinja flag" in refused.text
        server.fresh()
        assert calls_of(await patient(asker, chat(server.model("native"))))


async def check_prompt_and_raw_text(server: OllamaUnderTest, folder: Path) -> None:
    """The rendered prompt holds tools and words; through the raw channel it gives what the model writes."""
    async with talking(server, folder) as asker:
        for way in ("native", "tools-if", "tools-range", "qwen3-coder"):
            server.fresh()
            model = server.model(way)
            request = {"model": model, "messages": [{"role": "user", "content": "[[good]]"}], "tools": [TOOL]}
            rendered = await asker.follow(OLLAMA.render(request))
            assert rendered.text is not None, (way, rendered.why)
            assert "get_weather" in rendered.text
            assert "[[good]]" in rendered.text
            assert rendered.text.endswith("<|im_start|>assistant\n")
            written = await asker.follow(OLLAMA.complete_raw(model, rendered.text, 64))
            assert (written.text, written.finish) == (server.text("good"), "stop"), way


async def check_budget(server: OllamaUnderTest, folder: Path) -> None:
    """An output budget that ends inside the call cuts it, and the server says so."""
    server.fresh()
    async with talking(server, folder) as asker:
        body = chat(server.model("tools-range"), options={"num_predict": 5, "temperature": 0})
        cut = await post(asker, body)
        assert (cut.get("done_reason"), cut.get("eval_count")) == ("length", 5)
        assert server.text("good").startswith(cut.get("message", "content"))


CHECKS = (
    check_modes,
    check_gate,
    check_calls,
    check_swallowed_and_thinking,
    check_parser_error,
    check_shared_runner,
    check_prompt_and_raw_text,
    check_budget,
)
