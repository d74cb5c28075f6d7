"""The exercises on scaling beyond what their declarations say: other answers, right and wrong."""

import numpy as np
import torch
import torch.nn.functional as F

from exercises import scaling as check
from tests.answers import accepted, refused


def from_the_weights(x, query, key):
    q, k = (F.linear(x, layer.weight, layer.bias) for layer in (query, key))
    return torch.einsum("btd,bsd->bts", q, k).div(len(query.weight) ** 0.5).softmax(-1)


def run_32(**other):
    return {"factor": 32**-0.25, "perplexity": 1.9, "suffices": [4], **other}


test_other_ways_are_right_too = accepted(
    (check.head_weights, from_the_weights),
    (check.right_divisor, lambda d, a, b: torch.tensor(d).sqrt() * a * b),
    (check.right_divisor, lambda d, a, b: np.float32(a) * np.sqrt(d) * b),
    (check.start_or_steps, {"factor": 0.42, "perplexity": 1.6, "suffices": (4,)}),
    (check.start_or_steps, run_32(factor=-0.4204, perplexity=torch.tensor(2), suffices=4)),
)


def cut_weights(x, query, key):
    q, k = (F.linear(x, layer.weight.data, layer.bias.data) for layer in (query, key))
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)


test_other_mistakes_are_told_by_what_differs = refused(
    (check.head_weights, lambda x, q, k: (q(x) @ k(x)).softmax(-1), "Transpose the keys first"),
    (check.head_weights, cut_weights, "gradient reaches one of its tensors"),
    (check.start_or_steps, run_32(factor=32**-0.5), "the scores shrink by 32"),
    (check.start_or_steps, run_32(factor=0.6), "by 0.36, because it enters twice"),
    (check.start_or_steps, run_32(perplexity=2.52), "looks like the loss"),
    (check.start_or_steps, run_32(perplexity=13.5), "as its third result"),
    (check.start_or_steps, run_32(perplexity=3.4), "too large for the higher learning rate"),
    (check.start_or_steps, run_32(perplexity=6.1), "of a head that divides"),
    (check.start_or_steps, run_32(perplexity=1.1), "That is too small"),
    (check.start_or_steps, run_32(suffices=[4, 32]), "more than 0.1 apart"),
    (check.start_or_steps, run_32(suffices=[]), "its own factor"),
    (check.what_is_wrong, {**check.HEADS, "A": "right"}, "Head A is not what you say. At hs = 16"),
    (check.what_is_wrong, {**check.HEADS, "B": "twice"}, "rows sum to 0.06"),
    (check.what_is_wrong, {**check.HEADS, "E": "right"}, "Head E is not what you say. At hs = 16"),
    (check.what_is_wrong, {**check.HEADS, "E": "root of C"}, "For E, yours has"),
)
