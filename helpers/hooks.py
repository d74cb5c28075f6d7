"""Record the attention weights of a model that does not return them.

Fast models call PyTorch's fused `F.scaled_dot_product_attention`, which never stores the weights.
`AttentionRecorder` watches these calls and computes the weights beside them; the model's code and
its output stay as they are.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from helpers.training import evaluating


class AttentionRecorder(TorchFunctionMode):
    """Records every `F.scaled_dot_product_attention` in its `with` block, in order of execution.

        with AttentionRecorder() as seen:
            model(ids)
        seen.maps                       # (L, H, T, T)

    What a model must do: call `F.scaled_dot_product_attention(q, k, v, ...)` through `F` or
    `torch.nn.functional`, uncompiled, once per layer, with q (1, n_head, T, hs); fewer heads in
    k and v (`enable_gqa=True`), masks, `is_causal` and `scale` are understood. Dropout is left out.
    Explained in: gpt.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Tensor] = []  # the weights of each call

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.scaled_dot_product_attention:
            self.calls.append(_weights(*args, **(kwargs or {})))
        return func(*args, **(kwargs or {}))

    @property
    def maps(self) -> Tensor:
        """The weights (L, H, T, T), after softmax: row i is what query i gives to each key."""
        if not self.calls or len(self.calls[0]) != 1:
            raise ValueError(
                f"{len(self.calls)} calls of F.scaled_dot_product_attention were seen: run one text"
                " through a model that makes them, uncompiled"
            )
        return torch.cat(self.calls)


@torch.no_grad()
def _weights(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """What the fused call computes on its way, as (batch, heads, T, T), in float32 on the CPU."""
    q, k = (x.detach().float().cpu() for x in (q, k))
    if q.dim() == 3:  # a single head without its dimension
        q, k = q.unsqueeze(1), k.unsqueeze(1)
    k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    scores = q @ k.mT * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask.cpu(), -math.inf)
    elif attn_mask is not None:  # numbers to add
        scores = scores + attn_mask.detach().float().cpu()
    return scores.softmax(-1)


def attention_maps(model: nn.Module, ids: Any) -> Tensor:
    """The attention weights (L, H, T, T) of a model that reads one text.

    ids: token ids (T,) or (1, T); for a module without an embedding, vectors (T, C) or (1, T, C).
    The model runs once, without dropout or gradients, and is left as it was. Explained in: gpt.
    """
    x = torch.as_tensor(ids)
    if x.dim() == (2 if x.is_floating_point() else 1):
        x = x.unsqueeze(0)
    device = next((p.device for p in model.parameters()), x.device)
    with evaluating(model), torch.no_grad(), AttentionRecorder() as seen:
        model(x.to(device))
    return seen.maps
