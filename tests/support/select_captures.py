"""Choose the committed selection from the shared captures: exchanges that show, together, every stack, version, route,
status, kind of body, finish reason and irregularity of the whole corpus.

Run: python -m tests.support.select_captures
"""

from __future__ import annotations

import json

import zstandard

from stacks.dialects import assemble
from tests.support.captured import SELECTION, Captured, shared_captures

LIMIT = 400


def features(item: Captured) -> set[tuple[str, ...]]:
    """What an exchange can show."""
    result = assemble(item.exchange)
    stack = item.source.split("-")[0]
    route, status = result.route, str(item.exchange.status)
    shape = "stream" if result.streamed else "plain"
    found = {
        ("source", item.source),
        ("route", stack, result.dialect, route, shape, status, result.body_kind),
        *(("irregular", stack, result.dialect, shape, each.code) for each in result.irregularities),
        *(("error", stack, each.shape, str(len(each.chain))) for each in result.errors),
    }
    for turn in result.turns:
        found.add(("finish", stack, result.dialect, shape, str(turn.finish_raw)))
        found.add(("payload", stack, result.dialect, shape, str(len(turn.tool_calls)), str(bool(turn.content))))
        found.add(("reasoning", stack, result.dialect, str(turn.reasoning_field)))
    return found


def select(items: list[Captured]) -> list[Captured]:
    """Greedy cover: the exchange that adds most, the smaller one where two add the same."""
    rest = [(features(item), len(json.dumps(item.record)), item) for item in items]
    chosen: list[Captured] = []
    known: set[tuple[str, ...]] = set()
    while len(chosen) < LIMIT:
        best = max(rest, key=lambda entry: (len(entry[0] - known), -entry[1]))
        if not best[0] - known:
            break
        known |= best[0]
        chosen.append(best[2])
        rest.remove(best)
    return sorted(chosen, key=lambda item: (item.source, item.id))


def main() -> None:
    """Write the selection: one meta line before the exchanges of each file, as in the captures."""
    items = [item for item in shared_captures() if len(json.dumps(item.record)) < 12_000]
    lines: list[str] = []
    source = ""
    for item in select(items):
        if item.source != source:
            lines.append(json.dumps({**item.meta, "source": item.source}, ensure_ascii=False))
            source = item.source
        lines.append(json.dumps({**item.record, "source": item.source}, ensure_ascii=False))
    packed = zstandard.ZstdCompressor(level=19).compress("\n".join(lines).encode("utf-8", "surrogatepass"))
    SELECTION.write_bytes(packed)
    print(f"{len(lines)} lines, {len(packed)} bytes")


if __name__ == "__main__":
    main()
