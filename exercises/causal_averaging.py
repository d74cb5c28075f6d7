"""The exercises of the chapter "Causal averaging"."""

from functools import reduce

import torch
import torch.nn.functional as F

from exercises.check import (
    call,
    checked,
    exercise,
    expect,
    expect_shape,
    normal,
    reported,
)
from exercises.watch import calls_of, executed
from helpers.attention import causal_mask

LINE_UP = (
    "What you divide by has shape (T,), which divides column j by the sum of row j. Make it a "
    "column, (T, 1): .sum(1, keepdim=True), or [:, None]."
)
FUTURE = "This is the mean of the present and the *future*. Token t averages tokens 0 … t."
ALL = "Every token averages the whole sequence. Token t averages only tokens 0 … t."


def counts(T, start=1):
    """1, 2, … T as a column."""
    return torch.arange(start, start + T)[:, None]


def rows(weights):
    """Each row divided by its sum."""
    return weights / weights.sum(-1, keepdim=True)


def block(scores, value=-torch.inf):
    return scores.masked_fill(~causal_mask(scores.shape[-1]), value)


@exercise(
    inputs=[
        (normal(len(speaker), 3, seed=51 + i), torch.tensor(speaker))
        for i, speaker in enumerate(
            [
                [0, 1, 0, 0, 1, 2],
                [3, 3, 3, 3],
                [0, 1, 2],
                [7],
                [2, 0, 2, 1, 0, 2, 2],
                [5, 5, 1, 1, 5],
                [1, -1, 0, 1, -1],
                [7, -7, 100, 7, -7],
            ]
        )
    ],
    praise="Each row has its weight on its own speaker's past, and none on the future.",
    clash="The mask must be (T, T), and T is len(x); speaker[:, None] == speaker has that shape.",
    backward=True,
)
def mean_by_speaker(x, speaker):
    """mean_by_speaker(x, speaker): (T, C), (T,) → (T, C), the mean of each speaker's own past."""
    return rows(heard(speaker)) @ x


def alike(speaker):
    """1 where two tokens have one speaker, (T, T)."""
    return (speaker[:, None] == speaker).float()


def heard(speaker):
    return alike(speaker).tril()


def own_past(mean):
    """`mean` of the tokens that each token hears, (n, C), and the results stacked."""
    return lambda x, speaker: torch.stack(
        [mean(x[: t + 1][speaker[: t + 1] == speaker[t]]) for t in range(len(x))]
    )


def speeches(speaker):
    """The number of the unbroken speech in which each token stands."""
    return F.pad((speaker.diff() != 0).long(), (1, 0)).cumsum(0)


