"""A replayed run, recorded again through the relay and judged again, has the outcomes of the original, one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.exchange_view import classify_run
from results.reader import RunReader
from tests.support.exported import captured_raw
from tests.support.journalled import Raw, record
from tests.support.recorded import CALL_TEXT, Script, answer, response
from tests.support.resent import replayable, replayed_run


def same(first: object, again: object, attempt: int) -> None:
    """The same outcome in all that matters: what it is, who is at fault, whether the model ran, what it wrote."""
    names = ("name", "at_fault", "model_ran", "delivery", "wrote", "confidence", "flags", "remedy", "signature")
    assert [getattr(first, name) for name in names] == [getattr(again, name) for name in names], attempt


async def compared(folder: Path) -> int:
    """Ask a recorded run again; how many attempts had the same outcome (all that can be served)."""
    originals = {judged.attempt: judged for judged in classify_run(RunReader(folder))}
    exchanges = sorted(RunReader(folder), key=lambda one: one.attempt)
    again = await replayed_run(exchanges, folder.parent / "again")
    assert set(again) == {one.attempt for one in exchanges if replayable(one)}
    for attempt, judged in again.items():
        same(originals[attempt].outcome, judged.outcome, attempt)
        assert (judged.status, judged.method, judged.dialect) == (
            originals[attempt].status,
            originals[attempt].method,
            originals[attempt].dialect,
        )
    return len(again)


async def test_captured_exchanges_of_real_servers(tmp_path: Path) -> None:
    record(tmp_path / "run", [raw for raw in captured_raw()[::4] if raw.how != "timeout"])
    assert await compared(tmp_path / "run") > 250


STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'2f\r\ndata: {"choices":[{"delta":{"content":"Hello"}}]}\r\n'
)


@pytest.mark.parametrize("how", ["fin", "rst", "client", "timeout"])
async def test_broken_answers_break_in_the_same_way(how: str, tmp_path: Path) -> None:
    asked = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}'
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(asked)
    large = STREAM + b"10000\r\n" + b"x" * 60_000
    record(tmp_path / "run", [Raw(head + asked, data, how) for data in (STREAM, large, b"", b"HTTP/1.1 200 OK\r\nCon")])
    assert await compared(tmp_path / "run") == 4


async def test_equal_requests_get_their_answers_in_order(tmp_path: Path) -> None:
    script = Script(tmp_path / "run")
    script.chat(answer(content=CALL_TEXT))
    script.chat(answer(content="hello"))
    script.chat(response(b'{"error":{"message":"m does not support tools"}}', b"400 Bad Request"))
    script.refused("upstream_refused", "connection refused", b"")
    script.chat(answer(content=CALL_TEXT), tags=(("k", "v"),))
    script.opaque(b"\x00\x01", b"\x02")
    script.run()
    assert await compared(tmp_path / "run") == 4
