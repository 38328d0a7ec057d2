"""Configurations by name and as a user's model has them, the format that each reads, and which one mends a failure."""

from __future__ import annotations

import json

import pytest

from probe.canary.ollama_files import WAYS
from probe.pairing.serving.ollama_configurations import (
    ConfigurationError,
    call_format_for,
    configuration,
    context_of,
    facts_of,
    like_users,
    mode_of_way,
    parser_names,
    remedied,
    with_context,
)
from stacks.serving.ollama_modes import mode_of
from stacks.serving.ollama_remedies import remedy_for
from tests.support.replayed import MODES, VERSIONS, ollama_captures


def test_names() -> None:
    assert configuration("native") is WAYS["native"]
    larger = configuration(" Tools-If  with num_ctx 8192 ")
    assert (larger.name, context_of(larger)) == ("tools-if with num_ctx 8192", 8192)
    assert larger.template_text == WAYS["tools-if"].template_text
    assert configuration("glm-4.7").parser == "glm-4.7"
    assert context_of(configuration("native")) is None
    again = with_context(larger, 100)
    assert (again.name, context_of(again)) == ("tools-if with num_ctx 100", 100)


@pytest.mark.parametrize(
    "wrong", ["", "nativ", "native with num_ctx", "native with num_ctx 0", "go template", "with num_ctx 5"]
)
def test_other_names_are_refused_with_those_that_there_are(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match=r"num_ctx|native"):
        configuration(wrong)


def test_every_parser_is_a_configuration_whose_format_is_one_that_it_reads() -> None:
    assert len(parser_names()) >= 15
    for parser in parser_names():
        way = configuration(parser)
        assert way.parser == parser
        assert mode_of_way(way).way == "builtin"
        assert call_format_for(way)


@pytest.mark.parametrize(
    ("name", "call_format"),
    [
        ("native", "hermes"),
        ("tools-if", "hermes"),
        ("tools-range", "bare_json"),
        ("qwen3", "hermes"),
        ("qwen3-coder", "qwen_xml"),
        ("glm-4.7", "glm"),
    ],
)
def test_the_format_that_a_configuration_reads(name: str, call_format: str) -> None:
    assert call_format_for(configuration(name)) == call_format


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mode", ["native", "gotools", "gotoolsif", "qwen3coder", "gothink"])
def test_like_a_captured_model(version: str, mode: str) -> None:
    found = [one for one in ollama_captures() if one.version == version and one.meaning.path == "/api/show"]
    shown = next(json.loads(one.payload) for one in found if one.meaning.model == MODES[mode] and one.status == 200)
    way = like_users({**shown, "parameters": 'num_ctx                        8192\nstop "<|im_end|>"'})
    theirs, ours = mode_of(shown), mode_of_way(way)
    assert (ours.way, ours.parser, ours.renderer, ours.tag) == (theirs.way, theirs.parser, theirs.renderer, theirs.tag)
    assert context_of(way) == 8192
    assert context_of(like_users(shown)) is None


@pytest.mark.parametrize(
    ("name", "code", "tokens", "mended"),
    [
        ("native", "request.context_exceeded", 9600, "native with num_ctx 16384"),
        ("native with num_ctx 8192", "request.context_exceeded", 12288, "native with num_ctx 16384"),
        ("tools-if", "truncation.context_cut_silently", 9600, "tools-if with num_ctx 16384"),
        ("tools-range", "parser.left_as_text", None, "tools-if"),
        ("tools-range with num_ctx 8192", "parser.left_as_text", None, "tools-if with num_ctx 8192"),
        ("qwen3-coder", "parser.server_error", None, "qwen3"),
        ("no-tools", "gate.tools_unsupported", None, "native"),
    ],
)
def test_what_mends_a_failure(name: str, code: str, tokens: int | None, mended: str) -> None:
    found = remedied(configuration(name), code, "hermes", tokens)
    assert found is not None
    assert found.name == mended


def test_what_nothing_mends() -> None:
    assert remedied(configuration("native"), "transport.reset", "hermes") is None
    assert remedied(configuration("qwen3"), "parser.server_error", "hermes") is None
    assert remedied(configuration("native"), "parser.left_as_text", "kimi_k2") is None


def test_the_words_of_the_remedies() -> None:
    """What a user is told for each of the four cells."""
    too_small = remedy_for(
        "request.context_exceeded", {**facts_of(configuration("native"), "hermes"), "tokens": "9600"}
    )
    assert too_small is not None
    for part in ("9600", "PARAMETER num_ctx", "OLLAMA_CONTEXT_LENGTH", "options.num_ctx"):
        assert part in too_small
    text = remedy_for("parser.left_as_text", facts_of(configuration("tools-range"), "hermes", "m"))
    assert text is not None
    assert "if .ToolCalls" in text
    other = remedy_for("parser.server_error", facts_of(configuration("qwen3-coder"), "hermes", "m"))
    assert other is not None
    assert "PARSER qwen3`" in other
    wedged = remedy_for("engine.wedged", facts_of(configuration("qwen3-coder"), "hermes", "m"))
    assert wedged is not None
    assert "0.32.15" in wedged
