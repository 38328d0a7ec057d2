"""What a run's journal holds of the streams that the upstream wrote, through stacktap's own reader."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from results.reader import JournalMissingError, RunReader
from tests.bench import wire


def journal_holds(folder: Path, sent: Sequence[tuple[int, int, str]]) -> dict[str, Any] | None:
    """Compare every streamed response in a journal with `sent` (chunks, bytes, SHA-256 of each stream's wire bytes).

    Returns how many streams it holds whole, how many of `sent` it lacks, the chunks in it, the reads it kept, its size
    and what the reader complains about; None where there is no journal.
    """
    left = Counter(digest for _, _, digest in sent)
    chunks = reads = streams = 0
    try:
        reader = RunReader(folder)
        for exchange in reader:
            whole = exchange.wire("response")
            digest = hashlib.sha256(whole).hexdigest()
            if left[digest] > 0:
                left[digest] -= 1
                streams += 1
                chunks += len(wire.stamps(whole))
                reads += len(exchange.response.chunks) if exchange.response else 0
    except JournalMissingError:
        return None
    return {
        "streams": streams,
        "missing": left.total(),
        "chunks": chunks,
        "reads": reads,
        "megabytes": round(sum(file.stat().st_size for file in folder.iterdir()) / 1e6, 1),
        "problems": reader.problems.describe(),
    }
