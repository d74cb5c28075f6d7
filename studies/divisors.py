"""By what the scores of a head are divided, what comes of it, and why.

The model of the chapter on the plays, its scores divided by √hs, by hs and by nothing; and a head
that hears only itself, as a control: what it reaches is reached without listening to others.

A divisor does two things: it makes the first weights even, and it makes each step of the scores
smaller. Two arms do each without the other. "√hs, sharp start" divides by √hs, but its first
queries and keys are √√hs times as large, so that its scores begin as those without scaling do.
"no scaling, even start" divides by nothing, but its first queries and keys are as much smaller.

`heard` is e to the mean entropy of the weights of the last of 16 tokens: how many tokens it hears;
before, after 20 steps, at the end. Then the spread of q · k after training: what the rule predicts
from the size of each component (were they independent, with mean 0); of queries with keys of the
same text; of queries with keys of *unrelated* texts; and what is predicted by the whole tables of
the means of q_i q_j and of k_i k_j, not only by their diagonals.
Losses are those of the first 100,000 characters of the validation plays.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.training import estimate_loss, get_batch, language_model_loss
from studies import Study
from studies._plays import plays

T, C = 16, 64


class OneHeadModel(nn.Module):
    def __init__(self, hs: int, arm: str, symbols: int):
        super().__init__()
        self.bigram_logits = nn.Embedding(symbols, symbols)
        nn.init.zeros_(self.bigram_logits.weight)
        self.token_embedding, self.position_embedding = nn.Embedding(symbols, C), nn.Embedding(T, C)
        self.query, self.key = nn.Linear(C, hs, bias=False), nn.Linear(C, hs, bias=False)
        self.value, self.context_logits = nn.Linear(C, C, bias=False), nn.Linear(C, symbols)
        self.arm = arm
        self.divisor = {"√hs": hs**0.5, "√hs, sharp start": hs**0.5, "hs": float(hs)}.get(arm, 1.0)
        larger = {"√hs, sharp start": hs**0.25, "no scaling, even start": hs**-0.25}.get(arm, 1.0)
        self.query.weight.data *= larger
        self.key.weight.data *= larger

    def queries_and_keys(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.token_embedding(ids) + self.position_embedding.weight[: ids.shape[1]]
        return x, self.query(x), self.key(x)

    def forward(self, ids: Tensor) -> Tensor:
        x, q, k = self.queries_and_keys(ids)
        out = self.value(x)
        if self.arm != "hears only itself":
            out = F.scaled_dot_product_attention(q, k, out, is_causal=True, scale=1 / self.divisor)
        return self.bigram_logits(ids) + self.context_logits(out)


@torch.no_grad()
def heard(model: OneHeadModel, stretches: Tensor) -> float:
    _, q, k = model.queries_and_keys(stretches)
    weights = (q[:, -1:] @ k.mT / model.divisor).softmax(-1)
    return torch.special.entr(weights).sum(-1).mean().exp().item()


@torch.no_grad()
def spreads(model: OneHeadModel, stretches: Tensor) -> dict[str, float]:
    _, q, k = model.queries_and_keys(stretches)
    of_q, of_k = (t.flatten(0, 1).T @ t.flatten(0, 1) / (len(t) * T) for t in (q, k))
    unrelated = k.roll(len(k) // 2, 0)  # each text's queries with the keys of a text far away
    return {
        "by the rule": (of_q.diagonal() * of_k.diagonal()).sum().sqrt().item(),
        "same text": (q @ k.mT).square().mean().sqrt().item(),
        "unrelated texts": (q @ unrelated.mT).square().mean().sqrt().item(),
        "by the whole tables": (of_q * of_k).sum().sqrt().item(),
    }


def run(
    arm: str, seed: int, *, hs: int, optimizer: str, rate: float, steps: int
) -> dict[str, float]:
    tokenizer, ids, held_out = plays()
    torch.manual_seed(seed)
    model = OneHeadModel(hs, arm, tokenizer.vocab_size)
    stretches = held_out[: 400 * T].view(-1, T)
    numbers = {"perplexity before": heard(model, stretches)}
    generator = torch.Generator().manual_seed(seed)
    step = getattr(torch.optim, optimizer)(model.parameters(), lr=rate)
    for i in range(steps):
        loss = language_model_loss(model, *get_batch(ids, T, 64, generator))
        step.zero_grad()
        loss.backward()
        step.step()
        if i == 19:
            numbers["perplexity after 20 steps"] = heard(model, stretches)
    numbers["perplexity at the end"] = heard(model, stretches)
    final = estimate_loss(model, held_out[:100_001], block_size=T, batch_size=1024)
    return {"loss": final, **numbers, **spreads(model, stretches)}


study = Study(
    arms=["√hs", "hs", "no scaling", "√hs, sharp start", "no scaling, even start",
          "hears only itself"],
    settings={"hs": 64, "optimizer": "AdamW", "rate": 0.003, "steps": 400},
    variations=[{"hs": 4}, {"rate": 0.01}, {"steps": 1200}, {"optimizer": "SGD", "rate": 0.5}],
)  # fmt: skip
