"""What a turn counts as, under three sets of words, and which turn closes an episode in prose.

`own`: valid means a call in the schema of an offered tool, as in `results.rates`. `paper`: the paper's words as a
projection of ours (a call with wrong arguments is valid there, partial text a non-response). `paper-compat`: what the
original's own predicates say of the same turn (kept with the turn), turns past the cap included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from results import labels
from results.episodes import EpisodeRecord, TurnRecord
from results.rates import is_valid

LabelSet = Literal["own", "paper", "paper-compat"]
LABEL_SETS: tuple[LabelSet, ...] = ("own", "paper", "paper-compat")

OWN = ("valid", "invalid_call", "hallucinated", "unparseable", "prose", "cut", "non-response", "uncounted")
"""Words of the label set `own`. `uncounted`: the request asked for no generation."""

PROSE, NON_RESPONSE, UNCOUNTED = "prose", "non-response", "uncounted"
CLOSING = frozenset({"ok.final_answer", "ok.no_call_needed"})


def label(turn: TurnRecord, words: LabelSet = "own") -> str:
    """The word for one turn. Raises ValueError for `paper-compat` where the turn was recorded without it."""
    if words == "paper-compat":
        if words not in turn.labels:
            raise ValueError("this run was recorded without the paper's own labels: it has to be run again for them")
        return turn.labels[words]
    if is_valid(turn.outcome, recovered=bool(turn.recovered)):
        return "valid"
    if turn.outcome.name == "ok.service":
        return UNCOUNTED
    word = labels.paper(turn.outcome)
    if words == "paper":
        return word
    if not turn.outcome.reached:
        return NON_RESPONSE
    return {"valid": "invalid_call", NON_RESPONSE: "cut"}.get(word, word)


def counted(episode: EpisodeRecord, words: LabelSet = "own") -> list[tuple[TurnRecord, str]]:
    """The turns that count, in order, each with its word: those past the cap are left out (`paper-compat` keeps them,
    as the original did)."""
    turns = [turn for turn in episode.turns if words == "paper-compat" or not turn.post_cap]
    worded = [(turn, label(turn, words)) for turn in turns]
    return [pair for pair in worded if pair[1] != UNCOUNTED]


def closes_in_prose(turns: Sequence[TurnRecord]) -> bool:
    """Whether the last of these turns is a final answer: text where no call was due, or after a call was executed.

    Text in place of the first call is no answer but a call that was not made.
    """
    if not turns or turns[-1].outcome.name not in CLOSING:
        return False
    if turns[-1].outcome.name == "ok.no_call_needed":
        return True
    return any(call.executed for turn in turns for call in turn.calls)
