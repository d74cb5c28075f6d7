"""The exercises of the chapter "Causal averaging"."""

import torch
import torch.nn.functional as F

from exercises.check import WrongAnswer, call, checked, exercise, expect, normal, reported, tensor
from exercises.watch import calls_of, executed
from helpers.attention import causal_mask


def counts(T):
    """1, 2, … T as a column."""
    return torch.arange(1, T + 1)[:, None]


def rows(weights):
    """Each row divided by its sum."""
    return weights / weights.sum(-1, keepdim=True)


SPEAKERS = [
    [0, 1, 0, 0, 1, 2],
    [3, 3, 3, 3],
    [0, 1, 2],
    [7],
    [2, 0, 2, 1, 0, 2, 2],
    [5, 5, 1, 1, 5],
    [1, -1, 0, 1, -1],
    [7, -7, 100, 7, -7],
]


@exercise(
    inputs=lambda draw: [
        (normal(len(speaker), 3, seed=51 + i), torch.tensor(speaker))
        for i, speaker in enumerate(SPEAKERS)
    ],
    example=(torch.tensor([[2.0], [4.0], [6.0]]), torch.tensor([0, 1, 0])),
    on_success="Each row has its weight on its own speaker's past, and none on the future.",
    on_shape_error="The mask must be (T, T), and T is len(x); speaker[:, None] == speaker has "
    "that shape.",
    backward=True,
)
def mean_by_speaker(x, speaker):
    """mean_by_speaker(x, speaker): (T, C), (T,) → (T, C), the mean of each speaker's own past."""
    return rows(allowed(speaker)) @ x


def same_speaker(speaker):
    """1 where two tokens have one speaker, (T, T)."""
    return (speaker[:, None] == speaker).float()


def allowed(speaker):
    """1 where a token may attend to another, (T, T)."""
    return same_speaker(speaker).tril()


def softmax_over_queries(x, speaker):
    return torch.zeros(len(x), len(x)).masked_fill(allowed(speaker) == 0, -torch.inf).softmax(0) @ x


mean_by_speaker.mistake(
    "This is the mean of the whole past: who speaks has no effect.",
    lambda x, speaker: x.cumsum(0) / counts(len(x)),
)
mean_by_speaker.mistake(
    "You average the speaker's future, too. Token i averages only tokens j ≤ i.",
    lambda x, speaker: rows(same_speaker(speaker)) @ x,
)
mean_by_speaker.mistake(
    "These are sums. Divide each by the number of tokens in it.",
    lambda x, speaker: allowed(speaker) @ x,
)
mean_by_speaker.mistake(
    "You divide by t + 1 or by T, but token t averages fewer tokens. Divide by how many they are.",
    lambda x, speaker: allowed(speaker) @ x / counts(len(x)),
    lambda x, speaker: allowed(speaker) @ x / len(x),
)
mean_by_speaker.mistake(
    "What you divide by has shape (T,), which divides column j by the sum of row j. Make it a "
    "column, (T, 1): .sum(1, keepdim=True), or [:, None].",
    lambda x, speaker: allowed(speaker) / allowed(speaker).sum(1) @ x,
)
mean_by_speaker.mistake(
    "Your columns sum to 1, your rows do not. Normalise each row, the last dimension.",
    softmax_over_queries,
)
mean_by_speaker.mistake(
    "You masked with 0, and e⁰ = 1, so masked tokens still get weight. Mask with −infinity.",
    lambda x, speaker: allowed(speaker).softmax(-1) @ x,
)
mean_by_speaker.mistake(
    "You masked the allowed tokens and left the others. −infinity goes where `~allowed` is true.",
    lambda x, speaker: rows(1 - allowed(speaker)) @ x,
)
mean_by_speaker.mistake(
    "`and`, `or` and `if` want a single truth value. For two tables of them write a & b.",
    lambda x, speaker: rows(causal_mask(len(x)) and same_speaker(speaker)) @ x,
)
mean_by_speaker.mistake(
    "Each token averages only itself, or is not found. As keys of a dictionary, all tensors are "
    "different: use int(speaker[t]).",
    lambda x, speaker: x,
    lambda x, speaker: {}[speaker[0]],
)

