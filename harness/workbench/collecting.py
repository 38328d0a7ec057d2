"""From the record of answers to a run: verdicts, rates with intervals, differences from the chain's baseline. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from harness.packs.model import Arguments, Pack
from harness.structured.layers import Layers
from harness.structured.questions import Calling
from harness.structured.reading import TIERS
from harness.workbench.record import (
    CaseRow,
    Cost,
    DepthPoint,
    Difference,
    PackRow,
    RungRun,
    Share,
)
from harness.workbench.verdicts import LAYERS, WRONG_TOOL, died_in, evaluator_of, reached, verdicts
from results.episodes import EpisodeRecord
from results.rates import wilson
from results.statistics.cases import CaseBootstrap, CaseRate
from results.statistics.pairs import Delta

RIGHT = "right"
BASE = "L0"


def pack_row(pack: Pack) -> PackRow:
    """What a report says of a pack."""
    kinds: dict[str, int] = {}
    for task in pack.tasks:
        kinds[task.category] = kinds.get(task.category, 0) + 1
    tools = tuple(sorted({len(task.tools) for task in pack.tasks if task.tools}))
    return PackRow(
        name=pack.name,
        version=pack.version,
        sha256=pack.digest,
        cases=len(pack.tasks),
        kinds=kinds,
        tools_per_call=tools,
    )


def case_row(pack: Pack, episode: EpisodeRecord, calling: Calling) -> CaseRow:
    """One answer judged. Raises ValueError for a record whose answer is none of this pack's."""
    answer = episode.answer
    if not isinstance(answer, dict) or not isinstance(answer.get("text"), str) or episode.seed >= len(pack.tasks):
        raise ValueError(f"the record of case {episode.seed} holds no answer to the pack {pack.name}")
    finish = str(answer.get("finish", ""))
    found = verdicts(pack.tasks[episode.seed], answer["text"], finish, calling)
    lenient = found["lenient"]
    return CaseRow(
        at=episode.seed,
        strict=found["strict"].died_in,
        lenient=lenient.died_in,
        extractor=lenient.extractor,
        tool=_tool_of(pack, episode.seed, lenient),
        finish=finish,
        tokens=int(answer.get("tokens", 0)),
        seconds=float(answer.get("seconds", 0.0)),
        grammar=str(answer.get("grammar", "off")),
    )


def _tool_of(pack: Pack, at: int, lenient: Layers) -> str:
    """Whether a valid call named the right tool: `right`, `other`; empty where there is no valid call."""
    if not isinstance(evaluator_of(pack.tasks[at]), Arguments) or not lenient.schema_valid:
        return ""
    return "other" if lenient.why.startswith(WRONG_TOOL) else "right"


def series_of(rows: Sequence[CaseRow]) -> dict[str, list[bool]]:
    """Yes or no for each case, by `parser.layer`, in the order of the rows."""
    return {
        f"{tier}.{layer}": [reached(row.strict if tier == "strict" else row.lenient) > at for row in rows]
        for tier in TIERS
        for at, layer in enumerate(LAYERS)
    }


class Comparable:
    """Cells over the same cases, resampled together. `cells` are rows by any name, each in the pack's order.

    Raises ValueError where two have not the same cases.
    """

    def __init__(self, pack: Pack, cells: Mapping[str, Sequence[CaseRow]], only: Sequence[int] | None = None) -> None:
        kept = None if only is None else set(only)
        rows = {name: [row for row in cell if kept is None or row.at in kept] for name, cell in cells.items()}
        places = {name: [row.at for row in cell] for name, cell in rows.items()}
        self.places = next(iter(places.values()), [])
        for name, found in places.items():
            if found != self.places:
                raise ValueError(f"{name} has not the same cases as {next(iter(places))}: nothing can be paired")
        series = {f"{name} {key}": values for name, cell in rows.items() for key, values in series_of(cell).items()}
        named = ",".join(pack.tasks[at].id for at in self.places)
        self._drawn = CaseBootstrap(series, sha256(f"{pack.digest} {named}".encode()).hexdigest())

    def share(self, cell: str, tier: str, layer: str) -> Share:
        """A rate with its interval."""
        return _share(self._drawn.rate(f"{cell} {tier}.{layer}"))

    def shares(self, cell: str) -> dict[str, dict[str, Share]]:
        """All rates of a cell, by parser and layer."""
        return {tier: {layer: self.share(cell, tier, layer) for layer in LAYERS} for tier in TIERS}

    def difference(self, before: str, after: str, tier: str, without: tuple[str, ...] = ()) -> Difference:
        """What `after` has more of right answers than `before`, paired."""
        key = f"{tier}.content_correct"
        return _difference(self._drawn.delta(f"{before} {key}", f"{after} {key}"), without)


def _share(rate: CaseRate) -> Share:
    return Share(round(rate.value, 6), round(rate.interval.low, 6), round(rate.interval.high, 6))


def _difference(delta: Delta, without: tuple[str, ...]) -> Difference:
    return Difference(
        value=round(delta.value, 6),
        low=round(delta.interval.low, 6),
        high=round(delta.interval.high, 6),
        cases=delta.cases,
        gained=delta.gained,
        lost=delta.lost,
        verdict=delta.verdict,
        without=without,
    )


def blind_kinds(pack: Pack, baseline: Sequence[CaseRow]) -> tuple[str, ...]:
    """The kinds of which the strict parser reads not one answer of the baseline: no strict difference is read there."""
    read = {_kind(pack, row) for row in baseline if reached(row.strict)}
    return tuple(dict.fromkeys(_kind(pack, row) for row in baseline if _kind(pack, row) not in read))


