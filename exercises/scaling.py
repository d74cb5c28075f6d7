"""The exercises of the chapter on scaling."""

import math

import torch
from torch import nn

from exercises.check import (
    NotYet,
    call,
    checked,
    exercise,
    expect,
    expect_without,
    normal,
    same,
    tensor,
)

# --- 5.1 ----------------------------------------------------------------------------------------


def layer(C, hs, seed):
    """A layer with given numbers. Its bias is large: who uses the weight alone goes astray."""
    linear = nn.Linear(C, hs)
    with torch.no_grad():
        linear.weight.copy_(normal(hs, C, seed=seed) / C**0.5)
        linear.bias.copy_(normal(hs, seed=seed + 1))
    return linear


def raw(x, query, key):
    return query(x) @ key(x).mT


def divided(divisor):
    """head_weights with the scores divided by divisor(x, hs)."""
    return lambda x, query, key: (raw(x, query, key) / divisor(x, query.out_features)).softmax(-1)


def scaled(x, query, key):
    return raw(x, query, key) / query.out_features**0.5


@exercise(
    # hs smaller and larger than C; T equal to hs, where a forgotten transpose raises no error, and
    # to C; a single token.
    inputs=[
        (normal(B, T, C, seed=seed), layer(C, hs, seed + 10), layer(C, hs, seed + 20))
        for seed, (B, T, C, hs) in enumerate(
            [(2, 5, 12, 3), (3, 4, 6, 20), (1, 4, 8, 2), (2, 6, 4, 6), (3, 6, 6, 5), (1, 1, 5, 2)]
        )
    ],
    praise="the head size, not the width of x, and before the softmax.",
    clash="Turn the keys first: q @ k.transpose(-2, -1) gives (B, T, T).",
    backward=True,
)
def head_weights(x, query, key):
    """head_weights(x, query, key): weights (B, T, T) of a head whose hs is not C."""
    return scaled(x, query, key).softmax(-1)