SHAPES = [((5, 3), 0.5), ((4, 4), 0.8), ((6, 2), 1.0), ((1, 2), 0.3), ((40, 2), 0.1)]


@exercise(
    inputs=lambda draw: [
        (normal(*shape, seed=31 + i), decay) for i, (shape, decay) in enumerate(SHAPES)
    ],
    example=(torch.tensor([[2.0], [4.0]]), 0.5),
    on_success="Two running totals are enough, and with decay = 1 it is the plain mean again.",
    on_shape_error="Divide by one number per token: time is dim 0 of (T, C).",
)
def fading_mean(x, decay):
    """fading_mean(x, decay): (T, C) → (T, C), each step back counts `decay` times as much."""
    return totals(x, decay) / totals(torch.ones(len(x), 1), decay)


def totals(x, decay):
    """The running totals: total = decay · total + token."""
    out, total = [], torch.zeros_like(x[0])
    for token in x:
        total = decay * total + token
        out.append(total)
    return torch.stack(out)


def moving_average(x, decay):
    out = [x[0]]
    for token in x[1:]:
        out.append(decay * out[-1] + (1 - decay) * token)
    return torch.stack(out)


def mean_that_fades(x, decay):
    out = [x[0]]
    for token in x[1:]:
        out.append((decay * out[-1] + token) / (decay + 1))
    return torch.stack(out)


fading_mean.mistake(
    "These are the fading sums: divide each by its own count, 1 + decay + decay² + …", totals
)
fading_mean.mistake(
    "You divide by t + 1, but the older tokens count less: the count fades as the total does.",
    lambda x, d: totals(x, d) / counts(len(x)),
)
fading_mean.mistake(
    "Your weights do not sum to 1: a fading sum times 1 − decay is right only if the past is "
    "infinite. Keep a running count and divide by it.",
    lambda x, d: totals(x, d) * (1 - d),
)
fading_mean.mistake(
    "This is total = decay · total + (1 − decay) · x, started at the first token, which therefore "
    "counts too much: keep a running count and divide by it.",
    moving_average,
)
fading_mean.mistake(
    "You fade the mean: fade the total and the count, and divide one by the other at each step.",
    mean_that_fades,
)
fading_mean.mistake(
    "With decay = 1 you divide 0 by 0. Keep a running count: it needs no formula.",
    lambda x, d: totals(x, d) * (1 - d) / (1 - torch.tensor(d) ** counts(len(x))),
    lambda x, d: (
        totals(x, d) / torch.tensor([[(1 - d**n) / (1 - d)] for n in range(1, len(x) + 1)])
    ),
)
fading_mean.mistake(
    "This is the mean at the last token alone. Return a row for each token, (T, C).",
    lambda x, d: fading_mean.right(x, d)[-1],
)
fading_mean.mistake(
    "Your present token fades, too. Its weight is 1, and that of the token before it is decay.",
    lambda x, d: d * fading_mean.right(x, d),
)
fading_mean.mistake(
    "Every row is that of the last token. `+=` and `*=` change a tensor in place, even one that is "
    "already in a list: append `total.clone()`, or write total = decay * total + x[t].",
    lambda x, d: fading_mean.right(x, d)[-1:].expand_as(x),
    lambda x, d: totals(x, d)[-1:] / totals(torch.ones(len(x), 1), d),
)


@fading_mean.also
def in_one_pass(answer):
    short, long = ((normal(T, 1, seed=0), 0.9) for T in (32, 64))
    expect(
        calls_of(answer, *long).entries <= 2.5 * calls_of(answer, *short).entries
        and executed(answer, *long) <= 2.5 * executed(answer, *short),
        "The values are right, but a (T, T) matrix, a loop in the loop, or the whole past taken "
        "again at each step makes the work grow with the square of T. Keep a running total and a "
        "running count.",
    )


# Losses for k = 2, 4, 8, measured with seed 0; other machines differ in the fourth digit. On the
# training text those of 2 and 4 are 2.286 and 2.343, and those of an `Averager` 2.588 and 2.774.
REACH = {2: 2.323, 4: 2.380, 8: 2.423}


