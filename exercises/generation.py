"""Exercise checks of chapter 10: generation."""

from typing import Any

import torch

from exercises.check import (
    NotYet,
    call,
    checked,
    expect,
    expect_close,
    expect_shape,
    normal,
    tensor,
)
from exercises.mistakes10 import (
    Witness,
    cache_mistakes,
    draw_mistakes,
    heat_mistakes,
    nucleus_mistakes,
    one_hot,
    what_was_read,
    with_cache,
)

# Exact in binary, so that a dart can be exactly on a border.
RULERS = ([0.5, 0.25, 0.125, 0.0625, 0.0625], [0.125, 0.5, 0.0, 0.25, 0.125], [0.0, 0.25, 0.75])
DARTS = (0.8, 0.0, 0.5, 0.9, 0.625, 0.1, 0.99)


@checked
def draw(answer: Any) -> str:
    """draw(probabilities, u): the index of the piece of the ruler that contains u."""
    throws = [(torch.tensor(p), u) for p in RULERS for u in DARTS]
    got = []
    for p, u in throws:
        found = expect_shape(call(answer, p, u, name="draw"), (), "draw(probabilities, u)")
        got.append(float(found))
    want = [int((p.cumsum(-1) <= u).sum()) for p, u in throws]
    for diagnosis, wrong in draw_mistakes(throws).items():
        if got == wrong != want:
            raise NotYet(diagnosis)
    for (p, u), index, wanted in zip(throws, got, want, strict=True):
        ruler = [round(float(x), 4) for x in p]
        expect(
            index == wanted,
            f"draw({ruler}, {u}) should be {wanted}, but is {index:g}. The pieces end at "
            f"{[round(float(x), 4) for x in p.cumsum(-1)]}.",
        )
    return "every dart hits its piece, also on the borders, and never a piece of length 0."


@checked
def heat(answer: Any) -> str:
    """heat(logits, tau): softmax of logits / tau, greedy for tau = 0, never NaN."""
    for shape, tau, seed in (((4,), 0.5, 1), ((2, 5), 3.0, 2), ((2, 3, 6), 0.3, 3), ((3, 3), 1, 4)):
        z = normal(*shape, seed=seed) * 2
        got = call(answer, z, tau, name="heat")
        what = f"heat(logits, {tau}) for logits of shape {shape}"
        expect_close(got, (z / tau).softmax(-1), what, mistakes=heat_mistakes(z, tau))
    for tau, why in (
        (0, "You divided by 0. In the limit the largest logit gets all: treat tau == 0 apart."),
        (2e-38, "The division made infinities. Take the largest logit away before you divide."),
    ):
        for shape, seed in (((5,), 5), ((2, 3, 4), 6)):
            z = normal(*shape, seed=seed) + 9
            got = expect_shape(
                call(answer, z, tau, name="heat"), shape, f"heat(logits, {tau}) of shape {shape}"
            )
            expect(bool(torch.isfinite(got).all()), f"tau = {tau} gives NaN. {why}")
            expect_close(got, one_hot(z), f"heat(logits, {tau})", mistakes={
                "For tau = 0 you gave the tokens equal chances. That is the other end, τ → ∞.":
                    torch.full_like(z, 1 / shape[-1]),
                "For tau = 0 you gave plain softmax. All belongs to the largest logit.":
                    z.softmax(-1),
                "For tau = 0 you gave the index of the largest logit in a one-hot of the wrong "
                "axis.": one_hot(z.transpose(0, -1)).transpose(0, -1),
            })  # fmt: skip
    z = torch.tensor([1.0, 1.000002, -1.0])
    expect_close(call(answer, z, 0, name="heat"), one_hot(z), "heat(logits, 0)", mistakes={
        "At tau = 0 the largest logit gets all, however small its lead. A small number added to "
        "tau is not enough: treat tau == 0 apart.": call(answer, z, 0, name="heat")})  # fmt: skip
    return "squared, levelled, and steady at both ends."


