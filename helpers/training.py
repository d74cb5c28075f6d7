"""Training of language models: batches, the loss and its estimate, optimizers, the loop.

Every model of the course maps token ids of shape (B, T) to logits of shape (B, T, V): for each of
the B rows and T positions, one number per symbol of the vocabulary for what may come next.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from helpers.checkpoints import evaluating
from helpers.checks import (
    check_count,
    check_finite,
    check_optimizers,
    check_settings,
    check_stream,
    to_device_of,
)
from helpers.distributed import full_tensor, map_across_ranks, shard_like
from helpers.fast import has_bf16
from helpers.gpt import GPT, GPTConfig

Schedule = Callable[[int, int], float]  # (step, steps) → the factor on the learning rates

# --- what is read, and the loss ------------------------------------------------------------------


def get_batch(
    data: Tensor, block_size: int, batch_size: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Return a random batch of the stream: inputs x and targets y, both of shape (B, T).

    Args:
        data: token ids (N,), int64.
        block_size: T, tokens per row.
        batch_size: B, rows.
        generator: draws where the rows start, on the CPU.

    y is x shifted by one token: y[b, t] is the token that follows x[b, t].
    Raises TypeError or ValueError if data is not a 1-D int64 tensor of at least T + 1 tokens.
    Taught in: language_modelling.
    """
    check_stream(data, block_size, batch_size)
    # subtle: the last start is N − T − 1, so that the last target is the last token; randint's
    # upper bound is exclusive.
    high = len(data) - block_size
    starts = torch.randint(high, (batch_size, 1), generator=generator, device="cpu")
    positions = (starts + torch.arange(block_size, device="cpu")).to(data.device)  # (B, T)
    return data[positions], data[positions + 1]


def language_model_loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Return the cross-entropy of the model's next-token predictions in nats, a scalar.

    Args:
        model: maps ids (B, T) to logits (B, T, V).
        x: token ids (B, T).
        y: the tokens that follow, (B, T).

    The mean runs over all B·T positions.
    Raises ValueError unless the model gives logits of shape (B, T, V).
    Taught in: language_modelling.
    """
    x, y = to_device_of(model, x), to_device_of(model, y)
    logits = model(x)
    if logits.dim() != 3 or logits.shape[:2] != y.shape:
        raise ValueError(
            f"the model should map ids of shape {tuple(x.shape)} to logits of shape "
            f"(*{tuple(y.shape)}, V), but gave {tuple(logits.shape)}"
        )
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())  # (B·T, V) and (B·T,)


@torch.no_grad()
def estimate_loss(
    model: nn.Module,
    data: Tensor,
    *,
    block_size: int,
    batch_size: int = 64,
    batches: int | None = None,
    generator: torch.Generator | None = None,
) -> float:
    """Return the model's mean loss on `data` in nats, without training it.

    Args:
        model, data, block_size, batch_size: as in `train`.
        batches: how many random batches to draw with `generator`; None: go once through the whole
            stream in chunks of block_size, so that each token but the first is predicted once.

    The model runs in evaluation mode; afterwards each of its modules gets its own mode back.
    Raises what `get_batch` raises. Explained in: language_modelling.
    """
    check_stream(data, block_size, batch_size)
    if batches is not None:
        check_count("batches", batches)
    total, count = 0.0, 0
    pairs: Iterable[tuple[Tensor, Tensor]] = (
        _whole_stream(data, block_size, batch_size)
        if batches is None
        else (get_batch(data, block_size, batch_size, generator) for _ in range(batches))
    )
    with evaluating(model):
        for x, y in pairs:
            total += language_model_loss(model, x, y).item() * y.numel()
            count += y.numel()
    return total / count


def _whole_stream(data: Tensor, block_size: int, batch_size: int) -> list[tuple[Tensor, Tensor]]:
    """Every (input, target) of the stream once; the last row may be shorter. Views, no copies."""
    whole = (len(data) - 1) // block_size * block_size
    x, y = data[:whole].view(-1, block_size), data[1 : whole + 1].view(-1, block_size)
    pairs = list(zip(x.split(batch_size), y.split(batch_size), strict=True))
    if whole < len(data) - 1:
        pairs.append((data[None, whole:-1], data[None, whole + 1 :]))
    return pairs


# --- what turns gradients into steps --------------------------------------------------------------


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
    """Muon: momentum whose step is made orthogonal, for the matrices inside the blocks.

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
    makes it fast; of processes that train together, each makes a part of the steps orthogonal.
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
            steps = map_across_ranks(orthogonal, torch.stack([full_tensor(d) for d in directions]))
            rate = group["lr"] * math.sqrt(max(1.0, steps.shape[-2] / steps.shape[-1]))
            if group["weight_decay"]:
                torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
            own = [shard_like(step, p) for step, p in zip(steps, params, strict=True)]
            torch._foreach_add_(params, own, alpha=-rate)
        return loss


def orthogonal(matrices: Tensor, iterations: int = 5) -> Tensor:
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


# Schedules.


