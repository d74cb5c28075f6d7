"""The exercises of the chapter on the GPT."""

import math
from functools import partial

import torch
import torch.nn.functional as F

from exercises.check import checked, exercise, expect, normal, reported

# --- 9.1: surprises -----------------------------------------------------------------------------


def logits_and_ids(B, T, V, scale, seed):
    ids = torch.randint(V, (B, T), generator=torch.Generator().manual_seed(seed))
    return scale * normal(B, T, V, seed=seed), ids


@exercise(
    inputs=[logits_and_ids(*sizes, seed) for seed, sizes in enumerate(
        [(2, 5, 7, 2), (3, 4, 11, 2), (1, 8, 3, 2), (2, 6, 6, 2), (4, 2, 5, 2), (2, 3, 4, 0),
         (2, 4, 5, 900)])],  # the last: logits far apart
    clash="Row t predicts token t + 1: the last row and the first token have no partner.",
    praise="Each token is scored by the row before it.",
)  # fmt: skip
def surprises(logits, ids):
    """surprises(logits, ids): (B, T, V) and (B, T) to (B, T − 1), −ln p of each token."""
    return -picked(logits[:, :-1].log_softmax(-1), ids[:, 1:])


def picked(table, ids):
    return table.gather(-1, ids[..., None])[..., 0]


def own(z, ids):
    return -picked(z.log_softmax(-1), ids)


def with_p(to_p):
    """−ln of p, made of the logits by `to_p`."""
    return lambda z, ids: -picked(to_p(z[:, :-1]), ids[:, 1:]).log()


def with_log_p(to_log_p):
    return lambda z, ids: -picked(to_log_p(z[:, :-1]), ids[:, 1:])


def result(change):
    """The right answer of the exercise with as many arguments, changed."""
    return lambda *given: change((surprises if len(given) == 2 else gpt2).right(*given))


def reshaped(z, ids):
    return F.cross_entropy(z.reshape(len(z), z.shape[2], -1), ids, reduction="none")


