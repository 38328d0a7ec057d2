"""A GGUF file as a model folder (Hugging Face form, which MLX loads): weights, configuration, tokenizer, chat template.

All of it out of the file itself, without a hub. Names and layouts as llama.cpp's converter (`convert_hf_to_gguf.py`)
writes them: rotary rows of q and k are interleaved there and halved in a folder. The tokenizer is byte-level BPE with
single digits, the pre-tokenizer that GGUF files call `smollm`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harness.quantize.gguf_file import READABLE, GgufFile, Weights
from stacks.weights import Stored, WeightsError

_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_CONTROL = 3
"""Type of special tokens in `tokenizer.ggml.token_type`."""
_NEEDED = {
    "llama.embedding_length": int,
    "llama.feed_forward_length": int,
    "llama.block_count": int,
    "llama.attention.head_count": int,
    "llama.attention.head_count_kv": int,
    "llama.attention.layer_norm_rms_epsilon": float,
    "llama.rope.freq_base": float,
    "llama.context_length": int,
    "tokenizer.ggml.tokens": list,
    "tokenizer.ggml.merges": list,
    "tokenizer.ggml.token_type": list,
    "tokenizer.ggml.bos_token_id": int,
    "tokenizer.ggml.eos_token_id": int,
}


class FolderError(Exception):
    """The file is none of the kind that can be written as a folder; the message says what would be."""


def check_convertible(gguf: GgufFile) -> None:
    """Raise FolderError where this file cannot become a folder, whatever its tensors' types are."""
    facts, name = gguf.facts, gguf.path.name
    architecture, words = facts.get("general.architecture"), facts.get("tokenizer.ggml.pre")
    if architecture != "llama" or words != "smollm":
        raise FolderError(
            f"{name} is of the architecture {architecture!r} with the tokenizer {words!r}; only 'llama' with 'smollm' "
            "is turned into a folder here\n  -> give the model's own folder (config.json, tokenizer, safetensors)"
        )
    for fact, kind in _NEEDED.items():
        if not isinstance(facts.get(fact), kind) or (kind is not list and not facts[fact] > 0 and "token" not in fact):
            raise FolderError(f"{name} does not say its {fact}: it is not whole, or was not made by llama.cpp")
    ids, tokens = ("tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"), len(facts["tokenizer.ggml.tokens"])
    if any(not 0 <= facts[one] < tokens for one in ids) or len(facts["tokenizer.ggml.token_type"]) != tokens:
        raise FolderError(f"the vocabulary of {name} contradicts itself")
    for tensor in gguf.tensors:
        _named(tensor)


def unread_types(gguf: GgufFile) -> list[str]:
    """The tensor types of a file that are not read here; llama.cpp's quantizer turns them into F32."""
    return sorted({tensor.type for tensor in gguf.tensors} - set(READABLE))


def write_folder(gguf: GgufFile, folder: Path) -> None:
    """Write the model into an empty folder, weights in float32. Raises FolderError, WeightsError, OSError."""
    check_convertible(gguf)
    _write_weights(gguf, folder / "model.safetensors")
    tied = not any(tensor.name == "output.weight" for tensor in gguf.tensors)
    for name, content in (
        ("config.json", _config(gguf.facts, tied=tied)),
        ("tokenizer.json", _tokenizer(gguf.facts)),
        ("tokenizer_config.json", _tokenizer_config(gguf.facts)),
    ):
        (folder / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _named(tensor: Stored) -> str:
    parts = tensor.name.removesuffix(".weight").split(".")
    if len(parts) == 3 and parts[0] == "blk" and parts[1].isdigit() and parts[2] in _BLOCK:
        return f"model.layers.{parts[1]}.{_BLOCK[parts[2]]}.weight"
    if len(parts) == 1 and parts[0] in _OUTSIDE:
        return f"{_OUTSIDE[parts[0]]}.weight"
    raise FolderError(f"the tensor {tensor.name[:80]!r} has no place in a folder that is known here")


def _write_weights(gguf: GgufFile, file: Path) -> None:
    """One safetensors file: the length of its header, the header (JSON), then the data in the header's order."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for tensor in gguf.tensors:
        size = 4 * tensor.weights
        shape = list(tensor.dimensions[::-1])
        header[_named(tensor)] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with file.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for tensor, weights in gguf.weights():
            out.write(_laid_out(tensor, weights, gguf.facts).astype("<f4").tobytes())


def _laid_out(tensor: Stored, weights: Weights, facts: Mapping[str, Any]) -> Weights:
    heads = {"attn_q": "head_count", "attn_k": "head_count_kv"}
    counted = heads.get(tensor.name.removesuffix(".weight").rpartition(".")[2])
    return weights if counted is None else _halved(weights, facts[f"llama.attention.{counted}"])


def _halved(weights: Weights, heads: int) -> Weights:
    """Rows of each head from pairs (llama.cpp) to halves (Hugging Face)."""
    rows, columns = weights.shape
    if rows % (2 * heads):
        raise WeightsError(f"{rows} rows of a tensor are not those of {heads} heads")
    halves = weights.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2)
    return np.ascontiguousarray(halves).reshape(rows, columns)


def _config(facts: Mapping[str, Any], *, tied: bool) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": facts["llama.embedding_length"],
        "intermediate_size": facts["llama.feed_forward_length"],
        "num_hidden_layers": facts["llama.block_count"],
        "num_attention_heads": facts["llama.attention.head_count"],
        "num_key_value_heads": facts["llama.attention.head_count_kv"],
        "rms_norm_eps": facts["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": facts["llama.rope.freq_base"],
        "max_position_embeddings": facts["llama.context_length"],
        "vocab_size": len(facts["tokenizer.ggml.tokens"]),
        "bos_token_id": facts["tokenizer.ggml.bos_token_id"],
        "eos_token_id": facts["tokenizer.ggml.eos_token_id"],
        "tie_word_embeddings": tied,
        "hidden_act": "silu",
        "torch_dtype": "float32",
    }


def _tokenizer(facts: Mapping[str, Any]) -> dict[str, Any]:
    """`tokenizer.json` of the `tokenizers` library: byte-level BPE, digits one by one."""
    tokens: list[str] = facts["tokenizer.ggml.tokens"]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _special_tokens(tokens, facts["tokenizer.ggml.token_type"]),
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "post_processor": None,
        "decoder": {**byte_level, "add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [str(merge).split(" ", 1) for merge in facts["tokenizer.ggml.merges"]],
        },
    }


def _special_tokens(tokens: Iterable[str], kinds: Iterable[int]) -> list[dict[str, Any]]:
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return [
        {"id": number, "content": token, **plain}
        for number, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind == _CONTROL
    ]


def _tokenizer_config(facts: Mapping[str, Any]) -> dict[str, Any]:
    tokens = facts["tokenizer.ggml.tokens"]
    template = facts.get("tokenizer.chat_template")
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": tokens[facts["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[facts["tokenizer.ggml.eos_token_id"]],
        **({"chat_template": template} if isinstance(template, str) else {}),
        "clean_up_tokenization_spaces": False,
        "model_max_length": facts["llama.context_length"],
    }
