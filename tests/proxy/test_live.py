"""Outcomes shown while a run is recorded."""

from __future__ import annotations

from pathlib import Path

from proxy.live import LiveOutcomes
from tests.support.recorded import CALL_TEXT, Script, answer


def test_every_exchange_is_told_once_with_what_to_change(tmp_path: Path) -> None:
    told: list[str] = []
    script = Script(tmp_path)
    live = LiveOutcomes(tmp_path, told.append)
    live.start()
    for _ in range(20):
        script.chat(answer(content=CALL_TEXT))
    script.refused("upstream_refused", "refused", b"")
    script.run()
    live.close()
    assert len(told) == 21
    assert "parser.left_as_text" in told[0]
    assert "transport.connect" in told[-1]
    assert [int(line.split()[0]) for line in told] == list(range(1, 22))