head_weights.mistakes = {
    "The scale is missing: divide the scores by √hs, the root of a query's length.":
        divided(lambda x, hs: 1),
    "You divide by hs itself. The variance of q·k is hs, but dividing by c divides the standard "
    "deviation by c: divide by the standard deviation, √hs.": divided(lambda x, hs: hs),
    "You divide by √C, the width of x. It is the head size hs that counts, the length of a query: "
    "q.shape[-1]. With √C the weights of a small head are too flat.":
        divided(lambda x, hs: x.shape[-1] ** 0.5),
    "You divide by C, the width of x. It is √hs: the head size, and its root.":
        divided(lambda x, hs: x.shape[-1]),
    "You divide by √T, the number of tokens. It is √hs: how long a query is.":
        divided(lambda x, hs: x.shape[1] ** 0.5),
    "You multiply by √hs: that makes large scores larger. Divide.":
        divided(lambda x, hs: hs**-0.5),
    "You scale after the softmax: the rows no longer sum to 1, and the softmax is as saturated as "
    "before. Scale the scores, before the softmax.": (
        lambda x, q, k: raw(x, q, k).softmax(-1) / q.out_features**0.5,
        lambda x, q, k: raw(x, q, k).softmax(-1) / x.shape[-1] ** 0.5,
        lambda x, q, k: raw(x, q, k).softmax(-1) * q.out_features**0.5,
    ),
    "You scale after the softmax, and by hs. Divide the scores by √hs, before the softmax.":
        lambda x, q, k: raw(x, q, k).softmax(-1) / q.out_features,
    "These are the scaled scores. The softmax over the last dimension is missing.": scaled,
    "These are the raw scores: scale them, then the softmax.": raw,
    "The softmax runs over dim -2: your columns sum to 1. Rows should: dim=-1.":
        lambda *a: scaled(*a).softmax(-2),
    "The softmax runs over dim 0, the texts. Each row is a distribution of its own: dim=-1.":
        lambda *a: scaled(*a).softmax(0),
    "One softmax over all scores. Each row is a distribution of its own: dim=-1.":
        lambda *a: scaled(*a).flatten().softmax(0).view_as(scaled(*a)),
    "Queries and keys are swapped: row i should belong to query i.":
        lambda *a: scaled(*a).mT.softmax(-1),
    "The weights are transposed: row i should belong to query i.":
        lambda *a: scaled(*a).softmax(-1).mT,
    "You compare queries with queries: the keys are key(x).":
        lambda x, q, k: scaled(x, q, q).softmax(-1),
    "You compare keys with keys: the queries are query(x).":
        lambda x, q, k: scaled(x, k, k).softmax(-1),
    "You compare the tokens themselves: q is query(x), and k is key(x).": (
        lambda x, q, k: (x @ x.mT / q.out_features**0.5).softmax(-1),
        lambda x, q, k: (x @ x.mT / x.shape[-1] ** 0.5).softmax(-1),
    ),
    "The bias of the layer is missing, because you used only its `weight`. Call it: query(x).":
        lambda x, q, k: ((x @ q.weight.T) @ (x @ k.weight.T).mT / q.out_features**0.5).softmax(-1),
    "The keys are not turned: q @ k fits only by chance, where T equals hs. k.transpose(-2, -1).":
        lambda x, q, k: (q(x) @ k(x) / q.out_features**0.5).softmax(-1),
    "You reshape the keys to (B, hs, T), which mixes up their numbers. Swap the two dimensions: "
    "k.transpose(-2, -1).": lambda x, q, k: (
        q(x) @ k(x).reshape(len(x), -1, x.shape[1]) / q.out_features**0.5).softmax(-1),
    "You masked the future. Here no mask is asked for: every query sees all keys.":
        lambda *a: scaled(*a).masked_fill(torch.ones_like(scaled(*a)).triu(1) > 0, -math.inf)
        .softmax(-1),
    "You squeeze dimensions away: a single text is still (1, T, T).":
        (lambda *a: scaled(*a).softmax(-1).squeeze(), lambda *a: scaled(*a).softmax(-1).squeeze(0)),
    "Only one text comes back. Keep all of them: (B, T, T).":
        lambda *a: scaled(*a).softmax(-1)[0],
}  # fmt: skip

# --- 5.2 ----------------------------------------------------------------------------------------


@exercise(
    inputs=[(64, 0.5, 3.0), (9, 2.5, 2.0), (100, 0.1, 0.3), (7, 1.3, 0.4), (1, 2.0, 3.0)],
    praise="√d · std_q · std_k.",
)
def right_divisor(d, std_q, std_k):
    """right_divisor(d, std_q, std_k): the number that gives q·k a standard deviation of 1."""
    return math.sqrt(d) * std_q * std_k


