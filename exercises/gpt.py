"""The exercises of the chapter on the GPT."""

import math
from functools import partial

import torch
import torch.nn.functional as F

from exercises.check import checked, exercise, expect, generator, normal, reported

# --- 9.1: token_nll -----------------------------------------------------------------------------


def logits_and_ids(B, T, V, scale, seed):
    ids = torch.randint(V, (B, T), generator=generator(seed))
    return scale * normal(B, T, V, seed=seed), ids


@exercise(
    inputs=lambda draw: [
        logits_and_ids(2, 5, 7, scale=2, seed=0),
        logits_and_ids(3, 4, 11, scale=2, seed=1),
        logits_and_ids(1, 8, 3, scale=2, seed=2),
        logits_and_ids(2, 6, 6, scale=2, seed=3),
        logits_and_ids(4, 2, 5, scale=2, seed=4),
        logits_and_ids(2, 3, 4, scale=0, seed=5),
        logits_and_ids(2, 4, 5, scale=900, seed=6),  # logits far apart
    ],
    error_hints={
        "Expected target size|Expected input batch_size": "`F.cross_entropy` needs the symbols as "
        "the second dimension of the logits: `logits.transpose(1, 2)`.",
    },
    on_shape_error="Row t predicts token t + 1: the last row and the first token have no partner.",
    on_success="Each token is scored by the row before it.",
)
def token_nll(logits, ids):
    """token_nll(logits, ids): (B, T, V) and (B, T) to (B, T − 1), −ln p of each token."""
    return nll(logits[:, :-1], ids[:, 1:])


def gathered(table, ids):
    return table.gather(-1, ids[..., None])[..., 0]


def nll(logits, ids):
    return -gathered(logits.log_softmax(-1), ids)


def with_log_p(log_p):
    """−ln p, as the function `log_p` of the logits makes it."""
    return lambda z, ids: -gathered(log_p(z[:, :-1]), ids[:, 1:])


def reshaped(z, ids):
    z = z[:, :-1]
    return F.cross_entropy(z.reshape(len(z), z.shape[2], -1), ids[:, 1:], reduction="none")


token_nll.mistake(
    "You compare row t with token t, the token that the model has just read. Row t predicts token "
    "t + 1. (No row predicts the first token.)",
    nll,
    lambda z, ids: nll(z, ids)[:, :-1],
    lambda z, ids: nll(z, ids)[:, 1:],
)
token_nll.mistake(
    "You shifted the wrong way: you compare row t + 1 with token t, which comes before it.",
    lambda z, ids: nll(z[:, 1:], ids[:, :-1]),
)
token_nll.mistake(
    "The sign is missing: these are log-probabilities. The negative log-likelihood is −ln p.",
    lambda z, ids: -token_nll.right(z, ids),
)
token_nll.mistake(
    "These are probabilities. The negative log-likelihood is −ln p.",
    lambda z, ids: (-token_nll.right(z, ids)).exp(),
)
token_nll.mistake(
    "These are the (negative) logits, without a softmax.",
    with_log_p(torch.clone),
    with_log_p(torch.neg),
)
token_nll.mistake(
    "Your softmax runs over the tokens, dim 1. It runs over the symbols: dim=-1.",
    with_log_p(lambda z: z.log_softmax(1)),
    lambda z, ids: -gathered(z.log_softmax(1)[:, :-1], ids[:, 1:]),
)
token_nll.mistake(
    "One softmax too many: log_softmax and cross_entropy want the logits.",
    with_log_p(lambda z: z.softmax(-1).log_softmax(-1)),
)
token_nll.mistake(
    "Where logits are far apart a softmax is exactly 0, and its logarithm −∞. `log_softmax` does "
    "both at once.",
    with_log_p(lambda z: z.softmax(-1).log()),
)
token_nll.mistake(
    'This is one number, the mean. Return one for each token: pass `reduction="none"`.',
    lambda z, ids: token_nll.right(z, ids).mean(),
    lambda z, ids: nll(z, ids).mean(),
)
token_nll.mistake(
    "reshape(B, V, T) mixes up the rows. To move the symbols to dim 1, as cross_entropy wants "
    "them, use `.transpose(1, 2)`.",
    reshaped,
)


