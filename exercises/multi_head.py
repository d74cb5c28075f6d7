"""The exercises of the chapter on many heads."""

import math

import torch

from exercises.check import (
    NotAttempted,
    NotYet,
    call,
    checked,
    exercise,
    expect,
    expect_shape,
    normal,
)

# --- 6.1 and 6.2 ----------------------------------------------------------------------------------

INTERLEAVED = (
    "The heads are in the wrong order: you let neighbouring features belong to different heads "
    "(…, hs, H). Head h owns the features h·hs … (h+1)·hs − 1: (…, H, hs)."
)
ALONG_T = (
    "You cut along the time: each of your heads holds some of the tokens with all their features. "
    "Every head needs all tokens and hs of the features: first (B, T, H, hs), then swap T and H."
)
SCRAMBLE = (
    "The tokens are scrambled: you reshaped (B, H, T, hs) straight to (B, T, C), and each row now "
    "holds several tokens of one head. Swap H and T first: `transpose(1, 2)`."
)


def along_t(x, H):
    B, T, C = x.shape
    return x.reshape(B, H, T, C // H)


def interleaved(x, H):
    return x.unflatten(-1, (-1, H)).permute(0, 3, 1, 2)


def behind_the_tokens(x, H):
    return x.unflatten(-1, (H, -1))


@exercise(
    # H is not T, and not hs, but where that shows something: the second and the last.
    inputs=[
        (normal(B, T, C, seed=seed), H)
        for seed, (B, T, C, H) in enumerate(
            [(2, 4, 6, 2), (3, 6, 12, 4), (1, 5, 8, 8), (2, 3, 5, 1), (1, 1, 6, 3), (2, 4, 16, 4)]
        )
    ],
    praise="every head has all tokens and its own features.",
    backward=True,
)
def split_heads(x, n_head):
    """my_split(x, n_head): (B, T, C) to (B, H, T, hs); ValueError if H does not divide C."""
    if x.shape[-1] % n_head:
        raise ValueError(f"{x.shape[-1]} features cannot be shared by {n_head} heads")
    return behind_the_tokens(x, n_head).transpose(1, 2)


split = split_heads.right
split_heads.mistakes = {
    ALONG_T: along_t,
    INTERLEAVED: interleaved,
    "The heads stand behind the tokens, (B, T, H, hs). Attention works on the last two "
    "dimensions, and they must be T and hs: swap dimensions 1 and 2.": behind_the_tokens,
    "Your last two dimensions are (hs, T). They must be (T, hs).": lambda x, H: split(x, H).mT,
    "The heads come first, (H, B, T, hs). They stand behind the batch: (B, H, T, hs).":
        lambda x, H: split(x, H).transpose(0, 1),
    "Batch and heads are one dimension in yours. Keep both: (B, H, T, hs).":
        lambda x, H: split(x, H).flatten(0, 1),
    "You took n_head for the size of a head. It is their number: hs = C // n_head.": (
        lambda x, H: split(x, x.shape[-1] // H),
        lambda x, H: behind_the_tokens(x, x.shape[-1] // H),
    ),
    "Head 0 owns the first hs features: your heads come in the opposite order.":
        lambda x, H: split(x, H).flip(1),
    "Every head has all C features in yours. They share them: hs = C // H each.":
        lambda x, H: x[:, None].expand(-1, H, -1, -1),
    "This is the first head alone.":
        (lambda x, H: split(x, H)[:, 0], lambda x, H: split(x, H)[:, :1]),
    "You cut the time into n_head pieces. Cut the features: every head sees all T.":
        lambda x, H: x.unflatten(1, (H, -1)),
    "You squeeze dimensions away: a single text, token or feature keeps its own, of length 1.":
        lambda x, H: split(x, H).squeeze(),
    "You gave back x as it is.": lambda x, H: x,
}  # fmt: skip


@split_heads.then
def _refuse_heads_that_do_not_fit(answer):
    for C, H in ((6, 4), (9, 2), (4, 8), (10, 4)):
        what = f"{C} features cannot be shared by {H} heads"
        try:
            got = answer(normal(2, 4, C, seed=5), H)
        except ValueError as error:
            expect(
                bool(str(error)),
                "Your ValueError has no text: say what was given, and what would be right.",
            )
            continue
        except Exception as error:
            raise NotYet(
                f"{what}. What your function raises then is {type(error).__name__}: check the "
                "numbers first, and raise ValueError."
            ) from None
        if got is ...:
            raise NotAttempted
        is_error = isinstance(got, ValueError) or got is ValueError
        expect(not is_error, "You return the ValueError. Write `raise` in place of `return`.")
        shape = getattr(got, "shape", None)
        given = f"returns {got!r:.40}" if shape is None else f"gives a tensor of shape {(*shape,)}"
        raise NotYet(
            f"{what}, but your function {given} without a word. Raise ValueError when n_head does "
            "not divide C."
        )


@exercise(
    inputs=[
        (normal(*shape, seed=seed),)
        for seed, shape in enumerate(
            [(2, 3, 4, 5), (1, 2, 6, 2), (3, 4, 2, 4), (2, 1, 3, 4), (2, 3, 1, 2), (2, 3, 3, 3)]
        )
    ],
    praise="every token has its heads side by side.",
    backward=True,
)
def merge_heads(out):
    """my_merge(out): (B, H, T, hs) to (B, T, H·hs), head 0's features first."""
    return out.transpose(1, 2).flatten(2)


merge = merge_heads.right


def scramble(out):
    B, H, T, hs = out.shape
    return out.reshape(B, T, H * hs)


def merge_interleaved(out):
    return out.permute(0, 2, 3, 1).flatten(2)


merge_heads.mistakes = {
    SCRAMBLE: scramble,
    INTERLEAVED: merge_interleaved,
    "The last head comes first. Head 0 owns the first hs features.": lambda out: merge(out.flip(1)),
    "You averaged the heads. They stand side by side: (B, T, H·hs).": lambda out: out.mean(1),
    "You added the heads. They stand side by side: (B, T, H·hs).": lambda out: out.sum(1),
    "This is the first head alone. All stand side by side: (B, T, H·hs).":
        lambda out: out[:, 0],
    "You put the heads one after the other along the time: (B, H·T, hs). They stand side by "
    "side in the features: (B, T, H·hs).": (
        lambda out: out.flatten(1, 2),
        lambda out: out.transpose(1, 2).flatten(1, 2),
    ),
    "H and T are swapped, but the heads are not merged yet: `.flatten(2)`.":
        lambda out: out.transpose(1, 2),
    "You squeeze dimensions away: a single text or token keeps its own, of length 1.":
        lambda out: merge(out).squeeze(),
    "You merged the tokens: each head has one long row, (B, H, T·hs). Swap H and T first.":
        lambda out: out.flatten(2),
    "You merged the texts, too. Flatten from dimension 2 on: `.flatten(2)`.":
        (lambda out: merge(out).flatten(0, 1), lambda out: merge(out).flatten()),
    "You gave back out as it is.": lambda out: out,
}  # fmt: skip

# --- 6.3 and 6.4 ----------------------------------------------------------------------------------


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


def heads(x, source, *W, H, uses="qkvo", cut=split, join=merge, scale=None, **how):
    """Multi-head attention with one mistake.

    uses: which matrices stand in the places of W_q, W_k, W_v and W_o: "kqvo" swaps two, a capital
    is transposed, "1" is none. cut, join: how heads are split and merged; scale: of C and hs.
    """
    C = len(W[0])
    named = dict(zip("qkvo", W, strict=True)) | {"1": torch.eye(C)}
    q, k, v, o = (named[name.lower()].T if name.isupper() else named[name] for name in uses)
    how["scale"] = scale and scale(C, C // H)
    out = join(attend(*(cut(y, H) for y in (x @ q, source @ k, source @ v)), **how))
    return out if uses[3] == "1" else out @ o


def own(mask=torch.tril, **how):
    return lambda x, *W_H: heads(x, x, *W_H[:-1], H=W_H[-1], mask=mask, **how)


def other(**how):
    return lambda x, source, *W_H: heads(x, source, *W_H[:-1], H=W_H[-1], **how)


def matrices(C, seed):
    return (normal(C, C, seed=seed + i) * C**-0.5 for i in range(2, 6))


@exercise(
    # T = H third: there heads and tokens can be mixed up without an error.
    inputs=[
        (normal(B, T, C, seed=10 * B + T), *matrices(C, seed=10 * T + C), H)
        for B, T, C, H in [
            (2, 6, 8, 2), (3, 4, 12, 4), (2, 4, 16, 4), (1, 3, 6, 3), (2, 5, 4, 1), (1, 1, 4, 2)
        ]
    ],
    praise="equal to the formula, for three shapes.",
    clash="Are q, k and v (B, H, T, hs), and the mask (T, T)?",
    backward=True,
)  # fmt: skip
def multi_head(x, W_q, W_k, W_v, W_o, n_head):
    """multi_head(x, W_q, W_k, W_v, W_o, n_head): causal self-attention, (B, T, C)."""
    return heads(x, x, W_q, W_k, W_v, W_o, H=n_head, mask=torch.tril)


@exercise(
    # Equal lengths, too: a mistake can be named there that is only an error elsewhere.
    inputs=[
        (normal(B, T, C, seed=B), normal(B, S, C, seed=S + 9), *matrices(C, seed=T + 70), H)
        for B, T, S, C, H in [
            (2, 4, 4, 8, 2), (3, 2, 5, 6, 3), (1, 6, 3, 8, 4), (2, 4, 4, 16, 4), (2, 3, 1, 4, 2),
            (2, 1, 4, 6, 2)
        ]
    ],
    praise="one row for each query, whatever the length of the source.",
    clash="Queries have T rows, keys and values S: the scores are (B, H, T, S).",
    backward=True,
)  # fmt: skip
def cross_attention(x, source, W_q, W_k, W_v, W_o, n_head):
    """cross_attention(x, source, W_q, W_k, W_v, W_o, n_head): (B, T, C), for any S."""
    return heads(x, source, W_q, W_k, W_v, W_o, H=n_head)


BEHIND = (
    "The heads of one token listen to each other in yours: attention works on the last two "
    "dimensions. Swap H and T after the split, (B, H, T, hs)."
)
OVER_HEADS = (
    "Your softmax runs over the heads (dim 1), so the heads compete for each pair of tokens, and "
    "where all of them are masked it gives NaN. Each head has its own distribution: dim=-1."
)


def in_both(run):
    """The mistakes of many heads, whoever is asked. run: `own` or `other`."""
    return {
        "The output projection is missing: multiply the merged heads by W_o.": run(uses="qkv1"),
        SCRAMBLE: run(join=scramble),
        "The output projection is missing, and the tokens are scrambled: " + SCRAMBLE:
            run(uses="qkv1", join=scramble),
        ALONG_T: (run(cut=along_t), run(cut=along_t, join=scramble)),
        INTERLEAVED: (run(cut=interleaved), run(cut=interleaved, join=merge_interleaved)),
        INTERLEAVED + " (In the merge.)": run(join=merge_interleaved),
        "The last head comes first when you merge. Head 0 owns the first hs features.":
            run(join=lambda out: merge(out.flip(1))),
        BEHIND: run(cut=behind_the_tokens, join=lambda out: out.flatten(2)),
        "These are the outputs of the single heads: merge them, then multiply by W_o.":
            run(uses="qkv1", join=lambda out: out),
        "You added the heads. They stand side by side, then comes W_o.":
            run(uses="qkv1", join=lambda out: out.sum(1)),
        "You squeeze dimensions away: a single text or token keeps its own, of length 1.":
            lambda *a: run()(*a).squeeze(),
        "You divide the scores by √C, the whole width. A head's dot product has hs = C/H terms: "
        "divide by √hs, or the weights are too even.": run(scale=lambda C, hs: C**0.5),
        "The scale is missing: divide the scores by √hs.": run(scale=lambda C, hs: 1),
        "You scale twice: `attention` divides by √hs already. (Or you divide by hs: its root.)":
            run(scale=lambda C, hs: hs),
        "You multiply by √hs. Divide by it.": run(scale=lambda C, hs: hs**-0.5),
        "You divide by √H, the root of the number of heads. It is their size that counts: √hs.":
            run(scale=lambda C, hs: (C / hs) ** 0.5),
        OVER_HEADS: run(dim=1),
        "Your softmax runs over dim -2, the queries: the columns sum to 1, not the rows. Use "
        "dim=-1.": run(dim=-2),
        "This is one head of width C: q, k and v were never split into n_head heads.": (
            lambda *a: run()(*a[:-1], 1),
            lambda *a: run(scale=lambda C, hs: (C / a[-1]) ** 0.5)(*a[:-1], 1),
        ),
        "You took n_head for the size of a head. It is their number: hs = C // n_head.":
            lambda *a: run()(*a[:-1], len(a[-2]) // a[-1]),
        "Queries and keys are swapped: queries are made by W_q, keys by W_k.": run(uses="kqvo"),
        "Keys and values are swapped: keys are made by W_k, values by W_v.": run(uses="qvko"),
        "Queries and values are swapped: queries are made by W_q, values by W_v.": run(uses="vkqo"),
        "One matrix does the work of two: W_q makes the queries, W_k the keys, W_v the values.":
            tuple(run(uses=w + "o") for w in ("qqv", "kkv", "qkk", "qkq", "qvv", "vkv", "qqq")),
        "The queries are not projected: x @ W_q.": run(uses="1kvo"),
        "The keys are not projected: W_k is missing.": run(uses="q1vo"),
        "The values are not projected: W_v is missing.": run(uses="qk1o"),
        "You multiply by the transposed matrices. Here a projection is `x @ W`.":
            tuple(run(uses=w) for w in ("QKVO", "QKVo", "Qkvo", "qKvo", "qkVo", "QKvo")),
        "You multiply by W_o.T. Here a projection is `x @ W`, W_o included.": run(uses="qkvO"),
        "You added x. The skip is for a later chapter: here only the attention is asked for.":
            lambda *a: a[0] + run()(*a),
    }  # fmt: skip


multi_head.mistakes = in_both(own) | {
    # The mask stays (T, T), so that this fails where T is not H.
    BEHIND: lambda x, *rest: own(
        mask=lambda _: torch.ones(x.shape[1], x.shape[1]).tril(),
        cut=behind_the_tokens,
        join=lambda out: out.flatten(2),
    )(x, *rest),
    "The future is not hidden: this is self-attention in a GPT, mask it with causal_mask(T).":
        own(mask=None),
    OVER_HEADS + " (And mask.)": own(mask=None, dim=1),
    "Your mask is the wrong way round: it hides the past and shows the future. Allowed is the "
    "lower triangle, with its diagonal: causal_mask(T).": (
        own(mask=torch.triu),
        own(mask=lambda ones: ones.triu(1)),
        own(mask=lambda ones: ones.triu(1), hide=-1e9),
    ),
    "Your mask hides each token from itself, too. The diagonal is allowed: causal_mask(T).":
        (own(mask=lambda ones: ones.tril(-1)), own(mask=lambda ones: ones.tril(-1), hide=-1e9)),
    "You mask after the softmax, so the rows no longer sum to 1. Mask the scores, with −inf.":
        own(late=True),
    "The hidden scores are 0 in yours, and e⁰ = 1: they still count. Hide them with −inf.":
        own(hide=0),
    "No token listens to another: these are its own values. Attention is missing.":
        lambda x, q, k, v, o, H: x @ v @ o,
}  # fmt: skip


def asking(made):
    """cross_attention with other queries, keys and values: what `made` makes of (x, source, W…)."""

    def wrong(x, source, *W_H):
        *W, o, H = W_H
        return merge(attend(*(split(y, H) for y in made(x, source, *W)))) @ o

    return wrong


across, alone = cross_attention.right, multi_head.right
cross_attention.mistakes = in_both(other) | {
    "You applied the causal mask. In cross-attention the source is complete before the first "
    "query asks, and place i of x says nothing about place i of the source: no mask.": (
        other(mask=torch.tril),
        other(mask=lambda ones: torch.ones(len(ones), len(ones)).tril()),
    ),
    "The roles are swapped: your output has a row for each token of the source. The queries come "
    "from x, and the output follows the queries; keys and values come from the source.": (
        lambda x, source, *rest: across(source, x, *rest),
        lambda x, source, *rest: other(mask=torch.tril)(source, x, *rest),
    ),
    "The source is never used: this is self-attention of x. Keys and values come from it.":
        lambda x, source, *rest: across(x, x, *rest),
    "The source is never used: this is self-attention of x. Keys and values come from it. And no "
    "mask.": lambda x, source, *rest: alone(x, *rest),
    "The queries come from the source, too: it asks itself. Here x asks: q = x @ W_q.": (
        lambda x, source, *rest: across(source, source, *rest),
        lambda x, source, *rest: alone(source, *rest),
    ),
    "The keys come from x. What is asked is the source: k = source @ W_k.":
        asking(lambda x, source, q, k, v: (x @ q, x @ k, source @ v)),
    "The values come from x. What is handed over is the source's: v = source @ W_v.":
        asking(lambda x, source, q, k, v: (x @ q, source @ k, x @ v)),
    "Queries and keys are swapped in the scores. x asks the source: q @ kᵀ, with q = x @ W_q.":
        asking(lambda x, source, q, k, v: (source @ k, x @ q, source @ v)),
    "You put the source behind x, so x also asks itself. Keys and values come from the source "
    "alone.": lambda x, source, *rest: across(x, torch.cat([x, source], 1), *rest),
}  # fmt: skip

# --- 6.5 ------------------------------------------------------------------------------------------

# First a number of heads that is no number of matrices.
SIZES = [(11, 15, 5), (3, 8, 4), (7, 12, 12), (16, 32, 4), (10, 12, 3), (5, 30, 6)]


@exercise(inputs=SIZES, tolerance=1e-9)
def parameters(T, C, n_head):
    """The first number of `cost`."""
    return 4 * C * C


parameters.called = "the parameters of cost"
parameters.mistakes = {
    "Parameters: you counted three matrices. The output projection is the fourth.":
        lambda T, C, H: 3 * C * C,
    "Parameters: you multiplied by the number of heads, but each head's matrices are only "
    "(C, hs), and H·hs is C.": tuple(lambda T, C, H, n=n: n * C * C * H for n in (4, 3, 1)),
    "Parameters: you multiplied W_q, W_k and W_v by the number of heads, but each head's are only "
    "(C, hs), and H·hs is C.": lambda T, C, H: (3 * H + 1) * C * C,
    "Parameters: these are those of one head, three matrices (C, hs).":
        lambda T, C, H: 3 * C * C // H,
    "Parameters: you counted one head for all, with an output (hs, C).":
        lambda T, C, H: 4 * C * C // H,
    "Parameters: there are no biases here.":
        (lambda T, C, H: 4 * C * C + 4 * C, lambda T, C, H: 4 * C * C + C),
    "Parameters: you counted one matrix. There are four: W_q, W_k, W_v, W_o.":
        lambda T, C, H: C * C,
    "Parameters: the tokens share the matrices, however many they are: there is no T in it.":
        lambda T, C, H: 4 * T * C * C,
    "Parameters: a matrix (C, C) has C·C numbers, not C + C or C.":
        (lambda T, C, H: 4 * C, lambda T, C, H: 8 * C),
    "The order is the other way round: first the parameters, then the multiply-adds.":
        lambda T, C, H: 4 * T * C * C + 2 * T * T * C,
}  # fmt: skip


@exercise(inputs=SIZES, tolerance=1e-9)
def multiply_adds(T, C, n_head):
    """The second number of `cost`."""
    return 4 * T * C * C + 2 * T * T * C


def bill(*, project=4, pairs=2):
    """multiply_adds with other counts; pairs: the number of times T²C, or a function of T, C, H."""
    if not callable(pairs):
        return lambda T, C, H: project * T * C * C + pairs * T * T * C
    return lambda T, C, H: project * T * C * C + pairs(T, C, H)


multiply_adds.called = "the multiply-adds of cost"
multiply_adds.mistakes = {
    "Multiply-adds: you counted the scores, but not the weighted sums of the values.":
        bill(pairs=1),
    "Multiply-adds: you left out the four projections.":
        (bill(project=0), bill(project=0, pairs=1)),
    "Multiply-adds: you left out the scores and the weighted sums.": bill(pairs=0),
    "Multiply-adds: the output projection is missing.": (bill(project=3), bill(project=3, pairs=1)),
    "Multiply-adds: one projection is counted. There are four.": bill(project=1),
    "Multiply-adds: you multiplied by H, but a head's vectors are only hs = C/H long.":
        bill(pairs=lambda T, C, H: 2 * T * T * C * H),
    "Multiply-adds: you multiplied the projections, too, by H, but all heads together have C "
    "features.": lambda T, C, H: H * multiply_adds.right(T, C, H),
    "Multiply-adds: you multiplied the projections by H, but all heads together have C features.": (
        lambda T, C, H: bill(project=4 * H)(T, C, H),
        lambda T, C, H: bill(project=3 * H + 1)(T, C, H),
    ),
    "Multiply-adds: you counted a single head's scores and sums.":
        bill(pairs=lambda T, C, H: 2 * T * T * C // H),
    "Multiply-adds: this is twice too much. A multiplication with its addition counts as one.":
        bill(project=8, pairs=4),
    "Multiply-adds: you put H where hs belongs. A score has hs terms, and there are H maps of "
    "scores: H·hs is C.": bill(pairs=lambda T, C, H: 2 * T * T * H),
    "Multiply-adds: each score and each sum has hs terms, and there are H maps: 2·T²·H·hs.":
        (bill(pairs=lambda T, C, H: 2 * T * T), bill(pairs=lambda T, C, H: T * T * C + T * T * H)),
    "Multiply-adds: every token meets every token, so it is T², not T, in scores and sums.":
        bill(pairs=lambda T, C, H: 2 * T * C),
    "Multiply-adds: a score costs hs of them, not hs² or C²: T²C in all.": (
        bill(pairs=lambda T, C, H: 2 * T * T * C * C), bill(pairs=lambda T, C, H: 2 * T * C * C),
        bill(pairs=lambda T, C, H: 2 * T * T * C * C // H)),
    "Multiply-adds: the masked half is counted here: the product takes all T² pairs.": (
        bill(pairs=lambda T, C, H: T * (T + 1) * C), bill(pairs=lambda T, C, H: T * T * C + T * C)),
    "Multiply-adds: the scores' division and the softmax are no products of matrices.": (
        bill(pairs=lambda T, C, H: 2 * T * T * C + H * T * T),
        bill(pairs=lambda T, C, H: 2 * T * T * C + 2 * H * T * T)),
    "Multiply-adds: a projection works on each of the T tokens.":
        lambda T, C, H: 4 * C * C + 2 * T * T * C,
    "Multiply-adds: a projection is (T, C) @ (C, C), which takes T·C·C, not T·C.":
        lambda T, C, H: 4 * T * C + 2 * T * T * C,
    "These are the parameters again. The second number is the multiply-adds.":
        lambda T, C, H: 4 * C * C,
}  # fmt: skip


@checked
def cost(answer):
    """cost(T, C, n_head): (parameters, multiply-adds) of multi-head attention over T tokens."""
    bills = {
        size: expect_shape(call(answer, *size, name="cost"), (2,), f"cost{size}").tolist()
        for size in SIZES
    }
    for i, part in enumerate((parameters, multiply_adds)):
        report = part(lambda *size, i=i: bills[size][i])
        expect(report.outcome == "right", report.message)
    return "4C² parameters, 4TC² + 2T²C multiply-adds: no H in it."


# --- 6.6 ------------------------------------------------------------------------------------------


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
    "Twice too large: the half is missing. What one head has more, the other has less, and it "
    "is counted twice.": lambda maps: 2 * distances(maps),
    "All 0: without the absolute value more and less cancel, since all rows sum to 1.": (
        lambda maps: apart(maps).sum(-1).mean((0, 3)) / 2,
        lambda maps: apart(maps).sum(-1).abs().mean((0, 3)) / 2,
    ),
    "You average over the keys. Sum over them: the distance of two rows is ½ Σ |difference|. "
    "Then average over rows and texts.": (
        lambda maps: apart(maps).abs().mean((0, 3, 4)) / 2,
        lambda maps: apart(maps).abs().mean((0, 3, 4)),
    ),
    "You sum over the rows. Average over them (and over the texts).":
        lambda maps: half(maps).sum(3).mean(0),
    "You sum over the texts. Average over them (and over the rows).":
        lambda maps: half(maps).mean(3).sum(0),
    "You sum over the texts and rows. Average over them.":
        (lambda maps: half(maps).sum((0, 3)), lambda maps: 2 * half(maps).sum((0, 3))),
    "You used the first text only: average over the batch.": lambda maps: distances(maps[:1]),
    "You used the first row only: average over all rows.": lambda maps: distances(maps[:, :, :1]),
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
    "You took the largest distance. The mean over texts and rows is asked for.":
        (lambda maps: half(maps).amax((0, 3)), lambda maps: half(maps).amax(3).mean(0)),
    "This says how alike the heads are. Their distance is 1 minus it.":
        lambda maps: 1 - distances(maps),
    "The texts are still there: average over dim 0, too.": lambda maps: half(maps).mean(3),
    "The rows are still there: average over them, too.":
        (lambda maps: half(maps).mean(0), lambda maps: half(maps).mean(0).movedim(2, 0)),
    "Texts and rows are still there: average over both.": lambda maps: half(maps),
    "Each pair stands there once only: a distance is the same in both directions.":
        (lambda maps: distances(maps).triu(), lambda maps: distances(maps).tril()),
}  # fmt: skip
