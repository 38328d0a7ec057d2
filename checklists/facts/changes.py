"""What to change, or what would decide it, each advice once. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from checklists.facts.groups import lengthen
from checklists.facts.records import Change, FaultGroup

SHOWN_CHANGES = 5
_CLIENT = "(the program's own limit)"
_DECIDERS = {
    "server_log": "look into the server's log for ",
    "launch_flags": "look up how the server was started: ",
    "wire": "record the other side of the connection: ",
}


@dataclass(slots=True)
class _Advice:
    words: str
    first: FaultGroup
    decides: bool
    outcomes: Counter[str] = field(default_factory=Counter)
    servers: set[str] = field(default_factory=set)
    limits: set[int] = field(default_factory=set)

    def change(self, *, several: bool) -> Change:
        named = [name for name, _ in sorted(self.outcomes.items(), key=lambda item: (-item[1], item[0]))]
        return Change(
            change=lengthen(self.limits) if self.limits else self.words,
            count=self.outcomes.total(),
            outcome=named[0],
            why=self.first.meaning,
            where=", ".join(sorted(self.servers)) if several and not self.limits else "",
            decides=self.decides,
            also=tuple(named[1:]),
            client=bool(self.limits),
        )


def changes(groups: Sequence[FaultGroup], diagnose: Mapping[str, str], *, several: bool) -> list[Change]:
    """What mends most comes first; what decides an open verdict stands where nothing is known to be changed."""
    found: dict[str, _Advice] = {}
    for group in groups:
        decides = group.at_fault == "undetermined"
        words = _deciding(group, diagnose) if decides else group.remedy
        if not words:
            continue
        key = words if not group.limits or decides else _CLIENT
        each = found.setdefault(key, _Advice(words, group, decides))
        each.outcomes[group.outcome] += group.count
        each.servers.update(group.upstreams)
        if not decides:
            each.limits.update(group.limits)
    given = [one.change(several=several) for one in found.values()]
    return sorted(given, key=lambda change: (change.decides, -change.count))[:SHOWN_CHANGES]


def _deciding(group: FaultGroup, diagnose: Mapping[str, str]) -> str:
    """What would decide it, beginning with the command that does, where there is one (`diagnose`, by server)."""
    kind, colon, said = group.decide_by.partition(": ")
    if not colon or not kind.replace("_", "").isalpha():
        return group.decide_by
    command = next((diagnose[name] for name in sorted(group.upstreams) if name in diagnose), "")
    if kind == "comparison_request" and command:
        return f"run `{command}`, which sends what decides it: {said}"
    return f"{_DECIDERS.get(kind, '')}{said}"


def again_with_room(remedy: str, command: str) -> str:
    """The command of a pairing with the context that the remedy names, "" where the command set none: the server that
    was too small was then stacktap's own."""
    room = next((number for number in re.findall(r"\d{4,7}", remedy.replace(",", ""))), "")
    told = re.search(r"--context[ =](\d{1,7})(?= |$)", command)
    if not room or told is None or int(told[1]) >= int(room):
        return ""
    return command[: told.start(1)] + room + command[told.end(1) :]
