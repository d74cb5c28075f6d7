"""The exercises of "Causal averaging" beyond what their declaration says."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from exercises import causal_averaging as check


def probe(change=torch.randn_like, same=torch.allclose, places=range, seen=lambda t: slice(t)):
    """A hears_the_future; change: what becomes of a token; seen: the outputs that are compared."""

    def hears_the_future(mix, x):
        before = mix(x)
        for t in places(len(x)):
            changed = x.clone()
            changed[t] = change(x[t])
            if not same(mix(changed)[seen(t)], before[seen(t)]):
                return True
        return False

    return hears_the_future


def cut_off(mix, x):
    return any(not torch.allclose(mix(x[:t]), mix(x)[:t]) for t in range(1, len(x)))


def by_gradients(mix, x):
    gradients = torch.autograd.functional.jacobian(mix, x).abs().amax((1, 3))
    return bool((gradients.triu(1) > 1e-7).any())


def one_number_at_a_time(mix, x):
    tests = (
        torch.equal(mix(x + torch.eye(x.numel())[i].view_as(x))[: i // x.shape[1]],
                    mix(x)[: i // x.shape[1]])
        for i in range(x.numel())
    )  # fmt: skip
    return np.bool_(not all(tests))


def in_numpy(x, decay):
    out, total, count = [], 0, 0
    for token in x.numpy().astype(float):
        total, count = total * decay + token, count * decay + 1
        out.append(total / count)
    return np.array(out)


def by_recursion(x, decay):
    """The mean moves towards the new token by its share of the count."""
    out, count = [x[0]], 1.0
    for token in x[1:]:
        count = count * decay + 1
        out.append(out[-1] + (token - out[-1]) / count)
    return torch.stack(out)


def loop_in_loop(x, decay):
    out = []
    for t in range(len(x)):
        w = [decay ** (t - j) for j in range(t + 1)]
        out.append(sum(a * x[j] for j, a in enumerate(w)) / sum(w))
    return torch.stack(out)


def laid_end_to_end(x, decay):
    """Lays the outputs so far beside the next one: more copying, no more work."""
    out, total, count = x[:0], 0, 0
    for t in range(len(x)):
        total, count = total * decay + x.T[:, t], count * decay + 1
        out = torch.cat([out, (total / count)[None]])
    return out


def the_past_again(x, decay):
    weights = decay ** torch.arange(len(x) - 1, -1, -1.0)
    return torch.stack([weights[-t:] @ x[:t] / weights[-t:].sum() for t in range(1, len(x) + 1)])


def one_by_one(x, speaker):
    out = torch.zeros_like(x)
    for t in range(len(x)):
        own = [i for i in range(t + 1) if speaker[i] == speaker[t]]
        out[t] = x[own].mean(0)
    return out


def with_totals(x, speaker):
    """One running total a speaker."""
    totals, out = {}, []
    for token, who in zip(x, speaker.tolist(), strict=True):
        total, count = totals.get(who, (0, 0))
        totals[who] = total + token, count + 1
        out.append(totals[who][0] / totals[who][1])
    return torch.stack(out)


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (check.mean_by_speaker, one_by_one),
        (check.mean_by_speaker, with_totals),
        (check.fading_mean, in_numpy),
        (check.fading_mean, by_recursion),
        (check.fading_mean, laid_end_to_end),
        (check.how_far_back, ({2: 2.318, 4: 2.377, 8: 2.423}, 2)),
        (check.how_far_back, [{8: torch.tensor(2.42), 4: 2.38, 2: 2.32}, 2]),
        (check.hears_the_future, cut_off),
        (check.hears_the_future, by_gradients),
        (check.hears_the_future, one_number_at_a_time),
        (check.hears_the_future, probe(same=torch.equal)),
        (check.hears_the_future, probe(lambda token: token + 10 * torch.rand_like(token))),
        (check.hears_the_future, probe(lambda token: token + 0.1 * torch.randn_like(token))),
        (check.hears_the_future, probe(lambda token: token + torch.arange(1, 1 + len(token)))),
    ],
)  # fmt: skip
def test_there_is_more_than_one_right_answer(exercise, answer):
    report = exercise(answer)
    assert report.outcome == "right", report.message


def without_a_copy(mix, x):
    before = mix(x)
    x[3:] += 1
    return not torch.allclose(mix(x)[:3], before[:3])


def the_first_t_alone(mix, x):
    return probe(places=lambda T: range(1, T)[:1])(mix, x)


def the_last_t_wins(mix, x):
    return bool([probe(places=lambda T, t=t: [t])(mix, x) for t in range(len(x))][-1])


def in_one_copy(mix, x):
    changed = x.clone()
    for t in range(len(x)):
        changed[t] = torch.randn_like(x[t])
        if not torch.allclose(mix(changed)[:t], mix(x)[:t]):
            return True
    return False


def compare(of):
    """A probe that compares no more than this of the outputs."""
    return probe(same=lambda a, b: not len(a) or torch.allclose(of(a), of(b), atol=1e-6))


WRONG = [
    (check.mean_by_speaker, lambda x, speaker: one_by_one(x.detach(), speaker), "no gradient"),
    (check.mean_by_speaker, lambda x, speaker: one_by_one(x, speaker)[-1], "shape (6, 3)"),
    (check.mean_by_speaker, lambda x, speaker: torch.ones(3, 3).tril() @ x, "must be (T, T)"),
    (check.fading_mean, lambda x, d: check.rows(check.faded(len(x), d)) @ x, "a (T, T) matrix"),
    (check.fading_mean, loop_in_loop, "a loop in the loop"),
    (check.fading_mean, the_past_again, "the whole past taken again"),
    (check.fading_mean, lambda x, d: x.mean(0), "should have shape (5, 3), but has (3,)"),
    (check.how_far_back, ({2: 2.32, 4: 2.38, 8: 2.42}, 8), "with the lowest loss"),
    (check.how_far_back, ({2: 2.32, 4: 2.38, 8: 2.42}, 2.32), "The best k is the one"),
    (check.how_far_back, ({2: 4.174, 4: 4.174, 8: 4.174}, 2), "Two of your losses are equal"),
    (check.how_far_back, ({2: 2.3, 4: 2.4, 8: 2.4}, 2), "two decimals"),
    (check.how_far_back, ({2: 2.32, 4: 2.38}, 2), "nothing for 8"),
    (check.how_far_back, 2, "a pair"),
    (check.how_far_back, ({2: 2.5, 4: 2.4, 8: 2.3}, 8), "not the losses of this experiment"),
    *((check.how_far_back, (losses, 2), says) for says, losses in check.OTHERWISE.items()),
    (check.hears_the_future, lambda mix, x: False, "says False for the mean of the whole"),
    (check.hears_the_future, lambda mix, x: True, "Does it always say True"),
    (check.hears_the_future, lambda mix, x: 7, "True or False"),
    (check.hears_the_future, lambda mix, x: [1, 2], "True or False"),
    (check.hears_the_future, lambda mix, x: [], "True or False"),
    (check.hears_the_future, lambda mix, x: probe()(mix, x) if len(x) > 1 else None,
     "for an x of one token returned None"),
    (check.hears_the_future, without_a_copy, "changed its input"),
    (check.hears_the_future, lambda mix, x: probe()(mix, x.float()), "in float64 raised"),
    (check.hears_the_future, in_one_copy, "in a fresh copy"),
    (check.hears_the_future, the_first_t_alone, "output 2 depends on token 3"),
    (check.hears_the_future, the_last_t_wins, "output 0 depends on token 2"),
    (check.hears_the_future, probe(places=lambda T: [0]), "says False for the mean of the whole"),
    (check.hears_the_future, probe(places=lambda T: [T - 1]), "output 0 depends on token 2"),
    (check.hears_the_future, probe(places=lambda T: range(T - 1)), "output 2 depends on token 3"),
    (check.hears_the_future, probe(places=lambda T: range(2, T)), "output 0 depends on token 1"),
    (check.hears_the_future, probe(places=lambda T: range(min(T, 4))), "a mix of 7 tokens"),
    (check.hears_the_future, probe(seen=lambda t: slice(t + 1)), "compare only the outputs"),
    (check.hears_the_future, probe(seen=lambda t: slice(max(t - 1, 0), t)), "compare all outputs"),
    (check.hears_the_future, probe(seen=lambda t: slice(min(t, 1))), "compare all outputs"),
    (check.hears_the_future, probe(lambda token: token * 2), "Change it to random numbers"),
    (check.hears_the_future, probe(lambda token: token * 3), "a mix of unit vectors"),
    (check.hears_the_future, probe(lambda token: -token), "a mix of squares"),
    (check.hears_the_future, probe(lambda token: token.roll(1)), "a mix of squares"),
    (check.hears_the_future, probe(torch.zeros_like), "for an x of zeros"),
    (check.hears_the_future, probe(lambda token: token + torch.arange(len(token))), "feature 0"),
    (check.hears_the_future, probe(lambda token: token + 1e6 * torch.randn_like(token)), "0 · ∞"),
    (check.hears_the_future, probe(lambda token: token * torch.nan), "0 · ∞"),
    (check.hears_the_future, lambda mix, x: probe()(mix, 0 * x), "Change x itself"),
    (check.hears_the_future, compare(lambda out: out[:, 0]), "compare all of them"),
    (check.hears_the_future, compare(lambda out: out.sum(0)), "cancel in every sum"),
    (check.hears_the_future, compare(lambda out: out.sum(1)), "cancel in every sum"),
    (check.hears_the_future, compare(lambda out: out.sum()), "cancel in every sum"),
    (check.hears_the_future, probe(lambda token: token[torch.randperm(len(token))]), "of squares"),
    (check.hears_the_future, lambda *given: not probe()(*given), "True and False swapped"),
    (check.hears_the_future, compare(lambda out: out.norm(dim=1)), "keeps their lengths"),
    (check.hears_the_future, compare(lambda out: out.round(decimals=1)), "one part in a thousand"),
    *((check.hears_the_future, probe(lambda token, add=add: token + add, same), "Adding the same")
      for add, same in itertools.product((0.1, 1, 100), (torch.allclose, torch.equal))),
]  # fmt: skip


@pytest.mark.parametrize(("exercise", "answer", "words"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(exercise, answer, words):
    report = exercise(answer)
    assert report.outcome == "not yet"
    assert words in report.message, report.message


@pytest.mark.parametrize("seed", range(5))
def test_a_random_change_sees_through_normalisation(seed):
    """The solution finds what + 1 is blind to, whatever is drawn."""
    torch.manual_seed(seed)
    x = torch.randn(5, 16)
    leak = lambda x: F.layer_norm(x, (16,)).mean(0, keepdim=True).expand_as(x)  # noqa: E731
    assert probe()(leak, x) and not probe(lambda token: token + 1)(leak, x)
