"""Sampling from language models: logits → probabilities → text."""

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any, overload

import torch
from torch import Tensor, nn

from helpers.training import evaluating

Prompts = Sequence[Sequence[int] | Tensor]  # B prompts of any lengths


def next_token_probabilities(
    logits: Tensor,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> Tensor:
    """Return the distribution of the next token: logits (..., V) → probabilities (..., V).

    Args:
        temperature: divides the logits; 0 gives probability 1 to the largest logit (greedy).
        top_k: keep only the k most likely tokens.
        top_p: keep only the fewest most likely tokens whose probabilities sum to at least p.
        min_p: keep only tokens at least min_p times as likely as the most likely one.

    They apply in this order, and what is kept is normalised to sum to 1.
    Fan et al. 2018 (top-k), Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration"
    (top-p), Nguyen et al. 2024, "Turning Up the Heat" (min-p). Taught in: generation.
    """
    in_range = temperature >= 0 and (top_k is None or top_k >= 1)
    if not (in_range and 0 < (1 if top_p is None else top_p) <= 1 and 0 <= (min_p or 0) <= 1):
        raise ValueError("temperature is at least 0, top_k at least 1; top_p and min_p reach to 1")
    largest = logits.amax(-1, keepdim=True)  # (..., 1)
    if not (largest > -math.inf).all():  # NaN is not larger than anything
        raise ValueError("there are logits of NaN, or a row of −∞ that leaves nothing to choose")
    if temperature == 0:
        return torch.zeros_like(logits).scatter(-1, logits.argmax(-1, keepdim=True), 1.0)
    # Less the largest logit, so that no temperature makes infinities; −∞ / ∞ would be no number.
    scaled = torch.where(logits == largest, 0.0, (logits - largest) / min(temperature, 1e30))
    probs = scaled.softmax(-1)
    if top_k is None and top_p in (None, 1) and not min_p:
        return probs
    probs, order = probs.sort(dim=-1, descending=True, stable=True)  # the most likely first
    if top_k is not None:
        probs[..., top_k:] = 0
    if top_p is not None and top_p < 1:
        probs = probs / probs.sum(-1, keepdim=True)
        before = probs.cumsum(-1)[..., :-1]  # of all tokens that are more likely than the second, …
        probs[..., 1:] = probs[..., 1:].masked_fill(before >= top_p, 0)  # the first always stays
    if min_p:
        probs = probs.masked_fill(probs < min_p * probs[..., :1], 0)
    probs = probs / probs.sum(-1, keepdim=True)
    return torch.zeros_like(probs).scatter(-1, order, probs)  # back in the vocabulary's order


def apply_repetition_penalty(logits: Tensor, ids: Tensor, penalty: float) -> Tensor:
    """Make the tokens of the text so far less likely: logits (B, V), ids (B, T) → logits (B, V).

    penalty: divides a logit above 0 and multiplies one below 0; 1 changes nothing.
    Keskar et al. 2019, "CTRL", section 4.1, who divide all logits. Taught in: generation.
    """
    seen = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, ids, True)
    less = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(seen, less, logits)


