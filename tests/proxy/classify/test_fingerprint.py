"""Which stack answered, by what only it sends; and the texts that hide in an error object."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.classify.error_texts import deep_messages
from stacks.dialects import assemble
from stacks.serving.traffic import stack_of_exchange
from tests.proxy.classify.exchanges import chat, message


def told(mark: str | None = None, path: str = "/v1/chat/completions", more: Any = None, **headers: str) -> str:
    answer = message("Hi.") | ({"system_fingerprint": mark} if mark is not None else {}) | (more or {})
    given = {"content-type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    wire = chat(answer, path=path, headers=given).wire
    return stack_of_exchange(wire, assemble(wire))


@pytest.mark.parametrize(
    ("mark", "stack"),
    [
        ("fp_ollama", "ollama"),
        ("fp_ollama2", ""),
        ("vllm-0.11.0-abc", "vllm"),
        ("vllm", ""),
        ("b6123-0a1b2c3d", "llamacpp"),
        ("b6123", ""),
        ("xb6123-0a1b2c3d", ""),
        ("b6123-0a1b2c3d-x", ""),
        ("0.31.1-0.29.3-macOS", "mlx_server"),
        ("0.31.1", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_marks(mark: str | None, stack: str) -> None:
    assert told(mark) == stack


@pytest.mark.parametrize(
    ("headers", "stack"),
    [
        ({"server": "llama.cpp"}, "llamacpp"),
        ({"server": "not llama.cpp"}, ""),
        ({"server": "BaseHTTP/0.6 Python/3.12"}, "mlx_server"),
        ({"server": "uvicorn", "openai_processing_ms": "5"}, "llamacpp_python"),
        ({"server": "uvicorn"}, ""),
        ({"server": "hypercorn", "openai_processing_ms": "5"}, ""),
        ({}, ""),
    ],
)
def test_headers(headers: dict[str, str], stack: str) -> None:
    assert told(**headers) == stack


def test_what_else_gives_a_stack_away() -> None:
    assert told(more={"timings": {"predicted_n": 3}}) == "llamacpp"
    assert told(more={"timing": {"predicted_n": 3}}) == ""
    ollama = {"model": "m", "created_at": "x", "message": {"role": "assistant", "content": "Hi."}, "done": True}
    wire = chat(ollama, path="/api/chat").wire
    assert stack_of_exchange(wire, assemble(wire)) == "ollama"
    wire = chat({"error": "registry.ollama.ai/library/m does not support tools"}, status=400).wire
    assert stack_of_exchange(wire, assemble(wire)) == "ollama"


def test_a_claimed_header_does_not_beat_what_the_body_shows() -> None:
    assert told("vllm-0.11", server="llama.cpp") == "vllm"
    assert told("vllm-0.11", server="BaseHTTP/0.6") == "vllm"
    assert told("vllm-0.11", more={"timings": {}}) == "vllm"


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ({"message": "a", "type": "b"}, ["a"]),
        ({"error": "a", "detail": "b", "msg": "c", "reason": "d", "raw": "e"}, ["a", "b", "c", "d", "e"]),
        ({"failed_generation": "x"}, ["raw output: x"]),
        ({"detail": [{"loc": ["body", "messages", 0], "msg": "m"}]}, ["loc body.messages.0", "m"]),
        ({"loc": "body", "code": "x"}, []),
        ({"message": 5, "error": {"message": "inner"}}, ["inner"]),
        ([{"message": "a"}, [{"message": "b"}], "c", None], ["a", "b"]),
        ({"message": "outer", "metadata": {"raw": "inner", "list": [{"error": "last"}]}}, ["outer", "inner", "last"]),
        ("text", []),
        (None, []),
        (5, []),
    ],
)
def test_texts_of_an_error_object(value: object, texts: list[str]) -> None:
    assert deep_messages(value) == texts


def test_a_hostile_error_object_is_not_followed_for_ever() -> None:
    assert len(deep_messages([{"message": str(number)} for number in range(100)])) == 40
    assert deep_messages([[] for _ in range(999)] + [{"message": "seen"}]) == []
    assert deep_messages([[] for _ in range(998)] + [{"message": "seen"}]) == ["seen"]
