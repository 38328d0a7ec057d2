"""The way of a request from the client to the model and back, and where exchanges stopped on it."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from checklists.facts.records import Station
from results.taxonomy import CODES, FAULTS, LAYERS


class Place(NamedTuple):
    """A station and the layers of outcomes that stop there."""

    key: str
    title: str
    meaning: str
    layers: tuple[str, ...]


WAY = (
    Place("client", "Your program", "the agent or harness that sends the request", ()),
    Place(
        "network", "Network and relay", "the connection to the server, and whatever stands in between", ("transport",)
    ),
    Place("gate", "Server gate", "the server decides whether it takes such a request for this model", ("gate",)),
    Place("request", "Request checks", "the server reads the request: JSON, schemas, history, length", ("request",)),
    Place("template", "Chat template", "messages and tools are written out as one prompt", ("template",)),
    Place(
        "engine",
        "Engine and model",
        "the model generates; engine faults, empty answers and limits on the answer stop it here",
        ("engine", "nonresponse", "truncation"),
    ),
    Place("parser", "Tool-call parser", "the server reads calls out of what the model wrote", ("parser",)),
    Place("protocol", "Wire protocol", "the answer is put into the form that the API promises", ("protocol",)),
    Place(
        "back", "Back at your program", "the answer arrived as the model wrote it: right or wrong", ("model", "task")
    ),
)
"""In the order of a request's way. What the model did wrong stops nowhere: it arrives, and is the model's own doing."""

_PLACE = {layer: number for number, place in enumerate(WAY) for layer in place.layers}
_UNPLACED = len(WAY) - 1
"""Outcomes of packs (checker, not_run) are no exchanges; where one comes all the same, it is counted at the end."""


class PathCounter:
    """Counts exchanges by where they stopped. Exchanges that asked no model for anything are not counted."""

    def __init__(self) -> None:
        self._stops: list[Counter[str]] = [Counter() for _ in WAY]
        self._faults: list[Counter[str]] = [Counter() for _ in WAY]
        self._total = 0

    def add(self, layer: str, name: str, at_fault: str) -> None:
        """Count one exchange."""
        self._total += 1
        if layer == "ok":
            return
        number = _PLACE.get(layer, _UNPLACED)
        self._stops[number][name] += 1
        self._faults[number][at_fault] += 1

    def stations(self) -> tuple[Station, ...]:
        """Every station with what came in and what stopped there."""
        found, entered = [], self._total
        for place, stops, faults in zip(WAY, self._stops, self._faults, strict=True):
            stopped = stops.total()
            found.append(
                Station(
                    place.key,
                    place.title,
                    place.meaning,
                    entered,
                    stopped,
                    {name: stops[name] for name in sorted(stops, key=lambda name: (-stops[name], name))},
                    {fault: faults[fault] for fault in FAULTS if faults[fault]},
                )
            )
            entered -= stopped
        return tuple(found)


def in_order(names: Counter[str]) -> list[str]:
    """Names of outcomes in the order of a request's way, frequent ones first."""
    place = {layer: number for number, layer in enumerate(LAYERS)}
    return sorted(names, key=lambda name: (place.get(name.partition(".")[0], len(place)), -names[name], name))


def meaning_of(name: str) -> str:
    """What an outcome means; empty for a name that is not in the taxonomy."""
    return CODES[name].meaning if name in CODES else ""
