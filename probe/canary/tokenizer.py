"""Reads a canary's ``tokenizer.json`` and encodes with it: added tokens first, then byte-level BPE.

The splitting rule is GPT-2's (``encoder.py`` of its release), the file layout that of the Hugging Face tokenizers
library; the tests compare every id with that library's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import regex

from probe.canary.spec import CanaryError, text_bytes
from probe.canary.vocabulary import letter_bytes, spelled

_SPLIT = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


class CanaryTokenizer:
    """Byte-level BPE with added tokens that are matched in the text as it stands."""

    def __init__(self, layout: dict[str, Any]) -> None:
        """Raises CanaryError where the layout is not that of a canary's tokenizer."""
        try:
            model = layout["model"]
            self._ids: dict[str, int] = dict(model["vocab"])
            added = {str(token["content"]): int(token["id"]) for token in layout["added_tokens"]}
            pairs = (merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"])
            self._ranks = {(left, right): rank for rank, (left, right) in enumerate(pairs)}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CanaryError(f"not a canary's tokenizer.json ({error!r}); build the canary again") from None
        self._added = added
        self._texts = {number: text for text, number in (self._ids | added).items()}
        longest_first = sorted(map(regex.escape, added), key=len, reverse=True)
        self._marks = regex.compile("(" + "|".join(longest_first) + ")")
        self._words: dict[str, list[int]] = {}

    @classmethod
    def from_file(cls, path: Path) -> CanaryTokenizer:
        """Read a ``tokenizer.json``. Raises CanaryError where it cannot be read."""
        try:
            return cls(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise CanaryError(f"{path} cannot be read ({error}); build the canary again") from None

    def id_of(self, text: str) -> int | None:
        """The id of an added token, or of a base token by its byte-level spelling."""
        return self._added.get(text, self._ids.get(text))

    def encode(self, text: str) -> list[int]:
        """Token ids of a text."""
        return list(self._encode(text))

    def _encode(self, text: str) -> Iterator[int]:
        for number, part in enumerate(self._marks.split(text)):
            if number % 2:
                yield self._added[part]
                continue
            for word in _SPLIT.findall(part):
                yield from self._word(word)

    def _word(self, word: str) -> list[int]:
        known = self._words.get(word)
        if known is None:
            known = self._words[word] = [self._ids[piece] for piece in self._merged(spelled(text_bytes(word)))]
        return known

    def _merged(self, letters: str) -> list[str]:
        """Join the pair of lowest rank until none is left."""
        pieces, none = list(letters), len(self._ranks)
        while len(pieces) > 1:
            ranks = [self._ranks.get(pair, none) for pair in pairwise(pieces)]
            at = ranks.index(min(ranks))
            if ranks[at] == none:
                break
            pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
        return pieces

    def token_bytes(self, token: int) -> bytes:
        """What a token writes; nothing where there is no such token."""
        text = self._texts.get(token)
        if text is None:
            return b""
        if text in self._added:
            return text_bytes(text)
        letters = letter_bytes()
        return bytes(letters[letter] for letter in text)
