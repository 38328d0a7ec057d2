"""Bytes of tokens, compared with the tokenizers library itself."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from stacks.token_bytes import TokenizerFormError, byte_alphabet, control_tokens, token_bytes


def byte_level():
    alphabet = {c: i for i, c in enumerate(byte_alphabet())}
    vocabulary = {**alphabet, "he": 256, "Ġt": 257}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[("h", "e"), ("Ġ", "t")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True), AddedToken("é\n", normalized=False)])
    return tokenizer


def sentence_piece():
    vocabulary = {f"<0x{b:02X}>": b for b in range(256)} | {
        "▁hello": 256,
        "▁": 257,
        "wor": 258,
        "ld": 259,
        "<0xZZ>": 260,
    }
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer


def test_alphabet_is_that_of_the_library():
    assert set(byte_alphabet()) == set(pre_tokenizers.ByteLevel.alphabet())
    assert sorted(byte_alphabet().values()) == list(range(256))


@given(st.text(max_size=30))
def test_byte_level_tokens_join_to_the_encoded_text(text):
    tokenizer = byte_level()
    pieces = token_bytes(json.loads(tokenizer.to_str()))
    assert b"".join(pieces[i] for i in tokenizer.encode(text).ids) == text.encode()


def test_added_tokens_are_their_literal_text():
    tokenizer = byte_level()
    pieces = token_bytes(json.loads(tokenizer.to_str()))
    assert pieces[tokenizer.token_to_id("<|end|>")] == b"<|end|>"
    assert pieces[tokenizer.token_to_id("é\n")] == "é\n".encode()


def test_sentence_piece_keeps_spaces_and_single_bytes():
    tokenizer = sentence_piece()
    pieces = token_bytes(json.loads(tokenizer.to_str()))
    assert [pieces[i] for i in (256, 258, 259, 257, 0xC3, 260)] == [b" hello", b"wor", b"ld", b" ", b"\xc3", b"<0xZZ>"]
    ids = [256, 257, 258, 259, 0xC3, 0xA9]
    # The library strips the very first space; a raw record does not.
    assert b"".join(pieces[i] for i in ids).decode().removeprefix(" ") == tokenizer.decode(ids)


def test_unigram_lists_and_metaspace():
    definition = {
        "model": {"type": "Unigram", "vocab": [["<unk>", 0.0], ["▁hi", -1.0]]},
        "decoder": {"type": "Metaspace", "replacement": "▁"},
        "added_tokens": None,
    }
    assert token_bytes(definition) == {0: b"<unk>", 1: b" hi"}


def test_no_decoder_means_literal_tokens():
    assert token_bytes({"model": {"vocab": {"a▁": 0}}, "decoder": None}) == {0: "a▁".encode()}


@pytest.mark.parametrize(
    "decoder",
    [{"type": "WordPiece"}, {"type": "Sequence", "decoders": [{"type": "CTC"}]},
     {"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""}],
)  # fmt: skip
def test_decoders_without_bytes_per_token_are_refused(decoder):
    with pytest.raises(TokenizerFormError):
        token_bytes({"model": {"vocab": {}}, "decoder": decoder})


def test_control_tokens_are_the_special_ones_among_the_added() -> None:
    added = [{"id": 3, "content": "<end>", "special": True}, {"id": 4, "content": "<tool_call>", "special": False}]
    assert control_tokens({"added_tokens": added}) == {3}
    assert control_tokens({"model": {"vocab": {"a": 0}}}) == frozenset()
