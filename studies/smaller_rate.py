"""Does training with a smaller learning rate forget less, and does it learn less, too?

As the study `forgetting`, with the same batches: the Shakespeare model is trained on articles, at
smaller learning rates than in that study. There, the rates are 0.001 for all weights and 0.01 for
LoRA. Then LoRA can be compared with all weights at a similar gain.
"""

import copy

from studies import Study
from studies.forgetting import held_out, shipped, train_on_articles

LORA = "LoRA, rank 16, rate 0.005"
RATES = {"all weights, rate 0.0003": 3e-4, "all weights, rate 0.0006": 6e-4, LORA: 5e-3}


def run(arm: str, seed: int, *, steps: int, size: int) -> dict[str, float]:
    model = copy.deepcopy(shipped()[0])
    train_on_articles(model, 16 if arm == LORA else None, RATES[arm], seed, steps, size)
    return {name: held_out(model, name) for name in ("articles", "plays")}


study = Study(arms=[*RATES], settings={"steps": 24, "size": 8})
