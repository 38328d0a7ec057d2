"""Episodes made by hand: a word for each turn, as the tables of the tests write them."""

from __future__ import annotations

from collections.abc import Sequence

from results.episodes import CallRecord, CellKey, EndedBy, EpisodeRecord, TurnRecord
from results.outcomes import Outcome
from results.taxonomy import info

CELL = CellKey("llama3.2", "llamacpp", "native", "aggregation")

TURNS = {
    "v": "ok.native_call",
    "t": "ok.text_call",
    "h": "model.unknown_tool",
    "u": "model.malformed_call",
    "i": "model.invalid_arguments",
    "p": "model.no_call",
    "f": "ok.final_answer",
    "n": "ok.no_call_needed",
    "x": "nonresponse.empty",
    "g": "gate.tools_unsupported",
    "r": "transport.reset",
    "l": "parser.left_as_text",
    "d": "parser.dropped",
    "b": "truncation.output_budget",
    "s": "ok.service",
}
"""One letter a turn."""


def outcome(name: str) -> Outcome:
    """An outcome with the usual fault of its name."""
    code = info(name)
    decide = "wire: ask again" if code.usual_fault == "undetermined" else None
    return Outcome(
        layer=code.layer,
        code=code.code,
        at_fault=code.usual_fault,  # type: ignore[arg-type]
        model_ran=code.model_ran,  # type: ignore[arg-type]
        decide_by=decide,
        wrote="valid_call" if name in ("ok.native_call", "ok.text_call", "parser.left_as_text") else "unknown",
    )


def not_run(code: str, fault: str = "config") -> Outcome:
    """What infrastructure ended."""
    decide = "wire: ask again" if fault == "undetermined" else None
    return Outcome(layer="not_run", code=code, at_fault=fault, model_ran="no", decide_by=decide)  # type: ignore[arg-type]


def turns(letters: str, *, post_cap: int = 0) -> tuple[TurnRecord, ...]:
    """Turns by their letters; the last `post_cap` of them past the cap; `L` is a call that the client recovered."""
    made = []
    for number, letter in enumerate(letters):
        name = TURNS[letter.lower()]
        executed = letter in "vtL"
        made.append(
            TurnRecord(
                outcome=outcome(name),
                channel="native" if letter == "v" else "text" if letter in "tL" else "none",
                recovered="fence" if letter == "L" else "",
                calls=(CallRecord(name="read_file", executed=executed),) if executed else (),
                post_cap=number >= len(letters) - post_cap,
            )
        )
    return tuple(made)


def episode(
    letters: str,
    *,
    seed: int = 0,
    repeat: int = 0,
    ended_by: EndedBy = "done_tool",
    result: str | Outcome = "ok.task_done",
    cell: CellKey = CELL,
    post_cap: int = 0,
    rejudged: str | None = None,
    plan: str = "",
) -> EpisodeRecord:
    """One episode from the letters of its turns."""
    return EpisodeRecord(
        episode=f"{cell.text}-{seed}-{repeat}",
        cell=cell,
        seed=seed,
        repeat=repeat,
        outcome=outcome(result) if isinstance(result, str) else result,
        ended_by=ended_by,
        turns=turns(letters, post_cap=post_cap),
        rejudged=outcome(rejudged) if rejudged else None,
        plan=plan,
    )


def episodes(rows: Sequence[str], cell: CellKey = CELL) -> list[EpisodeRecord]:
    """One episode a row, seeds numbered from 0."""
    return [episode(row, seed=seed, cell=cell) for seed, row in enumerate(rows)]