right_divisor.mistakes = {
    "This is the variance of q·k. Divide by its root, the standard deviation.":
        lambda d, a, b: d * a**2 * b**2,
    "This is √d, right for standard deviations of 1. Here they are std_q and std_k.":
        lambda d, a, b: math.sqrt(d),
    "This is d: the variance of q·k for entries of variance 1. You want its root, and "
    "std_q and std_k count too.": lambda d, a, b: d,
    "You multiply by d where √d belongs: variances add up, standard deviations do not.":
        lambda d, a, b: d * a * b,
    "You took std_q and std_k for variances: they are roots already.":
        lambda d, a, b: math.sqrt(d * a * b),
    "You squared std_q and std_k, but did not take the root of the squares.":
        lambda d, a, b: math.sqrt(d) * a**2 * b**2,
    "This is what q·k must be multiplied by. Asked for is the divisor.":
        lambda d, a, b: 1 / (math.sqrt(d) * a * b),
    "You divide by std_q and std_k: larger entries need a larger divisor.":
        lambda d, a, b: math.sqrt(d) / (a * b),
    "You divide by √d: more products make the sum larger, and so the divisor.":
        lambda d, a, b: a * b / math.sqrt(d),
    "The √d is missing: d products add up.": lambda d, a, b: a * b,
    "std_k is missing: a product has the standard deviation std_q · std_k.":
        lambda d, a, b: math.sqrt(d) * a,
    "std_q is missing: a product has the standard deviation std_q · std_k.":
        lambda d, a, b: math.sqrt(d) * b,
    "Multiply std_q and std_k, do not divide one by the other.":
        (lambda d, a, b: math.sqrt(d) * a / b, lambda d, a, b: math.sqrt(d) * b / a),
    "Standard deviations do not add here: one product has std_q · std_k.": (
        lambda d, a, b: math.sqrt(d) * (a + b),
        lambda d, a, b: d * (a + b),
        lambda d, a, b: math.sqrt(d * (a + b)),
        lambda d, a, b: math.sqrt(d) * (a + b) / 2,
        lambda d, a, b: math.sqrt(d) + a + b,
    ),
    "Variances add up in a sum. In a product they are multiplied: std_q² · std_k².": (
        lambda d, a, b: math.sqrt(d * (a**2 + b**2)),
        lambda d, a, b: math.sqrt(d) * (a**2 + b**2),
        lambda d, a, b: d * (a**2 + b**2),
    ),
    "You cut off the decimals of √d: use math.sqrt(d), or d ** 0.5.":
        (lambda d, a, b: math.isqrt(d) * a * b, lambda d, a, b: round(math.sqrt(d)) * a * b),
}  # fmt: skip

# --- 5.3 ----------------------------------------------------------------------------------------


def terms(w):
    return torch.special.entr(w)


def entropy(w):
    """Entropy of each row in nats: (..., T) to (...)."""
    return terms(w).sum(-1)


@exercise(
    inputs=[
        *(
            ((1.5 * normal(*shape, seed=seed)).softmax(-1),)
            for seed, shape in enumerate([(4, 6), (2, 3, 5), (7,), (4, 4), (2, 1, 3, 2), (3, 1)], 1)
        ),
        (torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]),),
        (torch.tensor([0.0, 0.2, 0.3, 0.0, 0.5]),),
        (torch.tensor([0.997] + 10 * [0.0003]),),
    ],
    praise="in nats, one number per row, zeros included.",
)
def row_entropy(weights):
    """row_entropy(weights): (..., T) to the entropy of each row, (...)."""
    return entropy(weights)


row_entropy.mistakes = {
    "With a weight of exactly 0 your entropy is NaN: 0 · ln 0 is 0 on paper and NaN in the "
    "computer. Lift the weights a little before the logarithm.":
        lambda w: -(w * w.log()).sum(-1),
    "A row with a zero in it loses the terms of its other weights: 0 · ln 0 made the sum NaN. Lift "
    "the weights before the logarithm, or replace NaN before the sum.":
        lambda w: -(w * w.log()).sum(-1).nan_to_num(0),
    "You lift the weights so far that the entropies change. 1e-30 is enough.": tuple(
        lambda w, by=by, lifted=lifted: -(w * lifted(w, by).log()).sum(-1)
        for by in (1e-3, 1e-2, 0.1, 1)
        for lifted in (torch.add, torch.clamp_min)
        if (by, lifted) != (1, torch.clamp_min)
    ),
    "The sign is wrong: logarithms of weights are negative, an entropy is not. Put a minus in "
    "front.": lambda w: -entropy(w),
    "You used log2, so your entropy is in bits. Nats need the natural logarithm, log.":
        lambda w: entropy(w) / math.log(2),
    "You used log2, and the sign is wrong.": lambda w: -entropy(w) / math.log(2),
    "You used log10. Nats need the natural logarithm, log.": lambda w: entropy(w) / math.log(10),
    "This is e to the entropy, the number of tokens heard.": lambda w: entropy(w).exp(),
    "The weight in front of the logarithm is missing: the mean surprise weighs each token by "
    "its own weight.":
        (lambda w: -w.log().sum(-1), lambda w: -w.clamp_min(1e-30).log().sum(-1)),
    "You took the plain mean of the surprises. Each counts with its weight: multiply by the "
    "weights and sum.":
        (lambda w: -w.log().mean(-1), lambda w: -w.clamp_min(1e-30).log().mean(-1)),
    "You averaged over the row instead of summing.": lambda w: entropy(w) / w.shape[-1],
    "These are the single terms. Sum them over the last dimension.":
        (terms, lambda w: -terms(w), lambda w: -w * w.log()),
    "The dimension of the row is still there, with length 1: (…) is asked for, without keepdim.":
        lambda w: entropy(w)[..., None],
    "You summed everything: one number per row is asked for (dim=-1).":
        lambda w: entropy(w).sum(),
    "You averaged over the rows. Leave one number per row.": lambda w: entropy(w).mean(),
    "You summed over dim 0. A row's weights lie along the last dimension: dim=-1.":
        lambda w: terms(w).sum(0),
    "You summed over dim 1, which is the last one only in a table. dim=-1 is always the last.":
        lambda w: terms(w).sum(1),
    "You took a softmax of the weights, but they are weights already.":
        lambda w: entropy(w.softmax(-1)),
}  # fmt: skip

