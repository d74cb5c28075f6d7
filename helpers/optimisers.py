"""What turns gradients into steps: AdamW with two groups, Muon for matrices, and the schedule."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer


def adamw(
    model: nn.Module,
    learning_rate: float,
    weight_decay: float = 0.1,
    betas: tuple[float, float] = (0.9, 0.95),
) -> AdamW:
    """AdamW that decays matrices and tables, but not biases and the gains of norms.

    learning_rate: the size of a step; weight_decay: the share of itself, times learning_rate, that
    a matrix loses a step; betas: how slowly the averages of the gradient and of its square move.

    Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization". Taught in chapter 09.
    """
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    # One kernel for the whole update, on CPU and GPU alike.
    return AdamW([g for g in groups if g["params"]], lr=learning_rate, betas=betas, fused=True)


class Muon(Optimizer):
    """Momentum whose step is made orthogonal, for the matrices inside the blocks.

    The step U Σ Vᵀ becomes about U Vᵀ: every direction in which the gradient asks for a change gets
    a step of the same size, not only the strongest ones.

    matrices: parameters with two dimensions; learning_rate: of a square matrix, those with more
    rows than columns get √(rows / columns) of it; momentum: how slowly the average of the gradients
    moves; weight_decay: as in AdamW. Raises ValueError for parameters that are not matrices, and
    for none.

    Jordan et al. 2024, "Muon". Matrices of one shape are stepped together, which on a CPU is what
    makes it fast. Taught in chapter 09.
    """

    def __init__(
        self,
        matrices: list[nn.Parameter],
        learning_rate: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
    ):
        matrices = list(matrices)
        for p in matrices:
            if p.dim() != 2:
                raise ValueError(f"Muon steps matrices; shape {tuple(p.shape)} belongs to AdamW")
        settings = dict(lr=learning_rate, momentum=momentum, weight_decay=weight_decay)
        by_shape: dict[torch.Size, list[nn.Parameter]] = {}
        for p in matrices:
            by_shape.setdefault(p.shape, []).append(p)
        super().__init__([{"params": group} for group in by_shape.values()], settings)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            averages = []
            for p in params:
                state = self.state[p]
                if not state:
                    state["average"] = torch.zeros_like(p)
                averages.append(state["average"])
            gradients = [p.grad for p in params]
            torch._foreach_lerp_(averages, gradients, 1 - group["momentum"])
            steps = torch.stack(torch._foreach_lerp(gradients, averages, group["momentum"]))
            steps = orthogonal(steps)
            rate = group["lr"] * math.sqrt(max(1.0, steps.shape[-2] / steps.shape[-1]))
            if group["weight_decay"]:
                torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(params, list(steps.unbind()), alpha=-rate)
        return loss


def orthogonal(matrices: Tensor, iterations: int = 5) -> Tensor:
    """The nearest matrices with orthogonal rows or columns, roughly: U Σ Vᵀ → U Σ' Vᵀ, Σ' ≈ 1.

    matrices: (..., m, n). Each iteration applies an odd polynomial to the singular values, which
    drives them towards 1 (within about 0.7 to 1.2 after five); nothing is decomposed.
    Taught in chapter 09.
    """
    a, b, c = 3.4445, -4.7750, 2.0315  # tuned by Jordan for a steep slope at 0
    x = matrices.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)  # singular values ≤ 1 to begin with
    for _ in range(iterations):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.mT if tall else x).to(matrices.dtype)


def cosine(step: int, steps: int, warmup: int = 0, final: float = 0.1) -> float:
    """The share of the full learning rate at a step: up in a line, down in half a cosine.

    step: counted from 0; steps: of the whole run; warmup: steps of the way up; final: the share
    that is left at the end. Taught in chapter 09.
    """
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / max(1, steps - warmup)
    return final + (1 - final) * (1 + math.cos(math.pi * min(1.0, done))) / 2
