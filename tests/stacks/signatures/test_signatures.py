"""The signature table: every row is whole, matches what it is about, and nothing that servers say when all is well."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stacks.signatures import TableError, in_range, load_table, match, parse_range, row, rows, stack_names, table
from stacks.signatures.table import compiled, required_literals
from stacks.stack_names import STACKS, stack_name

EXAMPLES: dict[str, list[dict[str, str]]] = json.loads((Path(__file__).parent / "examples.json").read_text("utf-8"))
ROWS = {entry.id: entry for entry in table()}
PATTERNED = [entry for entry in table() if entry.pattern]
#: What well-behaved servers and models say; no error row may find anything in it.
HARMLESS = (
    "It is 18 degrees and sunny in Paris.",
    "The model does not know whether the tool was found; the context is long enough.",
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>',
    "I could not find the file, so the template stays as it is. Please try again later.",
    '{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":'
    '{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}',
    '{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"ok"},"done":true,'
    '"done_reason":"stop"}',
    "data: [DONE]",
    "",
)


def test_every_row_with_a_pattern_has_an_example() -> None:
    assert {entry.id for entry in PATTERNED} == set(EXAMPLES)


@pytest.mark.parametrize("stack", [*stack_names(), "any"])
def test_the_patterns_find_their_examples(stack: str) -> None:
    for entry in PATTERNED:
        for example in EXAMPLES[entry.id] if entry.stack == stack else ():
            text = example["text"]
            assert compiled(entry.pattern).search(text) is not None, entry.id
            literals = required_literals(entry.pattern)
            assert not literals or any(literal in text for literal in literals), f"{entry.id}: the prefilter loses it"
            hits = match(entry.where, text, stack if stack != "any" else None)
            assert entry.id in [hit.row.id for hit in hits]


@pytest.mark.parametrize("text", HARMLESS)
def test_nothing_matches_harmless_text(text: str) -> None:
    for where in ("error", "body", "header", "log", "stream", "text"):
        hits = [hit.row.id for hit in match(where, text) if hit.row.layer != "fingerprint"]  # type: ignore[arg-type]
        assert hits == []


def test_no_pattern_is_broad() -> None:
    """Every pattern that is no exact sentence names a word of three letters or more, and none matches filler."""
    for entry in PATTERNED:
        words = re.sub(r"\\.|\[[^\]]*\]|[^A-Za-z]+", " ", entry.pattern).split()
        exact = entry.pattern.startswith("^") and entry.pattern.endswith("$")
        assert exact or max(len(word) for word in words) >= 3, entry.id
        assert not compiled(entry.pattern).search("a" * 300), entry.id


def test_the_best_hit_comes_first() -> None:
    def best(text: str, **more: Any) -> str:
        return match("error", text, **more)[0].row.outcome

    name = "registry.ollama.ai/library/phi3:latest does not support tools"
    assert best(name, stack="ollama", version="0.30.8", status=400) == "gate.tools_unsupported"
    roles = (
        "Unable to generate parser for this template. Automatic parser generation failed: \n------------\nWhile "
        "executing CallExpression at line 4\nError: Jinja Exception: Conversation roles must alternate user/assistant"
    )
    assert best(roles, stack="llamacpp") == "template.role_rejected"
    inner = '{"error":{"code":400,"message":"Failed to parse tools: Missing tool type: 1; tools = [\\n 1]"}}'
    assert [hit.row.id for hit in match("error", inner, stack="ollama")] == [
        "llamacpp-tools-unparsable",
        "ollama-inner-server-error",
    ]


def test_spans_point_into_the_text() -> None:
    text = "x " * 50_000 + "Loading model " + "y " * 5_000 + "llama-server process; CUDA error: out of memory"
    hits = match("error", text)
    assert [hit.row.id for hit in hits] == ["any-out-of-memory"]
    assert text[slice(*hits[0].span)].endswith("out of memory")


def test_versions_are_honoured_when_known() -> None:
    text = "Cannot use tools with stream"
    assert [hit.row.id for hit in match("error", text, "llamacpp")] == ["llamacpp-tools-with-stream"]
    assert [hit.row.id for hit in match("error", text, "llamacpp", "b4000")] == ["llamacpp-tools-with-stream"]
    assert match("error", text, "llamacpp", "b11434") == []
    assert match("error", text, "llamacpp", "unknown")


@pytest.mark.parametrize(
    ("version", "bounds", "expected"),
    [
        ("0.32.15", "<0.32.15", False),
        ("0.32.9", "<0.32.15", True),
        ("v0.33.0-rc2", ">=0.33", True),
        ("0.11.4", ">=0.11.3,<0.11.5", True),
        ("0.32.0+cpu", "==0.32", True),
        ("b9000-4df29be4", ">=b7700,<=b9700", True),
        ("b9800", ">=b7700,<=b9700", False),
        ("0.32", "<b9700", None),
        ("main", "<1", None),
        ("1.2", "", True),
    ],
)
def test_version_ranges(version: str, bounds: str, expected: bool | None) -> None:
    assert in_range(version, bounds) is expected


@pytest.mark.parametrize("bounds", ["0.3", "=>1", "<x", ">=1;<2"])
def test_bad_ranges_are_refused(bounds: str) -> None:
    with pytest.raises(ValueError, match="no version range"):
        parse_range(bounds)


GOOD = {
    "id": "a",
    "stack": "vllm",
    "where": "error",
    "outcome": "gate.x",
    "meaning": "m",
    "remedy": "r",
    "source": "s",
    "at_fault": "config",
    "model_ran": "no",
    "pattern": "abc",
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"where": "nowhere"}, "Invalid enum value"),
        ({"pattern": ""}, "needs one"),
        ({"where": "structure"}, "has no pattern"),
        ({"outcome": "gate"}, "no layer.code"),
        ({"outcome": "weather.bad"}, "no layer.code"),
        ({"versions": "0.3"}, "no version range"),
        ({"colour": "red"}, "unknown field"),
        ({"source": ""}, "length >= 1"),
    ],
)
def test_a_bad_table_is_refused_by_name(change: dict[str, str], words: str) -> None:
    load_table(json.dumps([GOOD]).encode())
    with pytest.raises(TableError, match=words):
        load_table(json.dumps([GOOD | change]).encode())
    with pytest.raises(TableError, match="used twice"):
        load_table(json.dumps([GOOD, GOOD]).encode())


def test_rows_for_printing() -> None:
    assert len(rows()) == len(table()) > 250
    assert {entry.stack for entry in rows("llama.cpp")} == {"llamacpp", "any"}
    assert set(stack_names()) <= set(STACKS)
    assert row("vllm-tool-parser-flags").remedy
    for entry in table():
        assert entry.sign, entry.id
        assert not re.search(r"(?i)as above|same as|\bbelow\b", entry.remedy), entry.id


@pytest.mark.parametrize(
    ("given_name", "name"),
    [("llama.cpp", "llamacpp"), ("LM Studio", "lmstudio"), ("mlx_lm.server", "mlx_server"), ("SGLang", "sglang")],
)
def test_stack_names(given_name: str, name: str) -> None:
    assert stack_name(given_name) == name
    assert stack_name("nonesuch") is None


@given(st.text(max_size=300), st.sampled_from(["error", "body", "header", "log", "stream", "text"]))
def test_any_text_is_taken(text: str, where: Any) -> None:
    for hit in match(where, text, "ollama", "0.30.8", 500):
        assert 0 <= hit.span[0] <= hit.span[1] <= len(text)


@pytest.mark.parametrize(
    "piece", ["a", " does not support tools", '{"error":{', "Jinja Exception: ", "1 ", '"', "<h1>"]
)
def test_long_texts_cost_little(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    started = time.process_time()
    for where in ("error", "body", "stream"):
        match(where, text)  # type: ignore[arg-type]
    assert time.process_time() - started < 2
