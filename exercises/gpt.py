"""The exercises of the chapter on the GPT."""

import math

import torch
import torch.nn.functional as F

from exercises.check import (
    checked,
    diagnose,
    diagnose_letters,
    exercise,
    generator,
    normal,
    reported,
)

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
    log_p = logits[:, :-1].log_softmax(-1)
    return -log_p.gather(-1, ids[:, 1:, None]).squeeze(-1)


token_nll.slips("""
    You compare row t with token t, the token that the model has just read. Row t predicts token
    t + 1. (No row predicts the first token.)
        logits[:, :-1] → logits ; ids[:, 1:, None] → ids[..., None]
        ids[:, 1:, None] → ids[:, :-1, None]
        logits[:, :-1] → logits[:, 1:]
    You shifted the wrong way: you compare row t + 1 with token t, which comes before it.
        logits[:, :-1] → logits[:, 1:] ; ids[:, 1:, None] → ids[:, :-1, None]
    The sign is missing: these are log-probabilities. The negative log-likelihood is −ln p.
        -log_p → log_p
    These are probabilities. The negative log-likelihood is −ln p.
        (-right(logits, ids)).exp()
    These are the (negative) logits, without a softmax.
        log_softmax(-1) → neg()
        .log_softmax(-1) →
    Your softmax runs over the tokens, dim 1. It runs over the symbols: dim=-1.
        log_softmax(-1) → log_softmax(1)
        logits[:, :-1].log_softmax(-1) → logits.log_softmax(1)[:, :-1]
    One softmax too many: log_softmax and cross_entropy want the logits.
        log_softmax(-1) → softmax(-1).log_softmax(-1)
    Where logits are far apart a softmax is exactly 0, and its logarithm −∞. `log_softmax` does
    both at once.
        log_softmax(-1) → softmax(-1).log()
    This is one number, the mean. Return one for each token: pass `reduction="none"`.
        squeeze(-1) → mean()
        logits[:, :-1] → logits ; ids[:, 1:, None] → ids[..., None] ; squeeze(-1) → mean()
    The right numbers, all in one row: give them their shape back, `.view(B, T - 1)`.
        squeeze(-1) → flatten()
    reshape(B, V, T) mixes up the rows. To move the symbols to dim 1, as cross_entropy wants
    them, use `.transpose(1, 2)`.
        logits[:, :-1] → logits[:, :-1].flatten(1).unflatten(1, (logits.shape[2], -1)).mT
""")


# --- 9.2: a shape of the reader's own -------------------------------------------------------------


@checked
def my_shape(answer):
    """my_shape: a shape of at most 33,000 parameters, and its losses with two seeds."""
    (L, H, C), losses = reported(
        answer,
        ((4, 4, 24), {0: 2.78, 1: 2.72}),
        "Set my_shape to a pair, the shape (L, H, C) and the losses, ((4, 4, 24), {0: …, 1: …}).",
    )
    diagnose("""
        A model has at least one block, and C numbers that its H heads share equally.
            min(L, H) < 1 or C % H != 0
        It costs more than 33,000 parameters: see `n_parameters(V, 16, L, C)`.
            85 * C + L * (12 * C**2 + 13 * C) + 2 * C > 33_000
        No model gets so low in 100 steps: is it the loss that `tried` returns, and is the mask
        in place?
            min(losses.values()) < 2.35
        One seed is below 2.6, the other is not. Which of the two is luck?
            min(losses.values()) < 2.6 <= max(losses.values())
        Not below 2.6 with either seed. Is a deep model or a wide one faster in its first steps?
            max(losses.values()) >= 2.6
    """)
    return "For this budget, in 100 steps. Would it win after 1,000? Bet, and try it."


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

    def linear(name, x):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    def norm(name, x):
        return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], eps=1e-5)

    def heads(x):
        return x.unflatten(-1, (n_head, -1)).transpose(1, 2)

    x = w["wte.weight"][ids] + w["wpe.weight"][: ids.shape[1]]
    for i in range(sum(name.endswith("ln_1.bias") for name in w)):
        y = norm(f"h.{i}.ln_1", x)
        q, k, v = map(heads, linear(f"h.{i}.attn.c_attn", y).chunk(3, -1))
        hidden = torch.ones(ids.shape[1], ids.shape[1]).triu(1) > 0
        scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(hidden, -math.inf)
        out = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        attended = linear(f"h.{i}.attn.c_proj", out)
        x = x + attended
        y = norm(f"h.{i}.ln_2", x)
        up = F.gelu(linear(f"h.{i}.mlp.c_fc", y), approximate="tanh")
        fed = linear(f"h.{i}.mlp.c_proj", up)
        x = x + fed
    return norm("ln_f", x) @ w["wte.weight"].T


gpt2.slips("""
    The positions are missing: add the rows of wpe to those of wte.
        + w["wpe.weight"][: ids.shape[1]] →
    The mask is missing: every token attends to the future.
        .masked_fill(hidden, -math.inf) →
    The scores are not divided by √hs.
        / math.sqrt(q.shape[-1]) →
    The norms come before the parts: x + part(norm(x)), not norm(x + part(x)).
        norm(f"h.{i}.ln_1", x) → x ; x + attended → norm(f"h.{i}.ln_1", x + attended)
        ; norm(f"h.{i}.ln_2", x) → x ; x + fed → norm(f"h.{i}.ln_2", x + fed)
    The last norm, ln_f, is missing.
        norm("ln_f", x) → x
    This is the exact GELU. Use GPT-2's: approximate="tanh".
        "tanh" → "none"
    Your ε is not that of GPT-2's norms, which is PyTorch's default, 1e-5.
        1e-5 → 1e-6
        1e-5 → 1e-8
        1e-5 → 0.0
    attn.c_proj is transposed. No error was raised because it is square: use x @ W as it is.
        right({n: W.T if "attn.c_proj.weight" in n else W for n, W in w.items()}, ids, n_head)
    The heads are cut from the wrong dimension: unflatten the last one into (n_head, hs), then
    swap heads and time.
        x.unflatten(-1, (n_head, -1)).transpose(1, 2) → x.reshape(len(x), n_head, x.shape[1], -1)
    The heads were merged without the transpose: (B, H, T, hs) → (B, T, H, hs) → (B, T, C).
        .transpose(1, 2).flatten(2) → .reshape(x.shape)
""")


# --- 9.4: what is wrong with these models? --------------------------------------------------------

FAULTS = {"A": "e", "B": "c", "C": "d", "D": "a", "E": "b", "F": "?"}


@checked
def diagnoses(answer):
    """diagnoses: what is wrong with the models A to F, a letter for each."""
    table = """
        F's row is that of the sound model. Does that prove that nothing is wrong, or that the
        targets are? What would each of the two look like in these four columns?
            found["F"] in ("f", "g")
        A is *below* the floor: nobody can be as sure as that who sees only the past.
            found["A"] == "b"
        One block has 12,704 parameters, two tables and a norm have 2,784. Which of the two lists
        hides all blocks from PyTorch, and which makes one block of two?
            found["B"] == "d" or found["C"] == "c"
        E is sound in all columns but one: it cannot even learn 128 characters by heart, although
        all of its parts are trained. Which characters does it see?
            found["E"] in ("c", "f")
    """
    diagnose_letters(answer, FAULTS, "g", table, "Plant the fault that you suspect, and test it.")
    return "Four numbers in ten seconds, and five of six faults have shown themselves."
