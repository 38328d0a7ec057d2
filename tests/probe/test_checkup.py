"""What looks wrong on a server, by what it tells of itself."""

from __future__ import annotations

from typing import Any

import pytest

from probe.checkup import Complaint, complaints
from results.manifest import known, unknown
from stacks.serving.base import Answer, Ask, Model, ModelIdentity, with_flags
from stacks.serving.fingerprint import fingerprint
from stacks.serving.registry import serving_stack
from tests.support.serving import answer, drive, recorded, replies


def check(name: str, command: str = "", **changes: Any) -> list[Complaint]:
    """The complaints about a recorded server started by a command; `changes` replace answers by path."""
    answers: dict[str, Answer] = recorded(name)
    for path, body in changes.items():
        route = "/" + path.replace("__", "/")
        answers[route] = answer(Ask("GET", route), body)
    stack, reply = serving_stack(name), replies(answers)
    models, _ = drive(stack.models(), reply)
    words = command.split()
    identity = with_flags(drive(stack.identity(models[0].name), reply)[0], stack.flags(words) if words else {})
    return complaints(fingerprint(answers), stack, models, [identity], words)


def wrong(said: list[Complaint]) -> list[tuple[str, str]]:
    return [(one.outcome, one.remedy) for one in said if one.level == "finding"]


def test_nothing_looks_wrong_on_servers_that_are_right() -> None:
    assert check("llamacpp") == []
    assert wrong(check("sglang")) == [("request.context_exceeded", wrong(check("sglang"))[0][1])]  # 4096 tokens
    assert wrong(check("vllm", "vllm serve m --enable-auto-tool-choice --tool-call-parser hermes")) == []


def test_a_template_without_tools() -> None:
    props = recorded("llamacpp")["/props"].object
    props["chat_template_caps"] = {"supports_tools": False, "supports_tool_calls": False}
    [(outcome, remedy)] = wrong(check("llamacpp", props=props))
    assert outcome == "template.tools_absent"
    assert "--chat-template-file" in remedy


@pytest.mark.parametrize(
    ("name", "command", "outcome", "words"),
    [
        ("llamacpp", "llama-server -m x --no-jinja", "gate.template_flag_missing", "--jinja"),
        ("llamacpp", "llama-server -m x --skip-chat-parsing", "parser.left_as_text", "without `--skip-chat-parsing`"),
        ("vllm", "vllm serve m", "gate.parser_not_configured", "--enable-auto-tool-choice"),
        ("vllm", "vllm serve m --tool-call-parser hermes", "gate.parser_not_configured", "both flags"),
        ("llamacpp_python", "python -m llama_cpp.server --n_ctx 16384", "parser.left_as_text", "--chat_format"),
        ("mlx_server", "mlx_lm.server --chat-template {{tools}}", "parser.left_as_text", "tokenizer_config.json"),
    ],
)
def test_what_launch_flags_give_away(name: str, command: str, outcome: str, words: str) -> None:
    found = wrong(check(name, command))
    assert [each for each, _ in found] == ([outcome] if outcome else [])
    assert all(words in remedy for _, remedy in found)


def test_a_parser_that_cannot_be_read_is_a_note_and_no_finding() -> None:
    said = check("vllm")
    assert not wrong(said)
    assert any("a request with tools is refused where none is configured" in one.what for one in said)


def test_a_server_without_a_parser_that_says_so() -> None:
    state = recorded("sglang")["/server_info"].object | {"tool_call_parser": None, "context_length": 32768}
    listed = recorded("sglang")["/v1/models"].object
    listed["data"][0]["max_model_len"] = 32768
    [(outcome, remedy)] = wrong(check("sglang", server_info=state, v1__models=listed))
    assert outcome == "parser.left_as_text"
    assert "--tool-call-parser" in remedy


@pytest.mark.parametrize(
    ("context", "trained", "level"),
    [
        (2048, 32768, "finding"),
        (2048, 2048, None),
        (16384, 32768, "note"),
        (32768, 32768, None),
        (4096, None, "finding"),
    ],
)
def test_small_contexts(context: int, trained: int | None, level: str | None) -> None:
    identity = ModelIdentity(
        "m",
        context_length=known(context, "asked"),
        context_trained=known(trained, "asked") if trained else unknown("not told"),
    )
    found, stack = fingerprint(recorded("llamacpp")), serving_stack("llamacpp")
    said = complaints(found, stack, [Model("m", loaded=True)], [identity])
    assert [one.level for one in said] == ([level] if level else [])
    if level == "finding":
        assert "-c 16384" in said[0].remedy


def test_servers_without_models_and_embedding_models() -> None:
    found, stack = fingerprint(recorded("llamacpp")), serving_stack("llamacpp")
    assert [one.outcome for one in complaints(found, stack, [], [])] == ["gate.model_not_found"]
    embedding = ModelIdentity("e", architecture=known("nomic-bert", "asked"), tools=known(False, "asked"))
    [said] = complaints(found, stack, [Model("e")], [embedding])
    assert "embedding" in said.what


def test_a_locked_server_is_a_note() -> None:
    answers = recorded("vllm")
    answers["/v1/models"] = answer(Ask("GET", "/v1/models"), {"error": "Unauthorized"}, 401)
    [said] = complaints(fingerprint(answers), serving_stack("vllm"), [], [])
    assert said.level == "note"
    assert "--header" in said.remedy
