"""What turns gradients into steps: AdamW, Muon, and the two together."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from helpers.gpt import GPT
from helpers.kernels import has_bf16


def adamw(
    model: nn.Module,
    learning_rate: float,
    weight_decay: float = 0.1,
    betas: tuple[float, float] = (0.9, 0.95),
) -> AdamW:
    """AdamW with weight decay for matrices and tables, but not for biases and norms.

    betas: decay rates of the averages of the gradient and of its square.
    Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization". Taught in: training.
    """
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    groups = [g for g in groups if g["params"]]
    return AdamW(groups, lr=learning_rate, betas=betas, fused=_can_be_fused(model))


def _can_be_fused(model: nn.Module) -> bool:
    """Whether one kernel can update all parameters: it takes divided or whole tensors, not both."""
    return len({type(p.data) for p in model.parameters()}) == 1


class Muon(Optimizer):
    """Muon: momentum whose step is made orthogonal, for the matrices inside the blocks.

    The step U Σ Vᵀ becomes about U Vᵀ: every direction in which the gradient asks for a change gets
    a step of the same size, not only the strongest ones. A matrix with more rows than columns gets
    √(rows / columns) times the learning rate. Matrices of one shape are stepped together, which on
    a CPU is what makes it fast. Jordan et al. 2024, "Muon". Taught in: training_fast.
    """

    def __init__(
        self,
        matrices: Iterable[nn.Parameter],
        learning_rate: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
    ):
        by_shape: dict[torch.Size, list[nn.Parameter]] = {}
        for p in matrices:
            if p.dim() != 2:
                raise ValueError(f"Muon steps matrices; shape {tuple(p.shape)} belongs to AdamW")
            by_shape.setdefault(p.shape, []).append(p)
        settings = dict(lr=learning_rate, momentum=momentum, weight_decay=weight_decay)
        super().__init__([{"params": group} for group in by_shape.values()], settings)

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            gradients = [p.grad for p in params]
            for p in params:
                if not self.state[p]:
                    self.state[p]["average"] = torch.zeros_like(p)
            averages = [self.state[p]["average"] for p in params]
            torch._foreach_lerp_(averages, gradients, 1 - group["momentum"])
            directions = torch._foreach_lerp(gradients, averages, group["momentum"])
            steps = self.orthogonalize(torch.stack(directions))  # (n, rows, columns)
            rate = group["lr"] * math.sqrt(max(1.0, steps.shape[-2] / steps.shape[-1]))
            if group["weight_decay"]:
                torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(params, list(steps), alpha=-rate)

    def orthogonalize(self, directions: Tensor) -> Tensor:
        """(n, rows, columns) → the same; several processes can share this work."""
        return newton_schulz(directions)


def newton_schulz(matrices: Tensor) -> Tensor:
    """About the nearest matrices with orthogonal rows or columns: (..., m, n) → (..., m, n).

    Each round of Newton and Schulz applies an odd polynomial to the singular values; after five
    they are between about 0.7 and 1.2. Taught in: training_fast.
    """
    a, b, c = 3.4445, -4.7750, 2.0315  # tuned by Jordan for a steep slope at 0
    # bfloat16 is enough here, and faster only where the hardware has it.
    x = matrices.bfloat16() if has_bf16(matrices.device) else matrices.float()
    x = x.reshape(-1, *x.shape[-2:])
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)  # singular values ≤ 1 to begin with
    for _ in range(5):
        gram = x @ x.mT
        # a X + (b G + c G²) X; what is added is added by the products' own kernels
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x.mT if tall else x).reshape(matrices.shape).to(matrices.dtype)


def fast_optimizers(
    model: GPT,
    matrix_rate: float = 0.02,
    other_rate: float = 0.01,
    weight_decay: float = 0.0,
    momentum: float = 0.95,
) -> list[Optimizer]:
    """Muon for the matrices in the blocks, and AdamW (other_rate) for all other parameters.

    weight_decay and momentum are Muon's. The weights of convolutions, which grow from 0 to about 1,
    get ten times other_rate. For short runs a higher matrix_rate and a lower momentum (0.05, 0.75)
    are better. Taught in: training_fast.
    """
    matrices = [p for p in model.blocks.parameters() if p.dim() == 2]
    convolutions = [p for p in model.blocks.parameters() if p.dim() > 2]
    chosen = {id(p) for p in matrices + convolutions}
    others = [p for p in model.parameters() if id(p) not in chosen]
    groups: list[dict[str, Any]] = [{"params": others}]
    if convolutions:
        groups.append({"params": convolutions, "lr": 10 * other_rate})
    return [
        Muon(matrices, matrix_rate, momentum, weight_decay),
        AdamW(groups, other_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=_can_be_fused(model)),
    ]
