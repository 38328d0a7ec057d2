"""What was read of carried exchanges and texts does not change without being noticed.

Where a change is meant: `python -m tests.golden` shows and keeps it.
"""

from __future__ import annotations

import pytest

from stacks.dialects import assemble
from stacks.turn import Turn
from tests.golden.damaged import ANSWERS, damaged, view_of
from tests.golden.snapshots import KINDS, changes, kept


@pytest.mark.parametrize("kind", list(KINDS))
def test_reading_is_as_it_was(kind: str) -> None:
    different = changes(kept(kind), KINDS[kind]())
    assert not different, "\n".join([f"{len(different)} differences; see python -m tests.golden", *different[:20]])


ABOUT = frozenset(
    ("usage", "id", "created", "created_at", "system_fingerprint", "total_duration", "prompt_eval_count", "eval_count")
)
"""Members of an answer that say something about it and are no part of it."""
ENVELOPES = ("response", "message")
"""Members of events that hold an answer."""


def content(turn: Turn | None) -> object:
    """What an agent gets of a turn."""
    assert turn is not None
    return turn.content, turn.reasoning, [(call.name, call.arguments) for call in turn.tool_calls]


@pytest.mark.parametrize("name", sorted(set(ANSWERS) - {"error"}))
def test_what_only_describes_an_answer_does_not_change_it(name: str) -> None:
    path, request, answer = ANSWERS[name]
    whole = content(assemble(view_of(path, request, answer).wire).turn)
    tried = 0
    for said, wrong in damaged(answer):
        place = [step for step in said.partition(":")[0].split(".") if not step.isdigit() and step not in ENVELOPES]
        if place and place[0] in ABOUT:
            tried += 1
            assert content(assemble(view_of(path, request, wrong).wire).turn) == whole, said
    assert tried > 9