@checked
def nucleus(answer: Any) -> str:
    """nucleus(probabilities, p): (B, V) rows of which the likeliest tokens stay that reach p."""
    for shape, p, seed in (
        ((4, 6), 0.45, 1), ((2, 6), 0.8, 2), ((3, 9), 0.9, 3), ((1, 7), 0.35, 4),
    ):  # fmt: skip
        rows = (normal(*shape, seed=seed) * (0.7 if p > 0.5 else 0.3)).softmax(-1)
        right, wrong = nucleus_mistakes(rows, p)
        what = f"nucleus(probabilities, {p}) for shape {shape}"
        expect_close(call(answer, rows, p, name="nucleus"), right, what, mistakes=wrong)
    sure = (normal(3, 5, seed=5) * 0.3 + 4 * torch.eye(5)[[1, 4, 0]]).softmax(-1)
    got = call(answer, sure, 0.3, name="nucleus")
    expect(
        bool(torch.isfinite(expect_shape(got, (3, 5), "nucleus(probabilities, 0.3)")).all()),
        "Where the likeliest token alone has more than p you keep none, and 0 / 0 is NaN. The "
        "token that crosses p stays.",
    )
    expect_close(got, one_hot(sure), "nucleus(probabilities, 0.3) where one token has nearly all",
        mistakes={"You keep one token too many.": nucleus_mistakes(sure, 0.3)[1][
            "You keep one token too many: the one that crosses p is the last."]})  # fmt: skip
    exact = torch.tensor([[0.125, 0.5, 0.25, 0.125], [0.25, 0.25, 0.25, 0.25]])  # in binary
    got = expect_shape(call(answer, exact, 0.75, name="nucleus"), (2, 4), "nucleus")
    for row, kept in zip(exact, got.sort(-1, descending=True).values, strict=True):
        want = [2 / 3, 1 / 3, 0, 0] if row[1] == 0.5 else [1 / 3, 1 / 3, 1 / 3, 0]
        expect_close(kept, want, f"nucleus([{row.tolist()}], 0.75), sorted,", mistakes={
            "1/2 and 1/4 reach p = 0.75 exactly: no third token is needed. A token goes if those "
            "before it hold p or more: >=.": [4 / 7, 2 / 7, 1 / 7, 0],
            "Four equally likely tokens, and three of them reach p = 0.75: the fourth goes. Count "
            "tokens; a limit that a probability must reach keeps all that are equal.": [0.25] * 4,
        })  # fmt: skip
    expect_close(call(answer, sure, 1.0, name="nucleus"), sure, "nucleus(probabilities, 1.0)")
    return "as many as are needed, in their own places."


@checked
def cache_size(answer: Any) -> str:
    """cache_size(n_layer, n_head, n_embd, T, B): bytes of a full KV cache in 16-bit numbers."""
    for L, H, C, T, B in ((7, 12, 768, 1024, 3), (5, 4, 96, 100, 3), (3, 6, 48, 7, 5)):
        got = call(answer, L, H, C, T, B, name="cache_size")
        right = 4 * L * C * T * B
        expect_close(got, right, f"cache_size({L}, {H}, {C}, {T}, {B})", mistakes={
            "This is half of it: either you count keys and forget the values, or you count numbers "
            "and not bytes (a 16-bit number has 2).": right / 2,
            "This is a quarter of it: keys and values, and 2 bytes a number.": right / 4,
            "This is twice too much: a 16-bit number has 2 bytes, not 4.": right * 2,
            "You multiplied by the heads, but a head has only n_embd / n_head numbers.": right * H,
            "You counted one head only.": right / H,
            "You counted one layer only: each has keys and values of its own.": right / L,
            "You counted one text only: each has its own cache.": right / B,
            "You counted one token only: the cache keeps all T.": right / T,
            "T stands twice in your formula. The weights (T, T) are not kept.": right * T,
            "This is 8 times too much: bytes are asked for, not bits.": right * 8,
            "You kept the queries, too. Nobody asks for old ones.": right * 3 / 2,
            "This is in millions of bytes. The task asks for bytes.": right / 1e6,
            "You counted one number a head. A head has n_embd / n_head numbers.": right * H / C,
            "n_embd stands twice in your formula. Keys are kept, not the weights that make them.":
                right * C,
        })  # fmt: skip
    return "2 · layers · texts · tokens · n_embd numbers of 2 bytes."