def _kind(pack: Pack, row: CaseRow) -> str:
    return pack.tasks[row.at].category


def chain_cells(
    pack: Pack, baseline: str, cells: Mapping[str, Sequence[CaseRow]], rung: str = BASE
) -> dict[str, RungRun]:
    """The cells of a chain's tiers under one rung, each against the chain's own baseline where that is there."""
    drawn = Comparable(pack, cells)
    base = cells.get(baseline)
    blind = blind_kinds(pack, base) if base is not None else ()
    seen = [at for at in drawn.places if pack.tasks[at].category not in blind]
    strict = Comparable(pack, cells, seen) if base is not None and blind and seen else drawn
    found = {}
    for tier, rows in cells.items():
        against: dict[str, Difference] = {}
        moved: dict[str, int] = {}
        if base is not None and tier != baseline:
            against["lenient"] = drawn.difference(baseline, tier, "lenient")
            if seen:
                against["strict"] = strict.difference(baseline, tier, "strict", blind)
            moved = _moved(base, rows)
        found[tier] = rung_run(pack, rung, rows, drawn.shares(tier), against=against, moved=moved)
    return found


def rung_run(
    pack: Pack,
    rung: str,
    rows: Sequence[CaseRow],
    shares: dict[str, dict[str, Share]],
    *,
    against: dict[str, Difference] | None = None,
    moved: dict[str, int] | None = None,
) -> RungRun:
    """One cell with everything that needs no other cell."""
    return RungRun(
        rung=rung,
        cases=tuple(rows),
        shares=shares,
        died={"strict": died_in([row.strict for row in rows]), "lenient": died_in([row.lenient for row in rows])},
        kinds=_kinds(pack, rows),
        cost=_cost(rows),
        coverage=coverage_of(rows),
        against_baseline=against or {},
        moved=moved or {},
        depth=tuple(_depth(pack, rows)),
        tools_right=_tools(rows),
    )


def _kinds(pack: Pack, rows: Sequence[CaseRow]) -> dict[str, tuple[int, int, int]]:
    found: dict[str, tuple[int, int, int]] = {}
    for row in rows:
        cases, right, parsed = found.get(_kind(pack, row), (0, 0, 0))
        read = row.strict not in ("parse", "truncated")
        found[_kind(pack, row)] = (cases + 1, right + (row.lenient == ""), parsed + read)
    return found


def _cost(rows: Sequence[CaseRow]) -> Cost:
    seconds, tokens = sum(row.seconds for row in rows), sum(row.tokens for row in rows)
    rate = tokens / seconds if seconds else 0.0
    return Cost(round(seconds / len(rows), 3), round(tokens / len(rows), 1), round(rate, 1))


def coverage_of(rows: Sequence[CaseRow]) -> dict[str, int]:
    """How many cases were in each state of the grammar; empty where none was asked for."""
    states = [row.grammar for row in rows]
    return {} if set(states) <= {"off"} else {state: states.count(state) for state in sorted(set(states))}


def coverage_text(coverage: Mapping[str, int]) -> str:
    """`constrained 170 of 250 (80 build_unexpressible)`; empty without a grammar."""
    if not coverage:
        return ""
    total = sum(coverage.values())
    others = ", ".join(f"{count} {state}" for state, count in sorted(coverage.items()) if state != "ok")
    return f"constrained {coverage.get('ok', 0)} of {total}" + (f" ({others})" if others else "")


def _tools(rows: Sequence[CaseRow]) -> tuple[int, int]:
    """Of the valid calls: how many called the right tool, and how many there were."""
    called = [row.tool for row in rows if row.tool]
    return called.count("right"), len(called)


def _moved(before: Sequence[CaseRow], after: Sequence[CaseRow]) -> dict[str, int]:
    """Where cases died before and after, where that is not the same: `right to schema` -> how many."""
    found: dict[str, int] = {}
    for old, new in zip(before, after, strict=True):
        if old.lenient != new.lenient:
            name = f"{old.lenient or RIGHT} to {new.lenient or RIGHT}"
            found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))


def _depth(pack: Pack, rows: Sequence[CaseRow]) -> list[DepthPoint]:
    counts: dict[tuple[str, int], list[bool]] = {}
    for row in rows:
        labels = pack.tasks[row.at].labels
        if labels.get("depth", "").isdecimal() and labels.get("form") in ("turns", "length"):
            depth = int(labels["depth"])
            for form in ("turns", "length") if depth == 0 else (labels["form"],):
                counts.setdefault((form, depth), []).append(row.lenient == "")
    return [
        DepthPoint(form, depth, len(right), sum(right), wilson_share(sum(right), len(right)))
        for (form, depth), right in sorted(counts.items(), key=lambda one: (one[0][0] == "length", one[0][1]))
    ]


def wilson_share(successes: int, trials: int) -> Share:
    """A share with Wilson's interval."""
    low, high = wilson(successes, trials)
    return Share(round(successes / trials, 6), round(low, 6), round(high, 6))


def judged(pack: Pack, episodes: Iterable[EpisodeRecord], calling: Calling) -> list[CaseRow]:
    """All answers of a cell, judged, in the order of the pack."""
    return sorted((case_row(pack, episode, calling) for episode in episodes), key=lambda row: row.at)
