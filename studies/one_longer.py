"""A model that writes words of up to six letters backwards: what does it do with seven?

A recurrent model with attention (width 64) and a transformer (width 32) learn words of 1 to
`longest` letters, and dates, as in the chapter. `letters N`: the fraction of 200 fresh words of N
letters that are right to the last letter. `six`: the fraction of answers to words of seven letters
that have exactly six.
"""

import torch

from helpers.seq2seq import RNNSeq2Seq, Transformer, greedy_decode
from studies import Study
from studies._seq2seq import dates, exact_match, fit, reversals


def run(arm: str, seed: int, *, steps: int, longest: int) -> dict[str, float]:
    def both_tasks(n: int, generator: torch.Generator) -> list[tuple[str, str]]:
        return reversals(n // 2, 1, longest, generator) + dates(n // 2, generator)

    torch.manual_seed(seed)
    model = RNNSeq2Seq(64, "dot") if arm == "recurrent" else Transformer(32)
    fit(model, both_tasks, steps, torch.Generator().manual_seed(seed))
    new = torch.Generator().manual_seed(1000 + seed)
    words = {n: reversals(200, n, n, new) for n in (6, 7, 8)}
    written = greedy_decode(model, [source for source, _ in words[7]])
    numbers = {f"letters {n}": exact_match(model, pairs) for n, pairs in words.items()}
    return numbers | {"six": sum(len(text) == 6 for text in written) / 200}


study = Study(
    arms=["recurrent", "transformer"],
    settings={"steps": 400, "longest": 6},
    variations=[{"steps": 1500}, {"longest": 8}],
)