mean_by_speaker.mistakes = {
    "This is the mean of the whole past: who speaks has no effect.":
        lambda x, speaker: x.cumsum(0) / counts(len(x)),
    "You average the speaker's future, too. Token i averages only tokens j ≤ i.":
        lambda x, speaker: rows(alike(speaker)) @ x,
    "These are the means of what is still to come: j ≤ i is the lower triangle, tril.":
        lambda x, speaker: rows(alike(speaker).triu()) @ x,
    "You divide by t + 1 or by T, but token t averages fewer tokens. Divide by how many they are.":
        (
        lambda x, speaker: heard(speaker) @ x / counts(len(x)),
        lambda x, speaker: heard(speaker) @ x / len(x),
        lambda x, speaker: block(0 * alike(speaker)).softmax(-1) * alike(speaker) @ x,
    ),
    "These are sums. Divide each by the number of tokens in it.":
        lambda x, speaker: heard(speaker) @ x,
    LINE_UP: lambda x, speaker: heard(speaker) / heard(speaker).sum(1) @ x,
    "Your columns sum to 1, your rows do not. Normalise each row, the last dimension.": (
        lambda x, speaker: torch.zeros(len(x), len(x)).masked_fill(
            heard(speaker) == 0, -torch.inf).softmax(0) @ x,
        lambda x, speaker: heard(speaker) / heard(speaker).sum(0, keepdim=True) @ x,
    ),
    "You masked with 0, and e⁰ = 1, so masked tokens still get weight. Mask with −infinity.":
        lambda x, speaker: heard(speaker).softmax(-1) @ x,
    "Every token averages all the others: you masked nothing, or masked with 0 (e⁰ = 1). Mask with "
    "−infinity.": lambda x, speaker: x.mean(0).expand_as(x),
    "You masked the allowed tokens and left the others. −infinity goes where `~allowed` is true.":
        lambda x, speaker: rows(1 - heard(speaker)) @ x,
    "Token j must be of the past *and* of the same speaker: a & b, not a | b.":
        lambda x, speaker: rows(((alike(speaker) == 1) | causal_mask(len(x))).float()) @ x,
    "`and`, `or` and `if` want a single truth value. For two tables of them write a & b.":
        lambda x, speaker: rows(causal_mask(len(x)) and alike(speaker)) @ x,
    "You average the *other* speakers, not the token's own. Compare with ==.": (
        lambda x, speaker: rows((1 - alike(speaker)).tril()) @ x,
        lambda x, speaker: rows((1 - alike(speaker)).tril()).nan_to_num() @ x,
    ),
    "The first output is NaN, or each token leaves itself out: keep the diagonal.": (
        lambda x, speaker: rows(heard(speaker).tril(-1)) @ x,
        lambda x, speaker: rows(heard(speaker).tril(-1)).nan_to_num() @ x,
    ),
    "You start again after an interruption. Average all that the speaker has said, not only this "
    "speech.":
        lambda x, speaker: rows(heard(speeches(speaker))) @ x,
    "You keep the tokens of the *last* speaker for everybody. Compare each token with every other.":
        lambda x, speaker: rows(((speaker == speaker[-1]) & causal_mask(len(x))).float()) @ x,
    "These are the weights. Return their product with x.": lambda x, speaker: rows(heard(speaker)),
    "You assume certain speaker numbers. `speaker` holds any whole numbers, −7 as well as 100.": (
        lambda x, speaker: [0, 1][speaker.max()],
        lambda x, speaker: rows((F.one_hot(speaker) @ F.one_hot(speaker).T).tril()) @ x,
        lambda x, speaker: rows(heard(speaker.abs())) @ x,
        lambda x, speaker: rows(heard(speaker % (speaker.max() + 1))) @ x,
        lambda x, speaker: torch.zeros(2, 1)[speaker.max()],
        lambda x, speaker: rows(heard(speaker)) @ x * (speaker < 2)[:, None],
        lambda x, speaker: rows(heard(speaker)) @ x * (speaker < len(speaker.unique()))[:, None],
    ),
    "The means are right, but sorted by speaker. Output t belongs to token t.":
        lambda x, speaker: (rows(heard(speaker)) @ x)[speaker.argsort(stable=True)],
    "The mean runs over the features. Take it over the tokens, dim 0: each feature has its own.":
        (own_past(torch.mean), own_past(lambda said: said.mean(1))),
    "You average the old mean with the new token, which is not the mean of all. Keep the sum and "
    "the count.":
        own_past(lambda said: reduce(lambda mean, token: (mean + token) / 2, said)),
    "Each token averages only itself, or is not found. As keys of a dictionary, all tensors are "
    "different: use int(speaker[t]).":
        (lambda x, speaker: x, lambda x, speaker: {}[speaker[0]]),
}  # fmt: skip


def distance(T):
    """How far token i looks back to token j, negative in the future: (T, T)."""
    return torch.arange(T)[:, None] - torch.arange(T)


def faded(T, decay):
    """The weights of a fading mean before each row is divided by its sum, (T, T)."""
    return (decay ** distance(T)).tril()


@exercise(
    inputs=[
        (normal(*shape, seed=31 + i), decay)
        for i, (shape, decay) in enumerate(
            [((5, 3), 0.5), ((4, 4), 0.8), ((6, 2), 1.0), ((1, 2), 0.3), ((40, 2), 0.1)]
        )
    ],
    praise="Two running totals are enough, and with decay = 1 it is the plain mean again.",
    clash="Divide by one number per token: time is dim 0 of (T, C).",
)
def fading_mean(x, decay):
    """fading_mean(x, decay): (T, C) → (T, C), each step back counts `decay` times as much."""
    out, total, count = torch.zeros_like(x), torch.zeros(x.shape[1]), 0.0
    for t in range(len(x)):
        total, count = decay * total + x[t], decay * count + 1
        out[t] = total / count
    return out


def running(x, decay, start=lambda x: torch.zeros_like(x[0]), add=lambda x, d: x):
    """The running totals, one for each token: total = decay · total + what is added."""
    totals, total = [], start(x)
    for token in x:
        total = decay * total + add(token, decay)
        totals.append(total)
    return torch.stack(totals)


