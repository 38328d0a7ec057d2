"""The bytes of every token of a Hugging Face fast tokenizer, read from its definition (``tokenizer.json``).

Decoding ids through the tokenizer loses half characters and may strip spaces; a raw record must do neither.
Sources: the byte alphabet is GPT-2's (printable bytes stand for themselves, the others for code points from 256 on);
the decoder types are those of the ``tokenizers`` library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_BYTE_FALLBACK = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class TokenizerFormError(ValueError):
    """The tokenizer's decoder is of a kind whose tokens have no bytes of their own."""


def byte_alphabet() -> dict[str, int]:
    """Return the character that stands for each byte in byte-level BPE, as character -> byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    alphabet = {chr(b): b for b in printable}
    for place, byte in enumerate(b for b in range(256) if b not in set(printable)):
        alphabet[chr(256 + place)] = byte
    return alphabet


def token_bytes(definition: Mapping[str, Any]) -> dict[int, bytes]:
    """Return id -> bytes for every token of a parsed ``tokenizer.json``.

    Added tokens (special ones too) are their literal text. Raises :class:`TokenizerFormError` for decoders other than
    byte-level, SentencePiece-like (replace, byte fallback, metaspace), or none.
    """
    convert = _converter(definition.get("decoder"))
    vocabulary = definition.get("model", {}).get("vocab", {})
    entries = vocabulary.items() if isinstance(vocabulary, Mapping) else ((e[0], i) for i, e in enumerate(vocabulary))
    result = {int(number): convert(token) for token, number in entries}
    result.update({int(a["id"]): str(a["content"]).encode() for a in definition.get("added_tokens") or ()})
    return result


def control_tokens(definition: Mapping[str, Any]) -> frozenset[int]:
    """Ids of the added tokens that a parsed ``tokenizer.json`` calls special: signs between turns, no one's words."""
    return frozenset(int(a["id"]) for a in definition.get("added_tokens") or () if a.get("special"))


def _converter(decoder: Mapping[str, Any] | None) -> Callable[[str], bytes]:
    steps = _flatten(decoder)
    kinds = {str(step["type"]) for step in steps}
    unknown = kinds - {"ByteLevel", "Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"}
    if unknown:
        raise TokenizerFormError(f"tokens of a {sorted(unknown)[0]} decoder have no bytes of their own")
    if "ByteLevel" in kinds:
        alphabet = byte_alphabet()
        return lambda token: bytes(alphabet[c] for c in token) if all(c in alphabet for c in token) else token.encode()
    replacements = [_replacement(step) for step in steps if step["type"] in {"Replace", "Metaspace"}]
    byte_fallback = "ByteFallback" in kinds

    def convert(token: str) -> bytes:
        single = _BYTE_FALLBACK.fullmatch(token) if byte_fallback else None
        if single:
            return bytes([int(single.group(1), 16)])
        for old, new in replacements:
            token = token.replace(old, new)
        return token.encode()

    return convert


def _flatten(decoder: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    if decoder is None:
        return []
    if decoder.get("type") == "Sequence":
        return [step for inner in decoder.get("decoders", ()) for step in _flatten(inner)]
    return [decoder]


def _replacement(step: Mapping[str, Any]) -> tuple[str, str]:
    if step["type"] == "Metaspace":
        return str(step.get("replacement", "\u2581")), " "
    pattern = step.get("pattern", {}).get("String")
    if not isinstance(pattern, str):
        raise TokenizerFormError("a decoder that replaces by regular expression has no bytes per token")
    return pattern, str(step.get("content", ""))
