"""What a raw channel gives out, as text: end tokens taken off, tokens spelled out. Pure."""

from __future__ import annotations

from stacks.serving.mlx_server import spelled

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


def text_of_tokens(tokens: list[str], *, by_spelling: bool) -> str:
    """The text of tokens. `by_spelling`: they are given as a tokenizer's vocabulary spells them."""
    return spelled(tokens) if by_spelling else "".join(tokens)
