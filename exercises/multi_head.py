"""The exercises of the chapter on many heads."""

import math
import re

import torch

from exercises.check import (
    NotAttempted,
    NotYet,
    checked,
    exercise,
    expect,
    expect_no_helpers,
    normal,
    reported,
)

# --- 6.1 ------------------------------------------------------------------------------------------


def apart(maps):
    """The differences of all pairs of heads, (B, H, H, T, S)."""
    return maps[:, :, None] - maps[:, None]


def half(maps):
    """The distances of all rows of all pairs, (B, H, H, T)."""
    return apart(maps).abs().sum(-1) / 2


@exercise(
    inputs=[
        ((2 * normal(*shape, seed=seed)).softmax(-1),)
        for seed, shape in enumerate(
            [(3, 4, 5, 5), (2, 2, 3, 6), (5, 3, 4, 2), (1, 3, 3, 3), (2, 1, 4, 4), (2, 3, 1, 4)], 1
        )
    ]
    + [(torch.eye(2)[None, :, None],)],  # two heads that look at different tokens
    praise="0 for a head and itself, 1 for heads that share nothing.",
)
def head_distances(maps):
    """head_distances(maps): (B, H, T, S) weights to an (H, H) table of mean distances."""
    return half(maps).mean((0, 3))


distances = head_distances.right
head_distances.mistakes = {
    "Twice too large: the ½ is missing. Where one head has more weight, the other has less, and "
    "both are counted.": lambda maps: 2 * distances(maps),
    "All 0: without the absolute value the differences cancel, because all rows sum to 1.": (
        lambda maps: apart(maps).sum(-1).mean((0, 3)) / 2,
        lambda maps: apart(maps).sum(-1).abs().mean((0, 3)) / 2,
    ),
    "You average over the keys. Sum over them: the distance of two rows is ½ Σ |difference|. "
    "Then average over rows and texts.": (
        lambda maps: apart(maps).abs().mean((0, 3, 4)) / 2,
        lambda maps: apart(maps).abs().mean((0, 3, 4)),
    ),
    "You sum over the rows, over the texts, or over both. Average over both.":
        (lambda maps: half(maps).sum(3).mean(0), lambda maps: half(maps).mean(3).sum(0),
         lambda maps: half(maps).sum((0, 3)), lambda maps: 2 * half(maps).sum((0, 3))),
    "You used the first text only: average over the batch.": lambda maps: distances(maps[:1]),
    "You used one row only: average over all rows.": (
        lambda maps: distances(maps[:, :, :1]), lambda maps: distances(maps[:, :, -1:])),
    "You took the distance of the mean maps. Two heads that differ in each text may be equal "
    "on average: first the distances, then the mean.": (
        lambda maps: distances(maps.mean(0, keepdim=True)),
        lambda maps: distances(maps.mean(2, keepdim=True)),
        lambda maps: distances(maps.mean((0, 2), keepdim=True)),
    ),
    "This is the root of the squared differences (Euclid). Use ½ Σ |difference|.": (
        lambda maps: apart(maps).norm(dim=-1).mean((0, 3)),
        lambda maps: apart(maps).norm(dim=-1).mean((0, 3)) / 2,
        lambda maps: apart(maps).norm(dim=(-2, -1)).mean(0),
    ),
    "These are squared differences. Use the absolute value: ½ Σ |difference|.": (
        lambda maps: apart(maps).square().sum(-1).mean((0, 3)),
        lambda maps: apart(maps).square().sum(-1).mean((0, 3)) / 2,
        lambda maps: apart(maps).square().mean((0, 3, 4)),
    ),
    "You took the largest difference. Sum over the keys, and take the mean over texts and rows.":
        (lambda maps: half(maps).amax((0, 3)), lambda maps: half(maps).amax(3).mean(0),
         lambda maps: apart(maps).abs().amax(-1).mean((0, 3))),
    "You summed over the queries. The distance of two rows is a sum over the keys, dim=-1.":
        lambda maps: apart(maps).abs().sum(-2).mean((0, 3)) / 2,
    "One number comes back. Keep the pairs of heads apart: an (H, H) table.":
        lambda maps: half(maps).mean(),
    "You compare the texts, or the rows. Compare the heads, dim 1: an (H, H) table.":
        tuple(lambda maps, dim=dim: distances(maps.transpose(1, dim)) for dim in (0, 2)),
    "Halved twice: once is enough.": lambda maps: distances(maps) / 2,
    "This is the similarity of the heads. Their distance is 1 minus it.":
        lambda maps: 1 - distances(maps),
    "The texts or the rows are still there: average over both.":
        (lambda maps: half(maps).mean(3), lambda maps: half(maps).mean(0),
         lambda maps: half(maps).mean(0).movedim(2, 0), half),
    "You filled in only half of the table. A distance is the same in both directions.":
        (lambda maps: distances(maps).triu(), lambda maps: distances(maps).tril()),
}  # fmt: skip

