"""N-gram models: language models that count which tokens followed the last few tokens."""

import torch
from torch import Tensor


class NGramModel:
    """N-gram language models with contexts of 0, 1, …, `max_context` tokens.

    ids (N,), int64: the tokens to count, of V = vocab_size. n-grams have contexts of up to n − 1.
    Raises ValueError where their numbers do not fit into 64 bits.

    Witten and Bell 1991, "The zero-frequency problem": smoothing by interpolation with shorter
    contexts. Taught in: language_modelling.
    """

    def __init__(self, ids: Tensor, vocab_size: int, max_context: int):
        if vocab_size ** (max_context + 1) >= 2**63:
            raise ValueError(f"too many n-grams of {vocab_size} tokens after {max_context} others")
        self.vocab_size, self.max_context = vocab_size, max_context
        self._tables = [self._counted(ids, back) for back in range(max_context + 1)]

    def _counted(self, ids: Tensor, back: int) -> tuple[Tensor, ...]:
        """Sorted n-grams and their counts; sorted contexts, their counts, and how many different
        tokens follow each."""
        pairs, often = self._number(ids, back).unique(return_counts=True)
        contexts, which, kinds = (pairs // self.vocab_size).unique_consecutive(
            return_inverse=True, return_counts=True
        )
        total = torch.zeros(len(contexts), dtype=torch.int64).index_add_(0, which, often)
        return pairs, often, contexts, total, kinds

    def _number(self, ids: Tensor, back: int) -> Tensor:
        """A number for each n-gram: `back` tokens of context and the token itself."""
        number = torch.zeros(max(0, len(ids) - back), dtype=torch.int64)
        for at in range(back + 1):
            number = number * self.vocab_size + ids[at : at + len(number)]
        return number

    @property
    def entropies(self) -> list[float]:
        """Mean negative log-likelihood per context length, unsmoothed, on the counted text."""
        found = []
        for pairs, often, contexts, total, _ in self._tables:
            seen = total[torch.searchsorted(contexts, pairs // self.vocab_size)]
            found.append(-((often / seen).log() * often).sum().item() / often.sum().item())
        return found

    def nll(self, ids: Tensor, smoothing: float | None = None) -> Tensor:
        """Negative log-likelihood −ln p of each token in nats, for contexts of 0, 1, … tokens.

        Args:
            ids: (N,) token ids.
            smoothing: k of add-k smoothing; None: interpolation by Witten and Bell. With m
                different tokens seen after a context that occurred n times,
                p = (count + m · p of the shorter context) / (n + m).

        Returns (max_context + 1, N). At the beginning of ids, where the context is too short, a
        shorter one counts.
        """
        p = torch.full((len(ids),), 1 / self.vocab_size, dtype=torch.float64)
        rows = []
        for back, (pairs, often, contexts, total, kinds) in enumerate(self._tables):
            number = self._number(ids, back)
            count = _look_up(pairs, number, often)
            seen = _look_up(contexts, number // self.vocab_size, total)
            p = p.clone()
            if smoothing is None:
                m = _look_up(contexts, number // self.vocab_size, kinds)
                # A context that was never met says nothing (0 / 0): only the shorter one counts.
                mixed = (count + m * p[back:]) / (seen + m)
                p[back:] = torch.where(seen > 0, mixed, p[back:])
            else:
                p[back:] = (count + smoothing) / (seen + smoothing * self.vocab_size)
            rows.append(-p.log())
        return torch.stack(rows)


def _look_up(keys: Tensor, wanted: Tensor, values: Tensor) -> Tensor:
    """The value of each wanted key, 0 for one that is not there."""
    at = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
    return torch.where(keys[at] == wanted, values[at], 0)
