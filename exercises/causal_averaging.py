"""The exercises of the chapter "Causal averaging"."""

import torch

from exercises.check import call, checked, exercise, expect, expect_no_loop, expect_shape, normal
from exercises.watch import calls_of
from helpers.attention import causal_mask

WRONG_T = "You divide by T everywhere, but at place t only t + 1 tokens have been heard."
COLUMNS = "Your columns sum to 1, your rows do not: divide by .sum(1, keepdim=True)."
LINE_UP = (
    "What you divide by has shape (T,), which divides column j by the sum of row j. Make it a "
    "column, (T, 1): .sum(1, keepdim=True), or [:, None]."
)
WHOLE = "All entries together sum to 1. Each *row* should: divide it by its own sum."
FUTURE = "This is the mean of the present and the *future*: token t hears the tokens 0 … t."
ALL = "Every token hears the whole sequence: token t hears the tokens 0 … t only."
FINITE = (
    "The future's weights are not exactly 0: a finite number is no ban, for scores can be as low. "
    "Block with −infinity."
)


def counts(T, start=1):
    """1, 2, … T as a column."""
    return torch.arange(start, start + T)[:, None]


def lower(T):
    return torch.ones(T, T).tril()


def rows(weights):
    """Each row divided by its sum."""
    return weights / weights.sum(-1, keepdim=True)


def block(scores, value=-torch.inf):
    return scores.masked_fill(~causal_mask(scores.shape[-1]), value)


@exercise(
    inputs=[(normal(*TC, seed=31 + i),) for i, TC in enumerate([(5, 3), (3, 4), (4, 4), (1, 2)])],
    praise="each token hears itself and everything before it.",
)
def past_mean(x):
    """past_mean(x): (T, C) → (T, C), the mean of each token and all before it."""
    return x.cumsum(0) / counts(len(x))


def sum_and_divide(x, by):
    out = torch.zeros_like(x)
    for t in range(len(x)):
        for i in range(t + 1):
            out[t] = (out[t] + x[i]) / by(t, i)
    return out


past_mean.mistakes = {
    "These are sums: divide the sum at t by the number of tokens in it, t + 1.":
        lambda x: x.cumsum(0),
    WRONG_T: lambda x: x.cumsum(0) / len(x),
    "You leave out the present token: output t is the mean of tokens 0 … t, and range(t) stops "
    "one too early.": (
        lambda x: (x.cumsum(0) - x) / counts(len(x), 0).clamp(min=1),
        lambda x: (x.cumsum(0) - x) / counts(len(x)),
        lambda x: torch.cat([x[:1], x.cumsum(0)[:-1] / counts(len(x) - 1)]),
    ),
    "The first output is 0 / 0: you leave out the present token.":
        lambda x: (x.cumsum(0) - x) / counts(len(x), 0),
    "You divide by t, but the tokens 0 … t are t + 1 tokens.": (
        lambda x: x.cumsum(0) / counts(len(x), 0),
        lambda x: x.cumsum(0) / counts(len(x), 0).clamp(min=1),
    ),
    "You divide by t + 2, but the tokens 0 … t are t + 1 tokens.":
        lambda x: x.cumsum(0) / counts(len(x), 2),
    "You divide inside the inner loop, again and again: divide once, after it.":
        (lambda x: sum_and_divide(x, lambda t, i: t + 1), lambda x: sum_and_divide(x, max)),
    ALL: (lambda x: x.mean(0).expand_as(x), lambda x: x.sum(0) / counts(len(x))),
    FUTURE: lambda x: past_mean.right(x.flip(0)).flip(0),
    "You average over features, not over tokens.":
        (lambda x: past_mean.right(x.T).T, lambda x: x.mean(1, keepdim=True).expand_as(x)),
    "This is the mean of the present token and the one before only: let i start at 0.":
        lambda x: torch.stack([x[max(t - 1, 0) : t + 1].mean(0) for t in range(len(x))]),
    "You gave back x itself: output t is the mean of tokens 0 … t.": torch.clone,
}  # fmt: skip


OVERFLOW = (
    "Right for small scores. But e^score of a large one is infinite, and ∞ / ∞ is NaN: "
    "torch.softmax takes the largest score away first."
)


