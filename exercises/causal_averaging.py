"""The exercises of the chapter "Causal averaging"."""

import torch
import torch.nn.functional as F

from exercises.check import (
    WrongAnswer,
    call,
    checked,
    diagnose,
    exercise,
    expect,
    normal,
    reported,
    tensor,
)
from exercises.watch import calls_of, executed
from helpers.attention import causal_mask


def counts(T):
    """1, 2, … T as a column."""
    return torch.arange(1, T + 1)[:, None]


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
    same = (speaker[:, None] == speaker).float()
    allowed = same.tril()
    return allowed / allowed.sum(1, keepdim=True) @ x


mean_by_speaker.slips("""
    This is the mean of the whole past: who speaks has no effect.
        (speaker[:, None] == speaker).float() → torch.ones(len(x), len(x))
    You average the speaker's future, too. Token i averages only tokens j ≤ i.
        .tril() →
    These are sums. Divide each by the number of tokens in it.
        / allowed.sum(1, keepdim=True) →
    You divide by t + 1 or by T, but token t averages fewer tokens. Divide by how many they are.
        allowed.sum(1, keepdim=True) → counts(len(x))
        allowed.sum(1, keepdim=True) → len(x)
    What you divide by has shape (T,), which divides column j by the sum of row j. Make it a
    column, (T, 1): .sum(1, keepdim=True), or [:, None].
        , keepdim=True →
    Your columns sum to 1, your rows do not. Normalise each row, the last dimension.
        allowed / allowed.sum(1, keepdim=True) → allowed / allowed.sum(0)
    You masked with 0, and e⁰ = 1, so masked tokens still get weight. Mask with −infinity.
        allowed / allowed.sum(1, keepdim=True) → allowed.softmax(-1)
    You masked the allowed tokens and left the others. −infinity goes where `~allowed` is true.
        same.tril() → 1 - same.tril()
    `and`, `or` and `if` want a single truth value. For two tables of them write a & b.
        same.tril() → causal_mask(len(x)) and same
    Each token averages only itself, or is not found. As keys of a dictionary, all tensors are
    different: use int(speaker[t]).
        x
        {}[speaker[0]]
""")

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
    total, count, out = torch.zeros_like(x[0]), 0.0, []
    for token in x:
        total = decay * total + token
        count = decay * count + 1
        out.append(total / count)
    return torch.stack(out)


