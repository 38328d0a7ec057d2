"""One set-up through both tools on the same live server, before and after the remedy that `diagnose` printed."""

from __future__ import annotations

import re
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tests.setups.build import Said, Standing, diagnosed_at, standing
from tests.setups.check import faults_of, mended
from tests.setups.known import SETUPS
from tests.setups.model import Setup
from tests.versus import canary, peer
from tests.versus.cases import CURES, MODELS

_LONGEST_QUOTE = 280


def row(name: str) -> dict[str, Any]:
    """The facts of one set-up, as plain data."""
    setup = replace(SETUPS[name], model=MODELS.get(name, SETUPS[name].model))
    healed = mended(setup)
    replayed = setup.stack.startswith("ollama")
    with tempfile.TemporaryDirectory() as home:
        with standing(setup, model_of=canary.built) as at:
            theirs, ours = peer.run(setup, at), diagnosed_at(setup, at, Path(home))
            where = at
        with standing(healed, model_of=canary.built) as at:
            # The replayed captures hold no answers to the peer's own questions on a healthy model.
            again = None if replayed else peer.run(healed, at)
            after = diagnosed_at(healed, at, Path(home))
    return {
        "setup": name,
        "title": setup.title,
        "stack": setup.stack,
        "cure": CURES[name],
        "peer": _theirs(theirs, where),
        "stacktap": _ours(setup, ours, after, where),
        "after": _after(again, after),
        "peer_advice_heals": CURES[name] in theirs.said.advises and (again is None or again.said.score == 100),
    }


def _theirs(run: peer.PeerRun, at: Standing) -> dict[str, Any]:
    said = asdict(run.said)
    quote = plain(said.pop("quote"), at)
    if len(quote) > _LONGEST_QUOTE:
        quote = quote[:_LONGEST_QUOTE].rsplit(" ", 1)[0] + " ..."
    return {"arguments": list(run.arguments), **said, "quote": quote, "seconds": round(run.seconds, 1)}


def _ours(setup: Setup, said: Said, after: Said, at: Standing) -> dict[str, Any]:
    outcome = said.facts.get("outcome") or {}
    faults = faults_of(setup, said, after)
    return {
        "exit_code": said.code,
        "verdict": f"{outcome['layer']}.{outcome['code']}" if outcome else "healthy",
        "at_fault": outcome.get("at_fault", "nobody"),
        "grade": outcome.get("grade", ""),
        "model_ran": outcome.get("model_ran", ""),
        "headline": plain(said.facts.get("headline", ""), at),
        "remedy": plain(said.facts.get("remedy", ""), at),
        "requests": said.facts.get("requests", 0),
        "seconds": said.facts.get("seconds", 0.0),
        "right_and_heals": not faults,
        "faults": [plain(fault, at) for fault in faults],
    }


def _after(again: peer.PeerRun | None, after: Said) -> dict[str, Any]:
    return {
        "stacktap_healthy": bool(after.facts.get("healthy")),
        "peer_score": None if again is None else again.said.score,
        "peer_left_out": None if again is None else again.said.left_out,
    }


def plain(text: str, at: Standing) -> str:
    """Without what differs from run to run and from machine to machine: ports, folders, the name of the model file."""
    text = text.replace(at.url, "URL").replace(at.direct, "DIRECT").replace(at.model, "MODEL")
    text = re.sub(r"(?<![\w.])(?:/[\w.+-]+)+/(canaries|stacktap)/[\w./+-]*", "FILE", text)
    text = re.sub(r"https?://(?:\*\*\*|127\.0\.0\.1|localhost):\d+", "URL", text)
    return re.sub(r"\s+", " ", text).strip()
