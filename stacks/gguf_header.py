"""Texts in a GGUF file's metadata: chat templates, and the special tokens that they write."""

from __future__ import annotations

from pathlib import Path

from stacks.weights import GgufReader, WeightsError, gguf_counts

_STRING, _ARRAY, _UINT32 = 8, 9, 4
_MAGIC = b"GGUF"
_TOKENS = "tokenizer.ggml.tokens"
_SPECIAL = {"tokenizer.ggml.bos_token_id": "bos_token", "tokenizer.ggml.eos_token_id": "eos_token"}


def gguf_texts(model: Path) -> dict[str, str]:
    """Every text of the metadata by its name, and ``bos_token`` and ``eos_token`` as texts where the file names them.

    Raises ``stacks.weights.WeightsError`` for what is no GGUF file, OSError.
    """
    texts: dict[str, str] = {}
    numbers: dict[str, int] = {}
    tokens: list[str] = []
    with model.open("rb") as file:
        if file.read(4) != _MAGIC:
            raise WeightsError(f"{model.name} is no GGUF file")
        reader = GgufReader(file)
        for _ in range(gguf_counts(reader, model.name)[1]):
            name, kind = reader.text(), reader.number("I")
            if kind == _STRING:
                texts[name] = reader.text()
            elif kind == _UINT32 and name in _SPECIAL:
                numbers[name] = reader.number("I")
            elif kind == _ARRAY and name == _TOKENS:
                inner, length = reader.number("I"), reader.count()
                if inner == _STRING:
                    tokens = [reader.text() for _ in range(length)]
                else:
                    reader.skip_list(inner, length)
            else:
                reader.skip_value(kind)
    for name, short in _SPECIAL.items():
        if name in numbers and numbers[name] < len(tokens):
            texts[short] = tokens[numbers[name]]
    return texts
