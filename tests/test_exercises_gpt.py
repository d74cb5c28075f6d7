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


test_other_right_answers_are_right = accepted(
    (check.token_nll, surprises_by_loops),
    (check.token_nll, lambda z, i: F.cross_entropy(z[:, :-1].mT, i[:, 1:], reduction="none")),
    (check.gpt2, lambda w, ids, n_head: huggingface.gpt2(w, {"n_head": n_head})(ids)),
    (check.gpt2, gpt2_text_by_text),
    (check.my_shape, [(1, 2, 48), {0: torch.tensor(2.55), 1: 2.54}]),
)


test_other_mistakes_are_told_by_what_differs = refused(
    (check.token_nll, lambda z, i: F.cross_entropy(z, i, reduction="none"), "transpose(1, 2)"),
    (check.token_nll, lambda z, i: F.cross_entropy(z[:, :-1].mT, i[:, 1:]), "one number"),
    (check.gpt2, lambda w, ids, H: 2 * check.gpt2.right(w, ids, H), "gpt2(w, ids, 2) for ids"),
    (check.diagnoses, check.FAULTS | {"F": "g"}, "row is that of the sound model"),
    (check.diagnoses, check.FAULTS | {"A": "b", "E": "e"}, "below"),
    (check.diagnoses, check.FAULTS | {"B": "d", "C": "c"}, "one block of two"),
    (check.diagnoses, check.FAULTS | {"E": "f"}, "Which characters does it see"),
    (check.my_shape, ((2, 4, 48), {0: 2.5, 1: 2.5}), "costs more"),
    (check.my_shape, ((1, 4, 48), {0: 1.5, 1: 2.5}), "so low"),
    (check.my_shape, ((1, 4, 40), {0: 2.59, 1: 2.61}), "luck"),
)