@exercise(inputs=[(4,), (7,), (2,), (1,)], praise="lower triangular, and every row sums to 1.")
def mean_weights(T):
    """mean_weights(T): the (T, T) weights of the mean of the past."""
    return rows(lower(T))


mean_weights.mistakes = {
    "The triangle is right, but row i sums to i + 1, not to 1: divide each row by its sum.": lower,
    COLUMNS: lambda T: lower(T) / lower(T).sum(0),
    LINE_UP: lambda T: lower(T) / lower(T).sum(1),
    WHOLE: lambda T: lower(T) / lower(T).sum(),
    "Every entry is 1/T, the future included: start from the lower triangle.":
        lambda T: torch.ones(T, T) / T,
    WRONG_T + " Only your last row sums to 1.": lambda T: lower(T) / T,
    "You divide row i by i, but it holds i + 1 ones.":
        (lambda T: lower(T) / counts(T, 0), lambda T: lower(T) / counts(T, 0).clamp(min=1)),
    "You divide row i by i + 1 in the future too: keep the lower triangle.":
        lambda T: torch.ones(T, T) / counts(T),
    "This is the upper triangle: row i looks at the tokens from i on, the future. Use tril, not "
    "triu.": lambda T: rows(torch.ones(T, T).triu()),
    "This is the transpose of what is wanted: row i belongs to output i.":
        lambda T: rows(lower(T)).T,
    "The first row is 0 divided by 0: each token should hear itself too, so use tril(), not "
    "tril(-1).": lambda T: rows(lower(T).tril(-1)),
    "The diagonal is 0: each token should hear itself too, so use tril(), not tril(-1).":
        lambda T: rows(lower(T).tril(-1)).nan_to_num(),
    "The triangle reaches one token into the future: use tril(), not tril(1).":
        lambda T: rows(torch.ones(T, T).tril(1)),
    "You took the softmax of the triangle, and e⁰ = 1: divide each row by its sum instead.":
        lambda T: lower(T).softmax(-1),
    "Each token hears itself alone: row i needs ones in the places 0 … i.": torch.eye,
}  # fmt: skip


@mean_weights.then
def mixes_tokens(answer):
    got = call(answer, 3, name="mean_weights")
    expect(
        isinstance(got, torch.Tensor) and got.dtype == torch.float32,
        "The numbers are right, but `mean_weights(T) @ x` fails: it takes a tensor of 32-bit "
        f"floats, as x is, and yours is a {getattr(got, 'dtype', type(got).__name__)}.",
    )


@exercise(
    inputs=[(2 * normal(*shape, 5, 5, seed=34),) for shape in [(), (3,), (2, 2)]]
    + [(2 * normal(1, 1, seed=35),), (100 + normal(2, 4, 4, seed=36),)],
    praise="a distribution over the past in every row, and exactly 0 on the future.",
    clash="The mask must be (T, T), and T is `scores.shape[-1]`, whatever stands before it.",
    backward=True,
)
def masked_softmax(scores):
    """masked_softmax(scores): (..., T, T) → the causal weights of the same shape."""
    return block(scores).softmax(-1)


