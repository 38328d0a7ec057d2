"""Answers of servers as tables, for what asks them: real ones kept in tests/data/serving, and made-up ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from stacks.serving.base import Answer, Ask, Steps
from tests.support.corpus import DATA

T = TypeVar("T")
Reply = Callable[[Ask], Answer]


LM_STUDIO_V1: dict[str, Any] = {
    "models": [
        {
            "type": "llm",
            "key": "gemma-3-270m-it-qat",
            "architecture": "gemma3",
            "quantization": {"name": "Q4_0", "bits_per_weight": 4},
            "params_string": "270M",
            "loaded_instances": [{"id": "gemma-3-270m-it-qat", "config": {"context_length": 4096}}],
            "max_context_length": 32768,
            "capabilities": {"vision": False, "trained_for_tool_use": False},
        }
    ]
}
LM_STUDIO_V0: dict[str, Any] = {
    "object": "list",
    "data": [
        {
            "id": "meta-llama-3.1-8b-instruct",
            "type": "llm",
            "arch": "llama",
            "compatibility_type": "gguf",
            "quantization": "Q4_K_M",
            "state": "not-loaded",
            "max_context_length": 131072,
        }
    ],
}
"""After the examples of LM Studio's documentation."""


@cache
def _kept() -> dict[str, dict[str, dict[str, Any]]]:
    found: dict[str, dict[str, dict[str, Any]]] = json.loads((DATA / "serving" / "answers.json").read_text("utf-8"))
    return found


def recorded_servers() -> list[str]:
    """The names of the servers whose answers are kept."""
    return sorted(_kept())


def recorded(server: str) -> dict[str, Answer]:
    """What a real server answered, by path."""
    return {
        path: Answer(
            Ask("GET", path), said["status"], tuple(said["headers"].items()), said["body"].encode(), number=place + 1
        )
        for place, (path, said) in enumerate(_kept()[server].items())
    }


def answer(ask: Ask, body: Any = b"", status: int = 200, failure: str = "", **headers: str) -> Answer:
    """A made-up answer; a body that is no bytes is sent as JSON. Underscores in header names stand for hyphens."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Answer(ask, None if failure else status, fields, data, failure, number=1)


def everywhere(make: Callable[[str], Answer], paths: Mapping[str, Any] | list[str]) -> dict[str, Answer]:
    """The answers of a server that answers by a rule."""
    return {path: make(path) for path in paths}


def drive(steps: Steps[T], reply: Reply) -> tuple[T, list[Ask]]:
    """Lead a dialogue to its end; what it returned, and what it asked."""
    asked: list[Ask] = []
    try:
        ask = next(steps)
        while True:
            asked.append(ask)
            ask = steps.send(reply(ask))
    except StopIteration as done:
        return done.value, asked


def replies(answers: Mapping[str, Answer]) -> Reply:
    """Reply by path; 404 where there is none."""
    return lambda ask: answers.get(ask.path) or answer(ask, {"detail": "Not Found"}, 404)