CUT = (
    "reshape(B, V, T) mixes up the rows. To move the symbols to dim 1, as cross_entropy wants "
    "them, use `.transpose(1, 2)`."
)
EPSILONS = [10.0**-digits for digits in (*range(3, 17), 20)]
surprises.mistakes = {
    "You compare row t with token t, the token that the model has just read. Row t predicts token "
    "t + 1. (No row predicts the first token.)": own,
    "You compare row t with token t, the token that the model has just read. Row t predicts token "
    "t + 1.": lambda z, ids: own(z, ids)[:, :-1],
    "You compare row t with token t: shift them by one.": lambda z, ids: own(z, ids)[:, 1:],
    "You shifted the wrong way: you compare row t + 1 with token t, which comes before it.":
        lambda z, ids: own(z[:, 1:], ids[:, :-1]),
    "The last row predicts a token that is not here. Leave it out.":
        lambda z, ids: own(z, ids.roll(-1, 1)),
    "The first token has no surprise: return (B, T − 1).": result(lambda s: F.pad(s, (1, 0))),
    "The sign is missing: these are log-probabilities. A surprise is −ln p.": result(torch.neg),
    "These are probabilities. A surprise is −ln p.":
        (result(lambda s: (-s).exp()), result(lambda s: -(-s).exp())),
    "This is 1 − p. A surprise is −ln p.": result(lambda s: 1 - (-s).exp()),
    "This is 1 / p. A surprise is its logarithm, −ln p.": result(torch.exp),
    "These are the logits themselves, without a softmax.": with_log_p(torch.neg),
    "These are the negative logits, without a softmax.": with_log_p(torch.clone),
    "These are logarithms of logits: a softmax comes before.": with_p(torch.clone),
    "Your softmax runs over the tokens, dim 1. It runs over the symbols: dim=-1.": (
        with_log_p(lambda z: z.log_softmax(1)),
        lambda z, ids: -picked(z.log_softmax(1)[:, :-1], ids[:, 1:])),
    "Your softmax runs over dim 0, the texts: dim=-1.": with_log_p(lambda z: z.log_softmax(0)),
    "Your softmax runs over all numbers. Each row is a distribution of its own: dim=-1.":
        with_log_p(lambda z: z - z.logsumexp((0, 1, 2))),
    "One softmax too many: log_softmax and cross_entropy want the logits.":
        with_log_p(lambda z: z.softmax(-1).log_softmax(-1)),
    "Where logits are far apart a softmax is exactly 0, and its logarithm −∞. `log_softmax` does "
    "both at once.": (
        with_p(lambda z: z.softmax(-1))),
    "You added a small number to p, or clamped it. That keeps the surprise finite, but makes it "
    "wrong: it may be 1000. `log_softmax` needs no such help.": (
        *(with_p(lambda z, e=e: z.softmax(-1) + e) for e in EPSILONS),
        *(with_p(lambda z, e=e: z.softmax(-1).clamp(e)) for e in EPSILONS)),
    "exp of a large logit is infinite. `log_softmax` subtracts the largest first.": (
        with_p(lambda z: z.exp() / z.exp().sum(-1, keepdim=True)),
        with_log_p(lambda z: z - z.exp().sum(-1, keepdim=True).log())),
    CUT: (
        lambda z, ids: reshaped(z[:, :-1], ids[:, 1:]), lambda z, ids: reshaped(z, ids)[:, 1:],
        with_log_p(lambda z: z.reshape(len(z), z.shape[2], -1).log_softmax(1).mT)),
    CUT + " Also, row t predicts token t + 1.": reshaped,
    "You averaged. Keep a number for each token.": result(torch.mean),
    "You averaged over each text. Keep a number for each token.": result(lambda s: s.mean(1)),
    "You summed. Keep a number for each token.": (result(torch.sum), result(lambda s: s.sum(1))),
    "The right numbers, but all in one row, as cross_entropy wants them. Reshape them to (B, T − "
    "1).": result(torch.flatten),
    "Drop the last dimension, of size 1, and no other one: `[..., 0]`.":
        (result(lambda s: s[..., None]), result(torch.squeeze)),
    "The right numbers, but as (T − 1, B): texts come first.": result(torch.t),
    "These are the surprises of all symbols. Pick the one that came, with gather.":
        (lambda z, _: -z[:, :-1].log_softmax(-1), lambda z, _: -z.log_softmax(-1)),
    "These are the surprises of the most probable symbols. Take the tokens that came.":
        lambda z, _: -z[:, :-1].log_softmax(-1).amax(-1),
    "These are bits, log₂. A nat is −ln p.": result(lambda s: s / math.log(2)),
}  # fmt: skip


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
    expect(
        chosen in (1, 4, 16),
        "The second of the pair should be a number of blocks: 1, 4 or 16.",
    )
    expect(chosen != 16, "You chose the one with the highest loss. Choose the lowest.")
    expect(chosen == 1, "By your own numbers another one is better.")
    return "For a run this short, with one seed and one learning rate. A result only holds for its "
    "budget."


# --- 9.3: GPT-2 from its tensors ------------------------------------------------------------------


def published(V, T, L, C, seed):
    """Random weights in the layout of the published GPT-2; every bias and gain tells."""
    blocks = {
        "ln_1.weight": (C,), "ln_1.bias": (C,), "attn.c_attn.weight": (C, 3 * C),
        "attn.c_attn.bias": (3 * C,), "attn.c_proj.weight": (C, C), "attn.c_proj.bias": (C,),
        "ln_2.weight": (C,), "ln_2.bias": (C,), "mlp.c_fc.weight": (C, 4 * C),
        "mlp.c_fc.bias": (4 * C,), "mlp.c_proj.weight": (4 * C, C), "mlp.c_proj.bias": (C,),
    }  # fmt: skip
    shapes = {"wte.weight": (V, C), "wpe.weight": (T, C)}
    for i in range(L):
        shapes |= {f"h.{i}.{name}": shape for name, shape in blocks.items()}
    shapes |= {"ln_f.weight": (C,), "ln_f.bias": (C,)}
    return {name: 0.6 * normal(*shape, seed=seed + n)
            for n, (name, shape) in enumerate(shapes.items())}  # fmt: skip


