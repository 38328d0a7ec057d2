"""The canary's own tokenizer, id for id with the Hugging Face library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.canary import CanaryError, assemble, default_spec
from probe.canary.model import tokenizer_json
from probe.canary.tokenizer import CanaryTokenizer

tokenizers = pytest.importorskip("tokenizers")

LAYOUT = tokenizer_json(assemble(default_spec()).vocabulary)
OURS = CanaryTokenizer(LAYOUT)
THEIRS = tokenizers.Tokenizer.from_str(json.dumps(LAYOUT))

TEXTS = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.sampled_from(["[[good]]", "<tool_call>", "</tool_call>\n", "<|im_start|>assistant\n", " \n\n ", "don't"]),
        st.sampled_from(['{"name": "get_weather", "arguments": {}}', "def main() -> None:\n    return 12_345\n"]),
    ),
    max_size=6,
).map("".join)


@given(TEXTS.filter(lambda text: text.isprintable() or "\n" in text))
def test_ids_are_the_librarys(text: str) -> None:
    assert OURS.encode(text) == THEIRS.encode(text, add_special_tokens=False).ids


@given(TEXTS)
def test_bytes_come_back(text: str) -> None:
    assert b"".join(map(OURS.token_bytes, OURS.encode(text))) == text.encode()


def test_tokens_are_found_by_their_text() -> None:
    assert OURS.id_of("<|im_end|>") == THEIRS.token_to_id("<|im_end|>")
    assert OURS.id_of("no such token at all") is None
    assert OURS.token_bytes(10**9) == b""


@pytest.mark.parametrize("content", ["{", "[]", '{"model": {}}'])
def test_a_broken_file_is_a_canarys_error(content: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(CanaryError, match="build the canary again"):
        CanaryTokenizer.from_file(path)
    with pytest.raises(CanaryError, match="cannot be read"):
        CanaryTokenizer.from_file(tmp_path / "missing.json")