def cosine(step: int, steps: int, warmup: int = 0, final: float = 0.1) -> float:
    """Return the factor on the learning rate at a step: linear warm-up, then cosine decay.

    Args:
        step: counted from 0.
        steps: of the whole run.
        warmup: steps of the warm-up.
        final: the factor at the end.

    Loshchilov and Hutter 2017, "SGDR". Taught in: training.
    """
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / max(1, steps - warmup)
    return final + (1 - final) * (1 + math.cos(math.pi * min(1.0, done))) / 2


def wsd_schedule(step: int, steps: int, warmup: int = 10, decay_frac: float = 0.6) -> float:
    """Return the factor on the learning rate at a step: warm-up, stable, linear decay to zero.

    Args:
        step: counted from 0.
        steps: of the whole run.
        warmup: steps of the linear warm-up.
        decay_frac: the fraction of the run that decays; 0: no decay.

    Hu et al. 2024, "MiniCPM" (warmup–stable–decay). Taught in: training_fast.
    """
    up = (step + 1) / max(1, warmup)
    down = (steps - step) / max(1.0, decay_frac * steps)
    return max(0.0, min(1.0, up, down))


# --- the loop ------------------------------------------------------------------------------------


def train(
    model: nn.Module,
    data: Tensor,
    *,
    steps: int,
    block_size: int,
    batch_size: int,
    optimizer: Optimizer | Sequence[Optimizer],
    schedule: Schedule | None = None,
    grad_clip: float | None = None,
    generator: torch.Generator | None = None,
    callback: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Train a language model in place; returns the loss of each step's batch, in nats.

    Args:
        model: maps ids (B, T) to logits (B, T, V).
        data: the text as one stream of token ids, (N,), int64.
        steps: number of optimizer steps.
        block_size: T, tokens per row of a batch.
        batch_size: B, rows per batch.
        optimizer: one for all parameters of the model, or several for different ones.
        schedule: schedule(step, steps) is the factor on the learning rates, for example `cosine`.
        grad_clip: largest norm of the gradient; None: gradients are not clipped.
        generator: draws the batches.
        callback: called with the step's number and its loss after each step.

    For a run with evaluations, checkpoints and interrupts use `helpers.trainer.Trainer`.
    Raises what `get_batch` raises; TypeError for what is not an optimizer; ValueError for settings
    out of range and an optimizer of another model; FloatingPointError once the loss is not finite.
    Taught in: language_modelling; schedule, grad_clip and several optimizers in: training.
    """
    optimizers = check_optimizers(optimizer, model)
    check_settings(steps=steps, grad_clip=grad_clip)
    check_stream(data, block_size, batch_size)
    data = to_device_of(model, data)
    schedulers = learning_rates(optimizers, schedule, steps)
    losses: list[float] = []
    model.train()
    for step in range(steps):
        x, y = get_batch(data, block_size, batch_size, generator)
        loss = language_model_loss(model, x, y)
        losses.append(loss.item())
        check_finite(losses)
        model.zero_grad()  # gradients add up: start each step from zero
        loss.backward()
        if grad_clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
        for optimizer in optimizers:
            optimizer.step()
        for scheduler in schedulers:
            scheduler.step()
        if callback is not None:
            callback(step, losses[-1])
    return losses


def learning_rates(
    optimizers: Sequence[Optimizer], schedule: Schedule | None, steps: int, start: int = 0
) -> list[LambdaLR]:
    """Return a `LambdaLR` per optimizer that multiplies its rates by schedule(step, steps).

    start: the step that is taken first, above 0 in a resumed run. Without a schedule, none.
    Taught in: training.
    """
    if schedule is None:
        return []
    # After the last step LambdaLR asks for the factor of one more.
    last = steps - 1
    return [LambdaLR(o, lambda n: schedule(min(start + n, last), steps)) for o in optimizers]


# --- a GPT that learns fast on a small machine: the selection that won (benchmarks/training.py) ---


def fast_gpt(
    vocab_size: int,
    block_size: int,
    n_layer: int,
    n_head: int,
    n_embd: int,
    **settings: Any,
) -> GPT:
    """Return a GPT with rotary positions, QK norm, squared ReLU, short convolutions and no biases.

    Args:
        vocab_size, block_size, n_layer, n_head, n_embd: as in `GPTConfig`.
        settings: its other settings, where they should differ from these.

    The layers that add to the residual stream and the output head are initialised with zeros, so
    that every block starts as the identity and all next tokens start equally likely.
    Raises what `GPT` raises, and ValueError for tied=True: a head of zeros cannot share the weights
    of the embedding. Jordan et al. 2024, "modded-nanogpt". Taught in: training_fast.
    """
    chosen = dict(
        mlp="SquaredReLU", position="Rotary", qk_norm=True, convolution=4, bias=False, tied=False
    )
    sizes = (vocab_size, block_size, n_layer, n_head, n_embd)
    model = GPT(GPTConfig(*sizes, **{**chosen, **settings}))
    if model.config.tied:
        raise ValueError(
            "fast_gpt needs tied=False: its head starts at zero and cannot share weights"
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
