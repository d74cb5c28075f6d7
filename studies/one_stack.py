"""Can a decoder alone turn one text into another?

One stack of causal blocks with rotary positions learns to write words of 1 to 6 random letters
backwards. Source and target are one text, and only the target counts in the loss. The padding of a
source is at the beginning of its row, so that source and target are neighbours.

`letters N`: the fraction of 100 fresh words of N letters that are right to the last letter.
`width`: of the model, which has 4 heads. `layers`: blocks.
"""

import torch
from torch import Tensor, nn

from helpers.attention import MultiHeadAttention
from helpers.gpt import Block, FeedForward
from helpers.positions import Rotary
from helpers.seq2seq import LETTERS
from studies import Study
from studies._seq2seq import exact_match, fit, reversals


class DecoderOnly(nn.Module):
    def __init__(self, C: int, n_head: int, n_layer: int):
        super().__init__()
        V = LETTERS.vocab_size
        self.token, self.blocks = nn.Embedding(V, C), nn.ModuleList()
        for _ in range(n_layer):
            heads = MultiHeadAttention(C, n_head, rotary=Rotary(C // n_head))
            self.blocks.append(Block(heads, FeedForward(C)))
        self.norm, self.head = nn.LayerNorm(C), nn.Linear(C, V, bias=False)

    def forward(self, source: Tensor, decoder_input: Tensor) -> Tensor:
        padding = (source == 0).sum(1)
        rows = zip(source, padding.tolist(), strict=True)
        source = torch.stack([row.roll(n) for row, n in rows])
        x = self.token(torch.cat((source, decoder_input), 1))
        for block in self.blocks:
            x = block(x, padding=padding)
        logits: Tensor = self.head(self.norm(x))
        return logits[:, source.shape[1] :]


def words(n: int, generator: torch.Generator) -> list[tuple[str, str]]:
    return reversals(n, 1, 6, generator)


def run(arm: str, seed: int, *, width: int, layers: int, steps: int) -> dict[str, float]:
    torch.manual_seed(seed)
    model = DecoderOnly(width, 4, layers)
    fit(model, words, steps, torch.Generator().manual_seed(seed))
    fresh = torch.Generator().manual_seed(1000 + seed)
    return {f"letters {n}": exact_match(model, reversals(100, n, n, fresh)) for n in (2, 4, 6)}


study = Study(arms=["decoder only"], settings={"width": 32, "layers": 4, "steps": 500})
