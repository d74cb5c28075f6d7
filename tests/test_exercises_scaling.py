"""The exercises of chapter 05: each known mistake gets its diagnosis, other right answers pass."""

import math

import pytest
import torch

from exercises import mistakes05
from exercises import scaling as check

# --- other right answers ----------------------------------------------------------------------


def scaled_query(x, query, key):
    q = query(x)
    return (q * q.shape[-1] ** -0.5 @ key(x).mT).softmax(-1)


def by_autograd(scores):
    return torch.autograd.functional.jacobian(lambda s: s.softmax(-1), scores)


def two_loops(scores):
    w = scores.softmax(-1).tolist()
    return [[a * ((i == j) - b) for j, b in enumerate(w)] for i, a in enumerate(w)]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("head_weights", scaled_query),
        ("right_divisor", lambda d, a, b: torch.tensor(d).sqrt() * a * b),
        ("row_entropy", lambda w: torch.special.entr(w).sum(-1)),
        ("row_entropy", lambda w: torch.distributions.Categorical(probs=w).entropy()),
        ("softmax_jacobian", by_autograd),
        ("softmax_jacobian", two_loops),
    ],
)
def test_other_ways_are_right_too(name, answer):
    report = getattr(check, name)(answer)
    assert report.outcome == "right", report.message


# --- mistakes ---------------------------------------------------------------------------------


def weights_with(power=0.5, length=lambda q, x: q.shape[-1], dim=-1, after=1.0):
    def answer(x, query, key):
        q, k = query(x), key(x)
        n = length(q, x)
        return (q @ k.mT / n**power).softmax(dim) / n ** (after - 1)

    return answer


def masked(q, k):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -math.inf).softmax(-1)


def jacobian_with(combine):
    return lambda scores: combine(scores.softmax(-1), torch.outer(*[scores.softmax(-1)] * 2))


def bisect(measure, *, invert=False, low=1e-5, high=1e5):
    def answer(scores, target):
        a, b = low, high
        for _ in range(80):
            middle = math.sqrt(a * b)
            a, b = (middle, b) if measure((scores / middle).softmax(-1)) < target else (a, middle)
        return 1 / middle if invert else middle

    return answer


def nats(w):
    return torch.special.entr(w).sum(-1)


def width(q, x):
    return x.shape[-1]


