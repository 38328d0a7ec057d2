"""Recorded traffic tells the stack: right for every capture set, one exchange or all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from stacks.dialects import Assembled, WireExchange, assemble
from stacks.serving.traffic import stack_of_exchange, stack_of_run
from stacks.stack_names import stack_name
from tests.support.captured import read_captures, shared_captures
from tests.support.corpus import carried

Pairs = list[tuple[WireExchange, Assembled]]


def stack_in(name: str) -> str:
    """The stack that a capture file is of, by its name."""
    for prefix in ("llamacpp-python", "llamacpp", "mlx", "ollama", "sglang", "vllm"):
        if name.startswith(prefix):
            found = stack_name(prefix)
            assert found is not None
            return found
    raise AssertionError(name)


def carried_sets() -> dict[str, Pairs]:
    """The carried captures by file."""
    found: dict[str, Pairs] = {}
    name = ""
    for line in carried("captures.jsonl.zst"):
        record = json.loads(line)
        if record.get("kind") == "meta":
            name = record["file"].removesuffix(".jsonl")
            continue
        for each in read_captures(iter([line.decode()]), name):
            found.setdefault(name, []).append((each.exchange, assemble(each.exchange)))
    return found


def shared_sets() -> Iterator[tuple[str, Pairs]]:
    name, pairs = "", []
    for each in shared_captures():
        if each.source != name and pairs:
            yield name, pairs
            pairs = []
        name = each.source
        pairs.append((each.exchange, assemble(each.exchange)))
    if pairs:
        yield name, pairs


SETS = carried_sets()


@pytest.mark.parametrize("name", SETS)
def test_a_carried_set_is_recognised(name: str) -> None:
    if not any(wire.status for wire, _ in SETS[name]):
        pytest.skip("no answer in it")
    weighed = stack_of_run(SETS[name])
    assert weighed is not None
    assert weighed.stack == stack_in(name)
    for wire, assembled in SETS[name]:
        assert stack_of_exchange(wire, assembled) in ("", stack_in(name))


@pytest.mark.slow
def test_every_set_of_the_shared_corpus_is_recognised() -> None:
    wrong = {}
    for name, pairs in shared_sets():
        weighed = stack_of_run(pairs)
        if weighed is None or weighed.stack != stack_in(name) or weighed.confidence == "low":
            wrong[name] = weighed
    assert not wrong


def test_the_version_is_read_from_the_traffic() -> None:
    vllm = next(pairs for name, pairs in SETS.items() if name.startswith("vllm-hermes"))
    weighed = stack_of_run(vllm)
    assert weighed is not None
    assert weighed.version.value == "0.32.0"


def posted(target: str, headers: tuple[tuple[str, str], ...], body: bytes) -> WireExchange:
    """A POST answered by 200."""
    return WireExchange(
        method="POST",
        target=target,
        request_body=b"{}",
        status=200,
        response_headers=headers,
        response_body=body,
        response_complete=True,
    )


def test_nothing_is_made_of_nothing() -> None:
    assert stack_of_run([]) is None
    plain = posted("/v1/chat/completions", (), b'{"choices": []}')
    assert stack_of_run([(plain, assemble(plain))]) is None


def test_an_ollama_route_on_uvicorn_is_not_ollama() -> None:
    body = b'{"model":"canary","created_at":"x","message":{"role":"assistant","content":"hi"},"done":true}'
    wire = posted("/api/chat", (("server", "uvicorn"),), body)
    assert stack_of_exchange(wire, assemble(wire)) != "ollama"
    bare = posted("/api/chat", (), body)
    assert stack_of_exchange(bare, assemble(bare)) == "ollama"
