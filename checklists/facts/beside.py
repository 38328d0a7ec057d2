"""What `diagnose` and `pair` left beside a journal: verdicts by experiment, better founded than the record alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from checklists.facts.records import Beside
from checklists.facts.stations import meaning_of
from probe.pairing.telling import STEP_WORDS
from results.plain_files import read_plain

DIAGNOSIS, PAIRING = "diagnosis.json", "pairing.json"
MAX_BYTES = 16 << 20
LONGEST = 2000
_PAIRED = {"pairs": "clean", "pairs_with_faults": "faults", "broken": "faults"}


def beside(folder: Path) -> tuple[Beside, ...]:
    """The verdicts kept in a run's folder; files that are missing, too large or no such thing are passed over."""
    found = []
    for name, read in ((DIAGNOSIS, _diagnosis), (PAIRING, _pairing)):
        said = _object(folder / name)
        if said is not None:
            found.append(read(said))
    return tuple(found)


def _object(path: Path) -> Mapping[str, Any] | None:
    try:
        found = msgspec.json.decode(read_plain(path, MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _diagnosis(said: Mapping[str, Any]) -> Beside:
    outcome = _mapping(said, "outcome")
    undecided = said.get("healthy") is not True or _text(said, "headline").startswith("No verdict")
    name = f"{_text(outcome, 'layer')}.{_text(outcome, 'code')}" if outcome else ""
    return Beside(
        by="diagnose",
        headline=_text(said, "headline"),
        kind="faults" if outcome else "open" if undecided else "clean",
        outcome=name,
        meaning=meaning_of(name),
        at_fault=_text(outcome, "at_fault"),
        model_ran=_text(outcome, "model_ran"),
        grade=_text(outcome, "grade"),
        remedy=_text(said, "remedy"),
        decide_by=_text(said, "decide_by"),
        explained=_texts(said, "explained"),
    )


def _pairing(said: Mapping[str, Any]) -> Beside:
    broken = _mapping(said, "broken")
    outcome = _mapping(broken, "outcome")
    name = _text(broken, "code")
    agent, server = _mapping(said, "agent"), _mapping(said, "server")
    walked = said.get("steps")
    names = [_text(step, "step") for step in (walked if isinstance(walked, list) else ()) if isinstance(step, dict)]
    step = _text(broken, "step")
    return Beside(
        by="pair",
        headline=_text(said, "headline"),
        kind=_PAIRED.get(_text(said, "verdict"), "open"),
        outcome=name,
        meaning=meaning_of(name),
        at_fault=_text(broken, "at_fault"),
        model_ran=_text(outcome, "model_ran"),
        grade="known-answer",
        remedy=_text(broken, "remedy"),
        decide_by=_text(broken, "decide_by"),
        explained=tuple(text for text in (_text(broken, "said"),) if text),
        agent=_text(agent, "name"),
        stack=_text(server, "stack"),
        version=_text(server, "version"),
        step=names.index(step) + 1 if step in names else 0,
        steps=len(names),
        doing=STEP_WORDS.get(step, ""),
        quote=_text(broken, "quote"),
    )


def _mapping(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = of.get(name)
    return found if isinstance(found, dict) else {}


def _text(of: Mapping[str, Any], name: str) -> str:
    found = of.get(name)
    return found[:LONGEST] if isinstance(found, str) else ""


def _texts(of: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = of.get(name)
    return tuple(each[:LONGEST] for each in found[:12] if isinstance(each, str)) if isinstance(found, list) else ()
