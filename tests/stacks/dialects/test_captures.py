"""Captured exchanges of real servers: the committed selection always, the whole corpus when it is there."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest

from stacks.dialects import DIALECTS, Assembled, assemble
from stacks.irregular import IRREGULARITIES
from stacks.locate import ranges, text_extent, text_ranges
from stacks.strictjson import UNPARSED
from tests.support.captured import Captured, selected_captures, shared_captures, shared_folder
from tests.support.clients import READERS, same_arguments

SELECTION = selected_captures()
NO_CORPUS = "the capture corpus is not here (STACKTAP_SHARED, or `shared` beside the repository)"
needs_corpus = pytest.mark.skipif(shared_folder() is None, reason=NO_CORPUS)


def names(items: list[Captured]) -> list[str]:
    return [f"{item.source}/{item.id}" for item in items]


def check_whole(item: Captured, result: Assembled) -> None:
    """What holds for every exchange."""
    body = item.exchange.response_body
    assert result.body_kind in ("empty", "json", "sse", "ndjson", "html", "xml", "text", "binary")
    assert result.request is not None
    for irregular in result.irregularities:
        assert irregular.code in IRREGULARITIES
        assert 0 <= irregular.start <= irregular.end <= len(body)
    for number, event in enumerate(result.events):
        assert event.number == number
        assert 0 <= event.start <= event.end <= len(body)
    for error in result.errors:
        assert 0 <= error.start <= error.end <= len(body)
        assert error.start <= error.inner_start <= error.inner_end <= error.end
    posted = item.exchange.method == "POST" and result.dialect in DIALECTS
    if posted and item.exchange.status == 200 and body.strip() and b"_debug_info" not in body:
        assert result.turn is not None or result.errors or result.has("stream_empty")
    if item.exchange.status >= 400 and body.strip():
        assert result.errors
        assert result.turn is None


def check_ranges(result: Assembled) -> None:
    """Every text and every call can be read again at the byte ranges given for it."""
    for turn in result.turns:
        for text, where in ((turn.content, turn.where_content), (turn.reasoning, turn.where_reasoning)):
            if text:
                pieces = [json.loads(result.body[start:end]) for start, end in ranges(result, where)]
                assert "".join(pieces) == text
                for first, last in ((0, len(text)), (len(text) // 3, len(text) // 2 + 1)):
                    found = text_ranges(result, where, first, last)
                    again = "".join(json.loads(b'"' + result.body[start:end] + b'"') for start, end in found)
                    assert again == text[first:last]
                    extent = text_extent(result, where, first, last)
                    assert extent == ((found[0][0], found[-1][1]) if found else None)
        for call in turn.tool_calls:
            found = ranges(result, call.where_arguments)
            values = [json.loads(result.body[start:end]) for start, end in found]
            if values and all(isinstance(value, str) for value in values):
                assert "".join(values) == call.arguments_text
            elif values:
                assert values == [call.arguments]
            if call.name is not None:
                named = [json.loads(result.body[start:end]) for start, end in ranges(result, call.where_name)]
                assert call.name == "".join(named)


@pytest.mark.parametrize("item", SELECTION, ids=names(SELECTION))
def test_selected_exchange_assembles(item: Captured) -> None:
    result = assemble(item.exchange)
    check_whole(item, result)
    check_ranges(result)


def cuts(body: bytes, generator: random.Random) -> Iterator[list[bytes]]:
    """Ways to split a body: byte at a time, and at random places."""
    yield [body[at : at + 1] for at in range(len(body))]
    for count in (1, 3, 20):
        places = sorted(generator.randrange(len(body) + 1) for _ in range(count))
        yield [body[start:end] for start, end in zip([0, *places], [*places, len(body)], strict=True)]


def check_splits(item: Captured, generator: random.Random) -> None:
    body = item.exchange.response_body
    whole = assemble(item.exchange)
    if whole.body_kind in ("sse", "ndjson"):
        for pieces in cuts(body, generator):
            assert assemble(item.exchange, pieces) == whole


def test_result_is_independent_of_the_split() -> None:
    generator = random.Random(5)
    for item in SELECTION:
        check_splits(item, generator)


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_every_single_split_of_short_streams() -> None:
    for item in SELECTION:
        body = item.exchange.response_body
        whole = assemble(item.exchange)
        if whole.body_kind in ("sse", "ndjson") and len(body) <= 2000:
            for at in range(len(body) + 1):
                assert assemble(item.exchange, [body[:at], body[at:]]) == whole


STANDARD = ("error_in_stream", "index_reused", "arguments_type", "body_truncated", "event_truncated", "role_unexpected",
            "content_type")  # fmt: skip


def readable(item: Captured, result: Assembled) -> bool:
    """Whether an official client can be expected to read the exchange as it is."""
    return (
        result.dialect in READERS
        and result.turn is not None
        and not result.errors
        and item.exchange.status == 200
        and not any(result.has(code) for code in STANDARD)
    )


def check_against_client(item: Captured) -> bool:
    result = assemble(item.exchange)
    turn = result.turn
    if turn is None or not readable(item, result):
        return False
    seen = READERS[result.dialect](item.exchange, result.streamed)
    assert (turn.content or "") == seen.content
    assert [call.name for call in turn.tool_calls] == [name for name, _ in seen.calls]
    for call, (_, arguments) in zip(turn.tool_calls, seen.calls, strict=True):
        value = None if call.arguments is UNPARSED else call.arguments
        assert same_arguments(arguments, call.arguments_text, value)
    assert turn.finish_raw == seen.finish
    assert (turn.usage.completion if turn.usage is not None else None) == seen.completion_tokens
    return True


READABLE = [item for item in SELECTION if readable(item, assemble(item.exchange))]


@pytest.mark.parametrize("item", READABLE, ids=names(READABLE))
def test_official_client_reads_the_same(item: Captured) -> None:
    assert check_against_client(item)


def test_the_official_clients_are_asked_about_every_dialect() -> None:
    asked = {(assemble(item.exchange).dialect, assemble(item.exchange).streamed) for item in READABLE}
    assert asked == {(dialect, streamed) for dialect in READERS for streamed in (False, True)}


@needs_corpus
@pytest.mark.slow
@pytest.mark.timeout(500)
def test_whole_corpus() -> None:
    generator = random.Random(11)
    count = 0
    for item in shared_captures():
        result = assemble(item.exchange)
        check_whole(item, result)
        check_ranges(result)
        check_splits(item, generator)
        count += 1
    assert count > 7000


@needs_corpus
@pytest.mark.slow
@pytest.mark.timeout(500)
def test_whole_corpus_against_official_clients() -> None:
    agreed = sum(check_against_client(item) for item in shared_captures())
    assert agreed > 4000
