"""What a raw channel gives out, as text: end tokens taken off, tokens spelled out. Pure."""

from __future__ import annotations

import re

from stacks.token_bytes import byte_alphabet

END_MARKS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<end_of_turn>",
    "<eos>",
    "</s>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
)
"""End tokens as raw channels spell them; they end a turn and are no part of its text."""


def ended(text: str) -> str:
    """The text without the end tokens behind it."""
    text = text.rstrip("\n")
    while mark := next((mark for mark in END_MARKS if text.endswith(mark)), None):
        text = text[: -len(mark)].rstrip("\n")
    return text


def text_of_tokens(tokens: list[str], *, spelled: bool) -> str:
    """The text of tokens. `spelled`: they are given as a tokenizer's vocabulary spells them (byte-level in GPT-2's
    alphabet, or with U+2581 for the space); added tokens stand for themselves."""
    if not spelled:
        return "".join(tokens)
    alphabet = byte_alphabet()
    data = bytearray()
    for token in tokens:
        if "\u2581" in token:
            data += token.replace("\u2581", " ").encode("utf-8", "surrogatepass")
        elif re.fullmatch(r"<0x[0-9A-F]{2}>", token):
            data.append(int(token[3:5], 16))
        elif all(character in alphabet for character in token):
            data += bytes(alphabet[character] for character in token)
        else:
            data += token.encode("utf-8", "surrogatepass")
    return data.decode("utf-8", "replace")
