"""Ways to answer an item, and one answer out of several servers', models' or cells'."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from checklists.items.material import Material, Server
from checklists.items.records import Filled, Link, Part, State

MOST_LINKS = 8


def yes(item: str, value: str, *, links: Sequence[Link] = (), **data: Any) -> Filled:
    """Answered with a value."""
    return Filled(id=item, state="yes", value=value, evidence=_few(links), data=data)


def no(item: str, value: str, *, why: str = "", links: Sequence[Link] = (), **data: Any) -> Filled:
    """Answered with a truthful no."""
    return Filled(id=item, state="no", value=value, why=why, evidence=_few(links), data=data)


def not_done(item: str, why: str, command: str = "") -> Filled:
    """A no that answers nothing: it was not looked at."""
    return Filled(id=item, state="no", why=why, command=command, done=False)


def unknown(item: str, why: str, command: str, known: str = "") -> Filled:
    """Not found out; `command` would fill it, `known` is what is known of it already."""
    return Filled(id=item, state="unknown", why=why, command=command, value=known)


def not_applicable(item: str, why: str) -> Filled:
    """A question that does not arise in this run."""
    return Filled(id=item, state="not_applicable", why=why)


def part(about: str, state: State, value: str = "", why: str = "", command: str = "", *, done: bool = True) -> Part:
    """The answer for one server, model or cell."""
    return Part(about=about, state=state, value=value, why=why, command=command, done=done)


_COUNTED = re.compile(r"\d+ of \d+")


def joined(item: str, parts: Sequence[Part], *, links: Sequence[Link] = (), **data: Any) -> Filled:
    """One answer out of several: unknown as long as one part is, else not done as long as one is, else answered."""
    alike = _alike(parts)
    if len(alike) == 1:
        only = alike[0]
        # A count that several servers have in common is each one's own: the run's would be their sum.
        each = f"for each of {len(parts)}: " if len(parts) > 1 and _COUNTED.search(only.value) else ""
        return Filled(
            id=item,
            state=only.state,
            value=each + only.value,
            why=only.why,
            command=only.command,
            done=only.done,
            evidence=_few(links),
            data=data,
        )
    state, done = _state_of(alike)
    open_parts = [one for one in alike if one.state == state and one.done == done]
    value = "; ".join(f"{one.about}: {_words(one)}" for one in alike if one.state != "unknown" or one.value)
    if state == "unknown":
        value = "; ".join(f"{one.about}: {one.value}" for one in alike if one.value)
    settled = state in ("yes", "no") and done
    return Filled(
        id=item,
        state=state,
        value=value if settled or state == "unknown" else "",
        why="" if settled else "; ".join(f"{one.about}: {one.why}" for one in open_parts if one.why),
        command=next((one.command for one in open_parts if one.command), ""),
        done=done,
        parts=tuple(alike),
        evidence=_few(links),
        data=data,
    )


def _words(one: Part) -> str:
    return one.value or {"not_applicable": f"not applicable ({one.why})"}.get(one.state, one.why)


def _state_of(parts: Sequence[Part]) -> tuple[State, bool]:
    states = {one.state for one in parts}
    if "unknown" in states:
        return "unknown", True
    if any(not one.done for one in parts):
        return "no", False
    if states == {"not_applicable"}:
        return "not_applicable", True
    # A yes beside a no is an answer with both in it.
    return ("yes" if "yes" in states else "no"), True


def _alike(parts: Sequence[Part]) -> list[Part]:
    """Parts that say the same are one, named together."""
    names: dict[tuple[str, str, str, str, bool], list[str]] = {}
    for one in parts:
        names.setdefault((one.state, one.value, one.why, one.command, one.done), []).append(one.about)
    return [
        Part(about=_named(abouts), state=state, value=value, why=why, command=command, done=done)  # type: ignore[arg-type]
        for (state, value, why, command, done), abouts in names.items()
    ]


def _named(names: Sequence[str]) -> str:
    few = ", ".join(names[:3])
    return few if len(names) <= 3 else f"{few} and {len(names) - 3} more"


def per_server(
    item: str, material: Material, parts: Sequence[tuple[Server, Part]], *, links: Sequence[Link] = (), **data: Any
) -> Filled:
    """One answer over the servers of a run; unknown where the record names no server at all."""
    if not parts:
        why = "the record names no server: nothing was sent, and there is no manifest (run.json)"
        return unknown(item, why, material.stated_command(item, "..."))
    return joined(item, [one for _, one in parts], links=links, **data)


def counts(found: dict[str, int]) -> str:
    """`nonresponse 2, gate 1`, the largest first; "none" for nothing."""
    ordered = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} {count}" for name, count in ordered if count) or "none"


def share(hits: int, trials: int) -> str:
    """`8 of 12`."""
    return f"{hits} of {trials}"


def _few(links: Sequence[Link]) -> tuple[Link, ...]:
    return tuple(links[:MOST_LINKS])
