"""The tokenizer of a canary: bytes, merges that shorten prompts, private chunks that no merge reaches, added tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from probe.canary.chunks import ChunkedScript
from probe.canary.spec import END_OF_TEXT, END_OF_TURN, TURN_START, CanaryError, CanarySpec, text_bytes

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
"""Token types as GGUF numbers them (``tokenizer.ggml.token_type``)."""

_MERGES_FILE = Path(__file__).parent / "data" / "merges.txt"


@cache
def byte_alphabet() -> tuple[str, ...]:
    """The printable character that stands for each byte in byte-level BPE (the GPT-2 mapping)."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    letters, shifted = [], 256
    for byte in range(256):
        if byte in printable:
            letters.append(chr(byte))
        else:
            letters.append(chr(shifted))
            shifted += 1
    return tuple(letters)


@cache
def letter_bytes() -> dict[str, int]:
    """The reverse of ``byte_alphabet``."""
    return {letter: byte for byte, letter in enumerate(byte_alphabet())}


def spelled(data: bytes) -> str:
    """Byte-level BPE spelling of ``data``."""
    alphabet = byte_alphabet()
    return "".join(alphabet[byte] for byte in data)


@cache
def shipped_merges() -> tuple[tuple[str, str], ...]:
    """Merges in rank order, trained once (``probe.canary.train_merges``) on English, Python, shell, YAML and JSON."""
    lines = _MERGES_FILE.read_text(encoding="utf-8").splitlines()
    return tuple((left, right) for left, right in (line.split(" ") for line in lines))


@dataclass(frozen=True)
class Vocabulary:
    """Token texts by id (byte-level spelling below ``base_size``, literal text from there on), types and merges."""

    texts: tuple[str, ...]
    types: tuple[int, ...]
    merges: tuple[tuple[str, str], ...]
    base_size: int
    ids: dict[str, int]

    def __len__(self) -> int:
        return len(self.texts)

    def chunk_id(self, data: bytes) -> int:
        """Id of the token that writes ``data`` (a tag, or a private chunk)."""
        literal = data.decode("utf-8", "surrogateescape")
        found = self.ids.get(literal)
        if found is not None and found >= self.base_size:
            return found
        return self.ids[spelled(data)]

    def token_bytes(self, token: int) -> bytes:
        """What ``token`` adds to the text."""
        if token >= self.base_size:
            return text_bytes(self.texts[token])
        letters = letter_bytes()
        return bytes(letters[letter] for letter in self.texts[token])


def build_vocabulary(spec: CanarySpec, scripts: Sequence[ChunkedScript]) -> Vocabulary:
    """Number all tokens; merges that would spell a private chunk are left out, with all that build on them."""
    if spec.merges > len(shipped_merges()) or spec.merges < 1:
        raise CanaryError(f"merges is {spec.merges}; it must lie between 1 and {len(shipped_merges())}")
    added = _added_tokens(spec)
    literal = {text_bytes(text) for text, _ in added}
    chunks = dict.fromkeys(
        data for script in scripts for data in (*script.tokens, *script.fallback) if data not in literal
    )
    private = [spelled(data) for data in chunks if len(data) > 1]
    merges = _merges_without(set(private), shipped_merges()[: spec.merges])
    base = dict.fromkeys([*byte_alphabet(), *(left + right for left, right in merges), *private])
    texts = [*base, *(text for text, _ in added)]
    types = [NORMAL] * len(base) + [kind for _, kind in added]
    padding = -len(texts) % 64
    texts += [f"<|unused_{number}|>" for number in range(padding)]
    types += [CONTROL] * padding
    ids = {text: number for number, text in enumerate(texts)}
    if len(ids) != len(texts):
        doubled = sorted({text for text in texts if texts.count(text) > 1})
        raise CanaryError(f"these tags or triggers are also single tokens of the base vocabulary: {doubled}")
    return Vocabulary(tuple(texts), tuple(types), tuple(merges), len(base), ids)


def _added_tokens(spec: CanarySpec) -> list[tuple[str, int]]:
    special = [END_OF_TEXT, TURN_START, END_OF_TURN]
    user = dict.fromkeys([*spec.generation_prompts, *spec.tags, *spec.all_triggers()])
    return [(text, CONTROL) for text in special] + [(text, USER_DEFINED) for text in user if text not in special]


def _merges_without(private: set[str], merges: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    known = set(byte_alphabet())
    kept = []
    for left, right in merges:
        if left in known and right in known and left + right not in private:
            kept.append((left, right))
            known.add(left + right)
    return kept