@checked
def how_far_back(answer):
    """how_far: the losses for k = 2, 4, 8 and the best k."""
    wanted = "Set how_far to a pair: the losses, {2: …, 4: …, 8: …}, and the best k."
    losses, chosen = reported(answer, (REACH, 2), wanted)
    expect(losses != {k: round(loss, 1) for k, loss in REACH.items()}, "Nearly: give two decimals.")
    expect(
        len(set(losses.values())) == 3,
        "Two of your losses are equal: was each model trained, and with weights of its own k?",
    )
    expect(
        not (2.55 < losses[2] < 2.63 and 2.7 < losses[4] < 2.85),
        "These are the losses of an `Averager`, which sees only the mean. Give the present "
        "character its own logits: `AveragerPlusPresent`.",
    )
    expect(
        not (2.27 < losses[2] < 2.30 and 2.33 < losses[4] < 2.36),
        "These are losses on the training text. Judge on the validation text, `loss_of(model)`.",
    )
    expect(
        all(abs(losses[k] - loss) < 0.007 for k, loss in REACH.items()),
        "These are not the losses of this experiment: 400 steps, seed 0, weights that are equal "
        "for the last k tokens and sum to 1 in each row, and the present character's own logits.",
    )
    expect(
        chosen == min(losses, key=losses.__getitem__),
        "The losses are right. The best k is the one with the lowest loss: 2, 4 or 8.",
    )
    return "Two are best: the longer the mean, the less it says about the character just before."


def mean(x):
    """The causal mean of x, (T, C)."""
    return x.cumsum(0) / counts(len(x))


def to_all(x):
    """The mean of the whole sequence, at each position."""
    return x.mean(0).expand_as(x)


def causal_attention(x):
    scores = x @ x.T
    return scores.masked_fill(~causal_mask(len(x)), -torch.inf).softmax(-1) @ x


def product(x):
    """A causal matrix product, as large models compute it: in half precision."""
    T = len(x)
    return (normal(9, 9, seed=41)[:T, :T].tril().half() @ x.half()).float()


def layer_norm(x):
    """What is added to all features is taken away, rounding errors too; gradients pass."""
    x = x - x.mean(1, keepdim=True)
    x = x + (x.round(decimals=3) - x).detach()
    return x / (x.square().mean(1, keepdim=True) + 1e-5).sqrt() * counts(x.shape[1]).T


def normalised_product(x):
    x = F.layer_norm(x, x.shape[1:])
    return mean(x) * x[-1:]


def rotated(x):
    """The first two features, turned by an angle that the last token decides."""
    first, second, *others = x.unbind(1)
    sin, cos = x[-1].sum().sin(), x[-1].sum().cos()
    return torch.stack([cos * first - sin * second, sin * first + cos * second, *others], 1)


def cancelling(x):
    """Outputs 0 and 1 attend to the last token, in ways that cancel in each sum."""
    signs = F.pad(torch.tensor([[1, -1], [-1, 1]]), (0, x.shape[1] - 2, 0, len(x) - 2))
    leak = x[-1] @ torch.arange(1.0, x.shape[1] + 1)
    # A number that no sum rounds off; gradients pass.
    leak = leak + ((leak * 64).round() / 64 - leak).detach()
    return mean(x) + signs * leak


def leaking(output, token, strength):
    """The causal mean, but this output attends to that token, each feature as strongly as said."""

    def mix(x):
        leak = x[token : token + 1].sum(0) * torch.tensor(strength)  # 0 if x was cut before it
        return mean(x) + (torch.arange(len(x)) == output)[:, None] * leak

    return mix


