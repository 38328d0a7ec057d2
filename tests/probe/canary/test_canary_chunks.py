"""Cutting scripts: nothing is lost, no token stands twice, tags keep their tokens; what cannot be cut is refused."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probe.canary import CanaryError, CanarySpec, Script, assemble, member_spec
from probe.canary.chunks import chunk_script
from probe.canary.members import canary_names, hermes_template
from probe.canary.spec import LONGEST_CHUNK, text_bytes
from probe.canary.transitions import START

PIECES = ["<tool_call>", "</tool_call>", "\n", "ab", "la ", '{"name": "', "é", "😀", "[[s]]", "x", '"}}', " "]


def spec_of(*scripts: Script, **fields: object) -> CanarySpec:
    return CanarySpec("test", scripts, hermes_template(), merges=50, **fields)  # type: ignore[arg-type]


def test_tags_and_the_newline_after_the_opening_one_are_tokens() -> None:
    script = Script("s", '<tool_call>\n{"name": "f"}\n</tool_call>')
    tokens = chunk_script(script, spec_of(script)).tokens
    assert tokens[:2] == (b"<tool_call>", b"\n")
    assert tokens[-1] == b"</tool_call>"


def test_a_second_call_is_spelled_with_other_tokens() -> None:
    call = '<tool_call>\n{"name": "f"}\n</tool_call>'
    script = Script("s", f"{call}\n{call}")
    tokens = chunk_script(script, spec_of(script)).tokens
    assert b"".join(tokens).decode() == script.text
    assert len(set(tokens)) == len(tokens)
    assert tokens.count(b"<tool_call>") == tokens.count(b"</tool_call>") == 1


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join), st.integers(2, LONGEST_CHUNK))
def test_any_text_is_cut_without_loss_or_refused(text: str, preferred: int) -> None:
    script = Script("s", text)
    try:
        tokens = chunk_script(script, spec_of(script, chunk_bytes=preferred)).tokens
    except CanaryError as error:
        assert "less repetitive" in str(error)  # noqa: PT017
        return
    assert b"".join(tokens) == text_bytes(text)
    assert len(set(tokens)) == len(tokens)
    assert all(1 <= len(token) <= LONGEST_CHUNK for token in tokens)
    assert b"[[s]]" not in tokens
    for token in tokens:
        token.decode("utf-8")


def test_repetition_is_cut_into_tokens_that_differ() -> None:
    script = Script("s", "la " * 60)
    tokens = chunk_script(script, spec_of(script)).tokens
    assert b"".join(tokens) == b"la " * 60
    assert len(set(tokens)) == len(tokens)


def test_too_much_repetition_is_refused_with_advice() -> None:
    script = Script("monotone", "a" * 2000)
    with pytest.raises(CanaryError, match=r"(?s)monotone.*less repetitive.*loop"):
        chunk_script(script, spec_of(script))


def test_a_doubled_chunk_is_refused_by_name() -> None:
    script = Script("twice", "ab cd ab ef", chunks=("ab", " cd ", "ab", " ef"))
    with pytest.raises(CanaryError, match=r"(?s)b'ab' stands twice in script 'twice'.*differently"):
        assemble(spec_of(script))


def test_a_long_chunk_is_refused_by_name() -> None:
    script = Script("wide", "x" * 25, chunks=("x" * 25,))
    with pytest.raises(CanaryError, match=r"wide.*25 bytes; at most 24"):
        assemble(spec_of(script))


def test_shared_chunks_after_different_tokens_do_not_collide() -> None:
    first = Script("a", "p q s t", chunks=("p ", "q ", "s ", "t"))
    second = Script("b", "p s q u", chunks=("p ", "s ", "q ", "u"))
    third = Script("c", "q p t s", chunks=("q ", "p ", "t", " s"))
    assert assemble(spec_of(first, second, third)).margin > 25


@pytest.mark.parametrize("name", canary_names())
def test_every_shipped_canary_has_margins_to_spare(name: str) -> None:
    canary = assemble(member_spec(name))
    assert canary.margin > 25
    for script in canary.scripts:
        chunks = [token for token in script.tokens if token.decode("utf-8", "replace") not in canary.spec.tags]
        assert all(len(token) <= LONGEST_CHUNK for token in chunks)
        assert all(len(token) <= 32 for token in script.tokens)


def test_private_chunks_are_never_made_by_merges() -> None:
    canary = assemble(member_spec("hermes"))
    products = {left + right for left, right in canary.vocabulary.merges}
    tags = {canary.vocabulary.ids[tag] for tag in canary.spec.tags}
    for token in set(canary.transitions.successors) - {START} - tags:
        text = canary.vocabulary.texts[token]
        assert text not in products
        assert text == "Ċ" or len(text) > 1


def test_too_small_a_model_is_refused_with_the_size_it_needs() -> None:
    scripts = [Script(f"s{number}", f"This is answer number {number}, word for word.") for number in range(40)]
    with pytest.raises(CanaryError, match=r"needs (\d+) dimensions \(40 scripts.*raise hidden to (\d+)") as caught:
        assemble(spec_of(*scripts, hidden=64))
    found = re.search(r"raise hidden to (\d+)", str(caught.value))
    assert found
    assert assemble(spec_of(*scripts, hidden=int(found.group(1)))).margin > 25


@pytest.mark.parametrize("hidden", [128, 256, 768])
def test_margins_do_not_depend_on_the_size(hidden: int) -> None:
    assert assemble(spec_of(Script("a", "one two"), Script("b", "three four"), hidden=hidden)).margin > 25


WRONG: list[tuple[dict[str, object], str]] = [
    ({"scripts": ()}, "at least one script"),
    ({"scripts": (Script("a"), Script("a"))}, "given twice: a"),
    ({"triggers": {"<x>": "nobody"}}, "nobody"),
    ({"triggers": {"": "a"}}, "empty"),
    ({"default": "nobody"}, "nobody"),
    ({"chunk_bytes": 40}, "between 1 and 24"),
    ({"context": 10}, "between 256 and"),
    ({"hidden": 100}, "multiple of 64"),
]


@pytest.mark.parametrize(("fields", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_specifications_are_refused(fields: dict[str, object], message: str) -> None:
    given_fields = {"scripts": (Script("a", "hello there"),), "name": "n", "template": "", **fields}
    with pytest.raises(CanaryError, match=message):
        CanarySpec(**given_fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("merges", [0, 10_000_000])
def test_wrong_numbers_of_merges_are_refused(merges: int) -> None:
    with pytest.raises(CanaryError, match="merges"):
        assemble(CanarySpec("n", (Script("a", "hello there"),), "", merges=merges))


def test_wrong_scripts_are_refused() -> None:
    makers = [
        lambda: Script("a b"),
        lambda: Script("[a]"),
        lambda: Script("a", "x", end="</s>"),
        lambda: Script("a", "xy", chunks=("x",)),
        lambda: Script("a", loop="x y ", fallback="z"),
    ]
    for make in makers:
        with pytest.raises(CanaryError):
            make()


def test_a_tag_that_is_a_byte_token_is_refused() -> None:
    with pytest.raises(CanaryError, match="single tokens"):
        assemble(spec_of(Script("a", "hello there"), tags=("h",), split_after=()))


def test_specifications_survive_json() -> None:
    for name, cut in itertools.product(canary_names(), (True, False)):
        spec = member_spec(name)
        again = CanarySpec.from_dict(spec.to_dict())
        assert again.digest() == spec.digest()
        assert [script.known_bytes() for script in again.scripts] == [script.known_bytes() for script in spec.scripts]
        if cut:
            with pytest.raises(CanaryError):
                CanarySpec.from_dict({key: value for key, value in spec.to_dict().items() if key != "scripts"})
