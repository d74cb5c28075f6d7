"""Heads merged without the transpose get a much better loss: the future leaks in.

The model of `number_of_heads`, once with the right merge and once with a reshape straight from
(H, T, hs) to (T, C). loss: on 50,000 held-out characters.
"""

import torch
from torch import Tensor, nn

from helpers.attention import attention, causal_mask
from helpers.training import estimate_loss, train
from studies import Study
from studies._plays import plays
from studies.number_of_heads import HELD_OUT, C, T, untrained


class Scrambled(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.layer.project(x)  # type: ignore[operator]
        out, _ = attention(q, k, v, causal_mask(x.shape[1]))
        return self.layer.output(out.reshape(x.shape))  # type: ignore[operator]


def run(arm: str, seed: int, *, heads: int, steps: int, rate: float) -> dict[str, float]:
    _, train_ids, held_out = plays(HELD_OUT)
    assert C % heads == 0
    torch.manual_seed(seed)
    model = untrained(heads)
    if arm == "scrambled":
        model.layer = Scrambled(model.layer)
    train(
        model, train_ids, steps=steps, block_size=T, batch_size=64,
        optimizer=torch.optim.Adam(model.parameters(), lr=rate),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return {"loss": estimate_loss(model, held_out, block_size=T, batch_size=1024)}


study = Study(
    arms=["right", "scrambled"],
    settings={"heads": 4, "steps": 300, "rate": 0.02},
    moved=[{"heads": 8}, {"steps": 900}],
)
