"""Does a recurrent model with attention learn where to look?

A recurrent encoder–decoder (GRU) with attention, by additive scores or by dot products, learns to
write words of 1 to 6 random letters backwards, and dates with the year first. Then the attention
weights are measured on 50 fresh words of six letters and on 50 fresh dates, while the decoder gets
the right letters.

`word`: the mean weight that a letter of the target gives to its letter in the source and to the
next one. `year`, `month`, `day`: the mean weight that the digits of this part give to the part in
the source and to the symbol after it. `letters 6`, `dates`: the fraction of 100 fresh words of six
letters, and of 100 fresh dates, that are right to the last letter. `width`: of embeddings and
states.
"""

import torch
from torch import Tensor

from helpers.seq2seq import RNNSeq2Seq
from studies import Study
from studies._seq2seq import Pairs, dates, exact_match, fit, pairs_to_ids, reversals

SCORES = {"additive": "additive", "dot product": "dot"}


def both_tasks(n: int, generator: torch.Generator) -> Pairs:
    return reversals(n // 2, 1, 6, generator) + dates(n // 2, generator)


@torch.no_grad()
def alignment(model: RNNSeq2Seq, pair: tuple[str, str]) -> Tensor:
    source, given, _ = pairs_to_ids([pair])
    return model.weights(source, given)[0]


def weight_on(rows: Tensor, where: list[range]) -> float:
    """The mean weight that each row gives to its range of letters."""
    found = [row[list(near)].sum().item() for row, near in zip(rows, where, strict=True)]
    return sum(found) / len(found)


def run(arm: str, seed: int, *, width: int, steps: int) -> dict[str, float]:
    torch.manual_seed(seed)
    model = RNNSeq2Seq(width, SCORES[arm])
    fit(model, both_tasks, steps, torch.Generator().manual_seed(seed))
    fresh = torch.Generator().manual_seed(1000 + seed)
    found: dict[str, list[float]] = {"word": [], "year": [], "month": [], "day": []}
    for pair in reversals(50, 6, 6, fresh):
        rows = alignment(model, pair)[:6]
        found["word"].append(weight_on(rows, [range(i, i + 2) for i in reversed(range(6))]))
    for pair in dates(50, fresh):
        rows, end = alignment(model, pair), len(pair[0])
        day, month, _ = map(len, pair[0].split())
        after_month = day + 1 + month
        found["year"].append(weight_on(rows[:4], [range(end - 4, end + 1)] * 4))
        found["month"].append(weight_on(rows[5:7], [range(day + 1, after_month + 1)] * 2))
        found["day"].append(weight_on(rows[8:10], [range(day + 1)] * 2))
    right = {
        "letters 6": exact_match(model, reversals(100, 6, 6, fresh)),
        "dates": exact_match(model, dates(100, fresh)),
    }
    return {part: sum(weights) / len(weights) for part, weights in found.items()} | right


study = Study(arms=[*SCORES], settings={"width": 32, "steps": 500})