COUNTS = fading_mean.slip("total / count → torch.tensor([count])")
fading_mean.slips("""
    These are the fading sums: divide each by its own count, 1 + decay + decay² + …
        total / count → total
    You divide by t + 1, but the older tokens count less: the count fades as the total does.
        decay * count + 1 → count + 1
    Your weights do not sum to 1: a fading sum times 1 − decay is right only if the past is
    infinite. Keep a running count and divide by it.
        total / count → total * (1 - decay)
    This is total = decay · total + (1 − decay) · x, started at the first token, which therefore
    counts too much: keep a running count and divide by it.
        total + token → total + (1 - decay if out else 1) * token ; total / count → total
    You fade the mean: fade the total and the count, and divide one by the other at each step.
        decay * total + token → (decay * total + token) / (decay + 1 if out else 1)
        ; total / count → total
    With decay = 1 you divide 0 by 0. Keep a running count: it needs no formula.
        decay * count + 1 → (1 - torch.tensor(decay) ** (len(out) + 1)) / (1 - decay)
        decay * count + 1 → (1 - decay ** (len(out) + 1)) / (1 - decay)
    This is the mean at the last token alone. Return a row for each token, (T, C).
        right(x, decay)[-1]
    Your present token fades, too. Its weight is 1, and that of the token before it is decay.
        decay * right(x, decay)
    Every row is that of the last token. `+=` and `*=` change a tensor in place, even one that is
    already in a list: append `total.clone()`, or write total = decay * total + x[t].
        right(x, decay)[-1:].expand_as(x)
        right(x, decay)[-1:] * COUNTS(x, decay)[-1] / COUNTS(x, decay)
""")


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
    diagnose("""
        Nearly: give two decimals.
            losses == {k: round(loss, 1) for k, loss in REACH.items()}
        Two of your losses are equal: was each model trained, and with weights of its own k?
            len(set(losses.values())) < 3
        These are the losses of an `Averager`, which sees only the mean. Give the present
        character its own logits: `AveragerPlusPresent`.
            2.55 < losses[2] < 2.63 and 2.7 < losses[4] < 2.85
        These are losses on the training text. Judge on the validation text, `loss_of(model)`.
            2.27 < losses[2] < 2.30 and 2.33 < losses[4] < 2.36
        These are not the losses of this experiment: 400 steps, seed 0, weights that are equal
        for the last k tokens and sum to 1 in each row, and the present character's own logits.
            any(abs(losses[k] - loss) >= 0.007 for k, loss in REACH.items())
        The losses are right. The best k is the one with the lowest loss: 2, 4 or 8.
            chosen != min(losses, key=losses.get)
    """)
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
# A mix, what it is, and what a tester should do that is wrong about it.
INNOCENT = {
    lambda x: 0 * x: (
        "a mix that makes all 0",
        "Does it always say True, or are True and False swapped?",
    ),
    mean: ("the causal mean", "Output t may change with token t. " + ONE),
    product: (
        "a causal matrix product in half precision",
        "Change the token to ordinary numbers: too large ones become infinite, and 0 · ∞ is NaN.",
    ),
    causal_attention: (
        "a causal mix whose weights depend on the attending token",
        "A difference in rounding is not a leak: compare with torch.allclose. " + ONE,
    ),
}
LEAKY = {
    to_all: ("the mean of the whole sequence", "Change each token in turn, and by enough."),
    lambda x: mean(x) - x.mean(0): (
        "a mix that subtracts the mean of the whole sequence from every output, a quiet leak",
        EACH,
    ),
    lambda x: mean(x) + 1e-3 * x.mean(0): (
        "a mix that leaks one part in a thousand",
        "A causal one changes nothing at all: tolerate no more than rounding errors.",
    ),
}
BLIND = {  # leaks that some changes of a token leave unseen
    lambda x: to_all(layer_norm(x)): (
        "a mix that first brings each token to mean 0 and standard deviation 1, as many models do",
        "Adding the same to all features, and making a token longer, stay unseen. " + DRAWN,
    ),
    lambda x: to_all(x.square().sum(1, keepdim=True).expand_as(x)): (
        "a mix of squares",
        "Flipping signs, or reordering features, stays unseen. " + DRAWN,
    ),
    lambda x: x.roll(-1, 0) * x.roll(-2, 0): (
        "the product of the next two tokens",
        "Change x itself, one token at a time. " + DRAWN,
    ),
    normalised_product: (
        "a mix that normalises each token and multiplies by the last one",
        f"{EACH} {DRAWN}",
    ),
}
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

    def ask_all(mixes, leaks):
        for mix, (what, advice) in mixes.items():
            ask(mix, leaks, normal(4, 4, seed=40), what, advice)
            ask(mix, leaks, (4 * normal(7, 4, seed=42)).round(), what, advice)

    ask_all(INNOCENT, False)
    ask_all(LEAKY, True)
    ask(mean, False, normal(1, 2, seed=43), "a single token, which has no future", ONE)
    x = normal(4, 3, seed=48).double()
    ask(lambda x: causal_mask(len(x)).double() @ x, False, x, "a causal mix of float64", ONE)
    for output, token, T in [(2, 3, 4), (0, 2, 4), *PAIRS]:
        what = f"a mix of {T} tokens in which only output {output} depends on token {token}"
        ask(leaking(output, token, STRENGTHS), True, normal(T, 8, seed=44), what, EACH)
    what = "a mix whose changes cancel in every sum"
    ask(cancelling, True, 12 * normal(4, 8, seed=46).round(), what, ENTRIES)
    ask_all(BLIND, True)
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
