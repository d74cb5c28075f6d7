"""What turns gradients into steps: AdamW, Muon, and the two together."""

import math
from collections.abc import Callable
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
    """Return AdamW with weight decay for matrices and tables, but not for biases and norms.

    Args:
        model: whose parameters it steps.
        learning_rate: the learning rate.
        weight_decay: the fraction of itself, times learning_rate, that a weight loses per step.
        betas: decay rates of the averages of the gradient and of its square.

    Raises ValueError for numbers below 0.
    Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization". Taught in: training.
    """
    if not weight_decay >= 0:  # torch looks at its own, not at those of the groups
        raise ValueError(f"weight_decay should be 0 or more, but is {weight_decay}")
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
    """Muon: momentum whose step is made newton_schulz, for the matrices inside the blocks.

    The step U Σ Vᵀ becomes about U Vᵀ: every direction in which the gradient asks for a change gets
    a step of the same size, not only the strongest ones.

    Args:
        matrices: parameters with two dimensions.
        learning_rate: of a square matrix; one with more rows than columns gets √(rows / columns)
            times as much.
        momentum: decay rate of the average of the gradients.
        weight_decay: as in AdamW.

    Raises ValueError for parameters that are not matrices, for none, and for numbers below 0 or a
    momentum of 1 or more.

    Jordan et al. 2024, "Muon". Matrices of one shape are stepped together, which on a CPU is what
    makes it fast.
    Taught in: training_fast.
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
        for name, number in (("learning_rate", learning_rate), ("weight_decay", weight_decay)):
            if not 0 <= number < math.inf:
                raise ValueError(f"{name} should be 0 or more, but is {number}")
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum should be at least 0 and below 1, but is {momentum}")
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
            directions = torch._foreach_lerp(gradients, averages, group["momentum"])
            steps = self.orthogonalize(torch.stack(directions))  # (n, rows, columns)
            rate = group["lr"] * math.sqrt(max(1.0, steps.shape[-2] / steps.shape[-1]))
            if group["weight_decay"]:
                torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(params, list(steps), alpha=-rate)
        return loss

    def orthogonalize(self, directions: Tensor) -> Tensor:
        """(n, rows, columns) → the same; several processes can share this work."""
        return newton_schulz(directions)


def newton_schulz(matrices: Tensor, iterations: int = 5) -> Tensor:
    """Return about the nearest matrices with orthogonal rows or columns: U Σ Vᵀ → U Σ' Vᵀ, Σ' ≈ 1.

    Args:
        matrices: (..., m, n).
        iterations: of Newton and Schulz. Each applies an odd polynomial to the singular values;
            after five they are between about 0.7 and 1.2.

    Taught in: training_fast.
    """
    a, b, c = 3.4445, -4.7750, 2.0315  # tuned by Jordan for a steep slope at 0
    # bfloat16 is enough here, and faster only where the hardware has it.
    x = matrices.bfloat16() if has_bf16(matrices.device) else matrices.float()
    x = x.reshape(-1, *x.shape[-2:])
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)  # singular values ≤ 1 to begin with
    for _ in range(iterations):
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
    """Return Muon for the matrices in the blocks and AdamW for all other parameters.

    Args:
        matrix_rate: learning rate of Muon.
        other_rate: learning rate of AdamW; the weights of convolutions, which grow from 0 to about
            1, get ten times as much.
        weight_decay, momentum: of Muon.

    For short runs a higher matrix_rate and a lower momentum (0.05, 0.75) are better.
    Taught in: training_fast.
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
