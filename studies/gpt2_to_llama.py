"""What does each switch from GPT-2 to Llama change, one at a time?

Two layers, C = 64, texts of 32 characters of the plays, 16 in a batch, AdamW. The first model is
GPT-2's; each next one keeps the switches of those before it. "+ shared keys" has two heads of keys
and values for four of queries, and no biases. rate: AdamW's. loss: on 50,000 held-out characters;
parameters: how many numbers were trained.
"""

from typing import Any

import torch

from helpers.gpt import GPT, GPTConfig
from helpers.optimizers import adamw
from helpers.training import estimate_loss, train
from studies import Study
from studies._plays import plays

T, HELD_OUT = 32, 50_000
SWITCHES: dict[str, dict[str, Any]] = {
    "GPT-2": {},
    "+ RMSNorm": {"norm": "RMSNorm"},
    "+ rotary": {"position": "Rotary"},
    "+ SwiGLU": {"mlp": "SwiGLU"},
    "+ no biases": {"bias": False},
    "+ shared keys": {"n_kv_head": 2},
}


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    tokenizer, ids, held_out = plays(HELD_OUT)
    parts: dict[str, Any] = {}
    for name, switch in SWITCHES.items():
        parts |= switch
        if name == arm:
            break
    torch.manual_seed(seed)
    sizes = GPTConfig(tokenizer.vocab_size, T, n_layer=2, n_head=4, n_embd=64, **parts)
    model = GPT(sizes)
    train(
        model, ids, steps=steps, block_size=T, batch_size=16, optimizer=adamw(model, rate),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return {
        "loss": estimate_loss(model, held_out, block_size=T, batch_size=512),
        "parameters": model.n_parameters(),
    }


study = Study(
    arms=list(SWITCHES),
    settings={"steps": 500, "rate": 3e-3},
    variations=[{"rate": 1e-2}, {"steps": 1500}],
)
