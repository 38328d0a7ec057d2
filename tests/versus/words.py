"""What tool-eval-bench printed, read by stated rules: its score, whom it blames, what it advises. Pure.

The rules are generous to it: advice counts where it names the thing to change, in its own words or in the server's
words that it passes on, even where it does not say what to change it to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LABELS = ("PASS", "PARTIAL", "FAIL", "SERVER", "TIMEOUT", "NO CONN", "INFRA")
_LEFT_OUT = ("SERVER", "TIMEOUT", "NO CONN", "INFRA")
_LINE = re.compile(
    rf"● (?P<id>TC-\d+)\s.*?\s(?P<label>{'|'.join(_LABELS)})\s+\S+/2\s+[\d.]+s"
    r"(?:\s+ttft=[\d,]+ms)?(?:\s+t\d+)?\s*(?P<said>.*)",
    re.DOTALL,
)
_ADVICE: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"Check the URL and API key", ("url", "key")),
    (r"Is the server running\?", ("server",)),
    (r"Check server logs for model loading errors", ("server logs",)),
    (r"Retry with (?:a higher )?--timeout", ("timeout", "output limit")),
    (r"exceeds? (?:the available )?context|context (?:size|window|length)[^.]{0,80}(?:increas|exceed)", ("context",)),
    (r"--jinja", ("template engine",)),
)
"""Words that it may print, and what they name."""
_CALLER = r"Check the URL and API key"
_SERVER = r"Is the server running\?|cannot serve it|infrastructure failure"


@dataclass(frozen=True, slots=True)
class PeerSaid:
    """What one run said. `score` of 100 and `rating` as printed, None where it stopped before; `left_out` scenarios
    are those that it counts as the server's and leaves out of the score; `quote` its first complaint."""

    exit_code: int
    score: int | None
    rating: str
    passed: int
    failed: int
    left_out: int
    quote: str
    blames: str
    advises: tuple[str, ...]
    """What its words name as the thing to change."""


def read(exit_code: int, printed: str) -> PeerSaid:
    """The facts of an output of `tool-eval-bench run` (`COLUMNS` wide enough that it does not fold its lines)."""
    found = list(_scenarios(printed))
    labels = [label for label, _ in found]
    score = re.search(r"Score:\s+(\d+) / 100", printed)
    rating = re.search(r"Rating:\s+[★☆ ]*(\w+)", printed)
    passed = labels.count("PASS")
    left_out = sum(label in _LEFT_OUT for label in labels)
    failed = len(labels) - passed - left_out
    complaint = next((said for label, said in found if label != "PASS"), "") if found else _stop(printed)
    named = [thing for pattern, things in _ADVICE if re.search(pattern, printed) for thing in things]
    return PeerSaid(
        exit_code,
        int(score[1]) if score else None,
        rating[1] if rating else "",
        passed,
        failed,
        left_out,
        complaint,
        _blame(printed, found=bool(found), failed=failed, left_out=left_out),
        tuple(named),
    )


def _scenarios(printed: str) -> list[tuple[str, str]]:
    part = printed.partition("Category Breakdown")[0]
    pieces = re.split(r"(?m)^\s*(?=● TC-\d+)", part)
    matches = [_LINE.match(piece) for piece in pieces]
    return [(match["label"], _one_line(match["said"])) for match in matches if match]


def _stop(printed: str) -> str:
    """Why it stopped before the first scenario: what follows its cross."""
    return _one_line(printed.partition("✗")[2])


def _blame(printed: str, *, found: bool, failed: int, left_out: int) -> str:
    """`model`: a scenario counts against the model's score. `server`: every lost scenario is left out of the score, or
    it stopped and its words name the server. `caller`: it stopped and names what the caller gave. Else `unclear`."""
    if failed:
        return "model"
    if left_out or (not found and re.search(_SERVER, printed)):
        return "server"
    if found:
        return "nobody"
    return "caller" if re.search(_CALLER, printed) else "unclear"


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
