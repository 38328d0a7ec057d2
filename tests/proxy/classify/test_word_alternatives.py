"""Error texts in the words of one server or library each: every kind is told by each of its words alone, and a text
that only sounds like it is not of that kind.
"""

from __future__ import annotations

import pytest

from proxy.classify.words import kind_of

ALONE = {
    "transport.queue_full": ["We are at capacity", "the backlog limit was met", "Overloaded", "server is busy"],
    "transport.rate_limited": ["rate-limit", "ratelimited", "quota exhausted", "insufficient credits"],
    "transport.auth": ["Unauthorized", "Not authenticated", "wrong token", "authentication failed"],
    "request.bad_history": ["missing 'role'"],
    "gate.model_not_found": ["requested_model m", "Repository not found", "invalid model name"],
    "request.context_exceeded": ["exceed_context_size", "context_length_exceeded", "input is too long"],
    "template.role_rejected": ["unexpected role x", "unknown role x", "invalid role x", "unsupported role x"],
    "template.render_error": [
        "jinja",
        "the chat template broke",
        "template: :3",
        "TemplateError",
        "UndefinedError",
        "UndefinedValue",
        "raise_exception",
        "unhashable type",
    ],
    "parser.server_error": [
        "Invalid diff",
        "mismatched arg_key",
        "unparsed peg output",
        "function-wrap[",
        "expecting a tool call",
        "xml syntax error",
    ],
    "engine.grammar_deadlock": ["grammar is stuck", "Failed to advance FSM", "empty grammar stack"],
    "request.invalid_schema": [
        "grammar error",
        "unrecognized schema",
        "grammar constraints",
        "ToolFunctionParameters",
        "expected 'tools'",
        "no triggers set",
    ],
    "engine.oom": ["OutOfMemory", "OOM", "cuda_oom", "insufficient memory", "allocation failed", "alloc failed"],
    "engine.crash": [
        "runner process",
        "EngineCore",
        "engine dead",
        "EngineDead",
        "CUDA error",
        "segmentation fault",
        "core dumped",
        "internal error",
        "the runner unexpectedly stopped",
        "it has crashed",
        "loc: 'response'",
        "assertion",
        "panic",
        "it has unexpectedly gone",
        "already borrowed",
    ],
    "request.invalid_param": [
        "validation error",
        "validation errors",
        "field required",
        "field 'x'",
        "unmarshal",
        "n is required",
        "unsupported parameter",
        "n is not supported",
        'expected "x"',
        "invalid",
        "too short",
    ],
}
NOTHING_OF_IT = [
    "The weather is fine.",
    "at the capacity",
    "limits of rates",
    "roles",
    "ninja",
    "a template of mine",
    "no room",
    "bloom-560m: flux",
    "paneling",
    "invalidate",
    "segments",
    "asserted",
    "borrowed",
    "requires thought",
]


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in ALONE.items() for text in texts])
def test_each_word_alone(name: str, text: str) -> None:
    for said in (text, text.upper(), f"Error 17: {text}\n"):
        row = kind_of(said)
        if said == text.upper() and ("'" in text or '"' in text):
            continue
        assert row is not None, said
        assert row.name == name
        assert row.remedy


@pytest.mark.parametrize("text", NOTHING_OF_IT)
def test_words_that_only_sound_like_it(text: str) -> None:
    assert kind_of(text) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("rate limit reached, server overloaded", "transport.queue_full"),
        ("jinja: roles must alternate user/assistant", "template.role_rejected"),
        ("CUDA error: out of memory", "engine.oom"),
        ("invalid api key", "transport.auth"),
        ("prompt is too long: internal error", "request.context_exceeded"),
        ("invalid tool call arguments", "request.bad_history"),
        ("connection refused: internal error", "transport.gateway"),
        ("does not support tools: invalid", "gate.tools_unsupported"),
    ],
)
def test_the_more_telling_word_wins(text: str, name: str) -> None:
    row = kind_of(text)
    assert row is not None
    assert row.name == name