# --- 5.4 ----------------------------------------------------------------------------------------


def squares(scores, *, product=torch.outer):
    """The two parts of the formula, diag(w) and w wᵀ."""
    w = scores.softmax(-1)
    return torch.diag(w), product(w, w)


@exercise(
    inputs=[(1.5 * normal(T, seed=seed),) for seed, T in enumerate([4, 7, 2, 1], 1)]
    + [(torch.zeros(3),), (torch.tensor([20.0, 0.0, 19.0, -30.0]),)]
    + [(torch.tensor([100.0, 98.0, 99.0]),)],  # too large for exp alone
    praise="diag(w) − w wᵀ: every row sums to 0.",
    tolerance=1e-6,  # differences of weights at slightly different scores are not as exact
)
def softmax_jacobian(scores):
    """softmax_jacobian(scores): (T,) to the (T, T) matrix of derivatives of the weights."""
    diagonal, outer = squares(scores)
    return diagonal - outer


def jacobian_by(combine):
    return lambda scores: combine(*squares(scores))


softmax_jacobian.mistakes = {
    "Right for small scores. But e^score of a large one is infinite, and ∞ / ∞ is NaN: softmax "
    "takes the largest score away first.": lambda scores: (
        torch.diag(w := scores.exp() / scores.exp().sum()) - torch.outer(w, w)),
    "Your off-diagonal entries have the wrong sign: when one key wins weight, the others "
    "lose it. It is diag(w) minus w wᵀ.": jacobian_by(lambda d, o: d + o),
    "Your off-diagonal entries are positive, the diagonal is right: put a minus before "
    "w_i w_j for i ≠ j.": jacobian_by(lambda d, o: d + o - 2 * d**2),
    "All signs are turned round: this is w wᵀ minus diag(w).": jacobian_by(lambda d, o: o - d),
    "This is the diagonal alone. A score also moves the weights of the other keys: "
    "-w_i w_j.": jacobian_by(lambda d, o: d - d**2),
    "The diagonal is missing: there stands w_i (1 - w_i).": jacobian_by(lambda d, o: d**2 - o),
    "These are only the numbers w_i (1 - w_i). A score also moves the other weights: a "
    "matrix (T, T) is asked for.": jacobian_by(lambda d, o: (d - d**2).diagonal()),
    "You took w_i² off the diagonal twice. Either diag(w) - w wᵀ, or w_i (1 - w_i) on the "
    "diagonal and -w_i w_j elsewhere.": jacobian_by(lambda d, o: d - o - d**2),
    "You took off w * w, which has only the squares. w wᵀ is the table of all products "
    "w_i w_j: torch.outer(w, w).": jacobian_by(lambda d, o: d - o.diagonal()),
    "You took off w @ w, which is a single number. w wᵀ is the table of all products "
    "w_i w_j: torch.outer(w, w).": jacobian_by(lambda d, o: d - o.trace()),
    "The - w wᵀ is missing: this is diag(w).": jacobian_by(lambda d, o: d),
    "The diag(w) is missing: this is -w wᵀ.": jacobian_by(lambda d, o: -o),
    "This is w wᵀ alone: it is taken off diag(w).": jacobian_by(lambda d, o: o),
    "This is the identity minus w wᵀ: on the diagonal stands w itself, diag(w).":
        jacobian_by(lambda d, o: torch.eye(len(o)) - o),
    "You wrote w_i (1 - w_j) everywhere. The 1 stands on the diagonal alone: off it, it is "
    "-w_i w_j.": (
        jacobian_by(lambda d, o: d.diagonal()[:, None] - o),
        jacobian_by(lambda d, o: d.diagonal() - o),
    ),
    "This is the derivative of the *logarithm* of the weights. That of the weights has another "
    "factor w_i in each row.": (
        jacobian_by(lambda d, o: torch.eye(len(o)) - d.diagonal()),
        jacobian_by(lambda d, o: torch.eye(len(o)) - d.diagonal()[:, None]),
    ),
    "You put the scores into the formula. It needs the weights: the softmax first.":
        lambda s: torch.diag(s) - torch.outer(s, s),
    "This is the sigmoid's derivative of each score, as if the keys did not compete.": (
        lambda s: torch.diag(s.sigmoid() * (1 - s.sigmoid())),
        lambda s: s.sigmoid() * (1 - s.sigmoid()),
        lambda s: torch.diag(s.sigmoid()) - torch.outer(s.sigmoid(), s.sigmoid()),
    ),
    "These are the weights. Asked for is how each of them changes with each score.":
        jacobian_by(lambda d, o: d.diagonal()),
}  # fmt: skip


