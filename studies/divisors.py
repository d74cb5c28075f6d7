"""What the divisor of the scores does to a head: its loss, its attention weights, and why.

The model of the chapter on the plays, with its scores divided by √hs, by hs, and not at all. The
control is a head that attends only to itself: its loss is reached without any other token.

A divisor does two things: it makes the initial weights flatter, and it makes the scores change
less in each step. Two arms do one without the other. "√hs, larger initialisation" divides by √hs,
but its initial queries and keys are √√hs times as large, so its initial scores are those of a head
without scaling. "no scaling, smaller initialisation" does not divide, but its initial queries and
keys are smaller by the same factor.

The perplexity is e to the mean entropy of the weights of the last of 16 tokens, at initialisation,
after 20 steps and at the end. Then, after training, the standard deviation of q · k, undivided:
what the rule predicts for independent components with mean 0, from the size of each; what is
measured in the same text; what is measured for queries with keys of unrelated texts; and what all
pairs of components predict, with the means of q_i q_j and of k_i k_j.
Losses are those of the first 100,000 characters of the validation plays.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.training import estimate_loss, get_batch, language_model_loss, minimize
from studies import Study
from studies._plays import plays

T, C = 16, 64
LARGER, SMALLER = "√hs, larger initialisation", "no scaling, smaller initialisation"
CONTROL = "attends only to itself"


class OneHeadModel(nn.Module):
    def __init__(self, hs: int, arm: str, symbols: int):
        super().__init__()
        self.bigram_logits = nn.Embedding(symbols, symbols)
        nn.init.zeros_(self.bigram_logits.weight)
        self.token_embedding, self.position_embedding = nn.Embedding(symbols, C), nn.Embedding(T, C)
        self.query, self.key = nn.Linear(C, hs, bias=False), nn.Linear(C, hs, bias=False)
        self.value, self.context_logits = nn.Linear(C, C, bias=False), nn.Linear(C, symbols)
        self.arm = arm
        self.divisor = {"√hs": hs**0.5, LARGER: hs**0.5, "hs": float(hs)}.get(arm, 1.0)
        init_scale = {LARGER: hs**0.25, SMALLER: hs**-0.25}.get(arm, 1.0)
        self.query.weight.data *= init_scale
        self.key.weight.data *= init_scale

    def queries_and_keys(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.token_embedding(ids) + self.position_embedding.weight[: ids.shape[1]]
        return x, self.query(x), self.key(x)

    def forward(self, ids: Tensor) -> Tensor:
        x, q, k = self.queries_and_keys(ids)
        out = self.value(x)
        if self.arm != CONTROL:
            out = F.scaled_dot_product_attention(q, k, out, is_causal=True, scale=1 / self.divisor)
        return self.bigram_logits(ids) + self.context_logits(out)


@torch.no_grad()
def perplexity(model: OneHeadModel, chunks: Tensor) -> float:
    _, q, k = model.queries_and_keys(chunks)
    weights = (q[:, -1:] @ k.mT / model.divisor).softmax(-1)
    return torch.special.entr(weights).sum(-1).mean().exp().item()


@torch.no_grad()
def spreads(model: OneHeadModel, chunks: Tensor) -> dict[str, float]:
    _, q, k = model.queries_and_keys(chunks)
    of_q, of_k = (t.flatten(0, 1).T @ t.flatten(0, 1) / (len(t) * T) for t in (q, k))
    unrelated = k.roll(len(k) // 2, 0)  # each text's queries with the keys of a text far away
    return {
        "by the rule": (of_q.diagonal() * of_k.diagonal()).sum().sqrt().item(),
        "same text": (q @ k.mT).square().mean().sqrt().item(),
        "unrelated texts": (q @ unrelated.mT).square().mean().sqrt().item(),
        "by all pairs": (of_q * of_k).sum().sqrt().item(),
    }


def run(
    arm: str, seed: int, *, hs: int, optimizer: str, rate: float, steps: int, traded: bool = False
) -> dict[str, float]:
    tokenizer, ids, held_out = plays()
    torch.manual_seed(seed)
    model = OneHeadModel(hs, arm, tokenizer.vocab_size)
    chunks = held_out[: 400 * T].view(-1, T)
    numbers = {"perplexity at initialisation": perplexity(model, chunks)}
    generator = torch.Generator().manual_seed(seed)

    def loss_of(step: int) -> Tensor:
        if step == 20:
            numbers["perplexity after 20 steps"] = perplexity(model, chunks)
        return language_model_loss(model, *get_batch(ids, T, 64, generator))

    factors = dict.fromkeys(("query.weight", "key.weight"), {"√hs": 1 / 8, "hs": 8.0}.get(arm, 1.0))
    groups = [
        {"params": [p], "lr": rate * (factors.get(name, 1.0) if traded else 1.0)}
        for name, p in model.named_parameters()
    ]
    minimize(loss_of, model, getattr(torch.optim, optimizer)(groups), steps)
    numbers["perplexity at the end"] = perplexity(model, chunks)
    final = estimate_loss(model, held_out[:100_001], block_size=T, batch_size=1024)
    return {"loss": final, **numbers, **spreads(model, chunks)}


study = Study(
    arms=["√hs", "hs", "no scaling", LARGER, SMALLER, CONTROL],
    settings={"hs": 64, "optimizer": "AdamW", "rate": 0.003, "steps": 400},
    variations=[{"hs": 4}, {"rate": 0.01}, {"steps": 1200}, {"optimizer": "SGD", "rate": 0.5}],
)  # fmt: skip