# --- 6.2: run the experiment and decide -----------------------------------------------------------


@checked
def twins(answer):
    """twins: the worse of the two scores of two heads that start alike, and the letter of why."""
    wanted = 'Set twins to a pair: the worse of the two scores, and a letter: (0.21, "a").'
    score, letter = reported(answer, (0.21, "a"), wanted)
    expect(letter in ("a", "b", "c"), 'The second of the pair should be "a", "b" or "c".')
    expect(
        0 <= score <= 1,
        "A score is the fraction of right answers, between 0 and 1: 97% is 0.97.",
    )
    expect(
        score > 0.9,
        "Too low for twins that were trained for 400 steps. Copy all three matrices of head 0 into "
        "head 1 *before* the training, return the layer from a function, and pass that function to "
        "recall_trained. Copy the numbers, with `copy_`: after `=` the two heads are one, which "
        "scores about 0.2. (Or is this the fraction of *wrong* answers?)",
    )
    expect(
        letter != "a",
        "If the heads stayed equal, both would collect the same blend, as one head does, and "
        "one of the questions would be answered wrongly most of the time. Yours answers both.",
    )
    expect(
        letter != "c",
        "Rounding alone needs more than 200 steps to make heads differ, if it does at all (the "
        "study). Score the twins after 50 steps: they have differed for long. What differs from "
        "the first step on?",
    )
    return "Identical heads stay identical only if everything after them is identical, too."


# --- 6.3 ------------------------------------------------------------------------------------------

INTERLEAVED = (
    "The heads are in the wrong order, in the split or the merge: neighbouring features belong to "
    "different heads (…, hs, H). Head h owns the features h·hs … (h+1)·hs − 1: (…, H, hs)."
)
ALONG_T = (
    "You cut along time: each of your heads holds some of the tokens with all their features. "
    "Every head needs all tokens and hs of the features: first (B, T, H, hs), then swap T and H."
)
SCRAMBLE = (
    "The tokens are scrambled: you reshaped (B, H, T, hs) straight to (B, T, C), and each row now "
    "holds several tokens of one head. Swap H and T first: `transpose(1, 2)`."
)
BEHIND = (
    "The heads of one token attend to each other, because attention works on the last two "
    "dimensions. Swap H and T after the split, (B, H, T, hs)."
)
OVER_HEADS = (
    "Your softmax runs over the heads (dim 1), so the heads compete for each pair of tokens, and "
    "where all of them are masked it gives NaN. Each head has its own distribution: dim=-1."
)


def split(x, n_head):
    return behind_the_tokens(x, n_head).transpose(1, 2)


def merge(out):
    return out.transpose(1, 2).flatten(2)