ONE_BOOL = "leaks_the_future should return True or False."
ONE = "Change one token at a time, in a fresh copy, and compare only the outputs before it."
EACH = "For each t, up to the last, compare all outputs before t; one that differs is enough."
DRAWN = "Change it to random numbers, `torch.randn_like(x[t])`."
ENTRIES = "Compare the outputs number by number, not their sums or lengths."
MIXES = [  # a mix, does it leak, what it is, and what a tester should do that is wrong about it
    (
        lambda x: 0 * x,
        False,
        "a mix that makes all 0",
        "Does it always say True, or are True and False swapped?",
    ),
    (mean, False, "the causal mean", "Output t may change with token t. " + ONE),
    (
        product,
        False,
        "a causal matrix product in half precision",
        "Change the token to ordinary numbers: too large ones become infinite, and 0 · ∞ is NaN.",
    ),
    (
        causal_attention,
        False,
        "a causal mix whose weights depend on the attending token",
        "A difference in rounding is not a leak: compare with torch.allclose. " + ONE,
    ),
    (to_all, True, "the mean of the whole sequence", "Change each token in turn, and by enough."),
    (
        lambda x: mean(x) - x.mean(0),
        True,
        "a mix that subtracts the mean of the whole sequence from every output, a quiet leak",
        EACH,
    ),
    (
        lambda x: mean(x) + 1e-3 * x.mean(0),
        True,
        "a mix that leaks one part in a thousand",
        "A causal one changes nothing at all: tolerate no more than rounding errors.",
    ),
]
BLIND = [  # leaks that some changes of a token leave unseen
    (
        lambda x: to_all(layer_norm(x)),
        True,
        "a mix that first brings each token to mean 0 and standard deviation 1, as many models do",
        "Adding the same to all features, and making a token longer, stay unseen. " + DRAWN,
    ),
    (
        lambda x: to_all(x.square().sum(1, keepdim=True).expand_as(x)),
        True,
        "a mix of squares",
        "Flipping signs, or reordering features, stays unseen. " + DRAWN,
    ),
    (
        lambda x: x.roll(-1, 0) * x.roll(-2, 0),
        True,
        "the product of the next two tokens",
        "Change x itself, one token at a time. " + DRAWN,
    ),
    (
        normalised_product,
        True,
        "a mix that normalises each token and multiplies by the last one",
        f"{EACH} {DRAWN}",
    ),
]
STRENGTHS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]  # of many features, whose order can be seen
PAIRS = [(output, token, 7) for token in range(1, 7) for output in range(token)]


@checked
def leaks_the_future(answer):
    """leaks_the_future(mix, x): does any output of mix change when a later token changes?"""

    def ask(mix, leaks, x, what, advice):
        name = "leaks_the_future(mix, x)" + " for an x of one token" * (len(x) == 1)
        name += " for an x, and weights of the mix, in float64" * (x.dtype == torch.float64)
        got = call(answer, mix, x, name=name)
        expect(not isinstance(got, (str, list, tuple)), ONE_BOOL)
        got = tensor(got, "leaks_the_future(mix, x)")
        expect(got.dim() == 0 and float(got) in (0.0, 1.0), ONE_BOOL)
        said = f"Your tester says {not leaks} for {what}. {advice}"
        if bool(got) != leaks:
            raise WrongAnswer(said, failed=(answer, (mix, x)))

    def ask_all(mixes):
        for mix, leaks, what, advice in mixes:
            ask(mix, leaks, normal(4, 4, seed=40), what, advice)
            ask(mix, leaks, (4 * normal(7, 4, seed=42)).round(), what, advice)

    ask_all(MIXES)
    ask(mean, False, normal(1, 2, seed=43), "a single token, which has no future", ONE)
    x = normal(4, 3, seed=48).double()
    ask(lambda x: causal_mask(len(x)).double() @ x, False, x, "a causal mix of float64", ONE)
    for output, token, T in [(2, 3, 4), (0, 2, 4), *PAIRS]:
        what = f"a mix of {T} tokens in which only output {output} depends on token {token}"
        ask(leaking(output, token, STRENGTHS), True, normal(T, 8, seed=44), what, EACH)
    what = "a mix whose changes cancel in every sum"
    ask(cancelling, True, 12 * normal(4, 8, seed=46).round(), what, ENTRIES)
    ask_all(BLIND)
    for feature in range(5):
        mix = leaking(0, 2, [float(feature == i) for i in range(5)])
        advice = "Change all features and compare all of them."
        what = f"a mix in which only feature {feature} leaks"
        ask(mix, True, normal(3, 5, seed=45), what, advice)
    what = "a mix that turns its outputs and keeps their lengths"
    ask(rotated, True, normal(4, 3, seed=47), what, ENTRIES)
    what = "a mix of x + 1, for an x of zeros"
    ask(lambda x: to_all(x + 1) * len(x), True, torch.zeros(3, 2), what, DRAWN)
    return "Your tester finds every leak and accuses no innocent mix."


leaks_the_future.judges_code = True
