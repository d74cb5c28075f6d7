"""What eight experts buy at equal work per token: facts remembered, and the loss on plays.

Facts: 8,192 pairs of symbols with a random answer each. Text: a GPT with two blocks on plays. A
token uses as many weights in the arms "dense", "fixed rule" (the first symbol, or the character,
names the expert), "router" (two half-sized experts of eight, gates that sum to 1) and "one gate"
(one of eight, times its softmax over all of them); those with routers are balanced by a bias.
Measured: `right` and `loss` on all facts, or on held-out plays; of the first layer's router
`loyal`, how often a character goes to the expert that it goes to most often, also before training
and with choices shuffled among all tokens; the loss with choices that are shuffled so.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.gpt import GPT, FeedForward, GPTConfig
from helpers.training import get_batch, minimize
from studies import Study
from studies._plays import plays

E = 8


class MoE(nn.Module):
    def __init__(self, C: int, hidden: int, k: int, rule: Tensor | None = None):
        super().__init__()
        self.router = nn.Linear(C, E, bias=False)
        self.experts = nn.ModuleList(FeedForward(C, hidden) for _ in range(E))
        self.k, self.rule, self.bias, self.shuffled = k, rule, torch.zeros(E), False
        self.ids = self.chosen = torch.zeros(0)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, C)
        scores = self.router(x)  # (B, T, E)
        self.chosen = (scores + self.bias).topk(self.k).indices  # (B, T, k)
        if self.rule is not None:
            self.chosen = self.rule[self.ids][..., None]
        if self.shuffled:
            order = torch.randperm(x[..., 0].numel(), generator=torch.Generator().manual_seed(0))
            self.chosen = self.chosen.flatten(0, 1)[order].view(self.chosen.shape)
        gates = scores.gather(-1, self.chosen).softmax(-1)  # 1 if there is only one
        if self.k == 1 and self.rule is None:
            gates = scores.softmax(-1).gather(-1, self.chosen)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            mine = self.chosen == i
            out[mine.any(-1)] += gates[mine][:, None] * expert(x[mine.any(-1)])
        return out


def layer(kind: str, C: int, hidden: int, V: int, seed: int) -> nn.Module:
    rule = torch.randperm(V, generator=torch.Generator().manual_seed(seed)) % E
    if kind in ("dense", "dense × 8"):
        return FeedForward(C, hidden * (8 if "8" in kind else 1))
    if kind == "router":
        return MoE(C, hidden // 2, 2)
    return MoE(C, hidden, 1, rule if kind == "fixed rule" else None)


class Memory(nn.Module):
    def __init__(self, mlp: nn.Module, C: int, V: int):
        super().__init__()
        self.first, self.second = nn.Embedding(V, C), nn.Embedding(V, C)
        self.norm, self.mlp, self.lm_head = nn.LayerNorm(C), mlp, nn.Linear(C, V)

    def forward(self, pairs: Tensor) -> Tensor:  # (B, T, 2) → logits (B, T, V)
        x = self.first(pairs[..., 0]) + self.second(pairs[..., 1])
        return self.lm_head(x + self.mlp(self.norm(x)))


def run(
    arm: str, seed: int, *, text_steps: int, fact_steps: int, rate: float = 0.003
) -> dict[str, float]:
    task, kind = arm.split(": ")
    torch.manual_seed(seed)
    draw = torch.Generator().manual_seed(seed)
    if task == "facts":
        C, V, n, steps = 32, 128, 8192, fact_steps
        pairs = torch.cartesian_prod(torch.arange(V), torch.arange(V))
        given = pairs[torch.randperm(V * V, generator=draw)[:n]][None]
        wanted = torch.randint(V, (1, n), generator=draw)
        model: nn.Module = Memory(layer(kind, C, C, V, seed), C, V)
    else:
        C, T, steps = 64, 64, text_steps
        tokenizer, ids, held_out = plays()
        V = tokenizer.vocab_size
        model = GPT(GPTConfig(V, T, 2, 4, C))
        for block in model.blocks:
            block.mlp = layer(kind, C, 4 * C, V, seed)
        starts = torch.linspace(0, len(held_out) - T - 1, 400).long()[:, None]
        given, wanted = (held_out[starts + torch.arange(T) + n] for n in (0, 1))
    mixtures = [part for part in model.modules() if isinstance(part, MoE)]

    def logits_of(x: Tensor) -> Tensor:
        for mixture in mixtures:
            mixture.ids = x[..., 0] if task == "facts" else x
        return model(x)

    def loss_of(step: int) -> Tensor:
        for mixture in mixtures:
            if step and mixture.rule is None:
                load = F.one_hot(mixture.chosen.flatten(), E).float().mean(0)
                mixture.bias += 0.02 * (1 / E - load).sign()
        if task == "facts":
            some = torch.randint(n, (256,), generator=draw)
            x, y = given[:, some], wanted[:, some]
        else:
            x, y = get_batch(ids, T, 16, draw)
        return F.cross_entropy(logits_of(x).flatten(0, 1), y.flatten())

    @torch.no_grad()
    def measured(note: str = "") -> dict[str, float]:
        logits, loyal = logits_of(given), torch.zeros(())
        if mixtures and task == "text":
            first = mixtures[0].chosen[..., 0].flatten()
            counts = torch.zeros(V, E).index_put_((given.flatten(), first), torch.ones(()), True)
            loyal = counts.amax(1).sum() / counts.sum()
        found = {"right": (logits.argmax(-1) == wanted).float().mean(), "loyal": loyal}
        found["loss"] = F.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        return {name + note: value.item() for name, value in found.items()}

    before = measured(", before training")
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    line = lambda t, n: min(1, (t + 1) / 20, 2 * (n - t) / n)  # noqa: E731
    minimize(loss_of, model, optimizer, steps, line, 1.0)
    after = measured()
    for mixture in mixtures:
        mixture.shuffled = True
    return after | before | measured(", shuffled")


study = Study(
    arms=[f"facts: {kind}" for kind in ("dense", "fixed rule", "router", "dense × 8")]
    + [f"text: {kind}" for kind in ("dense", "fixed rule", "router", "one gate")],
    settings={"text_steps": 400, "fact_steps": 800},
)