@softmax_jacobian.then
def _by_the_formula(answer):
    autograd = ("grad", "backward", "requires_grad", "make_dual", "softmax_backward_data")
    expect_without(
        answer,
        (normal(3, seed=5),),
        autograd,
        "The numbers are right, but autograd found them. Here you write the formula: diag(w) − "
        "w wᵀ, from the weights alone.",
    )
    # ±1/4 has few digits. More than float32 can hold come from quotients taken in float64.
    quarters = tensor(call(answer, torch.zeros(2), name="softmax_jacobian"), "softmax_jacobian")
    expect(
        same(quarters, quarters.float(), 1e-13),
        "The numbers are nearly right, but quotients of small differences found them. Here you "
        "write the formula: diag(w) − w wᵀ, from the weights alone.",
    )


# --- 5.5 ----------------------------------------------------------------------------------------

# (T, S, size of the scores, target): the divisors lie between 0.002 and 600.
SEARCHES = [
    (8, 16, 8.0, 2.3),
    (5, 9, 0.05, 1.2),
    (1, 4, 30.0, 0.7),
    (20, 6, 1.0, 1.7),
    (4, 8, 1.0, 2.07),
    (6, 12, 50.0, 0.6),
    (3, 10, 500.0, 1.8),
    (4, 7, 0.004, 1.0),
]
# What the answer gave the target to instead of the mean entropy of the rows of scores / divisor.
OTHER_TARGETS = {
    "Multiplied by your number the scores have the right entropy. The divisor is 1 over it.":
        lambda s, d: entropy((s * d).softmax(-1)).mean(),
    "Your entropy hits the target in bits (log2). The target is in nats: use log.":
        lambda s, d: entropy((s / d).softmax(-1)).mean() / math.log(2),
    "You took the entropy of the averaged weights. Take each row's entropy, then the mean.":
        lambda s, d: entropy((s / d).softmax(-1).mean(0)),
    "The target is the mean entropy of the rows, not their sum.":
        lambda s, d: entropy((s / d).softmax(-1)).sum(),
    "Your first row hits the target. It is meant for the mean over all rows.":
        lambda s, d: entropy((s / d)[0].softmax(-1)),
    "Your flattest row hits the target. It is meant for the mean over all rows.":
        lambda s, d: entropy((s / d).softmax(-1)).max(),
    "e to your entropy hits the target: that is the number of tokens heard. The target is in nats.":
        lambda s, d: entropy((s / d).softmax(-1)).mean().exp(),
    "Your softmax runs over the queries (dim 0). Each row is a distribution: dim=-1.":
        lambda s, d: entropy((s / d).softmax(0)).mean(),
    "Your number is right on top of a division by √S. The scores come undivided.":
        lambda s, d: entropy((s / d / s.shape[1] ** 0.5).softmax(-1)).mean(),
}  # fmt: skip
TOO_EXACT = (
    " An entropy in float32 may never come within 1e-12 of the target: halve 60 times, or allow "
    "more than that."
)