def along_t(x, H):
    B, T, C = x.shape
    return x.reshape(B, H, T, C // H)


def interleaved(x, H):
    return x.unflatten(-1, (-1, H)).permute(0, 3, 1, 2)


def behind_the_tokens(x, H):
    return x.unflatten(-1, (H, -1))


def scramble(out):
    B, H, T, hs = out.shape
    return out.reshape(B, T, H * hs)


def merge_interleaved(out):
    return out.permute(0, 2, 3, 1).flatten(2)


def in_three(made):
    """q, k and v by columns: the first C, the next, the last."""
    return made.chunk(3, -1)


def attend(q, k, v, mask=None, scale=None, dim=-1, hide=-math.inf, late=False):
    """Attention with the mistakes that can be made in it; T and S may differ.

    mask: torch.tril leaves the past; hide: what stands in its gaps; late: masked after the softmax.
    """
    scores = q @ k.mT / (q.shape[-1] ** 0.5 if scale is None else scale)
    if mask is None:
        return scores.softmax(dim) @ v
    allowed = mask(torch.ones(scores.shape[-2:])) > 0
    if late:
        return scores.softmax(dim).masked_fill(~allowed, 0) @ v
    return scores.masked_fill(~allowed, hide).softmax(dim) @ v


def run(mask=torch.tril, thirds=in_three, uses="qkvo", cut=split, join=merge, scale=None, **how):
    """Fused multi-head attention with one mistake.

    thirds: how q, k and v are cut out of x @ W_qkv; uses: what stands in the places of q, k, v and
    W_o: "kqvo" swaps two, "O" is transposed, "1" is none; cut, join: how heads are split and
    merged; scale: of C and hs.
    """

    def answer(x, W_qkv, W_o, H):
        C = len(W_o)
        named = dict(zip("qkv", thirds(x @ W_qkv), strict=True)) | {"o": W_o, "O": W_o.T}
        how["scale"] = scale and scale(C, C // H)
        out = join(attend(*(cut(named[name], H) for name in uses[:3]), mask=mask, **how))
        return out if uses[3] == "1" else out @ named[uses[3]]

    return answer


@exercise(
    # T = H second and third: there heads and tokens can be mixed up without an error. Their size hs
    # is not H, so that no scale is right by chance.
    inputs=[
        (normal(B, T, C, seed=10 * B + T), normal(C, 3 * C, seed=10 * T + C) * C**-0.5,
         normal(C, C, seed=T + C) * C**-0.5, H)
        for B, T, C, H in [
            (2, 6, 8, 2), (3, 3, 15, 3), (2, 4, 12, 4), (1, 3, 6, 3), (2, 5, 4, 1), (1, 1, 4, 2),
            (1, 3, 4, 4),  # heads of size 1
        ]
    ],
    praise="One product for all queries, keys and values of all heads.",
    clash="Are q, k and v (B, H, T, hs), and the mask (T, T)?",
    backward=True,
)  # fmt: skip
def fused_multi_head(x, W_qkv, W_o, n_head):
    """fused_multi_head(x, W_qkv, W_o, n_head): causal self-attention with many heads, (B, T, C)."""
    if x.shape[-1] % n_head:
        raise ValueError(f"{x.shape[-1]} features cannot be shared by {n_head} heads")
    return run()(x, W_qkv, W_o, n_head)


def head_by_head(made, H):
    """q, k and v as if each head had its own three pieces side by side, cut back to (B, T, C)."""
    return tuple(part.flatten(2) for part in made.unflatten(-1, (H, -1)).chunk(3, -1))


fused_multi_head.mistakes = {
    "The output projection is missing: multiply the merged heads by W_o.": run(uses="qkv1"),
    SCRAMBLE: run(join=scramble),
    "The output projection is missing, and the tokens are scrambled: " + SCRAMBLE:
        run(uses="qkv1", join=scramble),
    ALONG_T: (run(cut=along_t), run(cut=along_t, join=scramble)),
    INTERLEAVED: (run(cut=interleaved), run(cut=interleaved, join=merge_interleaved),
                  run(join=merge_interleaved)),
    "The last head comes first when you merge. Head 0 owns the first hs features.":
        run(join=lambda out: merge(out.flip(1))),
    # The mask stays (T, T), so that this fails where T is not H.
    BEHIND: lambda x, *rest: run(
        mask=lambda _: torch.ones(x.shape[1], x.shape[1]).tril(),
        cut=behind_the_tokens,
        join=lambda out: out.flatten(2),
    )(x, *rest),
    "These are the outputs of the single heads, or their sum: put them side by side, then multiply "
    "by W_o.":
        (run(uses="qkv1", join=lambda out: out), run(uses="qkv1", join=lambda out: out.sum(1))),
    "You squeeze dimensions away: a single text or token keeps its own, of length 1.":
        lambda *a: run()(*a).squeeze(),
    "You divide the scores by √C, the whole width. A head's dot product has hs = C/H terms: "
    "divide by √hs, or the weights are too even.": run(scale=lambda C, hs: C**0.5),
    "The scale is missing, or inverted: divide the scores by √hs.":
        (run(scale=lambda C, hs: 1), run(scale=lambda C, hs: hs**-0.5)),
    "You divide by hs, or scale twice (`attention` divides by √hs already). Divide by √hs, once.":
        run(scale=lambda C, hs: hs),
    "You divide by √H, the root of the number of heads. It is their size that counts: √hs.":
        run(scale=lambda C, hs: (C / hs) ** 0.5),
    OVER_HEADS: (run(dim=1), run(mask=None, dim=1)),
    "Your softmax runs over dim -2, the queries: the columns sum to 1, not the rows. Use "
    "dim=-1.": run(dim=-2),
    "This is one head of width C: q, k and v were never split into n_head heads.": (
        lambda *a: run()(*a[:-1], 1),
        lambda *a: run(scale=lambda C, hs: (C / a[-1]) ** 0.5)(*a[:-1], 1),
    ),
    "You took n_head for the size of a head. It is the number of heads: hs = C // n_head.":
        lambda *a: run()(*a[:-1], len(a[-2]) // a[-1]),
    "You cut into heads first, and each head into q, k and v. That is another layout of the same "
    "matrix: here the first C columns make the queries of all heads, the next the keys, the last "
    "the values.": lambda x, W, o, H: run(thirds=lambda made: head_by_head(made, H))(x, W, o, H),
    "You gave every third column to the queries. Theirs are the first C columns, then come the "
    "keys' and the values': `chunk(3, dim=-1)`.":
        run(thirds=lambda made: made.unflatten(-1, (-1, 3)).unbind(-1)),
    "The tokens are scrambled already in q, k and v: a reshape to (3, B, T, C) does not cut "
    "columns. Use `chunk(3, dim=-1)`.":
        run(thirds=lambda made: made.reshape(3, *made.shape[:2], -1).unbind(0)),
    "The thirds of the columns are mixed up: the first C make q, the next k, the last v.":
        tuple(run(uses=w + "o") for w in ("kqv", "qvk", "vkq", "kvq", "vqk")),
    "One third of the columns does the work of two: the first C make the queries, the next the "
    "keys, the last the values.":
        tuple(run(uses=w + "o") for w in ("qqv", "kkv", "qkk", "qkq", "qvv", "vkv", "qqq")),
    "You multiply by W_o.T. Here a projection is `x @ W`, W_o included.": run(uses="qkvO"),
    "You added x. The skip connection is for a later chapter: return the attention alone.":
        lambda *a: a[0] + run()(*a),
    "The future is not hidden: this is self-attention in a GPT, mask it with a lower triangle.":
        run(mask=None),
    "Your mask is the wrong way round: it hides the past and shows the future. Allowed is the "
    "lower triangle, with its diagonal.": (
        run(mask=torch.triu),
        run(mask=lambda ones: ones.triu(1)),
        run(mask=lambda ones: ones.triu(1), hide=-1e9),
    ),
    "Your mask hides each token from itself, too. The diagonal is allowed.":
        (run(mask=lambda ones: ones.tril(-1)), run(mask=lambda ones: ones.tril(-1), hide=-1e9)),
    "Your mask shows each token the next one: nothing above the diagonal is allowed.":
        (run(mask=lambda ones: ones.tril(1)), run(mask=lambda ones: ones.tril(1), hide=-1e9)),
    "You mask after the softmax, so the rows no longer sum to 1. Mask the scores, with −inf.":
        run(late=True),
    "You set the hidden scores to 0, and e⁰ = 1: they still get weight. Set them to −inf.":
        run(hide=0),
    "No token attends to another: these are its own values. Attention is missing.":
        lambda x, W, o, H: in_three(x @ W)[2] @ o,
}  # fmt: skip


@fused_multi_head.then
def _refuse_heads_that_do_not_fit(answer):
    expect_no_helpers(answer, fused_multi_head.inputs[0])
    for C, H in ((6, 4), (9, 2), (4, 8), (10, 4)):
        what = f"{C} features cannot be shared by {H} heads"
        try:
            got = answer(normal(2, 4, C, seed=5), normal(C, 3 * C, seed=6), normal(C, C, seed=7), H)
        except ValueError as error:
            expect(
                {str(C), str(H)} <= set(re.findall(r"\d+", str(error))),
                f"Your ValueError does not name both numbers, {C} and {H}: say what was given.",
            )
            continue
        except Exception as error:
            raise NotYet(
                f"{what}. Your function raises {type(error).__name__} instead of ValueError: check "
                "the numbers first."
            ) from None
        if got is ...:
            raise NotAttempted
        is_error = isinstance(got, ValueError) or got is ValueError
        expect(not is_error, "You return the ValueError. Write `raise` in place of `return`.")
        shape = getattr(got, "shape", None)
        given = f"returns {got!r:.40}" if shape is None else f"gives a tensor of shape {(*shape,)}"
        raise NotYet(
            f"{what}, but your function {given} without an error. Raise ValueError when n_head "
            "does not divide C."
        )
