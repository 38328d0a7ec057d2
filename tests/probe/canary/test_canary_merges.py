"""The shipped merges: well formed, and made as the module says."""

from __future__ import annotations

from probe.canary.train_merges import train_merges
from probe.canary.vocabulary import byte_alphabet, letter_bytes, shipped_merges, spelled


def test_shipped_merges_build_on_each_other() -> None:
    known = set(byte_alphabet())
    for left, right in shipped_merges():
        assert left in known
        assert right in known
        known.add(left + right)
    assert len(shipped_merges()) >= 3000


def test_training_finds_the_commonest_pair_first() -> None:
    merges = train_merges(["the thing that thinks"] * 3, 5)
    assert merges[0] == "t h"
    assert len(merges) == 5


def test_the_byte_alphabet_is_a_bijection() -> None:
    assert len(set(byte_alphabet())) == 256
    everything = bytes(range(256))
    assert bytes(letter_bytes()[letter] for letter in spelled(everything)) == everything
    assert spelled(b" a\n") == "\u0120a\u010a"