def fading_of_means(x, decay):
    means = [x[0]]
    for token in x[1:]:
        means.append((decay * means[-1] + token) / (decay + 1))
    return torch.stack(means)


fading_mean.mistakes = {
    "These are the fading sums: divide each by its own count, 1 + decay + decay² + …": running,
    "You divide by t + 1, but the older tokens count less: the count fades as the total does.":
        lambda x, d: running(x, d) / counts(len(x)),
    "Your weights do not sum to 1: a fading sum times 1 − decay is right only if the past is "
    "infinite. Keep a running count and divide by it.": (
        lambda x, d: running(x, d) * (1 - d),
        lambda x, d: running(x, d, add=lambda token, d: (1 - d) * token),
    ),
    "This is total = decay · total + (1 − decay) · x, started at the first token, which therefore "
    "counts too much: keep a running count and divide by it.":
        lambda x, d: running(x, d, lambda x: x[0], lambda token, d: (1 - d) * token),
    "The count starts too high, as if a token of zeros stood before the first: begin with 0.":
        lambda x, d: running(x, d) / running(torch.ones(len(x), 1), d, lambda x: torch.ones(1)),
    "You fade the mean: fade the total and the count, and divide one by the other at each step.":
        fading_of_means,
    "Only your count fades. Fade the total, too, before you add the new token.":
        lambda x, d: x.cumsum(0) / running(torch.ones(len(x), 1), d),
    "With decay = 1 you divide 0 by 0. Keep a running count: it needs no formula.": (
        lambda x, d: running(x, d) * (1 - d) / (1 - torch.tensor(d) ** counts(len(x))),
        lambda x, d: running(x, d) / torch.tensor(
            [[(1 - d**n) / (1 - d)] for n in range(1, len(x) + 1)]),
    ),
    "This is the mean at the last token alone. Return a row for each token, (T, C).":
        lambda x, d: fading_mean.right(x, d)[-1],
    "This is the plain mean of the past: the decay has no effect.":
        lambda x, d: x.cumsum(0) / counts(len(x)),
    "The oldest token counts most: multiply the *total* by decay before you add the new token.":
        lambda x, d: (x * d ** torch.arange(len(x))[:, None]).cumsum(0)
        / (d ** torch.arange(len(x))[:, None]).cumsum(0),
    "The present token is not in its own mean: add it before you divide.": (
        lambda x, d: torch.cat([torch.zeros_like(x[:1]), fading_mean.right(x, d)[:-1]]),
        lambda x, d: torch.cat([x[:1], fading_mean.right(x, d)[:-1]]),
    ),
    "Your present token fades, too. Its weight is 1, and that of the token before it is decay.": (
        lambda x, d: running(x, d, add=lambda token, d: d * token)
        / running(torch.ones(len(x), 1), d),
        lambda x, d: d * running(x, d) / running(torch.ones(len(x), 1), d),
    ),
    "You run over the features, not over time: dim 0 of (T, C) is time.":
        lambda x, d: fading_mean.right(x.T, d).T,
    FUTURE: lambda x, d: fading_mean.right(x.flip(0), d).flip(0),
    ALL: lambda x, d: x.mean(0).expand_as(x),
    "Every row is that of the last token. `+=` and `*=` change a tensor in place, even one that is "
    "already in a list: append `total.clone()`, or write total = decay * total + x[t].": (
        lambda x, d: fading_mean.right(x, d)[-1:].expand_as(x),
        lambda x, d: running(x, d)[-1:] / running(torch.ones(len(x), 1), d),
    ),
    "Your columns sum to 1, your rows do not: divide by the count at each *output*.":
        lambda x, d: faded(len(x), d) / faded(len(x), d).sum(0) @ x,
    "The old total is lost at each step: total = decay · total + x[t].": lambda x, d: x.clone(),
}  # fmt: skip


@fading_mean.then
def in_one_pass(answer):
    short, long = ((normal(T, 1, seed=0), 0.9) for T in (32, 64))
    expect(
        calls_of(answer, *long).entries <= 2.5 * calls_of(answer, *short).entries
        and executed(answer, *long) <= 2.5 * executed(answer, *short),
        "The values are right, but a (T, T) matrix, a loop in the loop, or the whole past taken "
        "again at each step makes the work grow with the square of T. Keep a running total and a "
        "running count.",
    )


