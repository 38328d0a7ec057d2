"""docs/versus.md from the measured facts. Pure."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tests.versus.cases import NOTES

_ROOT = Path(__file__).resolve().parents[2]
RESULT = _ROOT / "results" / "published" / "versus" / "versus.json"
DOCUMENT = _ROOT / "docs" / "versus.md"

_PAGE = Path(__file__).with_name("page.md")


def document(facts: dict[str, Any]) -> str:
    """The whole page."""
    rows = facts["rows"]
    again = [one["after"]["peer_score"] for one in rows]
    full = sum(score == 100 for score in again)
    perfect = "100 / 100 every time" if full == len(rows) else f"100 / 100 in {full} of {len(rows)}"
    offers = facts["peer"]["offers"]
    models = [one for one in rows if one["peer"]["blames"] == "model"]
    return _PAGE.read_text(encoding="utf-8").format(
        version=facts["peer"]["version"],
        perfect=perfect,
        table="\n".join(table(facts)),
        counts="\n".join(_counts(rows)),
        count=len(rows),
        short=offers["--short"],
        standard=offers["standard"],
        hardmode=offers["--hardmode"],
        stopped=sum(one["peer"]["exit_code"] != 0 for one in rows),
        left_out=sum(one["peer"]["left_out"] > 0 for one in rows),
        model=len(models),
        model_quote=models[0]["peer"]["quote"] if models else "",
    )


def table(facts: dict[str, Any]) -> list[str]:
    """The lines of the table: one for each set-up."""
    lines = [
        "| set-up | tool-eval-bench says | blames | advice heals | stacktap says | blames | remedy heals "
        "| mended: tool-eval-bench |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return [*lines, *(_line(one, facts["stacks"]) for one in facts["rows"])]


def _line(one: dict[str, Any], stacks: dict[str, str]) -> str:
    peer, ours, after = one["peer"], one["stacktap"], one["after"]
    score = "not run" if after["peer_score"] is None else f"{after['peer_score']} / 100"
    cells = [
        f"`{one['setup']}` ({stacks[one['stack']]}): {one['title']}",
        _peer_says(peer),
        peer["blames"],
        _heals(one),
        f"`{ours['verdict']}`: {_short(ours['remedy'], 260)}",
        ours["at_fault"],
        _ours_heals(one),
        score,
    ]
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(text: str) -> str:
    parts = text.replace("|", "\\|").split("`")
    return "`".join(part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(parts))


def _peer_says(peer: dict[str, Any]) -> str:
    said = f'"{_short(peer["quote"], 200)}"' if peer["quote"] else ""
    if peer["score"] is None:
        return f"stops, exit code {peer['exit_code']}: {said or 'no message'}"
    left = f", {peer['left_out']} of 5 left out" if peer["left_out"] else ""
    return f"{peer['score']} / 100 {peer['rating']}{left}: {said or 'all five scenarios pass'}"


def _heals(one: dict[str, Any]) -> str:
    peer = one["peer"]
    if peer["blames"] == "nobody":
        return "none needed by it"
    if one["peer_advice_heals"]:
        return "yes"
    return "no" if peer["advises"] else "no advice"


def _ours_heals(one: dict[str, Any]) -> str:
    if not one["stacktap"]["right_and_heals"]:
        return "**no**"
    return f"yes, {NOTES[one['setup']]}" if one["setup"] in NOTES else "yes"


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest].rsplit(" ", 1)[0] + " ..."


def _counts(rows: list[dict[str, Any]]) -> list[str]:
    blamed = Counter(one["peer"]["blames"] for one in rows)
    ours = Counter(one["stacktap"]["at_fault"] for one in rows)
    healed = Counter(_heals(one) for one in rows)
    right = sum(one["stacktap"]["right_and_heals"] for one in rows)
    return [
        "|  | tool-eval-bench | stacktap diagnose |",
        "|---|---|---|",
        f"| blames the model, which is at fault in none of the {len(rows)} | {blamed['model']} | {ours['model']} |",
        f"| blames | {_listed(blamed)} | {_listed(ours)} |",
        f"| advice that heals | {healed['yes']} | {right} |",
        f"| advice that does not heal | {healed['no']} | {len(rows) - right} |",
        f"| no advice | {healed['no advice']} | 0 |",
        f"| not touched by the fault | {blamed['nobody']} | {ours['nobody']} |",
    ]


def _listed(counted: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counted.most_common())
