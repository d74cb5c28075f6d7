"""Evaluation of language models: negative log-likelihood, bits per character, bootstrap."""

import math
import timeit
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.text import Tokenizer
from helpers.training import evaluating, to_device_of


@torch.no_grad()
def token_nll(model: nn.Module, ids: Tensor, stride: int | None = None) -> Tensor:
    """Negative log-likelihood of each token of a text but the first, in nats: ids (N,) → (N − 1,).

    model: maps ids (B, T) to logits (B, T, V), T up to block_size. stride: distance between the
    starts of two windows; None: block_size. With less, windows overlap; each token is scored once,
    in the first window that predicts it. Taught in: judging.
    """
    window = int(model.block_size)  # type: ignore[arg-type]
    step = window if stride is None else stride
    if not 1 <= step <= window:
        raise ValueError(f"stride should be between 1 and block_size {window}, but is {stride}")
    (n,) = ids.shape  # one text
    ids = to_device_of(model, ids)
    found, done = [], 0  # how many tokens have been predicted
    with evaluating(model):
        for start in range(0, n, step):
            if done >= n - 1:
                break
            x, y = ids[:-1][start : start + window], ids[1:][start : start + window]
            here = F.cross_entropy(model(x[None])[0].float(), y, reduction="none")
            found.append(here[done - start :])
            done = start + len(x)
    return torch.cat(found) if found else torch.zeros(0)


def bits_per_character(nll: Tensor, text: str) -> float:
    """Bits per character of a text, from its per-token negative log-likelihood in nats.

    Taught in: judging; the unit in: byte_pair_encoding.
    """
    return nll.sum().item() / math.log(2) / len(text)


def most_likely(
    model: nn.Module, tokenizer: Tokenizer, before: str, options: Sequence[str], after: str = ""
) -> str:
    """The option for which the text before + option + after is most likely.

    The text before must not be empty: the first token of a text is not predicted.
    Taught in: judging.
    """
    start, sums = tokenizer.encode(before), []
    for option in options:
        rest = tokenizer.encode(option + after)
        if not start or not rest:
            raise ValueError("most_likely needs a text before, and one in each option or after it")
        if len(start + rest) > int(model.block_size) + 1:  # type: ignore[arg-type]
            raise ValueError(f"{len(start + rest)} tokens do not fit into {model.block_size}")
        sums.append(token_nll(model, torch.tensor(start + rest))[-len(rest) :].sum().item())
    return options[sums.index(min(sums))]


def bootstrap_means(
    values: Tensor, draws: int = 2000, generator: torch.Generator | None = None
) -> Tensor:
    """Bootstrap distribution of the mean: values (n,), one number per text, → (draws,).

    For two models, the values are differences. Each mean is that of n values drawn with
    replacement; the quantiles 0.025 and 0.975 give a 95% interval.
    Efron 1979, "Bootstrap methods". Taught in: judging.
    """
    n = len(values)
    drawn = torch.randint(n, (draws, n), generator=generator, device="cpu")
    return (1.0 * values)[drawn.to(values.device)].mean(1)


def milliseconds(function: Callable[..., Any], *arguments: Any, repeats: int = 20) -> float:
    """The shortest of `repeats` calls, in milliseconds: other programs only ever add time.

    Explained in: causal_averaging.
    """
    return 1000 * min(timeit.repeat(lambda: function(*arguments), number=1, repeat=repeats))
