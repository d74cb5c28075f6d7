"""A GPT that learns fast on a small machine: what it is made of, and how its steps are taken.

Every part was taught on its own; this is the selection that won, measured in benchmarks/.
"""

from torch import nn
from torch.optim import AdamW, Optimizer

from helpers.gpt import GPT, SquaredReLU
from helpers.optimisers import Muon
from helpers.positions import Rotary


def fast_gpt(
    vocab_size: int,
    block_size: int,
    n_layer: int,
    n_head: int,
    n_embd: int,
    dropout: float = 0.0,
) -> GPT:
    """A GPT with rotary positions, RMSNorm, normed queries and keys, squared ReLU, no biases.

    Every block starts as the identity, and all next tokens start equally likely: what adds to the
    residual stream, and what makes the logits, begins at zero.
    Raises what `GPT` raises. Jordan et al. 2024, "modded-nanogpt". Taught in chapter 09.
    """
    model = GPT(
        vocab_size,
        block_size,
        n_layer,
        n_head,
        n_embd,
        norm=nn.RMSNorm,
        mlp=SquaredReLU,
        position=Rotary,
        qk_norm=True,
        bias=False,
        dropout=dropout,
        tied=False,
    )
    for name, p in model.named_parameters():
        if name.endswith("output.weight") or name == "head.weight":
            nn.init.zeros_(p)
        elif name == "token.weight":
            nn.init.normal_(p)
        elif p.dim() == 2:
            bound = p.shape[1] ** -0.5
            nn.init.uniform_(p, -bound, bound)
    return model


def fast_optimisers(
    model: GPT,
    matrix_rate: float = 0.02,
    other_rate: float = 0.01,
    weight_decay: float = 0.0,
    momentum: float = 0.95,
) -> list[Optimizer]:
    """Muon for the matrices in the blocks, AdamW for tables and gains: two optimisers for `train`.

    matrix_rate, other_rate: their learning rates; weight_decay, momentum: of the matrices. For runs
    of a few hundred steps larger rates and a shorter memory (0.04, 0.85) are better.
    Taught in chapter 09.
    """
    matrices = [p for p in model.blocks.parameters() if p.dim() == 2]
    chosen = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in chosen]
    return [
        Muon(matrices, matrix_rate, momentum, weight_decay),
        AdamW(others, other_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True),
    ]


def hold_then_fall(step: int, steps: int, warmup: int = 10, fall: float = 0.6) -> float:
    """The share of the full learning rate at a step: up in a line, level, down to zero in a line.

    step: counted from 0; steps: of the whole run; warmup: steps of the way up; fall: the share of
    the run that goes down; 0 for none of either. Taught in chapter 09.
    """
    up = (step + 1) / max(1, warmup)
    down = (steps - step) / max(1.0, fall * steps)
    return max(0.0, min(1.0, up, down))
