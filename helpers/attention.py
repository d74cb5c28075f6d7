"""Which tokens may be heard, and how they are mixed."""

import torch


def causal_mask(T: int, device: torch.device | str | None = None) -> torch.Tensor:
    """Who may listen to whom when nobody may listen to the future.

    T: number of tokens, at least 1; device: where the mask is wanted (default: where tensors are
    made by default). Returns a boolean (T, T) tensor: entry [i, j] is True where token i may use
    token j, that is where j <= i (the lower triangle with its diagonal).
    Raises ValueError if T is not a whole number of at least 1.

    >>> causal_mask(3)
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True,  True,  True]])

    Source: the masked self-attention of Vaswani et al. (2017), "Attention Is All You Need", 3.2.3.
    Taught in chapter 03.
    """
    if isinstance(T, bool) or not isinstance(T, int) or T < 1:
        raise ValueError(
            f"a causal mask needs the number of tokens T, a whole number of at least 1, not {T!r}; "
            "for a tensor x of shape (B, T, C) pass x.shape[-2]"
        )
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()
