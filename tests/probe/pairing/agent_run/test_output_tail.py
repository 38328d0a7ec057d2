"""The kept end of an output does not depend on how it was read."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from probe.pairing.agent_run import output_tail
from probe.pairing.agent_run.output_tail import OutputTail


def taken(pieces):
    async def take():
        tail = OutputTail()
        for piece in pieces:
            tail.data_received(piece)
        return tail

    return asyncio.run(take())


@given(st.lists(st.binary(max_size=60), max_size=12))
def test_the_end_is_the_same_however_it_came(pieces):
    kept = output_tail.KEPT_BYTES
    output_tail.KEPT_BYTES = 40
    try:
        whole = b"".join(pieces)
        tail, at_once = taken(pieces), taken([whole])
        assert tail.text() == at_once.text()
        assert tail.total == len(whole)
        if len(whole) <= 40:
            assert tail.text() == whole.decode("utf-8", "replace")
        else:
            first, _, rest = tail.text().partition("\n")
            missing = int(first.strip("[]").split()[0])
            assert rest == whole[missing:].decode("utf-8", "replace")
            assert len(whole) - 40 <= missing <= len(whole) - 36
    finally:
        output_tail.KEPT_BYTES = kept


def test_no_character_is_cut_in_two(monkeypatch):
    monkeypatch.setattr(output_tail, "KEPT_BYTES", 40)
    for lead in range(4):
        assert "\ufffd" not in taken([b"x" * lead + "😀".encode() * 30]).text()