@checked
def find_divisor(answer):
    """find_divisor(scores, target): the divisor that gives the rows this mean entropy, in nats."""
    given = [
        (normal(T, S, seed=seed) * size, target)
        for seed, (T, S, size, target) in enumerate(SEARCHES, 1)
    ]
    tried = [(scores.double(), target, divisor(answer, scores, target)) for scores, target in given]
    off = [i for i, one in enumerate(tried) if not hits(mean_entropy, *one)]
    if off:
        often, says = max(
            (sum(hits(measure, *tried[i]) for i in off), says)
            for says, measure in OTHER_TARGETS.items()
        )
        expect(2 * often <= len(off), says)
        say_where_it_ends(answer, *given[off[0]], tried[off[0]][2])
    return "sharp enough and flat enough, for scores of any size."


def mean_entropy(scores, divisor):
    return entropy((scores / divisor).softmax(-1)).mean()


def hits(measure, scores, target, divisor):
    return abs(measure(scores, divisor) - target) < 0.005


def divisor(answer, scores, target):
    """What the answer finds: a positive number."""
    try:
        got = call(answer, scores, target, name="find_divisor")
    except NotYet as problem:
        endless = "seconds" in str(problem)
        raise NotYet(f"{problem}{TOO_EXACT if endless else ''}") from None
    got = tensor(got, "find_divisor(...)")
    expect(got.numel() == 1, "find_divisor should return one number.")
    found = float(got)
    expect(
        math.isfinite(found) and found > 0,
        f"A divisor is a positive finite number, but yours is {found:.3g}.",
    )
    return found


def say_where_it_ends(answer, scores, target, found):
    """Raise what a search that did not arrive shows from outside."""
    heard = float(mean_entropy(scores.double(), found))
    flat = heard > target
    easy = normal(8, 16, seed=1)
    falls = divisor(answer, easy, 1.5) > divisor(answer, easy, 2.5) * 1.0001
    expect(
        not (falls or (flat and found > 999) or (not flat and found < 0.00101)),
        "Your search runs away from the target. Where the weights are too flat, the divisor is too "
        "large: lower `high`. Where they are too sharp, raise `low`. And is your entropy right: in "
        "nats, positive, a sum along each row, also where a weight is 0?",
    )
    stuck = divisor(answer, scores, target * 0.98) == found
    raise NotYet(
        f"For a target of {target} your divisor {found:.4g} gives a mean entropy of {heard:.3f}, "
        f"too {'flat: divide by less' if flat else 'sharp: divide by more'}."
        + " A lower target gives the same divisor: is `target` used, are there enough steps, and "
        "do `low` and `high` lie as far apart as 0.001 and 1000?" * stuck
    )