def read(V, T, L, C, H, seed, rows=2, length=None):
    """(weights, ids, n_head) of one input."""
    draw = torch.Generator().manual_seed(seed)
    return published(V, T, L, C, seed), torch.randint(V, (rows, length or T), generator=draw), H


@exercise(
    inputs=[read(11, 6, 1, 8, 2, seed=100), read(7, 9, 2, 12, 3, seed=200, length=5),
            read(5, 4, 3, 6, 1, seed=300, rows=1), read(9, 8, 2, 8, 4, seed=400, rows=3),
            read(5, 3, 11, 4, 2, seed=600, rows=1)],
    clash="Of wpe take the first T rows. c_attn makes (B, T, 3C): cut it in three, and each part "
    "into heads, (B, H, T, hs).",
    praise="GPT-2, from its tensors alone.",
)  # fmt: skip
def gpt2(w, ids, n_head):
    """gpt2(w, ids, n_head): ids (B, T) to logits (B, T, V), with GPT-2's tensors by their names."""
    return computed(w, ids, n_head)


def call_in_words(given):
    """The call, without the weights."""
    return f"gpt2(w, ids, {given[2]}) for ids of shape {tuple(given[1].shape)}"


gpt2.what = call_in_words  # type: ignore[method-assign]


def normed(w, name, x, to=F.layer_norm):
    return to(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"])


def linear(w, name, x):
    return x @ w[f"{name}.weight"] + w[f"{name}.bias"]


gelu = partial(F.gelu, approximate="tanh")


def heads_of(x, H):
    return x.unflatten(-1, (H, -1)).transpose(1, 2)


def stream(x, given):
    return x


def nothing(x, given):
    return 0


def what_it_read(x, given):
    return given


def computed(
    w, ids, H, scale=True, hidden=1, order=(0, 1, 2), blocks=range, bend=gelu,
    skip=(stream, stream), norms=("ln_1", "ln_2"), last=True,
    after=False, to=F.layer_norm, split=heads_of, merge=lambda out: out.transpose(1, 2).flatten(2),
    parallel=False, by=None, head=True,
):  # fmt: skip
    """GPT-2's logits, or those with one of its parts left out or changed.

    hidden: the first diagonal of the scores that the mask hides; None: there is no mask.
    skip: for each part, what it is added to: of the stream and what the part read.
    """
    norm = partial(normed, to=to)
    x = w["wte.weight"][ids] + w["wpe.weight"][: ids.shape[1]]
    for i in blocks(sum(name.endswith("ln_1.bias") for name in w)):
        h = f"h.{i}."
        given = x if after else norm(w, h + norms[0], x)
        qkv = linear(w, h + "attn.c_attn", given).chunk(3, -1)
        q, k, v = (split(qkv[part], H) for part in order)
        scores = q @ k.mT / ((by or q.shape[-1]) ** 0.5 if scale else 1)
        if hidden is not None:
            scores = scores.masked_fill(torch.ones_like(scores).triu(hidden) > 0, -torch.inf)
        heard = linear(w, h + "attn.c_proj", merge(scores.softmax(-1) @ v))
        before, x = x, skip[0](x, given) + heard
        x = norm(w, h + norms[0], x) if after else x
        given = before if parallel else x
        given = given if after else norm(w, h + norms[1], given)
        up = bend(linear(w, h + "mlp.c_fc", given))
        x = skip[1](x, given) + linear(w, h + "mlp.c_proj", up)
        x = norm(w, h + norms[1], x) if after else x
    x = norm(w, "ln_f", x) if last else x
    return x @ w["wte.weight"].T if head else x


def but(**changes):
    return lambda w, ids, H: computed(w, ids, H, **changes)


def with_other(change, *ends):
    """As if the tensors whose names end like this were others; of zeros, as if there were none."""
    return lambda w, ids, H: computed(
        {name: change(t) if name.endswith(ends) else t for name, t in w.items()}, ids, H
    )


def unprojected(w, ids, H):
    own = {name: torch.eye(len(t)) for name, t in w.items() if name.endswith("attn.c_proj.weight")}
    return with_other(torch.zeros_like, "attn.c_proj.bias")(w | own, ids, H)


BIASES = "c_attn.bias", "attn.c_proj.bias", "c_fc.bias", "mlp.c_proj.bias"


gpt2.mistakes = {
    "The positions are missing: add the rows of wpe to those of wte.":
        with_other(torch.zeros_like, "wpe.weight"),
    "The mask is missing: every token attends to the future.": but(hidden=None),
    "The mask is off by one diagonal: each token attends to itself, but not to the next one.":
        (but(hidden=2), but(hidden=0)),
    "The scores are not divided by √hs.": but(scale=False),
    "The scores are divided by √C: each head has hs = C / n_head numbers.":
        lambda w, ids, H: computed(w, ids, H, by=w["wte.weight"].shape[1]),
    "c_attn gives queries, keys and values, in this order. Yours is different.":
        tuple(but(order=order) for order in ((0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0))),
    "The attention part has no skip connection: x + attention(norm(x)).":
        but(skip=(nothing, stream)),
    "The feed-forward part has no skip connection: x + feed-forward(norm(x)).":
        but(skip=(stream, nothing)),
    "The skip connections are missing: each part adds to the residual stream.":
        but(skip=(nothing, nothing)),
    "You add a part to norm(x). Add it to x itself: only what the part reads is normed.": tuple(
        but(skip=skip) for skip in
        ((what_it_read, what_it_read), (what_it_read, stream), (stream, what_it_read))),
    "The last norm, ln_f, is missing.": but(last=False),
    "The norms come before the parts: x + part(norm(x)), not norm(x + part(x)).": but(after=True),
    "The norms of a block are swapped: ln_1 before attention, ln_2 before the feed-forward part.":
        but(norms=("ln_2", "ln_1")),
    "Both parts use one norm: ln_1 before attention, ln_2 before the feed-forward part.":
        (but(norms=("ln_1", "ln_1")), but(norms=("ln_2", "ln_2"))),
    "The feed-forward part reads the stream as it is *after* attention, not before.":
        but(parallel=True),
    "The activation function is missing in the feed-forward part.": but(bend=lambda x: x),
    "GPT-2's activation function is GELU, not ReLU.": but(bend=F.relu),
    "This is the exact GELU. Use GPT-2's: approximate=\"tanh\".": but(bend=F.gelu),
    "attn.c_proj is transposed. No error was raised because it is square: use x @ W as it is.":
        with_other(torch.t, "attn.c_proj.weight"),
    "A bias is missing: x @ W + b, four times in a block.": (
        with_other(torch.zeros_like, *BIASES),
        *(with_other(torch.zeros_like, bias) for bias in BIASES)),
    "attn.c_proj is missing: the merged heads go through it before they are added.": unprojected,
    "Only the first block's tensors were used: those of block i are called `h.{i}.…`.":
        (but(blocks=lambda n: range(1)), but(blocks=lambda n: [0] * n)),
    "The blocks were not used at all.": but(blocks=lambda n: ()),
    "The last block is missing.": but(blocks=lambda n: range(n - 1)),
    "h.10 comes after h.9: with eleven blocks you lose it, or use it too early.": (
        but(blocks=lambda n: range(min(n, 10))), but(blocks=lambda n: sorted(range(n), key=str))),
    "The heads are cut from the wrong dimension: unflatten the last one into (n_head, hs), then "
    "swap heads and time.": but(split=lambda x, H: x.reshape(len(x), H, x.shape[1], -1)),
    "The heads were merged without the transpose: (B, H, T, hs) → (B, T, H, hs) → (B, T, C).":
        but(merge=lambda o: o.reshape(len(o), o.shape[2], -1)),
    "You always use the same number of heads: cut queries, keys and values into n_head.":
        (lambda w, ids, H: computed(w, ids, 1), lambda w, ids, H: computed(w, ids, 2)),
    "These are probabilities. Return the logits, before any softmax.":
        result(lambda z: z.softmax(-1)),
    "The head is missing: multiply what ln_f gives by wte.weight.T.": but(head=False),
    "These are the logits of the last position only. Return all: (B, T, V).":
        result(lambda z: z[:, -1]),
    "The gains and shifts of the norms are missing.":
        but(to=lambda x, shape, *_: F.layer_norm(x, shape)),
}  # fmt: skip
