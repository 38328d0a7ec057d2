from __future__ import annotations

import pytest

from probe.pairing.agent_run.stuck import ALIKE, IN_A_ROW, IN_ALL, Refusals
from results.exchange import Exchange, WireStream


def _exchange(status: int, asked: bytes = b"{}", said: bytes = b"no", method: bytes = b"POST") -> Exchange:
    request = b"%b /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (method, len(asked), asked)
    response = b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n%b" % (status, len(said), said)
    return Exchange(
        attempt=1,
        connection=1,
        exchange=1,
        upstream="agent",
        started_us=0,
        method=method.decode(),
        request=WireStream(request, complete=True),
        response=WireStream(response, complete=True),
        end="complete",
    )


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_one_request_refused_again_and_again(status: int) -> None:
    refusals = Refusals()
    for _ in range(ALIKE - 1):
        refusals.take([_exchange(status)])
        assert not refusals.stuck
    refusals.take([_exchange(status, said=b"NO")])
    assert refusals.stuck


def test_requests_that_take_turns() -> None:
    refusals = Refusals()
    refusals.take([_exchange(400, b"{}" if number % 2 else b"[ ]") for number in range(IN_A_ROW - 1)])
    assert not refusals.stuck
    refusals.take([_exchange(400)])
    assert refusals.stuck


@pytest.mark.parametrize("between", [_exchange(200), _exchange(500)])
def test_an_answer_or_another_refusal_between_them_starts_anew(between: Exchange) -> None:
    refusals = Refusals()
    for _ in range(3):
        refusals.take([*[_exchange(400)] * (ALIKE - 1), between])
    assert not refusals.stuck


def test_refusals_between_answers_are_enough_at_last() -> None:
    refusals = Refusals()
    for _ in range(IN_ALL - 1):
        refusals.take([_exchange(400), _exchange(200)])
    assert not refusals.stuck
    refusals.take([_exchange(200), _exchange(400)])
    assert refusals.stuck


def test_reads_count_for_nothing() -> None:
    refusals = Refusals()
    refusals.take([_exchange(404, method=b"GET")] * 50)
    assert not refusals.stuck
    refusals.take([_exchange(400), _exchange(404, method=b"GET")] * ALIKE)
    assert refusals.stuck