masked_softmax.mistakes = {
    OVERFLOW: (
        lambda s: (e := s.exp().tril()) / e.sum(-1, keepdim=True),
        lambda s: (e := s.exp() * torch.ones_like(s).tril()) / e.sum(-1, keepdim=True),
    ),
    "There is no mask: the future gets weight too.": lambda s: s.softmax(-1),
    "You set the blocked scores to 0 before the softmax. e⁰ = 1, so the future still gets weight: "
    "block with −infinity.": lambda s: s.tril().softmax(-1),
    "You zero the future after the softmax. The weights that are left no longer sum to 1: mask "
    "before it, or divide each row by its sum.": lambda s: s.softmax(-1).tril(),
    "Your columns sum to 1, not your rows: the softmax runs over dim −2. Use dim=-1.":
        (lambda s: block(s).softmax(-2), lambda s: s.softmax(-2).tril()),
    "The softmax runs over dim 0, which is the batch here: use dim=-1.":
        (lambda s: block(s).softmax(0), lambda s: s.softmax(0).tril()),
    "The softmax runs over dim 1, the rows of a batch, or its heads: use dim=-1.":
        lambda s: block(s).softmax(1),
    "You blocked the past and kept the future: the mask is True where listening is allowed, so "
    "fill where it is not, ~mask.":
        lambda s: s.masked_fill(torch.ones_like(s).tril(-1) > 0, -torch.inf).softmax(-1),
    "The last row is NaN: it may hear nobody. masked_fill writes where its mask is *True*, and "
    "causal_mask is True where listening is allowed: fill ~mask.":
        lambda s: s.masked_fill(causal_mask(s.shape[-1]), -torch.inf).softmax(-1),
    "The first row is NaN: it may hear nobody. Each token should hear itself too, so keep the "
    "diagonal.":
        lambda s: block(s.masked_fill(torch.eye(s.shape[-1]) > 0, -torch.inf)).softmax(-1),
    "Everything is NaN: −infinity times 0 is not a number. Do not multiply by −infinity, write it "
    "with masked_fill(~mask, -inf).":
        lambda s: (s + ~causal_mask(s.shape[-1]) * -torch.inf).softmax(-1),
    "Your mask reaches one token into the future: row i ends with column i.":
        lambda s: s.masked_fill(torch.ones_like(s).triu(2) > 0, -torch.inf).softmax(-1),
    LINE_UP: lambda s: s.exp().tril() / s.exp().tril().sum(-1),
    "Blocked scores are NaN, as −infinity · 0 is, and one NaN spoils its row: fill in −infinity.":
        lambda s: block(s, torch.nan).softmax(-1),
    "These are masked scores, not weights: take the softmax of each row.":
        (torch.tril, block, lambda s: block(s, -1e9)),
    "These are e^score: divide each row by its sum.": lambda s: s.exp().tril(),
    "You divide the scores by their sum. Scores may be negative: take the softmax.":
        (lambda s: rows(s.tril()), lambda s: rows(block(s))),
    "You wrote −infinity into the weights. It belongs into the scores, before the softmax.":
        lambda s: block(s.softmax(-1)),
    "These are the logarithms of the weights: use softmax, not log_softmax.":
        lambda s: block(s).log_softmax(-1),
    "The whole matrix sums to 1. Each *row* should: softmax(dim=-1).":
        lambda s: block(s).flatten(-2).softmax(-1).view(s.shape),
    "You took the softmax twice: once is enough, over the masked scores.":
        (lambda s: block(s).softmax(-1).softmax(-1), lambda s: block(s.softmax(-1)).softmax(-1)),
    "This is the plain mean of the past: your scores have no effect.":
        lambda s: block(s * 0).softmax(-1),
    FINITE: tuple(lambda s, v=v: block(s, v).softmax(-1) for v in (-1.0, -2.0, -5.0, -10.0)),
}  # fmt: skip


@masked_softmax.then
def blocks_whatever_the_scores(answer):
    for scores in (2 * normal(4, 4, seed=34), normal(2, 5, 5, seed=35) - 50):
        weights = torch.as_tensor(call(answer, scores, name="masked_softmax(scores)"))
        expect(not weights.triu(1).any(), FINITE)


@exercise(
    inputs=[(normal(*BTC, seed=37),) for BTC in [(2, 5, 3), (1, 6, 3), (4, 1, 2), (4, 4, 4)]],
    praise="one pass over the sequence, however long it is.",
    clash="The counts 1 … T belong to time, dim 1 of (B, T, C): give them shape (T, 1).",
)
def running_mean(x):
    """running_mean(x): (B, T, C) → (B, T, C), the mean of the past without a loop over time."""
    return x.cumsum(1) / counts(x.shape[1])


