"""Every word that a reader who has never seen the project cannot know, in one plain sentence."""

from __future__ import annotations

import tomllib
from pathlib import Path

from checklists.facts.stations import WAY
from results.taxonomy import CODES

TERMS: dict[str, str] = tomllib.loads((Path(__file__).parent / "glossary.toml").read_text(encoding="utf-8"))
"""Word to sentence, in the words of a report."""

STATIONS: dict[str, str] = {place.title: place.meaning for place in WAY}
"""The places on a request's way."""

FAULT_WORDS = {
    "none": "nobody",
    "config": "configuration",
    "stack": "serving software",
    "client": "client program",
    "network": "network",
    "model": "model",
    "undetermined": "undecided",
}
"""What `at_fault` says, in words; each is a term but nobody, network and model."""


def meaning(word: str) -> str:
    """The sentence for a term, a place or an outcome. Raises KeyError."""
    return CODES[word].meaning if word in CODES else STATIONS[word] if word in STATIONS else TERMS[word]
