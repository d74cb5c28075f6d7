"""Language models that only count: what followed the last few tokens, and how often.

A table of longer pasts knows more about those it has met and nothing about all others. To back off
is to ask the shorter past as well, the more so the less the longer one has to say.
"""

import torch
from torch import Tensor


class CountedTables:
    """Counted tables of 0, 1, … `reach` tokens back, as language models.

    ids: (N,) token ids that are counted, int64; vocab_size: V; reach: the longest past.
    Raises ValueError for a text that is not longer than the reach, and where the numbers of the
    pasts do not fit into 64 bits: V to the power of reach + 1 must be below 2⁶³.

    Witten and Bell 1991, "The zero-frequency problem", says how much the shorter past counts; as it
    always does, this is also called interpolation. Taught in: language_modelling.
    """

    def __init__(self, ids: Tensor, vocab_size: int, reach: int):
        if vocab_size ** (reach + 1) >= 2**63:
            raise ValueError(f"{vocab_size} symbols and {reach} tokens back: too many pasts")
        if len(ids) <= reach:
            raise ValueError(f"{len(ids)} tokens are too few to look {reach} back")
        self.vocab_size, self.reach = vocab_size, reach
        self._tables = [self._counted(ids, back) for back in range(reach + 1)]

    def _counted(self, ids: Tensor, back: int) -> tuple[Tensor, ...]:
        """Sorted pasts with their next token, how often each; sorted pasts, how often, how many
        different tokens follow."""
        pairs, often = self._number(ids, back).unique(return_counts=True)
        pasts, which, kinds = (pairs // self.vocab_size).unique_consecutive(
            return_inverse=True, return_counts=True
        )
        total = torch.zeros(len(pasts), dtype=torch.int64).index_add_(0, which, often)
        return pairs, often, pasts, total, kinds

    def _number(self, ids: Tensor, back: int) -> Tensor:
        """A number for each token together with its past: a number of back + 1 digits."""
        number = torch.zeros(max(0, len(ids) - back), dtype=torch.int64)
        for place in range(back + 1):
            number = number * self.vocab_size + ids[place : place + len(number)]
        return number

    @property
    def pasts(self) -> list[int]:
        """How many different pasts of 0, 1, … tokens there are in what was counted."""
        return [len(pasts) for _, _, pasts, _, _ in self._tables]

    @property
    def entropies(self) -> list[float]:
        """The mean surprise of each table, unsmoothed, on the very text that was counted."""
        found = []
        for pairs, often, pasts, total, _ in self._tables:
            seen = total[torch.searchsorted(pasts, pairs // self.vocab_size)]
            found.append(-((often / seen).log() * often).sum().item() / often.sum().item())
        return found

    def surprises(self, ids: Tensor, smoothing: float | None = None) -> Tensor:
        """The surprise −ln p of each of the ids, as tables of 0, 1, … reach tokens back see it.

        ids: (N,); smoothing: what is added to every count, or None to back off as Witten and Bell
        do: with m different tokens seen after a past in n places, p = (count + m · p of the shorter
        past) / (n + m). Returns (reach + 1, N); where the past is too short, a shorter one counts.
        """
        p = torch.full((len(ids),), 1 / self.vocab_size, dtype=torch.float64)
        rows = []
        for back, (pairs, often, pasts, total, kinds) in enumerate(self._tables):
            number = self._number(ids, back)
            count = _look_up(pairs, number, often)
            seen = _look_up(pasts, number // self.vocab_size, total)
            p = p.clone()
            if smoothing is None:
                m = _look_up(pasts, number // self.vocab_size, kinds)
                # A past that was never met says nothing: 0 / 0, and the shorter one counts alone.
                mixed = (count + m * p[back:]) / (seen + m)
                p[back:] = torch.where(seen > 0, mixed, p[back:])
            else:
                p[back:] = (count + smoothing) / (seen + smoothing * self.vocab_size)
            rows.append(-p.log())
        return torch.stack(rows)


def _look_up(keys: Tensor, wanted: Tensor, values: Tensor) -> Tensor:
    """The value of each wanted key, 0 for one that is not there."""
    place = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
    return torch.where(keys[place] == wanted, values[place], 0)
