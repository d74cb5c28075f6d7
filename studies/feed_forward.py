"""What is the feed-forward network worth, and do its activation function and its width matter?

One block on Shakespeare (32 characters at once, two heads), all models with about 36,000
parameters: three layers of attention and no feed-forward network; a block with C = 48 whose network
is four times as wide, with relu, GELU, max(0, x)² or SwiGLU; and blocks with GELU and the
expansions 1, 2 and 8, of width C = 64, 56 and 38. loss: on plays that were held out.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import MultiHeadAttention
from helpers.gpt import Block, FeedForward, SquaredReLU, SwiGLU
from helpers.training import estimate_loss, train
from studies import Study
from studies._plays import plays

T, HELD_OUT = 32, 64_001
WIDTHS = {1: 64, 2: 56, 8: 38}  # expansion → C, so that all models are equally large


class ReLU(FeedForward):
    def activation(self, x: Tensor) -> Tensor:
        return F.relu(x)


class AttentionLayer(nn.Module):
    """Half a block: attention with its norm and its residual connection."""

    def __init__(self, C: int) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(C), MultiHeadAttention(C, 2)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.attention(self.norm(x))


class Reader(nn.Module):
    def __init__(self, n_symbols: int, arm: str) -> None:
        super().__init__()
        e = int(arm.split()[1]) if arm.startswith("expansion") else 4
        C = WIDTHS.get(e, 48)
        self.token_embedding, self.position_embedding = (
            nn.Embedding(n_symbols, C),
            nn.Embedding(T, C),
        )
        for table in (self.token_embedding, self.position_embedding):
            nn.init.normal_(table.weight, std=0.3)
        self.norm, self.logits = nn.LayerNorm(C), nn.Linear(C, n_symbols)
        networks = {"relu": ReLU, "relu²": SquaredReLU, "SwiGLU": SwiGLU}
        if arm == "attention only":
            self.layers = nn.Sequential(*(AttentionLayer(C) for _ in range(3)))
        else:
            attention = MultiHeadAttention(C, 2)
            hidden = None if arm == "SwiGLU" else e * C
            mlp = networks.get(arm, FeedForward)(C, hidden, bias=False)
            self.layers = nn.Sequential(Block(attention, mlp))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token_embedding(ids) + self.position_embedding.weight[: ids.shape[1]]
        return self.logits(self.norm(self.layers(x)))


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    tokenizer, train_ids, held_out = plays(HELD_OUT)
    torch.manual_seed(seed)
    model = Reader(tokenizer.vocab_size, arm)
    train(
        model, train_ids, steps=steps, block_size=T, batch_size=32,
        optimizer=torch.optim.Adam(model.parameters(), lr=rate),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    loss = estimate_loss(model, held_out, block_size=T, batch_size=500)
    return {"loss": loss, "parameters": sum(p.numel() for p in model.parameters())}


study = Study(
    arms=["attention only", "relu", "GELU", "relu²", "SwiGLU",
          "expansion 1", "expansion 2", "expansion 8"],
    settings={"steps": 400, "rate": 0.01},
    variations=[{"steps": 120}, {"steps": 1200}, {"rate": 0.003}],
)  # fmt: skip
