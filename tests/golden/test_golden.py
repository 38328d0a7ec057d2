"""What was read of carried exchanges and texts does not change without being noticed.

Where a change is meant: `python -m tests.golden` shows and keeps it.
"""

from __future__ import annotations

import pytest

from tests.golden.snapshots import KINDS, changes, kept


@pytest.mark.parametrize("kind", list(KINDS))
def test_reading_is_as_it_was(kind: str) -> None:
    different = changes(kept(kind), KINDS[kind]())
    assert not different, "\n".join([f"{len(different)} differences; see python -m tests.golden", *different[:20]])