@checked
def attend_new(answer: Any) -> str:
    """attend_new(q, k, v, old_k, old_v): outputs of T new tokens, and the cache with them."""
    for B, H, T, S, hs, seed in (
        (2, 3, 3, 5, 4, 10), (1, 2, 1, 4, 3, 20), (2, 1, 4, 0, 5, 30), (2, 2, 3, 3, 4, 40),
    ):  # fmt: skip
        q, k, v = (normal(B, H, T, hs, seed=seed + i) for i in range(3))
        old_k, old_v = (normal(B, H, S, hs, seed=seed + i) for i in (3, 4))
        got = call(answer, q, k, v, old_k, old_v, name="attend_new")
        if not isinstance(got, (tuple, list)) or len(got) != 3:
            raise NotYet("attend_new should return three tensors: (out, all_k, all_v).")
        what = f"for {T} new tokens after {S} old ones"
        expect(
            not isinstance(got[0], (tuple, list)),
            "`attention` gives two things, the outputs and the weights: `out, _ = attention(...)`.",
        )
        right = with_cache(q, k, v, old_k, old_v)
        both = {"k": torch.cat((old_k, k), 2), "v": torch.cat((old_v, v), 2)}
        wrong = {"The outputs come first: return (out, all_k, all_v).": both["k"]}
        wrong |= cache_mistakes(q, k, v, old_k, old_v)
        expect_close(got[0], right, f"out, {what},", mistakes=wrong)
        for name, given, new, old in (("k", got[1], k, old_k), ("v", got[2], v, old_v)):
            expect_close(given, both[name], f"all_{name}, {what},", mistakes={
                "all_k and all_v are swapped: return (out, all_k, all_v).":
                    both["v" if name == "k" else "k"],
                f"all_{name}: the new tokens stand before the old ones. They are read later: the "
                "old ones come first.": torch.cat((new, old), 2),
                f"all_{name} holds the new tokens only: the next call would have forgotten the "
                "rest.": new,
                f"all_{name} is the old cache: the new tokens are missing, and the next call would "
                "not see them.": old,
            })  # fmt: skip
    return "the last rows of the full attention, and nothing worked out twice."


@checked
def write_greedily(answer: Any) -> str:
    """write_greedily(model, ids, n_tokens, block_size): (B, T) to (B, T + n), cropped to fit."""
    for B, T, n, window, seed in (
        (2, 3, 9, 6, 1), (3, 9, 4, 5, 2), (1, 1, 5, 8, 3), (2, 4, 3, 4, 4),
    ):  # fmt: skip
        ids = torch.randint(11, (B, T), generator=torch.Generator().manual_seed(seed))
        witness = Witness(11, seed)
        got = call(answer, witness, ids, n, window, name="write_greedily")
        want = Witness(11, seed).write(ids, n, window)
        what = f"write_greedily of {n} tokens after {T}, with a window of {window}"
        what_was_read(witness.calls, want, T, window, what)
        length = [1, *tensor(got, what).shape][-1]
        expect_close(got, want, what, mistakes={
            "You return the new tokens without the prompt.": want[:, T:],
            "You cropped the text itself, so its beginning is lost. Crop what the model reads, and "
            "keep `ids` whole.": want[:, -length:],
            "The logits are those of the first place. What comes next is told at the last one: "
            "`[:, -1]`.": Witness(11, seed).write(ids, n, window, place=0),
            "You take the least likely token: argmax, not argmin.":
                Witness(11, seed).write(ids, n, window, sign=-1),
        })  # fmt: skip
    got = call(answer, Witness(11, 5), torch.tensor([[1, 2, 3]]), 0, 8, name="write_greedily")
    expect_close(got, [[1, 2, 3]], "n_tokens=0")
    return "it always reads as much as fits, and never more."
