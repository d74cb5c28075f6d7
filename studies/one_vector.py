"""One vector between reader and writer fails at long words; attention does not.

A recurrent encoder–decoder (GRU) learns to write words of random letters backwards, of 1 to 12
letters, all lengths equally often. Then it writes 200 fresh words of each length. "one vector": the
decoder gets the encoder's last state; the other arms also look at all states, with additive scores
or with dot products. `letters N`: the share of words of N letters that are right to the last
letter. 16 is longer than anything in training. `width`: of embeddings and states.
"""

import torch

from helpers.seq2seq import RNNSeq2Seq
from studies import Study
from studies._seq2seq import exact_match, fit, reversals

SCORES = {"one vector": None, "additive": "additive", "dot product": "dot"}


def run(arm: str, seed: int, *, width: int, steps: int, rate: float) -> dict[str, float]:
    torch.manual_seed(seed)
    model = RNNSeq2Seq(width, SCORES[arm])
    generator = torch.Generator().manual_seed(seed)
    losses = fit(model, lambda n, g: reversals(n, 1, 12, g), steps, generator, rate)
    fresh = torch.Generator().manual_seed(1000 + seed)
    right = {
        f"letters {n}": exact_match(model, reversals(200, n, n, fresh))
        for n in (2, 4, 6, 8, 10, 12, 16)
    }
    return {**right, "loss": sum(losses[-20:]) / 20}


study = Study(
    arms=[*SCORES],
    settings={"width": 32, "steps": 600, "rate": 0.006},
    variations=[
        {"width": 64},
        {"width": 128},
        {"steps": 1800},
        {"width": 128, "steps": 1800},
        {"rate": 0.003},
    ],
)