@overload
def generate(model: nn.Module, prompts: Tensor, max_new_tokens: int, **settings: Any) -> Tensor: ...
@overload
def generate(
    model: nn.Module, prompts: Prompts, max_new_tokens: int, **settings: Any
) -> list[Tensor]: ...
def generate(
    model: nn.Module, prompts: Tensor | Prompts, max_new_tokens: int, **settings: Any
) -> Tensor | list[Tensor]:
    """Continue each prompt by n ≤ max_new_tokens tokens; settings: those of `stream`.

    Returns (B, T + n) for a tensor; for a list of prompts, a list of B tensors, each of which ends
    with its own stop token. With num_samples, the texts of a prompt are neighbours.
    Taught in: generation; for a list, kv_cache.
    """
    stop = settings["stop"] = [*map(int, settings.get("stop", ()))]
    samples = settings.get("num_samples", 1)
    new = [*stream(model, prompts, max_new_tokens, **settings)]  # n times (B,)
    device = next(model.parameters(), torch.empty(0)).device
    if isinstance(prompts, Tensor):
        whole = prompts.to(device).repeat_interleave(samples, dim=0)
        return torch.cat([whole, *(column[:, None] for column in new)], dim=1)
    columns, texts = [column.tolist() for column in new], []
    for i in range(len(prompts) * samples):
        text = torch.as_tensor(prompts[i // samples]).tolist()
        for column in columns:
            text.append(column[i])
            if text[-1] in stop:
                break
        texts.append(torch.tensor(text, device=device))
    return texts


@torch.no_grad()
def stream(
    model: nn.Module,
    prompts: Tensor | Prompts,
    max_new_tokens: int,
    *,
    num_samples: int = 1,
    temperature: float = 1.0,
    repetition_penalty: float = 1.0,
    stop: Collection[int] = (),
    generator: torch.Generator | None = None,
    cached: bool = True,
    context_after_crop: int | None = None,
    **sampling: Any,
) -> Iterator[Tensor]:
    """Generate token by token: yields (B,) ids, the next one of each prompt, as they are drawn.

    Args:
        model: maps ids (B, T) to logits (B, T, V). If it has `empty_cache`, as the GPT of kv_cache
            has, it is called with a cache, and with `padding` for prompts of different lengths.
        prompts: a tensor (B, T), or a list of B prompts, each a list of ids or a tensor.
        num_samples: how many texts to generate from each prompt, which is processed once; yields
            (B · num_samples,) ids, those of a prompt side by side.
        repetition_penalty: see `apply_repetition_penalty`; counts the prompt, too.
        stop: ids that end a text; an ended text repeats that id until all texts have ended.
        generator: for the draws, made on the CPU, so that a seed means the same everywhere.
        cached: whether to use the cache of a model that has one.
        context_after_crop: how many of the last tokens are processed again when block_size tokens
            are full. None: all that fit, which is exact, and slow from there on.
        temperature, sampling: those of `next_token_probabilities`.

    Explained in: generation; the cache and prompts of different lengths, kv_cache.
    """
    ids, padding = _left_padded(prompts, next(model.parameters(), torch.empty(0)).device)
    window, end = getattr(model, "block_size", None), ids.shape[1] + max_new_tokens
    empty_cache: Any = getattr(model, "empty_cache", None) if cached else None
    start, cache = 0, None  # the context of the model is ids[:, start:]
    ended = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    stops = torch.tensor([*stop], dtype=torch.long, device=ids.device)
    with evaluating(model):
        for step in range(max_new_tokens):
            if window and ids.shape[1] - start > window:
                # Every position moves, so that all that was cached is void.
                start, cache = ids.shape[1] - (context_after_crop or window), None
            more = {} if padding is None else {"padding": (padding - start).clamp(min=0)}
            if empty_cache is None:
                logits = model(ids[:, start:], **more)  # (B, T, V)
            else:
                if cache is None:
                    cache = empty_cache()
                    for layer in cache:  # not always space for a whole window
                        layer.max_tokens = min(end - start, window or end)
                logits = model(ids[:, start + len(cache[0]) :], cache, **more)
            last = logits[:, -1].float()  # (B, V)
            if step == 0 and num_samples > 1:
                last, ids, ended = (t.repeat_interleave(num_samples, 0) for t in (last, ids, ended))
                padding = None if padding is None else padding.repeat_interleave(num_samples, 0)
                for layer in cache or ():
                    layer.repeat(num_samples)
            if repetition_penalty != 1:
                last = apply_repetition_penalty(last, ids, repetition_penalty)
            probs = next_token_probabilities(last, temperature=temperature, **sampling)
            if temperature == 0:  # nothing to draw
                new = probs.argmax(-1)  # (B,)
            else:
                new = torch.multinomial(probs.cpu(), 1, generator=generator)[:, 0].to(ids.device)
            new = torch.where(ended, ids[:, -1], new)
            ended |= torch.isin(new, stops)
            ids = torch.cat((ids, new[:, None]), dim=1)
            yield new
            if ended.all():
                return


def _left_padded(prompts: Tensor | Prompts, device: torch.device) -> tuple[Tensor, Tensor | None]:
    """The prompts as one tensor (B, T), and how much of each row is padding, None if nothing."""
    if isinstance(prompts, Tensor):
        return prompts.to(device), None
    rows = [torch.as_tensor(prompt).to(device) for prompt in prompts]
    longest = max(map(len, rows))
    padding = torch.tensor([longest - len(row) for row in rows])
    # A text is padded with its own first token, so that a repetition penalty counts no other.
    ids = torch.stack([torch.cat([row[:1].expand(longest - len(row)), row]) for row in rows])
    return ids, padding.to(device) if padding.any() else None
