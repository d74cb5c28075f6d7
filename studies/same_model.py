"""Does SmolLM2 in our GPT compute what the library `transformers` computes?

Both get the same weights, and both continue ten prompts by 64 tokens, greedily. differ: how many of
the 64 tokens differ; logits: the largest difference between two logits at any position; largest
logit at 0 … 11: what `transformers` computes at the first positions, so that another program can
be compared with it; a seed is a prompt.
"""

import os
from functools import cache
from typing import Any

import torch

from helpers import data
from helpers.sampling import generate
from studies import Study
from studies._real import smollm2

PROMPTS = [
    "The capital of France is",
    "Once upon a time there was a",
    "def fibonacci(n):",
    "In 1969, two people walked on",
    "The recipe needs 3 eggs,",
    "Dear Sir or Madam,\n\n",
    "Water boils at",
    "The three largest cities in the world are",
    "She opened the door and saw",
    "Photosynthesis is the process by which",
]


THEIR_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "blk.": "model.layers.",
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


@cache
def theirs() -> Any:
    """The library's model, filled from the same file, names and rows put in order here."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from gguf import GGUFReader
    from gguf.quants import dequantize
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=49_152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
            num_attention_heads=9, num_key_value_heads=3, max_position_embeddings=8192,
            rms_norm_eps=1e-5, tie_word_embeddings=True,
            rope_parameters={"rope_type": "default", "rope_theta": 100_000.0},
        )
    )  # fmt: skip
    state = {}
    for tensor in GGUFReader(data.smollm2()).tensors:
        weight, name = dequantize(tensor.data, tensor.tensor_type), tensor.name
        if "attn_q" in name or "attn_k" in name:  # back from llama.cpp's order of rotated pairs
            rows = weight.reshape(-1, 32, 2, weight.shape[-1])  # a head has 64 rows
            weight = rows.swapaxes(1, 2).reshape(weight.shape)
        for here, there in THEIR_NAMES.items():
            name = name.replace(here, there)
        state[name] = torch.tensor(weight)
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state)
    return model.eval()


@torch.no_grad()
def run(arm: str, seed: int, *, tokens: int) -> dict[str, float]:
    model, tokenizer = smollm2()
    ids = torch.tensor([tokenizer.encode(PROMPTS[seed])])
    text = generate(model, ids, tokens, temperature=0)
    other, past = ids, None
    for _ in range(tokens):
        read = theirs()(other if past is None else other[:, -1:], past_key_values=past)
        past = read.past_key_values
        other = torch.cat((other, read.logits[:, -1:].argmax(-1)), dim=1)
    their_logits = theirs()(text).logits
    largest = their_logits[0, :12].amax(-1).tolist()
    return {
        "differ": float((text != other).sum()),
        "logits": (model(text) - their_logits).abs().max().item(),
        **{f"largest logit at {position}": logit for position, logit in enumerate(largest)},
    }


study = Study(arms=["SmolLM2"], settings={"tokens": 64}, seeds=range(len(PROMPTS)))
