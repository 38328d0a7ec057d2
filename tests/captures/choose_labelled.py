"""Choose the exchanges that are labelled by reading them.

`python -m tests.captures.choose_labelled` prints their ids; with a file name after it, they are also written there
(zstd), for tests without the corpus.

Strata are (family of recordings, route, stream or plain, kind of answer); the strata and the exchanges inside
them are shuffled with a fixed seed, and exchanges are taken round-robin over the recordings, rarest kinds first.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import zstandard

from tests.support.captured import shared_folder

SEED = 20261130
WANTED = 200


def kind_of(record: dict[str, Any]) -> tuple[str, str, str, str]:
    """Route, stream or plain, tools or none, and the coarse shape of the answer, by plain substring tests."""
    body = str(record["request"].get("body") or "")
    raw = str(record.get("response_raw") or "")
    status = raw.split(" ", 2)[1] if raw.startswith("HTTP/") else "none"
    called = '"tool_calls":[{' in raw.replace(" ", "") or '"function_call"' in raw or '"tool_use"' in raw
    cut = '"length"' in raw or "max_tokens" in raw
    shape = status + ("c" if called else "") + ("l" if cut else "")
    stream = "stream" if "event-stream" in raw or "x-ndjson" in raw else "plain"
    return (str(record["request"]["path"]), stream, "tools" if '"tools"' in body else "none", shape)


def choose(folder: Path, wanted: int = WANTED, seed: int = SEED) -> list[tuple[str, dict[str, Any]]]:
    """The chosen (recording, exchange) pairs, in the order of the recordings."""
    draw = random.Random(seed)
    by_file: dict[str, dict[tuple[str, ...], list[dict[str, Any]]]] = {}
    for path in sorted((folder / "captures").glob("*.jsonl")):
        strata: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record.get("kind") == "exchange" and "canary_text" in record and "response_raw" in record:
                strata[kind_of(record)].append(record)
        for members in strata.values():
            draw.shuffle(members)
        if strata:
            by_file[path.stem] = dict(strata)
    taken: list[tuple[str, dict[str, Any]]] = []
    seen_kinds: Counter[tuple[str, ...]] = Counter()
    seen_texts: Counter[str] = Counter()
    while len(taken) < wanted and any(by_file.values()):
        for stem in sorted(by_file):
            strata = by_file[stem]
            live = [kind for kind in sorted(strata) if strata[kind]]
            if not live or len(taken) >= wanted:
                continue
            kind = min(live, key=lambda k: (seen_kinds[k], draw.random()))
            record = min(strata[kind], key=lambda r: seen_texts[r["canary_text"]])
            strata[kind].remove(record)
            seen_kinds[kind] += 1
            seen_texts[record["canary_text"]] += 1
            taken.append((stem, record))
    return sorted(taken, key=lambda pair: (pair[0], pair[1]["id"]))


ORDER_MATTERS = ("-wedge", "-shared-runner")
"""Recordings of sequences: they are carried whole, for what came before decides."""


def carried_lines(folder: Path) -> list[bytes]:
    """The chosen exchanges in the order of their recordings, each after its `meta` line (with `file` added)."""
    chosen: dict[str, set[str]] = defaultdict(set)
    for stem, record in choose(folder):
        chosen[stem].add(record["id"])
    lines = []
    for stem, ids in chosen.items():
        for line in (folder / "captures" / f"{stem}.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record.get("kind") == "meta":
                record["file"] = stem
            if record.get("kind") == "meta" or stem.endswith(ORDER_MATTERS) or record["id"] in ids:
                lines.append(json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    return lines


if __name__ == "__main__":
    corpus = shared_folder()
    if corpus is None:
        raise SystemExit("the corpus is not here: set STACKTAP_SHARED to its folder")
    for name, exchange in choose(corpus):
        print(f"{name}/{exchange['id']}")
    for target in sys.argv[1:]:
        content = b"\n".join(carried_lines(corpus)) + b"\n"
        Path(target).write_bytes(zstandard.ZstdCompressor(level=19).compress(content))
