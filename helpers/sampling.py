"""Sampling from language models: logits → probabilities → text."""

import math
import operator
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, overload

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.checks import is_whole, to_device_of
from helpers.gpt import GPT
from helpers.training import evaluating


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
    Raises ValueError for a temperature below 0 or infinite, top_k below 1, top_p outside (0, 1],
    min_p outside [0, 1], and for logits with NaN or a row of nothing but −∞; TypeError for logits
    that are not a tensor of floating-point numbers.

    Fan et al. 2018 (top-k), Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration"
    (top-p), Nguyen et al. 2024, "Turning Up the Heat" (min-p). Taught in: generation.
    """
    if not 0 <= _number(temperature) < math.inf:
        raise ValueError(f"temperature should be 0 (greedy) or more, not {temperature!r}")
    if top_k is not None and not (is_whole(top_k) and top_k >= 1):
        raise ValueError(f"top_k is a number of tokens, at least 1, or None, not {top_k!r}")
    if top_p is not None and not 0 < _number(top_p) <= 1:
        raise ValueError(f"top_p is a probability above 0, up to 1, or None, not {top_p!r}")
    if min_p is not None and not 0 <= _number(min_p) <= 1:
        raise ValueError(f"min_p is a share of the largest probability, 0 to 1, not {min_p!r}")
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        given = logits.dtype if isinstance(logits, Tensor) else f"a {type(logits).__name__}"
        raise TypeError(f"logits should be a tensor of floating-point numbers, not {given}")
    if logits.shape[-1:] == (0,):
        raise ValueError("there are no logits: the vocabulary is empty")
    largest = logits.amax(-1, keepdim=True)
    if not (largest > -math.inf).all():  # NaN is not larger than anything
        raise ValueError("there are logits of NaN, or a row of −∞ that leaves nothing to choose")
    if temperature == 0:
        return torch.zeros_like(logits).scatter(-1, logits.argmax(-1, keepdim=True), 1.0)
    # Subtracting the largest logit first keeps a tiny temperature from making infinities; those
    # that equal it are 0 whatever the temperature, be it 1e-300 or the logit ∞.
    divisor = float(min(temperature, torch.finfo(logits.dtype).max))  # −∞ / ∞ would be no number
    scaled = torch.where(logits == largest, 0.0, (logits - largest) / divisor)
    probabilities = scaled.softmax(-1)
    if top_p == 1:
        top_p = None  # a running sum that is rounded to 1 must not cut off what is left
    if top_k is None and top_p is None and not min_p:
        return probabilities
    ranked, order = probabilities.sort(dim=-1, descending=True, stable=True)
    if top_k is not None:
        ranked[..., top_k:] = 0
    if top_p is not None:
        ranked = ranked / ranked.sum(-1, keepdim=True)
        # A token stays while those before it have not reached p: the most likely one always does.
        before = F.pad(ranked.cumsum(-1)[..., :-1], (1, 0))
        cut = before >= top_p
        cut[..., 0] = False  # also where top_p is so small that it is rounded to 0
        ranked = ranked.masked_fill(cut, 0)
    if min_p:
        ranked = ranked.masked_fill(ranked < min_p * ranked[..., :1], 0)
    ranked = ranked / ranked.sum(-1, keepdim=True)
    return torch.zeros_like(ranked).scatter(-1, order, ranked)


def _number(value: Any) -> Any:
    """NaN, which lies in no range, for what is not a number."""
    return value if hasattr(value, "__float__") else math.nan


def apply_repetition_penalty(logits: Tensor, ids: Tensor, penalty: float) -> Tensor:
    """Return logits that make the tokens of the text so far less likely.

    Args:
        logits: (B, V).
        ids: the texts so far, (B, T).
        penalty: above 1; divides a logit above 0 and multiplies one below 0. 1 changes nothing.

    Which logits are above 0 matters here, although adding a constant to all of them changes no
    probability. Raises ValueError for a penalty that is not above 0.

    Keskar et al. 2019, "CTRL", section 4.1, who divide all logits. Taught in: generation.
    """
    if not 0 < _number(penalty) < math.inf:
        raise ValueError(f"repetition_penalty is above 0, and 1 changes nothing; not {penalty!r}")
    seen = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, ids, True)
    less = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(seen, less, logits)


Prompts = Sequence[Sequence[int] | Tensor]


@overload
def generate(model: nn.Module, ids: Tensor, max_new_tokens: int, **settings: Any) -> Tensor: ...
@overload
def generate(
    model: nn.Module, ids: Prompts, max_new_tokens: int, **settings: Any
) -> list[Tensor]: ...
def generate(
    model: nn.Module, ids: Tensor | Prompts, max_new_tokens: int, **settings: Any
) -> Tensor | list[Tensor]:
    """Continue each prompt by n ≤ max_new_tokens tokens.

    Args:
        model: see `stream`.
        ids: the prompts, a tensor (B, T) or a list of B prompts of any lengths.
        max_new_tokens: how many tokens to generate at most.
        settings: those of `stream`, which also raises the errors.

    Returns (B, T + n) for a tensor. For a list, returns a list of B tensors (Tᵢ + nᵢ,), in which
    each text ends with its own stop token. Taught in: generation; for a list, kv_cache.
    """
    ends = settings["stop"] = _stop_ids(settings.get("stop", ()))
    tokens = stream(model, ids, max_new_tokens, **settings)
    prompts, _ = _batch(model, ids)
    if isinstance(ids, Tensor):
        return torch.cat([prompts, *(new[:, None] for new in tokens)], dim=1)
    new = torch.stack([prompts[:, -1], *tokens], dim=1)[:, 1:]  # (B, n), n may be 0
    texts = []
    for prompt, continued in zip(ids, new, strict=True):
        stopped = torch.isin(continued, continued.new_tensor(ends)).nonzero()[:1].flatten()
        n = int(stopped[0]) + 1 if len(stopped) else len(continued)
        texts.append(torch.cat([torch.as_tensor(prompt).to(continued), continued[:n]]))
    return texts


def stream(
    model: nn.Module,
    ids: Tensor | Prompts,
    max_new_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    stop: Collection[int] = (),
    generator: torch.Generator | None = None,
    cached: bool = True,
    context_after_crop: int | None = None,
) -> Iterator[Tensor]:
    """Generate token by token: yields (B,) ids, the next one of each prompt, as they are drawn.

    Args:
        model: maps ids (B, T) to logits (B, T, V).
        ids: the prompts: a tensor (B, T), int64, or a list of B prompts, each a list of ids or a
            tensor (Tᵢ,). Prompts of different lengths need a `GPT`: the shorter ones are padded at
            the left, and no token attends to the padding, so that each text is continued as it
            would be alone.
        max_new_tokens: how many tokens to generate at most.
        temperature, top_k, top_p, min_p: see `next_token_probabilities`.
        repetition_penalty: see `apply_repetition_penalty`; counts the prompt, too.
        stop: ids that end a text; an ended text repeats that id until all texts have ended.
        generator: for the random draws, which are made on the CPU.
        cached: whether a GPT keeps keys and values in a cache.
        context_after_crop: how many of the last tokens are processed again when the context of
            block_size tokens is full. None: all that fit, which is exact, and slow from there on;
            fewer are faster, with a shorter memory. With prompts of different lengths, the longest
            text decides when.

    Raises TypeError for prompts that are neither a tensor nor a list of prompts and for a stop that
    is not a list of ids; ValueError for prompts of another shape or dtype, an empty prompt,
    different lengths for a model that is not a `GPT`, max_new_tokens below 0, context_after_crop
    outside 1 … block_size, a stop outside the vocabulary, and a model that gives other shapes.
    Explained in: generation; the cache and prompts of different lengths, kv_cache.
    """
    ids, padding = _batch(model, ids)
    if padding is not None and not isinstance(model, GPT):
        raise ValueError(
            "these prompts have different lengths, and only a GPT can be told what is padding; "
            f"give a {type(model).__name__} prompts of one length at a time"
        )
    if not is_whole(max_new_tokens) or max_new_tokens < 0:
        raise ValueError(f"max_new_tokens should be 0 or more, not {max_new_tokens!r}")
    ends = _stop_ids(stop)
    window = getattr(model, "block_size", None)
    if context_after_crop is not None and not (
        window and is_whole(context_after_crop) and 1 <= context_after_crop <= window
    ):
        raise ValueError(
            f"context_after_crop should be between 1 and the model's block_size {window}, not "
            f"{context_after_crop!r}"
        )
    probabilities = partial(
        next_token_probabilities, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p
    )
    probabilities(
        apply_repetition_penalty(torch.zeros(1, 1), torch.zeros(1, 1).long(), repetition_penalty)
    )  # its errors now

    @torch.no_grad()
    def tokens() -> Iterator[Tensor]:
        text, start, cache = ids, 0, None  # the model reads text[:, start:]
        ended = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
        stops = torch.tensor(ends, dtype=ids.dtype, device=ids.device)
        with evaluating(model):
            for step in range(max_new_tokens):
                if window and text.shape[1] - start > window:
                    # Every position moves, so that all that was cached is void.
                    start, cache = text.shape[1] - (context_after_crop or window), None
                more = {} if padding is None else {"padding": (padding - start).clamp(min=0)}
                if not (cached and isinstance(model, GPT)):
                    logits = model(text[:, start:], **more)
                elif cache is None:
                    left = max_new_tokens - step
                    cache = model.empty_cache(min(model.block_size, text.shape[1] - start + left))
                    logits = model(text[:, start:], cache, **more)
                else:
                    logits = model(text[:, -1:], cache, **more)
                if logits.dim() != 3:
                    raise ValueError(
                        f"the model should give logits (B, T, V), not {tuple(logits.shape)}"
                    )
                last = logits[:, -1].float()
                if outside := [end for end in ends if end >= last.shape[-1]]:
                    raise ValueError(
                        f"stop holds the id {outside[0]}, but the ids of this model are 0 to "
                        f"{last.shape[-1] - 1}"
                    )
                if repetition_penalty != 1:
                    last = apply_repetition_penalty(last, text, repetition_penalty)
                probs = probabilities(last)
                if temperature == 0:  # nothing to draw
                    new = probs.argmax(-1)
                else:
                    new = torch.multinomial(probs.cpu(), 1, generator=generator)[:, 0].to(
                        ids.device
                    )
                new = torch.where(ended, text[:, -1], new)
                ended |= torch.isin(new, stops)
                text = torch.cat((text, new[:, None]), dim=1)
                yield new
                if ended.all():
                    return

    return tokens()


def _batch(model: nn.Module, prompts: Any) -> tuple[Tensor, Tensor | None]:
    """The prompts as one tensor (B, T), and the length of each one's padding, None if all are 0;
    both where the model is."""
    if isinstance(prompts, list | tuple) and prompts:
        texts = [torch.as_tensor(prompt) for prompt in prompts if not isinstance(prompt, str)]
        texts = [to_device_of(model, text) for text in texts]
        if len(texts) == len(prompts) and all(text.dim() == 1 for text in texts):
            if wrong := [t for t in texts if t.dtype != torch.int64 or len(t) == 0]:
                raise ValueError(
                    f"each prompt is a list of at least one token id, not {wrong[0].tolist()!r:.60}"
                )
            longest = max(map(len, texts))
            lengths = torch.tensor([len(text) for text in texts], device=texts[0].device)
            # A text is padded with its own first token, so that a repetition penalty counts no
            # token that does not occur.
            rows = [torch.cat([t[:1].expand(longest - len(t)), t]) for t in texts]
            padding = None if (lengths == longest).all() else longest - lengths
            return torch.stack(rows), padding
    if not isinstance(prompts, Tensor):
        raise TypeError(
            "prompts are a tensor of token ids (B, T) or a list of lists of token ids, not a "
            f"{type(prompts).__name__} like {prompts!r:.40}; for one text use "
            "torch.tensor([tokenizer.encode(text)])"
        )
    if prompts.dim() != 2 or 0 in prompts.shape or prompts.dtype != torch.int64:
        raise ValueError(
            f"prompts are token ids (B, T), int64, with B and T ≥ 1, not {tuple(prompts.shape)} of "
            f"{prompts.dtype}; for one text use torch.tensor([ids])"
        )
    return to_device_of(model, prompts), None


def _stop_ids(stop: Any) -> list[int]:
    """Raise TypeError for one id or for texts, and ValueError for ids below 0."""
    ends: list[Any] = [None]
    if not isinstance(stop, str | bytes):
        with suppress(TypeError):
            ends = list(stop)
    if not all(map(is_whole, ends)):
        raise TypeError(
            f"stop should be a list of token ids, for example [3], not {stop!r:.60}; of a special "
            "token, the id is tokenizer.special[name]"
        )
    ids = [operator.index(end) for end in ends]
    if wrong := [id for id in ids if not 0 <= id < 2**63]:
        raise ValueError(f"stop holds the id {wrong[0]}, which no token can have")
    return ids
