"""A canary put together in memory: spec -> vocabulary, transitions, weights, checked margins."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from probe.canary.chunks import ChunkedScript, chunk_script
from probe.canary.files import Array, GgufValue, encode_gguf, encode_safetensors, interleaved
from probe.canary.forward import LlamaShape, ReferenceModel
from probe.canary.spec import END_OF_TEXT, END_OF_TURN, CanaryError, CanarySpec
from probe.canary.transitions import START, Transitions, build_transitions
from probe.canary.vocabulary import CONTROL, Vocabulary, build_vocabulary
from probe.canary.weights import ANY, HEAD, RMS_EPSILON, ROPE_THETA, Geometry, build_weights, plan

SMALLEST_MARGIN = 15.0
"""Logits between the wanted token and the next best one; below, sampling at temperature 1 leaves the path too often."""


@dataclass(frozen=True)
class Canary:
    """A canary model in memory; ``margin`` is the smallest logit margin over all steps of all scripts."""

    spec: CanarySpec
    scripts: tuple[ChunkedScript, ...]
    vocabulary: Vocabulary
    transitions: Transitions
    geometry: Geometry
    weights: dict[str, Array]
    margin: float


def assemble(spec: CanarySpec) -> Canary:
    """Build the model of ``spec`` and check every branch; raises CanaryError when it would not be certain."""
    scripts = tuple(chunk_script(script, spec) for script in spec.scripts)
    vocabulary = build_vocabulary(spec, scripts)
    transitions = build_transitions(spec, scripts, vocabulary)
    geometry = plan(spec, transitions, vocabulary)
    weights = build_weights(spec, geometry, transitions, vocabulary)
    margin = smallest_margin(spec, vocabulary, transitions, geometry, weights)
    return Canary(spec, scripts, vocabulary, transitions, geometry, weights, margin)


def smallest_margin(
    spec: CanarySpec,
    vocabulary: Vocabulary,
    transitions: Transitions,
    geometry: Geometry,
    weights: dict[str, Array],
) -> float:
    """Worst logit margin over every (token, script) step; raises CanaryError when it is below SMALLEST_MARGIN."""
    model = ReferenceModel(weights, LlamaShape.from_config(llama_config(geometry, vocabulary)))
    start_token = vocabulary.ids[spec.generation_prompts[0]]
    worst = float("inf")
    for previous, table in transitions.successors.items():
        token = start_token if previous == START else previous
        cases = list(table.items())
        if spec.default_script in table:
            cases.append(("", table[spec.default_script]))
        for script, wanted in cases:
            added = np.zeros(geometry.hidden, np.float32)
            if script:
                added[[geometry.scripts[script], ANY]] = 1
            logits = model.logits_after(token, added)
            rivals = logits.copy()
            rivals[wanted] = -np.inf
            rival = int(np.argmax(rivals))
            margin = float(logits[wanted] - rivals[rival])
            if margin < SMALLEST_MARGIN:
                users = sorted(name for name, following in table.items() if following == rival)
                raise CanaryError(
                    f"script {script or spec.default_script!r}: after {vocabulary.texts[token]!r} the token "
                    f"{vocabulary.texts[wanted]!r} leads {vocabulary.texts[rival]!r} (of {', '.join(users) or 'none'}) "
                    f"by {margin:.1f} logits; at least {SMALLEST_MARGIN:.0f} are needed: cut these chunks differently"
                )
            worst = min(worst, margin)
    return worst


def llama_config(geometry: Geometry, vocabulary: Vocabulary) -> dict[str, Any]:
    """``config.json`` of the Hugging Face (and MLX) form."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": vocabulary.ids[END_OF_TEXT],
        "eos_token_id": vocabulary.ids[END_OF_TURN],
        "head_dim": HEAD,
        "hidden_act": "silu",
        "hidden_size": geometry.hidden,
        "initializer_range": 0.02,
        "intermediate_size": geometry.feed_forward,
        "max_position_embeddings": geometry.context,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": geometry.heads,
        "num_hidden_layers": 1,
        "num_key_value_heads": geometry.heads,
        "pad_token_id": vocabulary.ids[END_OF_TEXT],
        "rms_norm_eps": RMS_EPSILON,
        "rope_scaling": None,
        "rope_theta": ROPE_THETA,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "use_cache": True,
        "vocab_size": geometry.vocabulary,
    }


def model_files(canary: Canary) -> dict[str, bytes]:
    """Name -> content of every model file: the Hugging Face form (which MLX reads, too) and ``model.gguf``."""
    vocabulary, template = canary.vocabulary, canary.spec.template
    config = llama_config(canary.geometry, vocabulary)
    ends = [config["eos_token_id"], vocabulary.ids[END_OF_TEXT]]
    generation = {"bos_token_id": config["bos_token_id"], "eos_token_id": ends, "pad_token_id": ends[1]}
    generation["do_sample"] = False
    return {
        "config.json": _json(config),
        "generation_config.json": _json(generation),
        "tokenizer.json": _json(tokenizer_json(vocabulary)),
        "tokenizer_config.json": _json(tokenizer_config(canary)),
        "chat_template.jinja": template.encode(),
        "model.safetensors": encode_safetensors(canary.weights, {"format": "pt"}),
        "model.gguf": encode_gguf(gguf_values(canary), gguf_tensors(canary)),
    }


