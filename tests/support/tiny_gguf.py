"""A GGUF file of a tiny Llama with SmolLM's tokenizer, by the gguf library: for what reads such files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind

WIDTH, HEADS, KV_HEADS, INNER, LAYERS = 64, 2, 1, 128, 2
TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "a", "b", "ab", "1", "Ġ"]
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }} {{ m['content'] }}<|im_end|>{% endfor %}"


def tiny_gguf(path: Path, kind: Kind = Kind.Q4_1, **facts: Any) -> dict[str, np.ndarray]:
    """Write it, its matrices as `kind`; what each tensor holds as float32. `facts` replace those there are."""
    writer = gguf.GGUFWriter(path, facts.pop("architecture", "llama"))
    numbers = {
        "block_count": LAYERS,
        "context_length": 256,
        "embedding_length": WIDTH,
        "feed_forward_length": INNER,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS,
    }
    for name, number in numbers.items():
        if facts.get(name, number) is not None:
            writer.add_uint32(f"llama.{name}", facts.get(name, number))
    writer.add_float32("llama.rope.freq_base", 10000.0)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(facts.get("pre", "smollm"))
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 3, 3, 1, 1, 1, 1, 1])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(facts.get("eos", 2))
    writer.add_chat_template(TEMPLATE)
    held = {}
    for name, shape in _shapes().items():
        plain = np.random.default_rng(len(held)).normal(size=shape).astype(np.float32)
        of = kind if len(shape) == 2 else Kind.F32
        stored = gguf.quantize(plain, of)
        writer.add_tensor(name, stored, raw_dtype=of)
        held[name] = gguf.dequantize(stored, of)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()
    return held


def _shapes() -> dict[str, tuple[int, ...]]:
    layer = {
        "attn_norm": (WIDTH,),
        "attn_q": (WIDTH, WIDTH),
        "attn_k": (WIDTH // HEADS * KV_HEADS, WIDTH),
        "attn_v": (WIDTH // HEADS * KV_HEADS, WIDTH),
        "attn_output": (WIDTH, WIDTH),
        "ffn_norm": (WIDTH,),
        "ffn_gate": (INNER, WIDTH),
        "ffn_up": (INNER, WIDTH),
        "ffn_down": (WIDTH, INNER),
    }
    layers = {f"blk.{n}.{name}.weight": shape for n in range(LAYERS) for name, shape in layer.items()}
    return {"token_embd.weight": (len(TOKENS), WIDTH), **layers, "output_norm.weight": (WIDTH,)}