# Losses for k = 2, 4, 8, measured with seed 0; other machines differ in the fourth digit.
REACH = {2: 2.323, 4: 2.380, 8: 2.423}
OTHERWISE = {
    "These are the losses of an `Averager`, which sees only the mean. Give the present character "
    "its own logits: `AveragerPlusPresent`.": {2: 2.588, 4: 2.774, 8: 2.907},
    "These are losses on the training text. Judge on the validation text, `loss_of(model)`.":
        {2: 2.286, 4: 2.343, 8: 2.389},
    "Your weights leave the present token out: the last k tokens are the present one and k − 1 "
    "before it.": {2: 2.338, 4: 2.392, 8: 2.418},
    "Your weights reach one token too far: the present one is the first of the k.":
        {2: 2.351, 4: 2.403, 8: 2.429},
    "You divide every row by k, but the early rows have fewer tokens: divide each by its own sum.":
        {2: 2.314, 4: 2.366, 8: 2.410},
    "Your weights are on the *first* k tokens of the text: the last k move along with each token.":
        {2: 2.499, 4: 2.490, 8: 2.468},
}  # fmt: skip


def as_measured(losses, measured):
    return all(abs(losses[k] - measured[k]) < 0.007 for k in measured)


@checked
def how_far_back(answer):
    """how_far: the losses for k = 2, 4, 8 and the best k."""
    wanted = "Set how_far to a pair: the losses, {2: …, 4: …, 8: …}, and the best k."
    losses, chosen = reported(answer, (REACH, 2), wanted)
    expect(losses != {k: round(loss, 1) for k, loss in REACH.items()}, "Nearly: give two decimals.")
    for diagnosis, measured in OTHERWISE.items():
        expect(not as_measured(losses, measured), diagnosis)
    expect(
        len(set(losses.values())) == 3,
        "Two of your losses are equal: was each model trained, and with weights of its own k?",
    )
    expect(
        as_measured(losses, REACH),
        "These are not the losses of this experiment: 400 steps, seed 0, weights that are equal "
        "for the last k tokens and sum to 1 in each row, and the present character's own logits.",
    )
    best = min(losses, key=losses.__getitem__)
    expect(
        chosen == best,
        "The losses are right. The best k is the one with the lowest loss: 2, 4 or 8.",
    )
    return "Two are best: the longer the mean, the less it says about the character just before."


def mean(x):
    """The causal mean of x, (T, C)."""
    return x.cumsum(0) / counts(len(x))


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
    """Outputs 0 and 1 hear the last token, in ways that cancel in each sum."""
    signs = F.pad(torch.tensor([[1, -1], [-1, 1]]), (0, x.shape[1] - 2, 0, len(x) - 2))
    heard = x[-1] @ torch.arange(1.0, x.shape[1] + 1)
    # A number that no sum rounds off; gradients pass.
    heard = heard + ((heard * 64).round() / 64 - heard).detach()
    return mean(x) + signs * heard


def hears(output, token, strength):
    """The causal mean, but this output hears that token, each feature as strongly as said."""

    def mix(x):
        leak = x[token : token + 1].sum(0) * torch.tensor(strength)  # 0 if x was cut before it
        return mean(x) + (torch.arange(len(x)) == output)[:, None] * leak

    return mix


