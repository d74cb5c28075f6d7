"""The exercises on the GPT beyond what their declaration says."""

import torch
import torch.nn.functional as F

from exercises import gpt as check
from helpers.formats import huggingface
from tests.answers import accepted, refused


def surprises_by_loops(logits, ids):
    B, T, _ = logits.shape
    log_p = logits.log_softmax(-1)
    return [[-log_p[b, t, ids[b, t + 1]].item() for t in range(T - 1)] for b in range(B)]


def gpt2_text_by_text(w, ids, n_head):
    "One text after the other, with torch's own attention; blocks until there is no other."

    def dense(name, x):
        return F.linear(x, w[f"{name}.weight"].T, w[f"{name}.bias"])

    def norm(name, x):
        return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"])

    found = []
    for row in ids:
        x, i = F.embedding(row, w["wte.weight"]) + w["wpe.weight"][torch.arange(len(row))], 0
        while f"h.{i}.ln_1.weight" in w:
            parts = dense(f"h.{i}.attn.c_attn", norm(f"h.{i}.ln_1", x)).split(x.shape[-1], -1)
            q, k, v = (p.view(len(row), n_head, -1).transpose(0, 1)[None] for p in parts)
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)[0]
            x = x + dense(f"h.{i}.attn.c_proj", out.transpose(0, 1).flatten(1))
            up = F.gelu(dense(f"h.{i}.mlp.c_fc", norm(f"h.{i}.ln_2", x)), approximate="tanh")
            x, i = x + dense(f"h.{i}.mlp.c_proj", up), i + 1
        found.append(norm("ln_f", x) @ w["wte.weight"].T)
    return torch.stack(found)


LOSSES = {1: 2.6, 4: 2.8, 9: 3.0}


test_other_right_answers_are_right = accepted(
    (check.token_nll, surprises_by_loops),
    (check.token_nll, lambda z, i: F.cross_entropy(z[:, :-1].mT, i[:, 1:], reduction="none")),
    (check.gpt2, lambda w, ids, n_head: huggingface.gpt2(w, {"n_head": n_head})(ids)),
    (check.gpt2, gpt2_text_by_text),
    (check.deep_or_wide, (LOSSES, 1)),
    (check.deep_or_wide, [{k: torch.tensor(x) for k, x in LOSSES.items()}, 1.0]),
)


test_other_mistakes_are_told_by_what_differs = refused(
    (check.token_nll, lambda z, i: z.log_softmax(-1).gather(-1, i[:, 1:])[..., 0], "raised"),
    (check.gpt2, lambda w, ids, H: 2 * check.gpt2.right(w, ids, H), "gpt2(w, ids, 2) for ids"),
    (check.deep_or_wide, LOSSES, "to a pair"),
    (check.deep_or_wide, ({**LOSSES, 1: 4.2}, 1), "cannot have these losses"),
    (check.deep_or_wide, ({**LOSSES, 1: 2.8}, 1), "Two of your losses are equal"),
    (check.deep_or_wide, ({**LOSSES, 1: 2.9}, 4), "in another order"),
    (check.deep_or_wide, (LOSSES, 48), "number of blocks"),
    (check.deep_or_wide, (LOSSES, 9), "highest loss"),
    (check.deep_or_wide, (LOSSES, 4), "another one is better"),
)
