"""The three forms of the report on a run of packs, the kept answers, and whether the run is stale."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from checklists.packs.document import Shown, bar, document_of, name_of, said
from checklists.report.html import html
from checklists.report.markdown import escaped, fenced, markdown
from checklists.report.writing import Rendered, without_homes
from harness.packs.family import PACKS, SCORING_VERSION
from harness.packs.model import FORMAT, Pack
from harness.packs.record import RunRecord
from harness.packs.summary import Who, facts
from results.episodes import CellKey, CellPlan, EpisodeRecord
from results.version import VERSION
from results.whole_files import write_whole

JSON_VERSION = 1
RESPONSES = "responses"
FORMS = ("scores.md", "scores.html", "scores.json")
"""Files of this report; `report.*` in the same folder is the serving checklist of its traffic (`stacktap report`)."""


def rendered(shown: Shown) -> Rendered:
    """Markdown, HTML and JSON."""
    page = document_of(shown)
    kept = msgspec.json.format(msgspec.json.encode(data(shown)), indent=1) + b"\n"
    return Rendered(_bytes(markdown(page)), _bytes(html(page)), kept)


def data(shown: Shown) -> dict[str, Any]:
    """The report as data."""
    return {
        "version": JSON_VERSION,
        "run": msgspec.to_builtins(shown.record),
        "stale": list(shown.stale),
        "findings": list(shown.findings),
        "results": facts(shown.results),
    }


def text(shown: Shown) -> str:
    """For a terminal: one line for a model, what has no score below it, and tasks that are worth nothing."""
    lines: list[str] = []
    for pack, by_model in shown.results.results.items():
        lines += [f"pack {pack}", ""]
        wide = max(len(name_of(who)) for who in by_model)
        for who, one in by_model.items():
            score = one.score()
            compat = f"  AQBE: {one.aqbe:.1f} %" if shown.aqbe and one.aqbe is not None else ""
            seconds = "" if one.seconds is None else f"  {one.seconds:.1f} s/answer"
            lines.append(f"  {name_of(who):{wide}}  {bar(score.value)}  {said(score)}{seconds}{compat}")
            lines += [
                f"  {'':{wide}}  no score: {outcome.removeprefix('not_run.')} x{count}"
                for outcome, count in sorted(one.outside.items())
            ]
            if one.hard_fails:
                lines.append(f"  {'':{wide}}  hard fails: {', '.join(one.hard_fails)}")
        told = "; ".join(f"{name_of(one)} | {name_of(other)}" for one, other in shown.results.overlapping(pack))
        lines += ["", *([f"  not told apart by these tasks: {told}", ""] if told else [])]
    lines += [f"not run: {what}: {why}" for what, why in sorted(shown.record.not_run.items())]
    lines += [f"stale: {one}" for one in shown.stale]
    lines += [f"beware: {one}" for one in shown.findings]
    return "\n".join(lines).rstrip()


def stale(plans: dict[CellKey, CellPlan], packs: Sequence[Pack] = ()) -> tuple[str, ...]:
    """In what the software, the format or a pack at hand differs from what the answers were judged by."""
    known = {pack.name: pack for pack in packs}
    found: dict[str, None] = {}
    now: dict[str, Any] = {"stacktap": VERSION, "pack_format": FORMAT, "scoring": SCORING_VERSION}
    for cell, plan in plans.items():
        if not cell.task.startswith(PACKS):
            continue
        for name, value in now.items():
            was = plan.facts[name].value if name in plan.facts else None
            if was != value:
                found[f"{name} was {was}, and is {value} now"] = None
        pack = known.get(cell.task.removeprefix(PACKS).partition("/")[0])
        if pack is not None and plan.facts["pack_sha256"].value != pack.digest:
            was = str(plan.facts["pack_sha256"].value)[:12]
            found[f"the pack {pack.name} was {was}, and is {pack.digest[:12]} now: run it again"] = None
    return tuple(found)


def responses(episodes: Iterable[EpisodeRecord], order: Sequence[Who]) -> Iterator[tuple[str, bytes]]:
    """The kept answers of each model, with their verdicts: file name and Markdown."""
    by_model: dict[Who, list[EpisodeRecord]] = {}
    for episode in episodes:
        if episode.cell.task.startswith(PACKS):
            cell = episode.cell
            by_model.setdefault((cell.model, cell.stack, cell.condition), []).append(episode)
    places = {who: at for at, who in enumerate(order)}
    taken: set[str] = set()
    for who in sorted(by_model, key=lambda one: (places.get(one, len(places)), one)):
        slug = re.sub(r"[^a-z0-9]+", "_", "_".join(who).lower()).strip("_") or "model"
        while slug in taken:
            slug += "_"
        taken.add(slug)
        rows = sorted(by_model[who], key=lambda one: (one.cell.task, one.seed, one.repeat))
        yield f"{slug}.md", _bytes("\n".join(_answers(who, rows)) + "\n")


def _answers(who: Who, rows: Sequence[EpisodeRecord]) -> Iterator[str]:
    yield f"# {escaped(name_of(who))}"
    for episode in rows:
        kept = episode.answer if isinstance(episode.answer, dict) else {}
        share = "no score" if episode.score is None else f"{100 * episode.score:.0f} %"
        yield ""
        yield f"## {escaped(episode.cell.task.removeprefix(PACKS))}, answer {episode.repeat + 1}"
        yield ""
        yield f"{share}, {escaped(episode.outcome.name)}. {escaped(episode.outcome.detail)}".rstrip()
        yield ""
        yield from fenced(str(kept.get("text", "")))


def without_machine(record: RunRecord) -> RunRecord:
    """The record with `~` for every home folder: why something was not run may name a path."""
    return msgspec.convert(without_homes(msgspec.to_builtins(record)), RunRecord)


def order_of(record: RunRecord) -> list[Who]:
    """The models in the order in which they were asked for."""
    return [(one.model, one.stack, one.condition) for one in record.models]


def write_forms(folder: Path, shown: Shown) -> None:
    """Write the three forms. Raises OSError."""
    forms = rendered(shown)
    for name, body in zip(FORMS, (forms.md, forms.html, forms.json), strict=True):
        write_whole(folder / name, body)


def write_responses(folder: Path, episodes: Iterable[EpisodeRecord], order: Sequence[Who]) -> None:
    """Write `responses/`. Raises OSError."""
    place = folder / RESPONSES
    place.mkdir(mode=0o700, exist_ok=True)
    for name, body in responses(episodes, order):
        write_whole(place / name, body)


def _bytes(said_text: str) -> bytes:
    return said_text.encode("utf-8", "backslashreplace")
