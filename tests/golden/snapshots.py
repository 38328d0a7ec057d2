"""What the parsers and the classifier say of carried material today, in a form that can be compared with tomorrow.

One line for each exchange or text. Of what is large a short hash is kept, section by section, so that a change names
the section it is in; an outcome is kept in words.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import msgspec
import zstandard

from proxy.classify import Classified, RunMemory, judge
from proxy.classify.sighted import sighted
from proxy.exchange_files import captures, from_case
from proxy.exchange_view import view_of
from results.outcomes import Outcome
from stacks.dialects import Assembled, assemble
from stacks.formats import find_calls, offered_tools
from tests.fuzz.material import Original
from tests.fuzz.mutate import fuzzed
from tests.fuzz.trial import exchange_of
from tests.golden.damaged import views
from tests.support.corpus import DATA, carried

FOLDER = DATA / "golden"
FUZZED = 700
SEED = 77
TOOLS = offered_tools(["get_weather", "add", "f", "search", "bash", "read_file"])


def plain(value: Any) -> Any:
    """Any value of the parsers as plain data."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    return value if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__


def brief(value: Any) -> str:
    """A short hash of any value."""
    return sha256(json.dumps(plain(value), sort_keys=True).encode()).hexdigest()[:8]


def of_assembled(result: Assembled) -> dict[str, Any]:
    """What an exchange was read as."""
    return {
        "read": f"{result.dialect} {result.route} {result.body_kind} {result.streamed} {result.done_mark}",
        "request": brief(result.request),
        "turns": brief(result.turns),
        "irregular": brief(result.irregularities),
        "errors": brief(result.errors),
        "events": brief([(event.kind, event.start, event.end, event.name, event.closed) for event in result.events]),
    }


def of_outcome(outcome: Outcome) -> dict[str, Any]:
    """An outcome, its words for people and its evidence as hashes."""
    said = (
        f"{outcome.name} {outcome.at_fault} {outcome.model_ran} {outcome.confidence} {outcome.delivery} {outcome.wrote}"
    )
    asked = (outcome.decide_by or "").partition(":")[0]
    cited = [(each.attempt, each.direction, each.start, each.end, each.quote) for each in outcome.evidence]
    return {
        "outcome": said,
        "decide_by": asked,
        "flags": list(outcome.flags),
        "words": brief((outcome.detail, outcome.remedy, outcome.decide_by, outcome.signature)),
        "evidence": brief(cited),
    }


def _material() -> Iterator[tuple[str, Classified, str | None]]:
    """(name, verdict, known text) of every carried exchange, then of fuzzed ones."""
    pool: list[Original] = []
    for line in carried("cases.jsonl.zst"):
        loaded = from_case(json.loads(line))
        pool.append(Original(f"case/{loaded.id}", loaded.request_raw, loaded.response_raw, loaded.view.end))
        yield pool[-1].name, judge(loaded.view), None
    file, memory = "", RunMemory()
    lines: list[bytes] = []
    for line in [*carried("captures.jsonl.zst"), b'{"kind": "meta", "file": "end"}']:
        record = json.loads(line)
        if record.get("kind") == "meta":
            for loaded in captures(lines):
                classified = judge(loaded.view, memory)
                classified.remember(memory)
                name = f"{file}/{loaded.id}"
                pool.append(Original(name, loaded.request_raw, loaded.response_raw, loaded.view.end, loaded.known_text))
                yield name, classified, loaded.known_text
            file, memory, lines = record["file"], RunMemory(), []
        lines.append(line)
    for number in range(FUZZED):
        made = fuzzed(SEED, number, pool)
        # What a compressor writes depends on its version.
        if made.way == "record" and b"ontent-Encoding" not in made.response + made.request:
            yield f"fuzzed/{number}", judge(view_of(exchange_of(made), made.stack)), made.known_text


def exchanges() -> dict[str, dict[str, Any]]:
    """The snapshot of every exchange, by name."""
    found: dict[str, dict[str, Any]] = {}
    for name, classified, known in _material():
        said = of_assembled(assemble(classified.facts.view.wire)) | of_outcome(classified.outcome)
        if known is not None:
            said["sighted"] = of_outcome(sighted(classified.facts, classified.outcome, known))
        found[name] = said
    return found


def damaged() -> dict[str, dict[str, Any]]:
    """The snapshot of exchanges with one thing wrong, by what it is; the reasons of the evidence included."""
    found: dict[str, dict[str, Any]] = {}
    for name, view in views():
        outcome = judge(view).outcome
        reasons = brief([each.why for each in outcome.evidence])
        found[name] = of_assembled(assemble(view.wire)) | of_outcome(outcome) | {"reasons": reasons}
    return found


def texts() -> dict[str, dict[str, Any]]:
    """The snapshot of every known text of the captures, whole and cut, and of every text of the formats' cases."""
    known = {json.loads(line).get("canary_text") for line in carried("captures.jsonl.zst")}
    whole = sorted(text for text in known if text)
    for path in sorted((DATA.parent / "stacks" / "formats" / "cases").rglob("*.json*")):
        whole += sorted(set(_strings(path.read_text(encoding="utf-8"))))
    found: dict[str, dict[str, Any]] = {}
    for text in dict.fromkeys(whole):
        for cut in sorted({len(text), len(text) * 2 // 3, len(text) // 3, max(0, len(text) - 3)}):
            scan = find_calls(text[:cut], TOOLS)
            found[brief(text[:cut])] = {
                "text": text[:cut][:60],
                "format": scan.format,
                "calls": brief(scan.calls),
                "readings": brief((scan.readings, scan.strict)),
                "rest": brief((scan.reasoning, scan.problems, scan.prose, scan.leaks, scan.cut)),
            }
    return found


def _strings(source: str) -> Iterator[str]:
    try:
        values: list[Any] = [json.loads(source)]
    except ValueError:
        values = [json.loads(line) for line in source.splitlines() if line.strip()]
    while values:
        value = values.pop()
        if isinstance(value, str) and len(value) > 5:
            yield value
        elif isinstance(value, (list, dict)):
            values += value.values() if isinstance(value, dict) else value


KINDS = {"exchanges": exchanges, "damaged": damaged, "texts": texts}


def kept(kind: str) -> dict[str, dict[str, Any]]:
    """The snapshot as it was committed."""
    return {said.pop("name"): said for line in carried(f"golden/{kind}.jsonl.zst") if (said := json.loads(line))}


def keep(kind: str) -> dict[str, dict[str, Any]]:
    """Write the snapshot of today; returns it."""
    found = KINDS[kind]()
    FOLDER.mkdir(exist_ok=True)
    lines = "\n".join(json.dumps({"name": name, **said}) for name, said in found.items())
    (FOLDER / f"{kind}.jsonl.zst").write_bytes(zstandard.ZstdCompressor(level=19).compress(lines.encode()))
    return found


def changes(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> list[str]:
    """One line for each difference."""
    said = [f"{name}: gone" for name in before if name not in after] + [f"{n}: new" for n in after if n not in before]
    for name in before.keys() & after.keys():
        for part in before[name].keys() | after[name].keys():
            one, other = before[name].get(part), after[name].get(part)
            if one != other:
                said.append(f"{name}: {part}: {one} -> {other}")
    return sorted(said)
