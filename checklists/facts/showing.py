"""Cited bytes of a recording as text: what is cited, and a little of what stands around it."""

from __future__ import annotations

from checklists.facts.records import Exemplar, ShownBytes
from checklists.reading import Seen
from results.outcomes import Evidence, Judged

CONTEXT = 120
"""Bytes shown before and after a citation."""
LONGEST = 900
"""Bytes of a citation that are shown: the beginning and the end of a longer one."""
CITATIONS = 3
"""Citations shown of one exchange."""
DETAIL = 600


def exemplar_of(seen: Seen, judged: Judged) -> Exemplar:
    """The exchange with the bytes that its verdict cites."""
    outcome = judged.outcome
    asked = f"{judged.method} {judged.path}".strip() or "(not HTTP)"
    return Exemplar(
        attempt=judged.attempt,
        recording=seen.recording,
        upstream=seen.exchange.upstream,
        asked=asked[:DETAIL],
        status=judged.status,
        detail=outcome.detail[:DETAIL],
        evidence=tuple(shown(cited, seen) for cited in outcome.evidence[:CITATIONS]),
    )


def shown(cited: Evidence, seen: Seen) -> ShownBytes:
    """One citation. Bytes of another attempt than the one at hand are given as their quote."""
    data = seen.exchange.wire(cited.direction) if cited.attempt == seen.exchange.attempt else b""
    if not 0 <= cited.start < min(cited.end, len(data)):
        return ShownBytes(cited.attempt, cited.direction, cited.start, cited.end, cited.why, cited.quote, quoted=True)
    inside = data[cited.start : cited.end]
    if _unreadable(inside):
        return ShownBytes(cited.attempt, cited.direction, cited.start, cited.end, cited.why, cited.quote, quoted=True)
    left_out = max(0, len(inside) - LONGEST)
    first, last = (inside, b"") if not left_out else (inside[: LONGEST // 2], inside[-(LONGEST - LONGEST // 2) :])
    return ShownBytes(
        attempt=cited.attempt,
        direction=cited.direction,
        start=cited.start,
        end=cited.end,
        why=cited.why,
        cited=_text(_without_torn_end(first) if left_out else first),
        before=_text(_without_torn_start(data[max(0, cited.start - CONTEXT) : cited.start])),
        after=_text(_without_torn_end(data[cited.end : cited.end + CONTEXT])),
        cited_end=_text(_without_torn_start(last)),
        left_out=left_out,
    )


def _unreadable(data: bytes) -> bool:
    """Whether bytes are no text to look at (a compressed body): a tenth of them could not be read."""
    return 10 * data.decode("utf-8", "replace").count("\ufffd") > len(data)


def _text(data: bytes) -> str:
    """Bytes as text, those that are not UTF-8 written out."""
    return data.decode("utf-8", "backslashreplace").replace("\r\n", "\n")


def _without_torn_start(data: bytes) -> bytes:
    """Without the rest of a character that a cut went through."""
    start = 0
    while start < min(3, len(data)) and 0x80 <= data[start] < 0xC0:
        start += 1
    return data[start:]


def _without_torn_end(data: bytes) -> bytes:
    """Without the beginning of a character that a cut went through."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            wanted = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if wanted > back else data
        if byte < 0x80:
            return data
    return data