MISTAKES = [
    ("head_weights", weights_with(power=0), "scale is missing"),
    ("head_weights", weights_with(power=1), "hs itself"),
    ("head_weights", weights_with(length=width), "√C, the width of x"),
    ("head_weights", weights_with(power=1, length=width), "by C, the width"),
    ("head_weights", weights_with(length=lambda q, x: q.shape[1]), "√T"),
    ("head_weights", weights_with(power=-0.5), "You multiply by √hs"),
    ("head_weights", weights_with(power=0, after=1.5), "after the softmax"),
    ("head_weights", weights_with(power=0, after=2), "after the softmax, and by hs"),
    ("head_weights", weights_with(dim=-2), "over dim -2"),
    ("head_weights", lambda x, q, k: q(x) @ k(x).mT, "raw scores"),
    ("head_weights", lambda x, q, k: q(x) @ k(x).mT / q(x).shape[-1] ** 0.5, "softmax over the la"),
    ("head_weights", lambda x, q, k: scaled_query(x, k, q), "swapped"),
    ("head_weights", lambda x, q, k: masked(q(x), k(x)), "no mask is asked for"),
    ("head_weights", weights_with(length=lambda q, x: 3), "should be"),  # not "you divide by √T"
    ("right_divisor", lambda d, a, b: d * a**2 * b**2, "This is the variance"),
    ("right_divisor", lambda d, a, b: math.sqrt(d), "right for standard deviations of 1"),
    ("right_divisor", lambda d, a, b: d, "This is d"),
    ("right_divisor", lambda d, a, b: d * a * b, "variances add up"),
    ("right_divisor", lambda d, a, b: math.sqrt(d * a * b), "roots already"),
    ("right_divisor", lambda d, a, b: 1 / (math.sqrt(d) * a * b), "multiplied by"),
    ("right_divisor", lambda d, a, b: math.sqrt(d) / a / b, "larger divisor"),
    ("right_divisor", lambda d, a, b: a * b, "√d is missing"),
    ("right_divisor", lambda d, a, b: math.sqrt(d) * (a + b), "do not add here"),
    ("row_entropy", lambda w: -nats(w), "sign is wrong"),
    ("row_entropy", lambda w: -(w * w.log2()).sum(-1), "in bits"),
    ("row_entropy", lambda w: (w * w.log2()).sum(-1), "log2, and the sign"),
    ("row_entropy", lambda w: -(w * w.log10()).sum(-1), "log10"),
    ("row_entropy", lambda w: -(w * w.log()).sum(-1), "0 · ln 0"),
    ("row_entropy", lambda w: nats(w).exp(), "number of tokens heard"),
    ("row_entropy", lambda w: -w.log().sum(-1), "in front of the logarithm is missing"),
    ("row_entropy", lambda w: -w.log().mean(-1), "plain mean of the surprises"),
    ("row_entropy", lambda w: torch.special.entr(w).mean(-1), "averaged over the row"),
    ("row_entropy", torch.special.entr, "single terms"),
    ("row_entropy", lambda w: nats(w).sum(), "summed everything"),
    ("row_entropy", lambda w: nats(w).mean(), "averaged over the rows"),
    ("row_entropy", lambda w: torch.special.entr(w).sum(0), "dim 0"),
    ("softmax_jacobian", jacobian_with(lambda w, o: w.diag() + o), "minus w wᵀ"),
    ("softmax_jacobian", jacobian_with(lambda w, o: w.diag() + o - 2 * (w * w).diag()), "positive"),
    ("softmax_jacobian", jacobian_with(lambda w, o: o - w.diag()), "turned round"),
    ("softmax_jacobian", jacobian_with(lambda w, o: (w * (1 - w)).diag()), "diagonal alone"),
    ("softmax_jacobian", jacobian_with(lambda w, o: w * (1 - w)), "only the numbers"),
    ("softmax_jacobian", jacobian_with(lambda w, o: (w - w * w).diag() - o), "twice"),
    ("softmax_jacobian", jacobian_with(lambda w, o: w.diag() - w * w), "only the squares"),
    ("softmax_jacobian", jacobian_with(lambda w, o: w.diag() - w @ w), "single number"),
    ("softmax_jacobian", jacobian_with(lambda w, o: w.diag()), "- w wᵀ is missing"),
    ("softmax_jacobian", jacobian_with(lambda w, o: -o), "diag(w) is missing"),
    ("softmax_jacobian", jacobian_with(lambda w, o: torch.eye(len(w)) - o), "identity"),
    ("softmax_jacobian", lambda s: s.diag() - torch.outer(s, s), "softmax first"),
    ("softmax_jacobian", lambda s: (s.sigmoid() * (1 - s.sigmoid())).diag(), "sigmoid"),
    ("find_divisor", bisect(lambda w: nats(w).mean(), invert=True), "divisor is 1 over it"),
    ("find_divisor", bisect(lambda w: nats(w).mean() / math.log(2)), "in bits"),
    ("find_divisor", bisect(lambda w: nats(w.mean(0))), "averaged weights"),
    ("find_divisor", bisect(lambda w: nats(w).sum()), "not their sum"),
    ("find_divisor", lambda scores, target: scores.std(), "divide by"),
    ("find_divisor", lambda scores, target: scores.shape[-1] ** 0.5, "too sharp"),
    ("find_divisor", lambda scores, target: 1e6, "too flat"),
    ("find_divisor", lambda scores, target: -1.0, "positive finite number"),
    ("find_divisor", lambda scores, target: scores, "one number"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answer", "diagnosis"), MISTAKES)
def test_a_known_mistake_is_named(name, answer, diagnosis):
    report = getattr(check, name)(answer)
    assert report.outcome == "not yet"
    assert diagnosis in report.message, report.message


@pytest.mark.parametrize(
    ("mistakes", "shapes"),
    [
        (mistakes05.weight_mistakes, [(2, 5, 12), (2, 5, 3), (2, 5, 3)]),
        (mistakes05.entropy_mistakes, [(4, 6)]),
        (mistakes05.jacobian_mistakes, [(5,)]),
    ],
)
def test_no_two_mistakes_look_alike(mistakes, shapes):
    given = [
        torch.randn(s, generator=torch.Generator().manual_seed(i)) for i, s in enumerate(shapes)
    ]
    if mistakes is mistakes05.entropy_mistakes:
        given = [given[0].softmax(-1)]
    values = list(mistakes(*given).values())
    for i, one in enumerate(values):
        for other in values[:i]:
            assert one.shape != other.shape or not torch.allclose(one, other, atol=1e-3)


def test_inputs_must_not_be_changed():
    assert "in place" in check.row_entropy(lambda w: nats(w.clamp_(1e-3))).message