# --- 9.2: deep or wide ----------------------------------------------------------------------------


@checked
def deep_or_wide(answer):
    """deep_or_wide: the losses of three GPTs by their number of blocks, and the one to take."""
    losses, chosen = reported(
        answer,
        ({1: 2.4, 4: 2.4, 16: 2.4}, 4),
        "Set deep_or_wide to a pair: the losses, blocks → loss, and the blocks you would take, "
        "({1: 2.4, 4: …, 16: …}, 4).",
    )
    expect(
        all(1.9 < loss < 3.2 for loss in losses.values()),
        "Such a model cannot have these losses after 300 steps: they lie between 2 and 3 nats (4.2 "
        "if untrained). Measure on held_out, in nats, and keep the mask.",
    )
    expect(
        len({round(loss, 6) for loss in losses.values()}) == 3,
        "Two of your losses are equal: was each model made, trained and measured by itself?",
    )
    expect(
        losses[1] < losses[4] < losses[16],
        "With a rate of 0.003 and 300 steps the three come out in another order. Is C = 64 with 1 "
        "block, 32 with 4, 16 with 16? Were all three trained alike, each as a fresh model?",
    )
    expect(chosen in (1, 4, 16), "The second of the pair should be a number of blocks: 1, 4 or 16.")
    expect(chosen != 16, "You chose the one with the highest loss. Choose the lowest.")
    expect(chosen == 1, "By your own numbers another one is better.")
    return (
        "For a run this short, with one seed and one learning rate. A result only holds for its "
        "budget."
    )


# --- 9.3: GPT-2 from its tensors ------------------------------------------------------------------


def random_weights(V, T, L, C, seed):
    """Random weights in the layout of the published GPT-2; no bias is 0, no gain 1."""
    sizes = {
        "ln_1": (C,),
        "attn.c_attn": (C, 3 * C),
        "attn.c_proj": (C, C),
        "ln_2": (C,),
        "mlp.c_fc": (C, 4 * C),
        "mlp.c_proj": (4 * C, C),
    }
    layers = {f"h.{i}.{name}": size for i in range(L) for name, size in sizes.items()}
    shapes = {"wte.weight": (V, C), "wpe.weight": (T, C)}
    for name, size in {**layers, "ln_f": (C,)}.items():
        shapes |= {f"{name}.weight": size, f"{name}.bias": size[-1:]}
    return {
        name: 0.6 * normal(*shape, seed=seed + n) for n, (name, shape) in enumerate(shapes.items())
    }


def model_and_ids(V, T, L, C, H, seed, B=2, length=None):
    """(w, ids, n_head)."""
    draw = generator(seed)
    return random_weights(V, T, L, C, seed), torch.randint(V, (B, length or T), generator=draw), H


def with_small_tables(w, *more):
    return w | {name: w[name] / 200 for name in ("wte.weight", "wpe.weight")}, *more


def call_in_words(given):
    """The call, without the weights."""
    return f"gpt2(w, ids, {given[2]}) for ids of shape {tuple(given[1].shape)}"


@exercise(
    in_words=call_in_words,
    inputs=lambda draw: [
        model_and_ids(11, 6, 1, 8, 2, seed=100),
        model_and_ids(7, 9, 2, 12, 3, seed=200, length=5),
        model_and_ids(5, 4, 3, 6, 1, seed=300, B=1),
        model_and_ids(9, 8, 2, 8, 4, seed=400, B=3),
        model_and_ids(5, 3, 11, 4, 2, seed=600, B=1),
        with_small_tables(*model_and_ids(8, 5, 1, 8, 2, seed=700)),  # epsilon counts
    ],
    on_shape_error="Of wpe take the first T rows. c_attn makes (B, T, 3C): cut it in three, and "
    "each part into heads, (B, H, T, hs).",
    on_success="GPT-2, from its tensors alone.",
)
def gpt2(w, ids, n_head):
    """gpt2(w, ids, n_head): ids (B, T) to logits (B, T, V), with GPT-2's tensors by their names."""
    return gpt2_logits(w, ids, n_head)


