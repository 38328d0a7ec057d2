"""A Llama-like GGUF file in Hugging Face form, for vLLM and SGLang: weights in float32, tokenizer, chat template.

Names and layouts as llama.cpp's converter writes them (rotary rows of q and k are interleaved there, halved in Hugging
Face form). The tokenizer is byte-level BPE with single digits, the pre-tokenizer that GGUF files call `smollm`.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

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
"""Token type of special tokens in a GGUF file."""


class ConversionError(Exception):
    """A file that is none of the kind that can be converted here."""


def hf_form(file: Path, folder: Path) -> Path:
    """Write the model into `folder` where it is not there yet. Raises ConversionError; nothing half-made is left."""
    if folder.is_dir():
        return folder
    reader = GGUFReader(file)
    facts = _facts(reader)
    if facts.get("general.architecture") != "llama" or facts.get("tokenizer.ggml.pre") != "smollm":
        raise ConversionError(f"{file.name}: no Llama with the tokenizer of SmolLM")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as making:
        whole = Path(making, "model")
        whole.mkdir()
        tensors = _tensors(reader, facts)
        save_file(tensors, whole / "model.safetensors", metadata={"format": "pt"})
        _write(whole / "config.json", _config(facts, tied="lm_head.weight" not in tensors))
        _tokenizer(facts).save(str(whole / "tokenizer.json"))
        _write(whole / "tokenizer_config.json", _tokenizer_config(facts))
        os.replace(whole, folder)
    return folder


def _facts(reader: GGUFReader) -> dict[str, Any]:
    return {name: field.contents() for name, field in reader.fields.items()}


def _tensors(reader: GGUFReader, facts: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    heads = {"attn_q": facts["llama.attention.head_count"], "attn_k": facts["llama.attention.head_count_kv"]}
    tensors = {}
    for tensor in reader.tensors:
        weights = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        parts = tensor.name.removesuffix(".weight").split(".")
        if parts[0] == "blk":
            name = f"model.layers.{parts[1]}.{_BLOCK[parts[2]]}.weight"
            if parts[2] in heads:
                weights = _halved(weights, heads[parts[2]])
        elif parts[0] in _OUTSIDE:
            name = f"{_OUTSIDE[parts[0]]}.weight"
        else:
            raise ConversionError(f"unknown tensor {tensor.name}")
        tensors[name] = np.ascontiguousarray(weights)
    return tensors


def _halved(weights: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """Rows of a head from pairs (llama.cpp) to halves (Hugging Face)."""
    rows, columns = weights.shape
    return weights.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _config(facts: dict[str, Any], *, tied: bool) -> dict[str, Any]:
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


def _tokenizer(facts: dict[str, Any]) -> Tokenizer:
    tokens: list[str] = facts["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ", 1)) for merge in facts["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, merges))
    single_digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([single_digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    kinds = facts["tokenizer.ggml.token_type"]
    special = [AddedToken(token, special=True) for token, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL]
    tokenizer.add_special_tokens(special)
    return tokenizer


def _tokenizer_config(facts: dict[str, Any]) -> dict[str, Any]:
    tokens = facts["tokenizer.ggml.tokens"]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": tokens[facts["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[facts["tokenizer.ggml.eos_token_id"]],
        "chat_template": facts["tokenizer.chat_template"],
        "clean_up_tokenization_spaces": False,
        "model_max_length": facts["llama.context_length"],
    }


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