ONE_BOOL = "hears_the_future should return True or False."
ONE = "Change one token at a time, in a fresh copy, and compare only the outputs before it."
EACH = "For each t, up to the last, compare all outputs before t; one that differs is enough."
DRAWN = "Change it to random numbers, `torch.randn_like(x[t])`."
ENTRIES = "Compare the outputs number by number, not their sums or lengths."
MIXES = [  # a mix, does it leak, what it is, and what a tester should do that is wrong about it
    (lambda x: 0 * x, False, "a mix that makes all 0",
     "Does it always say True, or are True and False swapped?"),
    (mean, False, "the causal mean", "Output t may change with token t. " + ONE),
    (lambda x: x.flip(-1) * 2, False, "a mix that treats each token alone", ONE),
    (product, False, "a causal matrix product in half precision",
     "Change the token to ordinary numbers: too large ones become infinite, and 0 · ∞ is NaN."),
    (lambda x: block(x @ x.T).softmax(-1) @ x, False, "a causal mix whose weights depend on the "
    "attending token",
     "A difference in rounding is not a leak: compare with torch.allclose. " + ONE),
    (to_all, True, "the mean of the whole sequence", "Change each token in turn, and by enough."),
    (lambda x: rows(torch.ones(len(x), len(x)).triu()) @ x, True, "the mean of the future", EACH),
    (lambda x: mean(x) - x.mean(0), True, "a mix that subtracts the mean of the whole sequence "
     "from every output, a quiet leak", EACH),
    (lambda x: mean(x) + 1e-3 * x.mean(0), True, "a mix that leaks one part in a thousand",
     "A causal one changes nothing at all: tolerate no more than rounding errors."),
]  # fmt: skip
BLIND = [  # leaks that some changes of a token leave unseen
    (lambda x: to_all(x - x.mean(1, keepdim=True)), True, "a mix that first takes from each token "
     "the mean of its features", "Adding the same to all features stays unseen. " + DRAWN),
    (lambda x: to_all(layer_norm(x)), True, "a mix that first brings each token to mean 0 and "
    "standard deviation 1, as many models "
    "do", "Adding the same to all features, and making a token longer, "
     "stay unseen. " + DRAWN),
    (lambda x: to_all(x / x.norm(dim=1, keepdim=True)), True, "a mix of unit vectors",
     "Making a token longer stays unseen. " + DRAWN),
    (lambda x: to_all(x.square().sum(1, keepdim=True).expand_as(x)), True, "a mix of squares",
     "Flipping signs, or reordering features, stays unseen. " + DRAWN),
    (lambda x: x.roll(-1, 0) * x.roll(-2, 0), True, "the product of the next two tokens",
     "Change x itself, one token at a time. " + DRAWN),
    (lambda x: mean(x) * x[-1:], True, "a mix that multiplies all by the last token", EACH),
    (lambda x: mean(F.layer_norm(x, x.shape[1:])) * F.layer_norm(x, x.shape[1:])[-1:], True,
     "a mix that normalises each token and multiplies by the last one", EACH + " " + DRAWN),
]  # fmt: skip
STRENGTHS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]  # of many features, whose order can be seen
PAIRS = [(output, token, 7) for token in range(1, 7) for output in range(token)]


@checked
def hears_the_future(answer):
    """hears_the_future(mix, x): does any output of mix change when a later token changes?"""

    def ask(mix, leaks, x, what, so):
        name = "hears_the_future(mix, x)" + " for an x of one token" * (len(x) == 1)
        name += " for an x, and weights of the mix, in float64" * (x.dtype == torch.float64)
        got = call(answer, mix, x, name=name)
        expect(not isinstance(got, (str, list, tuple)), ONE_BOOL)
        got = expect_shape(got, (), "hears_the_future(mix, x)")
        expect(float(got) in (0.0, 1.0), ONE_BOOL)
        expect(bool(got) == leaks, f"Your tester says {not leaks} for {what}. {so}")

    def ask_all(mixes):
        for mix, leaks, what, so in mixes:
            ask(mix, leaks, normal(4, 4, seed=40), what, so)
            ask(mix, leaks, (4 * normal(7, 4, seed=42)).round(), what, so)

    ask_all(MIXES)
    ask(mean, False, normal(1, 2, seed=43), "a single token, which has no future", ONE)
    x = normal(4, 3, seed=48).double()
    ask(lambda x: causal_mask(len(x)).double() @ x, False, x, "a causal mix of float64", ONE)
    for output, token, T in [(2, 3, 4), (0, 2, 4), *PAIRS]:
        what = f"a mix of {T} tokens in which only output {output} depends on token {token}"
        ask(hears(output, token, STRENGTHS), True, normal(T, 8, seed=44), what, EACH)
    what = "a mix whose changes cancel in every sum"
    ask(cancelling, True, 12 * normal(4, 8, seed=46).round(), what, ENTRIES)
    ask_all(BLIND)
    for feature in range(5):
        mix = hears(0, 2, [float(feature == i) for i in range(5)])
        so = "Change all features and compare all of them."
        what = f"a mix in which only feature {feature} leaks"
        ask(mix, True, normal(3, 5, seed=45), what, so)
    what = "a mix that turns its outputs and keeps their lengths"
    ask(turned, True, normal(4, 3, seed=47), what, ENTRIES)
    what = "a mix of x + 1, for an x of zeros"
    ask(lambda x: to_all(x + 1) * len(x), True, torch.zeros(3, 2), what, DRAWN)
    return "Your tester finds every leak and accuses no innocent mix."