def gpt2_logits(
    w,
    ids,
    n_head,
    scale=True,
    causal=True,
    post_norm=False,
    final_norm=True,
    approximate="tanh",
    eps=1e-5,
    split=lambda x, n_head: x.unflatten(-1, (n_head, -1)).transpose(1, 2),
    merge=lambda out: out.transpose(1, 2).flatten(2),
):
    """GPT-2, or with one of its parts left out or changed."""

    def linear(name, x):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    def norm(name, x):
        return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], eps)

    def attention(h, x):
        q, k, v = (split(part, n_head) for part in linear(f"{h}.attn.c_attn", x).chunk(3, -1))
        scores = q @ k.mT / (math.sqrt(q.shape[-1]) if scale else 1)
        if causal:
            scores = scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -math.inf)
        return linear(f"{h}.attn.c_proj", merge(scores.softmax(-1) @ v))

    def feed_forward(h, x):
        up = F.gelu(linear(f"{h}.mlp.c_fc", x), approximate=approximate)
        return linear(f"{h}.mlp.c_proj", up)

    x = w["wte.weight"][ids] + w["wpe.weight"][: ids.shape[1]]
    for i in range(sum(name.endswith("ln_1.bias") for name in w)):
        for part, name in ((attention, "ln_1"), (feed_forward, "ln_2")):
            name = f"h.{i}.{name}"
            out = part(f"h.{i}", x if post_norm else norm(name, x))
            x = norm(name, x + out) if post_norm else x + out
    x = norm("ln_f", x) if final_norm else x
    return x @ w["wte.weight"].T


def without_positions(w, ids, n_head):
    return gpt2_logits(w | {"wpe.weight": torch.zeros_like(w["wpe.weight"])}, ids, n_head)


def transposed(w, ids, n_head):
    other = {name: W.T for name, W in w.items() if name.endswith("attn.c_proj.weight")}
    return gpt2_logits(w | other, ids, n_head)


gpt2.mistake("The positions are missing: add the rows of wpe to those of wte.", without_positions)
gpt2.mistake(
    "The mask is missing: every token attends to the future.", partial(gpt2_logits, causal=False)
)
gpt2.mistake("The scores are not divided by √hs.", partial(gpt2_logits, scale=False))
gpt2.mistake(
    "The norms come before the parts: x + part(norm(x)), not norm(x + part(x)).",
    partial(gpt2_logits, post_norm=True),
)
gpt2.mistake("The last norm, ln_f, is missing.", partial(gpt2_logits, final_norm=False))
gpt2.mistake(
    'This is the exact GELU. Use GPT-2\'s: approximate="tanh".',
    partial(gpt2_logits, approximate="none"),
)
gpt2.mistake(
    "Your ε is not that of GPT-2's norms, which is PyTorch's default, 1e-5.",
    partial(gpt2_logits, eps=1e-6),
    partial(gpt2_logits, eps=1e-8),
    partial(gpt2_logits, eps=0.0),
)
gpt2.mistake(
    "attn.c_proj is transposed. No error was raised because it is square: use x @ W as it is.",
    transposed,
)
gpt2.mistake(
    "The heads are cut from the wrong dimension: unflatten the last one into (n_head, hs), then "
    "swap heads and time.",
    partial(gpt2_logits, split=lambda x, n_head: x.reshape(len(x), n_head, x.shape[1], -1)),
)
gpt2.mistake(
    "The heads were merged without the transpose: (B, H, T, hs) → (B, T, H, hs) → (B, T, C).",
    partial(gpt2_logits, merge=lambda out: out.reshape(len(out), out.shape[2], -1)),
)