running_mean.mistakes = {
    "These are running sums: divide the one at place t by t + 1.": lambda x: x.cumsum(1),
    WRONG_T + " Divide by 1, 2, …, T.": lambda x: x.cumsum(1) / x.shape[1],
    "The running sum goes over dim 0, the batch: rows that have nothing to do with each other are "
    "mixed. Time is dim 1.": (
        lambda x: x.cumsum(0) / counts(x.shape[1]),
        lambda x: x.cumsum(0) / counts(x.shape[0])[:, None],
    ),
    "The running sum goes over the features, the last dimension: time is dim 1.": (
        lambda x: x.cumsum(2) / counts(x.shape[1]),
        lambda x: x.cumsum(2) / counts(x.shape[2]).T,
    ),
    "You divide by 0, 1, …, T − 1: the sum at place t has t + 1 terms.":
        lambda x: x.cumsum(1) / counts(x.shape[1], 0),
    "You divide by 2, 3, …, T + 1: the sum at place t has t + 1 terms.":
        lambda x: x.cumsum(1) / counts(x.shape[1], 2),
    "The counts 1 … T line up with the features: give them shape (T, 1).": (
        lambda x: x.cumsum(1) / counts(x.shape[1]).T,
        lambda x: x.cumsum(1) / counts(x.shape[2]).T,
    ),
    "The counts 1 … T line up with the batch: give them shape (T, 1).": (
        lambda x: x.cumsum(1) / counts(x.shape[1])[:, None],
        lambda x: x.cumsum(1) / counts(x.shape[0])[:, None],
    ),
    ALL: lambda x: x.mean(1, keepdim=True).expand_as(x),
    FUTURE: lambda x: running_mean.right(x.flip(1)).flip(1),
    "You leave out the present token: the sum at place t has the tokens 0 … t.": (
        lambda x: (x.cumsum(1) - x) / counts(x.shape[1], 0),
        lambda x: (x.cumsum(1) - x) / counts(x.shape[1], 0).clamp(min=1),
        lambda x: (x.cumsum(1) - x) / counts(x.shape[1]),
    ),
    "The sum runs on from one sequence into the next: x.cumsum(1) starts anew in each.":
        lambda x: x.flatten(0, 1).cumsum(0).view(x.shape) / counts(x.shape[1]),
}  # fmt: skip


@running_mean.then
def in_one_pass(answer):
    small, large, T = normal(2, 3, 2, seed=0), normal(4, 9, 5, seed=0), 64
    loops = "The values are right, but your code loops. `x.cumsum(1)` holds all running sums."
    expect_no_loop(answer, (small,), (large,), loops)
    expect(
        calls_of(answer, normal(1, T, 1, seed=0)).largest < T * T,
        "The values are right, but you build a (T, T) matrix, which grows with the square of T. "
        "`x.cumsum(1)` needs none.",
    )


def distance(T):
    """How far token i looks back to token j, negative in the future: (T, T)."""
    return torch.arange(T)[:, None] - torch.arange(T)


def faded(T, decay):
    return (decay ** distance(T)).tril()


@exercise(
    inputs=[(4, 0.5), (6, 0.8), (3, 1.0), (1, 0.3), (50, 0.1)],
    praise="and with decay = 1 it is the plain mean again.",
)
def decay_weights(T, decay):
    """decay_weights(T, decay): (T, T) weights that shrink by `decay` a step into the past."""
    return rows(faded(T, decay))


