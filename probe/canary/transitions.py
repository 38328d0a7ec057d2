"""Which token follows which, under which script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from probe.canary.chunks import ChunkedScript
from probe.canary.spec import CanaryError, CanarySpec
from probe.canary.vocabulary import Vocabulary

START = -1
"""The previous token when nothing of a script has been written yet: any token that is in no chain."""


@dataclass(frozen=True)
class Transitions:
    """The chain of a canary.

    ``successors[previous][script] = next`` for every step of every script; ``preferred[previous]`` is the token that
    follows when the script in force does not pass ``previous`` (only a grammar or a raw prompt leads there);
    ``fallbacks`` are (previous, next) pairs for a forbidden end: a script's own, or the opening tag of a call after a
    script without one, so that a server that demands a call gets the default one.
    """

    successors: dict[int, dict[str, int]]
    preferred: dict[int, int]
    fallbacks: tuple[tuple[int, int], ...]

    def is_branch(self, previous: int) -> bool:
        """True where the script in force matters."""
        return len(set(self.successors[previous].values())) > 1


def build_transitions(spec: CanarySpec, scripts: Sequence[ChunkedScript], vocabulary: Vocabulary) -> Transitions:
    """Join all scripts into one table; raises CanaryError where one script would need two successors of one token."""
    successors: dict[int, dict[str, int]] = {}
    fallbacks = []
    opening = {vocabulary.ids[tag] for tag in spec.split_after}
    for script in scripts:
        path, spare = _paths(script, vocabulary)
        if spare:
            fallbacks.append((path[-2], spare[0]))
        elif script.end is not None and opening and not set(path) & opening:
            fallbacks.append((path[-2], min(opening)))
        for previous, following in [*pairwise(path), *pairwise(spare)]:
            table = successors.setdefault(previous, {})
            if table.setdefault(script.name, following) != following:
                raise CanaryError(_ambiguous(script.name, previous, (table[script.name], following), vocabulary))
    preferred = {
        previous: table.get(spec.default_script, next(iter(table.values()))) for previous, table in successors.items()
    }
    # Scripts that end alike share their fallback: it counts once, or its weights would add up and win.
    return Transitions(successors, preferred, tuple(dict.fromkeys(fallbacks)))


def _paths(script: ChunkedScript, vocabulary: Vocabulary) -> tuple[list[int], list[int]]:
    """Token ids from START to the end (or back into the loop), and those of the fallback to the end."""
    ids = [vocabulary.chunk_id(data) for data in script.tokens]
    spare = [vocabulary.chunk_id(data) for data in script.fallback]
    if script.end is not None:
        end = vocabulary.ids[script.end]
        return [START, *ids, end], [*spare, end] if spare else []
    return [START, *ids, ids[script.loop_start or 0]], []


def _ambiguous(script: str, previous: int, following: tuple[int, int], vocabulary: Vocabulary) -> str:
    before = "the start" if previous == START else repr(vocabulary.texts[previous])
    first, second = (vocabulary.texts[token] for token in following)
    return (
        f"script {script!r}: after {before} both {first!r} and {second!r} follow; cut the chunks differently so that "
        "no chunk stands twice"
    )
