"""Every fault has an answer, and every answer is HTTP."""

from __future__ import annotations

import json

import pytest

from proxy.relay.answers import STATUS, answer
from proxy.tap import FAULTS
from results.http1 import Framer, Kind


@pytest.mark.parametrize("code", sorted(FAULTS))
def test_each_fault_has_a_framed_answer(code: str) -> None:
    for method in (b"GET", b"HEAD"):
        framer = Framer(response=True)
        framer.expect(method)
        pieces = framer.feed(answer(code, 'dé\ttail "x"\r\n', method=method))
        assert [piece.kind for piece in pieces] == (
            [Kind.HEAD, Kind.BODY, Kind.END] if method == b"GET" else [Kind.HEAD, Kind.END]
        )
        head = pieces[0].head
        assert head is not None
        assert head.status == STATUS[code]
        assert ("x-stacktap-error", code) in head.headers()
    body = json.loads(answer(code, "détail").partition(b"\r\n\r\n")[2])
    assert body["error"]["message"] == "stacktap: détail"