decay_weights.mistakes = {
    "The rows do not sum to 1 yet: divide each row by its sum.": faded,
    COLUMNS: lambda T, d: faded(T, d) / faded(T, d).sum(0),
    LINE_UP: lambda T, d: faded(T, d) / faded(T, d).sum(1),
    WHOLE: lambda T, d: faded(T, d) / faded(T, d).sum(),
    "You divide each row by its sum before you cut off the future: first tril(), then divide.": (
        lambda T, d: rows(d ** distance(T)).tril(),
        lambda T, d: rows(d ** distance(T).abs()).tril(),
    ),
    "The oldest token gets the largest weight: the exponent should be i − j, which is 0 for the "
    "present.": (
        lambda T, d: rows((d ** torch.arange(T).expand(T, T)).tril()),
        lambda T, d: rows((d ** -distance(T)).tril()),
    ),
    "The future has weight too: keep the lower triangle before you divide.":
        lambda T, d: rows(d ** distance(T)),
    "The future has weight too: |i − j| looks both ways.":
        lambda T, d: rows(d ** distance(T).abs()),
    "The future has weight too, d⁰ = 1 each: set it to 0 after the power, with .tril().":
        lambda T, d: rows(d ** distance(T).clamp(min=0)),
    "This is the plain mean: let weights shrink with the distance.": lambda T, d: rows(lower(T)),
    "The diagonal is 0: the present token should get the largest weight, decay⁰.": (
        lambda T, d: rows(faded(T, d).tril(-1)),
        lambda T, d: rows(faded(T, d).tril(-1)).nan_to_num(),
    ),
    "This is the transpose of what is wanted: row i belongs to output i.":
        lambda T, d: decay_weights.right(T, d).T,
    "This is the upper triangle, the future: use tril, and i − j for the distance.":
        lambda T, d: rows(faded(T, d).T),
    "For T = 50 you get NaN: 0.1 to the power of −49 is infinite in the future, and infinity times "
    "0 is not a number. Cut it off with .tril(), or let no distance be negative.":
        lambda T, d: rows(d ** distance(T) * lower(T)),
    "For T = 50 you get NaN: 0.1 to the power of 49 rounds to 0, and 0 / 0 is not a number. "
    "Compute decay ** (i − j), not decay ** i / decay ** j.":
        lambda T, d: rows((d ** counts(T, 0) / d ** counts(T, 0).T).tril()),
    "You use another decay than the one that is given.": tuple(
        lambda T, d, other=other: decay_weights.right(T, other(d))
        for other in (lambda d: 0.5, lambda d: 1 - d, lambda d: d**2, lambda d: d**0.5)
    ),
    "Weights shrink by decay *to the power of* the distance: decay, decay², decay³.": (
        lambda T, d: rows((1 - (1 - d) * distance(T)).clamp(min=0).tril()),
        lambda T, d: rows((d / (distance(T).clamp(min=0) + 1)).tril()),
        lambda T, d: rows((d * distance(T)).tril()),
        lambda T, d: rows(lower(T).tril(-1) * d + torch.eye(T)),
    ),
    "You use e^(−decay · distance), which shrinks by e^(−decay) a step, not by decay.":
        lambda T, d: rows((-d * distance(T)).exp().tril()),
    "You took the softmax of the weights: they are weights already, divide each row by its sum.":
        lambda T, d: block(faded(T, d)).softmax(-1),
}  # fmt: skip


def mean(x):
    """The causal mean of x, (T, C)."""
    return past_mean.right(x)


def to_all(x):
    """The mean of the whole sequence, at each place."""
    return x.mean(0).expand_as(x)


def product(x):
    """A causal matrix product, as large models compute it: in half precision."""
    T = len(x)
    return (normal(9, 9, seed=41)[:T, :T].tril().half() @ x.half()).float()


def layer_norm(x):
    """What is added to all features is taken away, rounding errors too; gradients pass."""
    x = x - x.mean(1, keepdim=True)
    x = x + (x.round(decimals=3) - x).detach()
    return x / (x.square().mean(1, keepdim=True) + 1e-5).sqrt() * counts(x.shape[1]).T


def turned(x):
    """The first two features, turned by an angle that the last token decides."""
    first, second, *others = x.unbind(1)
    sin, cos = x[-1].sum().sin(), x[-1].sum().cos()
    return torch.stack([cos * first - sin * second, sin * first + cos * second, *others], 1)


def cancelling(x):
    """Outputs 0 and 1 hear the last token, in ways that cancel in each sum; x: (4, 3)."""
    signs = torch.tensor([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0] * 3, [0.0] * 3])
    return mean(x) + signs[: len(x)] * x[-1].sum()


def hears(output, token, strength):
    """The causal mean, but this output hears that token, each feature as strongly as said."""

    def mix(x):
        leak = x[token : token + 1].sum(0) * torch.tensor(strength)  # 0 if x was cut before it
        return mean(x) + (torch.arange(len(x)) == output)[:, None] * leak

    return mix


