"""How good is a language model? Surprises, bits per character, what a choice of articles decides.

A mean says little without the texts that it is a mean of: so surprises are kept token by token, and
an interval comes from drawing the texts anew.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.checkpoints import Tokenizer


@torch.no_grad()
def surprises(model: nn.Module, ids: Tensor, stride: int | None = None) -> Tensor:
    """The surprise −ln p, in nats, at each token but the first: ids (N,) → (N − 1,).

    model: maps ids (B, T) to logits (B, T, V), at most block_size at once, and should be in eval
    mode; stride: how far one window begins after the last: the whole window (side by side) if None;
    with less they overlap, and a token counts in the first window that predicts it. Raises
    ValueError for a stride outside the window. Taught in: judging.
    """
    window = int(model.block_size)  # type: ignore[arg-type]
    step = window if stride is None else stride
    if not 1 <= step <= window:
        raise ValueError(f"a stride is between 1 and the window of {window}, not {stride}")
    found, done = [], 0  # how many tokens have been predicted
    for start in range(0, len(ids), step):
        if done >= len(ids) - 1:
            break
        x, y = ids[:-1][start : start + window], ids[1:][start : start + window]
        here = F.cross_entropy(model(x[None])[0].float(), y, reduction="none")
        found.append(here[done - start :])
        done = start + len(x)
    return torch.cat(found) if found else torch.zeros(0)


def bits_per_character(surprise: Tensor, text: str) -> float:
    """The surprises of a text in nats, summed: how many bits that is for each of its characters.

    Taught in: judging; the unit in: byte_pair_encoding.
    """
    return surprise.sum().item() / math.log(2) / len(text)


def likeliest(
    model: nn.Module, tokenizer: Tokenizer, before: str, options: Sequence[str], after: str = ""
) -> str:
    """The option that makes the text before + option + after likeliest.

    Raises ValueError if they do not fit into the model's window together, or where there is no text
    before, or an option and what follows it are no text. Taught in: judging.
    """
    start, sums = tokenizer.encode(before), []
    for option in options:
        rest = tokenizer.encode(option + after)
        if not start or not rest:  # the first token of a text has no surprise
            raise ValueError("likeliest wants a text before, and one in each option or after it")
        if len(start + rest) > int(model.block_size) + 1:  # type: ignore[arg-type]
            raise ValueError(f"{len(start + rest)} tokens do not fit into {model.block_size}")
        sums.append(surprises(model, torch.tensor(start + rest))[-len(rest) :].sum().item())
    return options[sums.index(min(sums))]


def resampled(
    values: Tensor, draws: int = 2000, generator: torch.Generator | None = None
) -> Tensor:
    """The means of as many of the values, drawn with replacement: (n,) → (draws,).

    values: one number for each text (for two models, the difference). The middle 95 % of what
    comes out are an interval: `.quantile(torch.tensor([0.025, 0.975]))`.
    Efron 1979, "Bootstrap methods". Taught in: judging.
    """
    return values[torch.randint(len(values), (draws, len(values)), generator=generator)].mean(1)