def _json(data: Any) -> bytes:
    return (json.dumps(data, ensure_ascii=True, indent=1) + "\n").encode()


def _added_token(vocabulary: Vocabulary, token: int) -> dict[str, Any]:
    flags = dict.fromkeys(("lstrip", "normalized", "rstrip", "single_word"), False)
    return {"content": vocabulary.texts[token], **flags, "special": vocabulary.types[token] == CONTROL}


def tokenizer_json(vocabulary: Vocabulary) -> dict[str, Any]:
    """``tokenizer.json`` of the Hugging Face tokenizers library: byte-level BPE with the GPT-2 splitting rule."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    added = range(vocabulary.base_size, len(vocabulary))
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": token, **_added_token(vocabulary, token)} for token in added],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {text: token for token, text in enumerate(vocabulary.texts[: vocabulary.base_size])},
            "merges": [f"{left} {right}" for left, right in vocabulary.merges],
        },
    }


def tokenizer_config(canary: Canary) -> dict[str, Any]:
    """``tokenizer_config.json``."""
    vocabulary = canary.vocabulary
    added = range(vocabulary.base_size, len(vocabulary))
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": None,
        "eos_token": END_OF_TURN,
        "pad_token": END_OF_TEXT,
        "unk_token": None,
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": canary.geometry.context,
        "added_tokens_decoder": {str(token): _added_token(vocabulary, token) for token in added},
        "chat_template": canary.spec.template,
    }


def gguf_values(canary: Canary) -> dict[str, GgufValue]:
    """Metadata of the GGUF form."""
    geometry, vocabulary = canary.geometry, canary.vocabulary
    end_of_turn, end_of_text = vocabulary.ids[END_OF_TURN], vocabulary.ids[END_OF_TEXT]
    return {
        "general.architecture": "llama",
        "general.type": "model",
        "general.name": canary.spec.name,
        "general.file_type": 0,
        "llama.context_length": geometry.context,
        "llama.embedding_length": geometry.hidden,
        "llama.block_count": 1,
        "llama.feed_forward_length": geometry.feed_forward,
        "llama.attention.head_count": geometry.heads,
        "llama.attention.head_count_kv": geometry.heads,
        "llama.attention.layer_norm_rms_epsilon": RMS_EPSILON,
        "llama.attention.key_length": HEAD,
        "llama.attention.value_length": HEAD,
        "llama.rope.dimension_count": HEAD,
        "llama.rope.freq_base": ROPE_THETA,
        "llama.vocab_size": geometry.vocabulary,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": vocabulary.texts,
        "tokenizer.ggml.token_type": vocabulary.types,
        "tokenizer.ggml.merges": [f"{left} {right}" for left, right in vocabulary.merges],
        "tokenizer.ggml.bos_token_id": end_of_text,
        "tokenizer.ggml.eos_token_id": end_of_turn,
        "tokenizer.ggml.eot_token_id": end_of_turn,
        "tokenizer.ggml.padding_token_id": end_of_text,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.add_eos_token": False,
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.chat_template": canary.spec.template,
    }


def gguf_tensors(canary: Canary) -> dict[str, Array]:
    """Tensors under their GGUF names, query and key rows in the interleaved rotary order."""
    weights, heads = canary.weights, canary.geometry.heads
    layer = "model.layers.0."
    return {
        "token_embd.weight": weights["model.embed_tokens.weight"],
        "output_norm.weight": weights["model.norm.weight"],
        "output.weight": weights["lm_head.weight"],
        "blk.0.attn_norm.weight": weights[layer + "input_layernorm.weight"],
        "blk.0.attn_q.weight": interleaved(weights[layer + "self_attn.q_proj.weight"], heads),
        "blk.0.attn_k.weight": interleaved(weights[layer + "self_attn.k_proj.weight"], heads),
        "blk.0.attn_v.weight": weights[layer + "self_attn.v_proj.weight"],
        "blk.0.attn_output.weight": weights[layer + "self_attn.o_proj.weight"],
        "blk.0.ffn_norm.weight": weights[layer + "post_attention_layernorm.weight"],
        "blk.0.ffn_gate.weight": weights[layer + "mlp.gate_proj.weight"],
        "blk.0.ffn_up.weight": weights[layer + "mlp.up_proj.weight"],
        "blk.0.ffn_down.weight": weights[layer + "mlp.down_proj.weight"],
    }