ONE = "Change one token at a time, in a fresh copy, and compare only the outputs before it."
EACH = "For each t, up to the last, compare all outputs before t; one that differs is enough."
DRAWN = "Change it to random numbers, `torch.randn_like(x[t])`."
ENTRIES = "Compare the outputs number by number, not their sums or lengths."
MIXES = [  # a mix, does it leak, what it is, and what a tester should do that is wrong about it
    (mean, False, "the causal mean", "Output t may change with token t. " + ONE),
    (lambda x: x.flip(-1) * 2, False, "a mix that treats each token alone", ONE),
    (product, False, "a causal matrix product in half precision",
     "Change the token to ordinary numbers: too large ones become infinite, and 0 · ∞ is NaN."),
    (lambda x: block(x @ x.T).softmax(-1) @ x, False, "a causal mix with weights by listener", ONE),
    (to_all, True, "the mean of the whole sequence", "Change each token in turn, and by enough."),
    (lambda x: rows(torch.ones(len(x), len(x)).triu()) @ x, True, "the mean of the future", EACH),
    (lambda x: mean(x) - x.mean(0), True, "a mix that subtracts the mean of the whole sequence "
     "from every output, a quiet leak", EACH),
    (lambda x: mean(x) + 1e-3 * x.mean(0), True, "a mix that leaks one part in a thousand",
     "A causal one changes nothing at all: let no more pass than rounding errors."),
]  # fmt: skip
BLIND = [  # leaks that some changes of a token leave unseen
    (lambda x: to_all(x - x.mean(1, keepdim=True)), True, "a mix that first takes from each token "
     "the mean of its features", "Adding the same to all features stays unseen. " + DRAWN),
    (lambda x: to_all(layer_norm(x)), True, "a mix that first brings each token to mean 0 and "
     "spread 1, as many models do", "Adding the same to all features, and making a token longer, "
     "stay unseen. " + DRAWN),
    (lambda x: to_all(x / x.norm(dim=1, keepdim=True)), True, "a mix of unit vectors",
     "Making a token longer stays unseen. " + DRAWN),
    (lambda x: to_all(x.square().sum(1, keepdim=True).expand_as(x)), True, "a mix of squares",
     "Turning signs round, or the order of features, stays unseen. " + DRAWN),
    (lambda x: x.roll(-1, 0) * x.roll(-2, 0), True, "the product of the next two tokens",
     "Change x itself, one token at a time. " + DRAWN),
]  # fmt: skip
PAIRS = [(output, token, 7) for token in range(1, 7) for output in range(token)]


@checked
def hears_the_future(answer):
    """hears_the_future(mix, x): does any output of mix change when a later token changes?"""

    def ask(mix, leaks, x, what, so):
        got = call(answer, mix, x, name="hears_the_future(mix, x)")
        got = expect_shape(got, (), "hears_the_future(mix, x)")
        expect(float(got) in (0.0, 1.0), "hears_the_future should return True or False.")
        expect(bool(got) == leaks, f"your tester says {not leaks} for {what}. {so}")

    def ask_all(mixes):
        for mix, leaks, what, so in mixes:
            ask(mix, leaks, normal(4, 4, seed=40), what, so)
            ask(mix, leaks, (4 * normal(7, 4, seed=42)).round(), what, so)

    ask_all(MIXES)
    ask(mean, False, normal(1, 2, seed=43), "a single token, which has no future", ONE)
    for output, token, T in [(2, 3, 4), (0, 2, 4), *PAIRS]:
        what = f"a mix of {T} tokens in which only output {output} hears token {token}"
        ask(hears(output, token, [0.3, 0.2, 0.1]), True, normal(T, 3, seed=44), what, EACH)
    ask_all(BLIND)
    for feature in range(5):
        mix = hears(0, 2, [float(feature == i) for i in range(5)])
        so = "Change all features and compare all of them."
        what = f"a mix in which only feature {feature} leaks"
        ask(mix, True, normal(3, 5, seed=45), what, so)
    what = "a mix whose changes cancel in every sum"
    ask(cancelling, True, normal(4, 3, seed=46), what, ENTRIES)
    what = "a mix that turns its outputs and keeps their lengths"
    ask(turned, True, normal(4, 3, seed=47), what, ENTRIES)
    what = "a mix of x + 1, for an x of zeros"
    ask(lambda x: to_all(x + 1) * len(x), True, torch.zeros(3, 2), what, DRAWN)
    return "your tester finds every leak and accuses nobody innocent."
